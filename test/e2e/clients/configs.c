/* SPDX-License-Identifier: Apache-2.0 */
/* C01, C02, C04: programs that were built with another nccl.h hand over its ncclConfig_t. */
#include "test/e2e/clients/ranks.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The fields that all versions have at these places. */
struct head {
    size_t size;
    unsigned magic, version;
    int blocking;
};
#define MAGIC 0xcafebeefu
#define JUNK 0x5a /* in what the version does not have: padding, and a tail that is the program's own */

/* An object of `size` bytes at the very end of a page; the next one can't be touched. */
static unsigned char *at_page_end(size_t size, unsigned version, unsigned magic)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct head head = {size, magic, version, INT_MIN};
    unsigned char *two, *at;

    two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(two != MAP_FAILED && mprotect(two + page, page, PROT_NONE) == 0);
    at = two + page - size;
    memset(at, JUNK, size);
    memcpy(at, &head, offsetof(struct head, blocking) + sizeof(int));
    return at;
}

static void put_int(unsigned char *at, size_t offset, int n)
{
    memcpy(at + offset, &n, sizeof(n));
}

/* cgaClusterSize, minCTAs, maxCTAs and netName of 2.17, splitShare of 2.18. */
static void undefine_2_18(unsigned char *at)
{
    for (size_t offset = 20; offset < 32; offset += 4)
        put_int(at, offset, INT_MIN);
    memset(at + 32, 0, 8);
    put_int(at, 40, INT_MIN);
}

static ncclUniqueId next_id(struct rank *r)
{
    static ncclUniqueId id;

    wait_all(r);
    if (r->number == 0)
        NC(ncclGetUniqueId(&id));
    wait_all(r);
    return id;
}

static void one_caller(struct rank *r, unsigned char *config, ncclResult_t expected)
{
    const struct head *head = (const void *)config;
    ncclUniqueId id = next_id(r);
    size_t size = head->size;
    unsigned char *before = malloc(size);
    ncclComm_t comm = NULL;

    memcpy(before, config, size);
    NEED(ncclCommInitRankConfig(&comm, RANKS, id, r->number, (ncclConfig_t *)config) == expected);
    NEED(memcmp(before, config, size) == 0);
    free(before);
    if (expected != ncclSuccess)
        return;
    NC(ncclAllReduce((void *)r->buffer, (void *)r->buffer, 1000, ncclFloat, ncclSum, comm, (cudaStream_t)r->stream));
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
    NC(ncclCommDestroy(comm));
}

static void callers_body(struct rank *r)
{
    unsigned char *oldest = at_page_end(24, 21403, MAGIC);
    unsigned char *old = at_page_end(48, 21803, MAGIC);
    unsigned char *larger = at_page_end(160, 24000, MAGIC);
    unsigned char *wrong = at_page_end(48, 21803, 0xdead);
    ncclConfig_t ours = NCCL_CONFIG_INITIALIZER;

    undefine_2_18(old);
    undefine_2_18(wrong);
    memcpy(larger + 16, (unsigned char *)&ours + 16, sizeof(ours) - 16);
    for (size_t offset = sizeof(ours); offset < 96; offset += 4)
        put_int(larger, offset, INT_MIN); /* what is newer than this program's nccl.h, and in the simulator */
    one_caller(r, oldest, ncclSuccess);
    one_caller(r, old, ncclSuccess);
    one_caller(r, larger, ncclSuccess);
    one_caller(r, wrong, ncclInvalidArgument);
    NC(ncclCommInitRankConfig(&r->comm, RANKS, next_id(r), r->number, NULL));
}

static void callers(void)
{
    on_ranks(callers_body, false);
}

/* A parent with a maximum and a name; a child that inherits; one without members; three in one group. */
static void children_body(struct rank *r)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t child, none, three[3];
    ncclUniqueId id[3] = {next_id(r), next_id(r), next_id(r)};

    config.maxCTAs = 8;
    config.commName = "parent";
    NC(ncclCommInitRankConfig(&r->comm, RANKS, next_id(r), r->number, &config));
    NC(ncclCommSplit(r->comm, 0, r->number, &child, NULL));
    NC(ncclCommSplit(r->comm, NCCL_SPLIT_NOCOLOR, 0, &none, NULL));
    NEED(none == NULL);
    NC(ncclGroupStart());
    for (int i = 0; i < 3; i++)
        NC(ncclCommInitRank(&three[i], RANKS, id[i], r->number));
    NC(ncclGroupEnd());
    for (int i = 0; i < 3; i++) {
        for (int n = 0; n <= i; n++)
            NC(ncclAllReduce((void *)r->buffer, (void *)r->buffer, 1000, ncclFloat, ncclSum, three[i],
                             (cudaStream_t)r->stream));
        CU(cuStreamSynchronize(r->stream));
        wait_all(r);
        NC(ncclCommDestroy(three[i]));
    }
    NC(ncclCommDestroy(child));
}

static void children(void)
{
    on_ranks(children_body, false);
}

const struct shape config_shapes[] = {
    {"config-callers", callers},
    {"config-children", children},
    {NULL, NULL},
};
