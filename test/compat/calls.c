/* SPDX-License-Identifier: Apache-2.0 */
#include "test/compat/calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/driver.h"

#define RANKS 2
#define COPIES 2
#define COUNT 256 /* ints */

static void give_up(const char *what, int result)
{
    fprintf(stderr, "client: %s: %d\n", what, result);
    fflush(stdout);
    _Exit(1);
}

#define NC(e)                    \
    do {                         \
        ncclResult_t r_ = (e);   \
        if (r_ != ncclSuccess)   \
            give_up(#e, (int)r_); \
    } while (0)
#define CU(e)                    \
    do {                         \
        CUresult r_ = (e);       \
        if (r_ != CUDA_SUCCESS)  \
            give_up(#e, (int)r_); \
    } while (0)

void calls_find(struct calls *c, void *(*find)(const char *name))
{
#define X(name)                                        \
    c->name = (__typeof__(c->name))find("nccl" #name); \
    if (!c->name)                                      \
        give_up("look-up of nccl" #name, 0);
    CALLS(X)
#undef X
}

static int in_shim(const char *name, const void *address)
{
    Dl_info info = {.dli_fname = "nowhere"};
    const char *slash;

    dladdr(address, &info);
    slash = strrchr(info.dli_fname, '/');
    if (!strcmp(slash ? slash + 1 : info.dli_fname, "libncclshim.so"))
        return 1;
    printf("elsewhere %s %s\n", name, info.dli_fname);
    return 0;
}

void calls_where(const struct calls *c)
{
    int n = 0;

#define X(name) n += in_shim("nccl" #name, (const void *)c->name);
    CALLS(X)
#undef X
    printf("shim %d\n", n);
}

void calls_absent(const char *names, void *(*find)(const char *name))
{
    char name[128];

    for (const char *p = names; p && *p; p += strspn(p, ",")) {
        size_t len = strcspn(p, ",");
        snprintf(name, sizeof(name), "%.*s", (int)len, p);
        p += len;
        if (find(name))
            printf("found %s\n", name);
    }
}

void calls_without_gpu(const struct calls *c)
{
    static const ncclUniqueId none;
    ncclUniqueId a = none, b = none;
    int version = 0;

    NC(c->GetVersion(&version));
    printf("version %d\n", version);
    NC(c->GetUniqueId(&a));
    NC(c->GetUniqueId(&b));
    if (!memcmp(&a, &none, sizeof(a)) || !memcmp(&a, &b, sizeof(a)))
        give_up("unique ids are empty or equal", 0);
    puts("id good");
    NC(c->GroupStart());
    NC(c->GroupStart());
    NC(c->GroupEnd());
    NC(c->GroupEnd());
    if (c->GroupEnd() == ncclSuccess)
        give_up("a group end without a start succeeded", 0);
    puts("group good");
    printf("error %s\n", c->GetErrorString(ncclInvalidArgument));
}

struct job {
    int rank, copies, rounds;
    const struct calls *const *c;
    const ncclUniqueId *id;
};

struct gpu {
    CUdeviceptr buffer[COPIES];
    CUstream stream;
    ncclComm_t comm[COPIES];
};

static pthread_barrier_t all;

static void fill(struct gpu *g, const struct job *j)
{
    int numbers[COUNT];

    for (int i = 0; i < COUNT; i++)
        numbers[i] = j->rank + i;
    for (int k = 0; k < j->copies; k++)
        CU(cu.cuMemcpyHtoD(g->buffer[k], numbers, sizeof(numbers)));
}

/* After one all-reduce of rank + i, over both ranks. */
static void check(struct gpu *g, const struct job *j)
{
    int numbers[COUNT];

    CU(cu.cuStreamSynchronize(g->stream));
    for (int k = 0; k < j->copies; k++) {
        CU(cu.cuMemcpyDtoH(numbers, g->buffer[k], sizeof(numbers)));
        for (int i = 0; i < COUNT; i++)
            if (numbers[i] != 2 * i + 1)
                give_up("wrong sum", numbers[i]);
    }
}

static void reduce(struct gpu *g, const struct job *j, int k)
{
    NC(j->c[k]->AllReduce((void *)g->buffer[k], (void *)g->buffer[k], COUNT, ncclInt32, ncclSum, g->comm[k],
                          (cudaStream_t)g->stream));
}

/* One all-reduce on each copy's communicator: every second round in groups, the first to open the last to close. */
static void one_round(struct gpu *g, const struct job *j, bool grouped)
{
    for (int k = 0; grouped && k < j->copies; k++)
        NC(j->c[k]->GroupStart());
    for (int k = 0; k < j->copies; k++)
        reduce(g, j, k);
    for (int k = j->copies; grouped && k-- > 0;)
        NC(j->c[k]->GroupEnd());
}

static void *rank_main(void *arg)
{
    const struct job *j = arg;
    CUcontext ctx;
    CUdevice dev;
    struct gpu g;

    CU(cu.cuDeviceGet(&dev, j->rank));
    CU(cu.cuDevicePrimaryCtxRetain(&ctx, dev));
    CU(cu.cuCtxSetCurrent(ctx));
    CU(cu.cuStreamCreate(&g.stream, CU_STREAM_NON_BLOCKING));
    for (int k = 0; k < j->copies; k++) {
        int count = 0, rank = -1;
        CU(cu.cuMemAlloc(&g.buffer[k], COUNT * sizeof(int)));
        pthread_barrier_wait(&all);
        NC(j->c[k]->CommInitRank(&g.comm[k], RANKS, j->id[k], j->rank));
        NC(j->c[k]->CommCount(g.comm[k], &count));
        NC(j->c[k]->CommUserRank(g.comm[k], &rank));
        if (count != RANKS || rank != j->rank)
            give_up("wrong size or rank", rank);
    }
    for (int i = 0; i < j->rounds; i++) {
        pthread_barrier_wait(&all);
        fill(&g, j);
        pthread_barrier_wait(&all);
        one_round(&g, j, i & 1);
        check(&g, j);
    }
    pthread_barrier_wait(&all);
    for (int k = 0; k < j->copies; k++)
        NC(j->c[k]->CommDestroy(g.comm[k]));
    return NULL;
}

void calls_with_gpus(const struct calls *const *c, int copies, int rounds)
{
    const char *missing = driver_load();
    ncclUniqueId id[COPIES];
    struct job jobs[RANKS];
    pthread_t threads[RANKS];

    if (missing)
        give_up(missing, 0);
    CU(cu.cuInit(0));
    for (int k = 0; k < copies; k++)
        NC(c[k]->GetUniqueId(&id[k]));
    pthread_barrier_init(&all, NULL, RANKS);
    for (int i = 0; i < RANKS; i++) {
        jobs[i] = (struct job){i, copies, rounds, c, id};
        if (pthread_create(&threads[i], NULL, rank_main, &jobs[i]))
            give_up("a thread", 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    puts("sums good");
}

void calls_main(const struct calls *const *c, int copies)
{
    const char *rounds = getenv("COMPAT_ROUNDS");

    for (int k = 0; k < copies; k++) {
        calls_where(c[k]);
        calls_without_gpu(c[k]);
    }
    if (rounds && atoi(rounds) > 0)
        calls_with_gpus(c, copies, atoi(rounds));
    fflush(stdout);
}
