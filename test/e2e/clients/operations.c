/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation, with a count of its own, and what makes traffic that no call shows. */
#include "test/e2e/clients/ranks.h"

#define MINE(elements) ((char *)r->buffer + (size_t)r->number * (elements) * sizeof(float))
#define HERE ((void *)r->buffer)
#define THERE ((void *)(r->buffer + BUFFER_BYTES / 2))
#define STREAM ((cudaStream_t)r->stream)

typedef ncclResult_t all_to_all(const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
typedef ncclResult_t gather(const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
typedef ncclResult_t window(ncclComm_t, void *, size_t, void **, int);
typedef ncclResult_t device_comm(ncclComm_t, const void *, void *);

static void reductions(struct rank *r)
{
    static float factor = 2;
    ncclRedOp_t own;

    NC(ncclAllReduce(HERE, HERE, 10, ncclFloat, ncclMin, r->comm, STREAM));
    NC(ncclAllReduce(HERE, THERE, 11, ncclFloat, ncclSum, r->comm, STREAM));
    NC(ncclRedOpCreatePreMulSum(&own, &factor, ncclFloat, ncclScalarHostImmediate, r->comm));
    NC(ncclAllReduce(HERE, HERE, 12, ncclFloat, own, r->comm, STREAM));
    NC(ncclRedOpDestroy(own, r->comm));
    NC(ncclReduce(HERE, THERE, 20, ncclFloat, ncclMax, 1, r->comm, STREAM));
    NC(ncclReduceScatter(HERE, THERE, 30, ncclFloat, ncclSum, r->comm, STREAM));
    NC(ncclReduceScatter(HERE, MINE(31), 31, ncclFloat, ncclSum, r->comm, STREAM));
}

static void movements(struct rank *r)
{
    NC(ncclBroadcast(HERE, THERE, 40, ncclFloat, 1, r->comm, STREAM));
    NC(ncclBcast(HERE, 41, ncclFloat, 0, r->comm, STREAM));
    NC(ncclAllGather(HERE, THERE, 50, ncclFloat, r->comm, STREAM));
    NC(ncclAllGather(MINE(51), HERE, 51, ncclFloat, r->comm, STREAM));
    NC(((all_to_all *)function("ncclAlltoAll"))(HERE, THERE, 60, ncclFloat, r->comm, STREAM));
    NC(((gather *)function("ncclGather"))(HERE, THERE, 70, ncclFloat, 1, r->comm, STREAM));
    NC(((gather *)function("ncclScatter"))(HERE, THERE, 80, ncclFloat, 0, r->comm, STREAM));
}

static void all_calls(struct rank *r)
{
    reductions(r);
    movements(r);
}

static void eager_body(struct rank *r)
{
    all_calls(r);
    CU(cuStreamSynchronize(r->stream));
}

static void captured_body(struct rank *r)
{
    CUgraph graph;
    CUgraphExec exec = capture(r, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, all_calls, &graph);

    for (int i = 0; i < 4; i++)
        CU(cuGraphLaunch(exec, r->stream));
    CU(cuStreamSynchronize(r->stream));
    drop(exec, graph);
}

/* A group that is only priced, then a real call. */
static void priced_body(struct rank *r)
{
    ncclSimInfo_t price = NCCL_SIM_INFO_INITIALIZER;

    NC(ncclGroupStart());
    NC(reduce(r, 1000, r->stream));
    NC(reduce(r, 2000, r->stream));
    NC(ncclGroupSimulateEnd(&price));
    NC(reduce(r, 3000, r->stream));
    CU(cuStreamSynchronize(r->stream));
}

static void unseen_body(struct rank *r)
{
    char requirements[512] = "", comm[512];
    void *win;

    NC(((window *)function("ncclCommWindowRegister"))(r->comm, HERE, 4096, &win, r->number == 0)); /* symmetric on rank 0 */
    if (r->number == 1)
        NC(((device_comm *)function("ncclDevCommCreate"))(r->comm, requirements, comm));
    NC(reduce(r, 1000, r->stream));
    CU(cuStreamSynchronize(r->stream));
}

static void eager(void)
{
    on_ranks(eager_body, true);
}

static void captured(void)
{
    on_ranks(captured_body, true);
}

static void priced(void)
{
    on_ranks(priced_body, true);
}

static void unseen(void)
{
    on_ranks(unseen_body, true);
}

const struct shape operation_shapes[] = {
    {"operations-eager", eager},   {"operations-captured", captured}, {"operations-priced", priced},
    {"operations-unseen", unseen}, {NULL, NULL},
};
