/* SPDX-License-Identifier: Apache-2.0 */
/* C03, C04: communicators however they are born and die. */
#include "test/e2e/clients/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Through each way in; every communicator does `number` all-reduces, a number of its own. */
static void use(struct rank *r, ncclComm_t comm, int number)
{
    for (int i = 0; i < number; i++)
        NC(ncclAllReduce((void *)r->buffer, (void *)r->buffer, 1000, ncclFloat, ncclSum, comm, (cudaStream_t)r->stream));
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
}

static void ways_body(struct rank *r)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    static ncclUniqueId ids[3];
    ncclComm_t comm, child;

    if (r->number == 0)
        for (int i = 0; i < 3; i++)
            NC(ncclGetUniqueId(&ids[i]));
    wait_all(r);
    config.commName = "with-config";
    config.maxCTAs = 8;
    NC(ncclCommInitRankConfig(&comm, RANKS, ids[0], r->number, &config));
    use(r, comm, 1);
    NC(ncclCommSplit(comm, 0, r->number, &child, NULL));
    use(r, child, 2);
    NC(ncclCommDestroy(child));
    NC(ncclCommSplit(comm, r->number == 0 ? NCCL_SPLIT_NOCOLOR : 0, 0, &child, NULL));
    NEED((child == NULL) == (r->number == 0));
    if (child)
        NC(ncclCommDestroy(child));
    NC(ncclCommFinalize(comm));
    NC(ncclCommDestroy(comm));
    NC(ncclCommInitRankScalable(&comm, RANKS, r->number, 1, &ids[1], NULL));
    use(r, comm, 3);
    NC(ncclCommAbort(comm));
    NC(ncclGroupStart());
    NC(ncclCommInitRank(&comm, RANKS, ids[2], r->number));
    NC(ncclGroupEnd());
    use(r, comm, 4);
    NC(ncclCommDestroy(comm));
}

static void ways(void)
{
    on_ranks(ways_body, false);
}

/* `own`: on a stream of each device's own; else on its legacy stream, whose name is that of the current context's. */
static void over_devices(bool own)
{
    struct device d[RANKS];

    on_devices(d, own);
    for (int n = 0; n < 7; n++)
        reduce_devices(d, 1000);
    for (int i = 0; i < RANKS; i++) {
        CU(cuCtxSetCurrent(d[i].ctx));
        CU(cuStreamSynchronize(d[i].stream));
    }
    for (int i = 0; i < RANKS; i++)
        NC(ncclCommDestroy(d[i].comm));
}

static void init_all(void)
{
    over_devices(true);
}

static void init_all_legacy(void)
{
    over_devices(false);
}

static void wait_ready(ncclComm_t comm)
{
    ncclResult_t state;

    do
        NC(ncclCommGetAsyncError(comm, &state));
    while (state == ncclInProgress);
    NEED(state == ncclSuccess);
}

static void nonblocking_body(struct rank *r)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    static ncclUniqueId id;
    ncclResult_t result;
    ncclComm_t comm;

    if (r->number == 0)
        NC(ncclGetUniqueId(&id));
    wait_all(r);
    config.blocking = 0;
    result = ncclCommInitRankConfig(&comm, RANKS, id, r->number, &config);
    NEED(result == ncclSuccess || result == ncclInProgress);
    wait_ready(comm);
    if (getenv("SHAPES_CAPTURE"))
        CU(cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < 5; i++) {
        result = ncclAllReduce((void *)r->buffer, (void *)r->buffer, 1000, ncclFloat, ncclSum, comm,
                               (cudaStream_t)r->stream);
        NEED(result == ncclSuccess || result == ncclInProgress);
        wait_ready(comm);
    }
    if (getenv("SHAPES_CAPTURE")) {
        CUgraph graph;
        CU(cuStreamEndCapture(r->stream, &graph));
        CU(cuGraphDestroy(graph));
    }
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
    result = ncclCommFinalize(comm);
    NEED(result == ncclSuccess || result == ncclInProgress);
    wait_ready(comm);
    NC(ncclCommDestroy(comm));
}

/* The device is reset between two communicators, as programs do with cudaDeviceReset. One GPU after the other. */
static void after_reset_body(struct rank *r)
{
    static ncclUniqueId id;
    CUdevice dev;

    NC(reduce(r, 1000, r->stream));
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
    NC(ncclCommDestroy(r->comm));
    wait_all(r);
    CU(cuCtxGetDevice(&dev));
    CU(cuDevicePrimaryCtxReset(dev));
    CU(cuDevicePrimaryCtxRetain(&r->ctx, dev));
    CU(cuCtxSetCurrent(r->ctx));
    CU(cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING));
    CU(cuMemAlloc(&r->buffer, BUFFER_BYTES));
    if (r->number == 0)
        NC(ncclGetUniqueId(&id));
    wait_all(r);
    NC(ncclCommInitRank(&r->comm, RANKS, id, r->number));
    NC(reduce(r, 2000, r->stream));
    CU(cuStreamSynchronize(r->stream));
}

static void after_reset(void)
{
    on_ranks(after_reset_body, true);
}

static void no_call_body(struct rank *r)
{
    (void)r;
}

static void no_call(void)
{
    on_ranks(no_call_body, true);
}

static void nonblocking(void)
{
    on_ranks(nonblocking_body, false);
}

typedef ncclResult_t init_rank(ncclComm_t *, int, ncclUniqueId, int);
typedef ncclResult_t end_comm(ncclComm_t);
typedef ncclResult_t get_id(ncclComm_t, ncclUniqueId *);
typedef ncclResult_t shrink_comm(ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int);
typedef ncclResult_t grow_comm(ncclComm_t, int, const ncclUniqueId *, int, ncclComm_t *, ncclConfig_t *);

/* SHAPES_ROUNDS communicators, one after the other, each used once; SHAPES_UNSEEN: ended past the
 * wrappers. */
static void thousands_body(struct rank *r)
{
    const char *name = getenv("SHAPES_UNSEEN") ? "pncclCommDestroy" : "ncclCommDestroy";
    end_comm *end = (end_comm *)function(name);
    const char *rounds = getenv("SHAPES_ROUNDS");
    int n = rounds ? atoi(rounds) : 5000;

    for (int i = 0; i < n; i++) {
        ncclComm_t child;
        NC(ncclCommSplit(r->comm, 0, r->number, &child, NULL));
        if (i % 50 == 0)
            use(r, child, 1);
        NC(end(child));
    }
}

static void thousands(void)
{
    on_ranks(thousands_body, true);
}

/* Rank 1 is left behind. */
static void shrink_body(struct rank *r)
{
    int left_out = 1;
    ncclComm_t small;

    if (r->number == 0) {
        NC(((shrink_comm *)function("ncclCommShrink"))(r->comm, &left_out, 1, &small, NULL, 0));
        NC(ncclAllReduce((void *)r->buffer, (void *)r->buffer, 500, ncclFloat, ncclSum, small, (cudaStream_t)r->stream));
        CU(cuStreamSynchronize(r->stream));
        NC(ncclCommDestroy(small));
    }
}

static void shrink(void)
{
    on_ranks(shrink_body, true);
}

/* Rank 0 is alone, and rank 1 joins it. */
static void grow_body(struct rank *r)
{
    static ncclUniqueId id;
    ncclComm_t small = NULL, large;

    if (r->number == 0) {
        NC(ncclGetUniqueId(&id));
        NC(ncclCommInitRank(&small, 1, id, 0));
        NC(((get_id *)function("ncclCommGetUniqueId"))(small, &id));
    }
    wait_all(r);
    NC(((grow_comm *)function("ncclCommGrow"))(small, RANKS, small ? NULL : &id, small ? -1 : 1, &large, NULL));
    use(r, large, 3);
    NC(ncclCommDestroy(large));
    if (small)
        NC(ncclCommDestroy(small));
}

static void grow(void)
{
    on_ranks(grow_body, false);
}

/* On rank 1 made where no wrapper could see it, and used where one can. */
static void unseen_body(struct rank *r)
{
    static ncclUniqueId id;
    ncclComm_t comm;

    if (r->number == 0)
        NC(ncclGetUniqueId(&id));
    wait_all(r);
    NC(((init_rank *)function(r->number ? "pncclCommInitRank" : "ncclCommInitRank"))(&comm, RANKS, id, r->number));
    wait_all(r);
    use(r, comm, 6);
    NC(ncclCommDestroy(comm));
}

/* Ended past the wrappers: the next one may get its address. */
static void unseen_end_body(struct rank *r)
{
    static ncclComm_t first[RANKS];
    static ncclUniqueId id;
    ncclComm_t comm;

    for (int i = 1; i <= 3; i++) {
        if (r->number == 0)
            NC(ncclGetUniqueId(&id));
        wait_all(r);
        NC(ncclCommInitRank(&comm, RANKS, id, r->number));
        if (i == 1)
            first[r->number] = comm;
        use(r, comm, i);
        NEED(!getenv("NCCLSHIM_FAKE_REUSE") || comm == first[0] || comm == first[1]);
        wait_all(r);
        NC(((end_comm *)function("pncclCommDestroy"))(comm));
        wait_all(r);
    }
}

static void unseen_end(void)
{
    on_ranks(unseen_end_body, false);
}

static void unseen(void)
{
    on_ranks(unseen_body, false);
}

const struct shape birth_shapes[] = {
    {"birth-ways", ways},           {"birth-init-all", init_all}, {"birth-nonblocking", nonblocking},
    {"birth-thousands", thousands}, {"birth-shrink", shrink},     {"birth-grow", grow},
    {"birth-no-call", no_call},     {"birth-after-reset", after_reset},
    {"birth-unseen-end", unseen_end},
    {"birth-unseen", unseen},       {"birth-init-all-legacy", init_all_legacy},
    {NULL, NULL},
};
