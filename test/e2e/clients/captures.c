/* SPDX-License-Identifier: Apache-2.0 */
/* T01, T02 and issue-wide shapes of capturing: modes, forks, streams, updates, many captures. */
#include "test/e2e/clients/ranks.h"

#include <stdlib.h>

static void ten_calls(struct rank *r)
{
    for (int i = 0; i < 10; i++)
        NC(reduce(r, 1000, r->stream));
}

/* T02: one eager, three captured, 50 replays, one eager. */
static void three_calls(struct rank *r)
{
    for (int i = 0; i < 3; i++)
        NC(reduce(r, 10752, r->stream));
}

static void replays_body(struct rank *r)
{
    CUgraphExec exec;
    CUgraph graph;

    NC(reduce(r, 10752, r->stream));
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
    exec = capture(r, CU_STREAM_CAPTURE_MODE_RELAXED, three_calls, &graph);
    for (int i = 0; i < 50; i++)
        CU(cuGraphLaunch(exec, r->stream));
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
    NC(reduce(r, 10752, r->stream));
    CU(cuStreamSynchronize(r->stream));
    drop(exec, graph);
}

static void replays(void)
{
    on_ranks(replays_body, true);
}

/* T01: eager calls and strict captures in turns, 200 rounds; one rank captures at a time, since a
 * strict capture of one thread forbids the unsafe calls of all others. */
static void strict_body(struct rank *r)
{
    const char *rounds = getenv("SHAPES_ROUNDS");
    int n = rounds ? atoi(rounds) : 200;

    for (int round = 0; round < n; round++) {
        CUgraphExec exec = NULL;
        CUgraph graph;
        for (int i = 0; i < 10; i++)
            NC(reduce(r, 1000, r->stream));
        CU(cuStreamSynchronize(r->stream));
        for (int turn = 0; turn < RANKS; turn++) {
            wait_all(r);
            if (turn != r->number)
                continue;
            CU(cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
            ten_calls(r);
            CU(cuStreamEndCapture(r->stream, &graph));
            CU(cuGraphInstantiate(&exec, graph, 0));
        }
        wait_all(r);
        CU(cuGraphLaunch(exec, r->stream));
        CU(cuStreamSynchronize(r->stream));
        wait_all(r);
        drop(exec, graph);
    }
}

static void strict(void)
{
    on_ranks(strict_body, true);
}

/* The first communicator of one GPU is made while another thread captures in the mode that forbids all threads what may wait. */
static void beside_init_body(struct rank *r)
{
    static ncclUniqueId id;
    ncclComm_t alone;
    CUgraph graph;

    if (r->number == 0)
        CU(cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    wait_all(r);
    if (r->number == 1) {
        NC(ncclGetUniqueId(&id));
        NC(ncclCommInitRank(&alone, 1, id, 0));
    }
    wait_all(r);
    if (r->number == 0) {
        CU(cuMemsetD8Async(r->buffer, 0, 4096, r->stream));
        CU(cuStreamEndCapture(r->stream, &graph));
        CU(cuGraphDestroy(graph));
    }
    wait_all(r);
    if (r->number == 1)
        NC(ncclCommDestroy(alone));
}

static void beside_init(void)
{
    on_ranks(beside_init_body, false);
}

/* A fork over two streams, joined again; calls of one communicator on both. */
static CUstream side[RANKS];

static void fork_join_calls(struct rank *r)
{
    CUevent fork, join;

    CU(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    CU(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    NC(reduce(r, 1000, r->stream));
    CU(cuEventRecord(fork, r->stream));
    CU(cuStreamWaitEvent(side[r->number], fork, 0));
    CU(cuMemsetD8Async(r->buffer + 65536, 0, 4096, side[r->number]));
    NC(reduce(r, 2000, r->stream));
    CU(cuEventRecord(join, side[r->number]));
    CU(cuStreamWaitEvent(r->stream, join, 0));
    NC(reduce(r, 3000, r->stream));
    CU(cuMemsetD8Async(r->buffer + 65536, 0, 4096, r->stream));
    NC(reduce(r, 4000, r->stream));
}

static void fork_join_body(struct rank *r)
{
    CUgraphExec exec;
    CUgraph graph;

    CU(cuStreamCreate(&side[r->number], CU_STREAM_NON_BLOCKING));
    exec = capture(r, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, fork_join_calls, &graph);
    for (int i = 0; i < 20; i++)
        CU(cuGraphLaunch(exec, r->stream));
    CU(cuStreamSynchronize(r->stream));
    drop(exec, graph);
}

static void fork_join(void)
{
    on_ranks(fork_join_body, true);
}

/* One thread captures calls of two GPUs. The second pair stands behind the second GPU's end of the first: on that
 * GPU's stream, and on a fresh one of the first GPU that waits for it. Captured, not run: the simulator plays the nodes
 * of a graph one by one, and the two GPUs' would have to meet. */
static void two_gpus(void)
{
    struct device d[RANKS];
    CUstream origin, again;
    CUgraph graph;
    CUevent at[4];

    on_devices(d, true);
    for (int i = 0; i < 4; i++) {
        CU(cuCtxSetCurrent(d[i % 2].ctx));
        CU(cuEventCreate(&at[i], CU_EVENT_DISABLE_TIMING));
    }
    CU(cuCtxSetCurrent(d[0].ctx));
    CU(cuStreamCreate(&again, CU_STREAM_NON_BLOCKING));
    origin = d[0].stream;
    CU(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(cuEventRecord(at[0], origin));
    CU(cuStreamWaitEvent(d[1].stream, at[0], 0));
    reduce_devices(d, 1000);
    CU(cuEventRecord(at[1], d[1].stream));
    CU(cuStreamWaitEvent(again, at[1], 0));
    d[0].stream = again;
    reduce_devices(d, 1001);
    CU(cuEventRecord(at[2], again));
    CU(cuEventRecord(at[3], d[1].stream));
    CU(cuStreamWaitEvent(origin, at[2], 0));
    CU(cuStreamWaitEvent(origin, at[3], 0));
    CU(cuStreamEndCapture(origin, &graph));
    CU(cuGraphDestroy(graph));
    for (int i = 0; i < RANKS; i++)
        NC(ncclCommDestroy(d[i].comm));
}

/* Recapture the same work and update the executable graph with it. */
static void update_body(struct rank *r)
{
    CUgraph graph, again;
    CUgraphExec exec = capture(r, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, ten_calls, &graph);

    for (int i = 0; i < 5; i++) {
        CUgraphExecUpdateResultInfo info;
        CUgraphExec second = capture(r, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, ten_calls, &again);
        CU(cuGraphExecDestroy(second));
        CU(cuGraphExecUpdate(exec, again, &info));
        NEED(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
        CU(cuGraphLaunch(exec, r->stream));
        CU(cuStreamSynchronize(r->stream));
        wait_all(r);
        CU(cuGraphDestroy(again));
    }
    drop(exec, graph);
}

static void update(void)
{
    on_ranks(update_body, true);
}

/* One graph, instantiated twice, both replayed in turns; then a child graph made of it. */
static void twice_body(struct rank *r)
{
    CUgraph graph, parent;
    CUgraphNode node;
    CUgraphExec one = capture(r, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, ten_calls, &graph), two, three;

    CU(cuGraphInstantiate(&two, graph, 0));
    CU(cuGraphCreate(&parent, 0));
    CU(cuGraphAddChildGraphNode(&node, parent, NULL, 0, graph));
    CU(cuGraphInstantiate(&three, parent, 0));
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
    for (int i = 0; i < 4; i++) {
        CU(cuGraphLaunch(one, r->stream));
        CU(cuGraphLaunch(two, r->stream));
        CU(cuGraphLaunch(three, r->stream));
    }
    CU(cuStreamSynchronize(r->stream));
    drop(three, parent);
    drop(two, NULL);
    drop(one, graph);
}

static void twice(void)
{
    on_ranks(twice_body, true);
}

/* More captures than the table of call sites has room for. */
static void many_calls(struct rank *r)
{
    for (int i = 0; i < 122; i++)
        NC(reduce(r, 1000, r->stream));
}

static void many_body(struct rank *r)
{
    for (int i = 0; i < 300; i++) {
        CUgraph graph;
        CUgraphExec exec = capture(r, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, many_calls, &graph);
        CU(cuGraphLaunch(exec, r->stream));
        CU(cuStreamSynchronize(r->stream));
        wait_all(r);
        drop(exec, graph);
    }
}

static void many(void)
{
    on_ranks(many_body, true);
}

/* The default streams, and two streams at once. */
static void streams_body(struct rank *r)
{
    CUstream second;

    CU(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 5; i++) {
        NC(reduce(r, 1000, NULL));
        NC(reduce(r, 2000, CU_STREAM_PER_THREAD));
        NC(reduce(r, 3000, r->stream));
        NC(reduce(r, 4000, second));
        NC(reduce(r, 5000, r->stream)); /* one call site on two streams at once */
        NC(reduce(r, 5000, second));
    }
    CU(cuCtxSynchronize());
}

static void streams(void)
{
    on_ranks(streams_body, true);
}

/* While a blocking stream captures, NCCL refuses the legacy stream; the capture stays good. */
static void legacy_beside_body(struct rank *r)
{
    CUstream blocking;
    CUgraph graph;

    CU(cuStreamCreate(&blocking, 0));
    CU(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(cuMemsetD8Async(r->buffer, 0, 4096, blocking));
    NEED(reduce(r, 1000, NULL) != ncclSuccess);
    CU(cuMemsetD8Async(r->buffer, 0, 4096, blocking));
    CU(cuStreamEndCapture(blocking, &graph));
    CU(cuGraphDestroy(graph));
    CU(cuStreamDestroy(blocking));
    wait_all(r);
    NC(reduce(r, 2000, NULL));
    CU(cuCtxSynchronize());
}

static void legacy_beside(void)
{
    on_ranks(legacy_beside_body, true);
}

const struct shape capture_shapes[] = {
    {"capture-replays", replays}, {"capture-strict", strict}, {"capture-fork-join", fork_join},
    {"capture-update", update},   {"capture-twice", twice},   {"capture-many", many},
    {"capture-two-gpus", two_gpus}, {"streams", streams},       {"capture-beside-init", beside_init},
    {"capture-legacy-beside", legacy_beside},
    {NULL, NULL},
};
