/* SPDX-License-Identifier: Apache-2.0 */
/* T04: groups. */
#include "test/e2e/clients/ranks.h"

static void one_call_body(struct rank *r)
{
    for (int i = 0; i < 5; i++) {
        NC(ncclGroupStart());
        NC(reduce(r, 1000, r->stream));
        NC(ncclGroupEnd());
    }
    CU(cuStreamSynchronize(r->stream));
}

static void one_call(void)
{
    on_ranks(one_call_body, true);
}

static void two_calls_body(struct rank *r)
{
    for (int i = 0; i < 3; i++) {
        NC(ncclGroupStart());
        NC(reduce(r, 1024, r->stream));
        NC(ncclGroupStart());
        NC(reduce(r, 1u << 20, r->stream));
        NC(ncclGroupEnd());
        NC(ncclGroupEnd());
    }
    CU(cuStreamSynchronize(r->stream));
}

static void two_calls(void)
{
    on_ranks(two_calls_body, true);
}

static void two_comms_body(struct rank *r)
{
    ncclComm_t second;
    CUstream other;

    CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    NC(ncclCommSplit(r->comm, 0, r->number, &second, NULL));
    for (int i = 0; i < 4; i++) {
        NC(ncclGroupStart());
        NC(reduce(r, 2000, r->stream));
        NC(ncclAllReduce((void *)(r->buffer + (4u << 20)), (void *)(r->buffer + (4u << 20)), 3000, ncclFloat, ncclSum,
                         second, (cudaStream_t)other));
        NC(ncclGroupEnd());
    }
    CU(cuStreamSynchronize(r->stream));
    CU(cuStreamSynchronize(other));
    wait_all(r);
    NC(ncclCommDestroy(second));
}

static void two_comms(void)
{
    on_ranks(two_comms_body, true);
}

static void send_recv_body(struct rank *r)
{
    for (int i = 0; i < 6; i++) {
        NC(ncclGroupStart());
        NC(ncclSend((void *)r->buffer, 512, ncclFloat, 1 - r->number, r->comm, (cudaStream_t)r->stream));
        NC(ncclRecv((void *)(r->buffer + 65536), 512, ncclFloat, 1 - r->number, r->comm, (cudaStream_t)r->stream));
        NC(ncclGroupEnd());
    }
    CU(cuStreamSynchronize(r->stream));
}

static void send_recv(void)
{
    on_ranks(send_recv_body, true);
}

/* A failing member fails the group; what follows is timed as ever. */
static void failing_body(struct rank *r)
{
    NC(ncclGroupStart());
    NC(reduce(r, 1000, r->stream));
    NEED(ncclAllReduce((void *)r->buffer, (void *)r->buffer, 10, (ncclDataType_t)77, ncclSum, r->comm,
                       (cudaStream_t)r->stream) == ncclInvalidArgument);
    NEED(ncclGroupEnd() != ncclSuccess);
    NEED(ncclGroupEnd() != ncclSuccess); /* an end without a start */
    NC(reduce(r, 1000, r->stream));
    CU(cuStreamSynchronize(r->stream));
}

static void failing(void)
{
    on_ranks(failing_body, true);
}

static void in_capture_calls(struct rank *r)
{
    NC(ncclGroupStart());
    NC(reduce(r, 1000, r->stream));
    NC(ncclAllReduce((void *)(r->buffer + 65536), (void *)(r->buffer + 65536), 500, ncclFloat, ncclSum, r->comm,
                     (cudaStream_t)r->stream));
    NC(ncclGroupEnd());
    NC(reduce(r, 2000, r->stream));
}

static void in_capture_body(struct rank *r)
{
    CUgraph graph;
    CUgraphExec exec = capture(r, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, in_capture_calls, &graph);

    for (int i = 0; i < 10; i++)
        CU(cuGraphLaunch(exec, r->stream));
    CU(cuStreamSynchronize(r->stream));
    drop(exec, graph);
}

static void in_capture(void)
{
    on_ranks(in_capture_body, true);
}

const struct shape group_shapes[] = {
    {"group-one-call", one_call},   {"group-two-calls", two_calls}, {"group-two-comms", two_comms},
    {"group-send-recv", send_recv}, {"group-failing", failing},     {"group-in-capture", in_capture},
    {NULL, NULL},
};
