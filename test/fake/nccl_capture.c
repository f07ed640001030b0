/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's own nodes in a captured graph. With graph mixing (the default) each communicator has, in
 * each graph, a stream of its own: its first node waits for an event of the communicator, and
 * behind every launch comes a node that records that event, so that graphs and eager calls of one
 * communicator take turns. Without mixing neither node exists. The user's stream gets the kernel's
 * node alone.
 */
#include "test/fake/nccl_fake.h"

#include <stdlib.h>

struct fake_capture {
    struct fake_capture *next;
    cuuint64_t id;
    CUstream stream;
    CUgraphNode last_record; /* behind the newest launch; NULL before the first */
};

#define NO_TIMING CU_EVENT_DISABLE_TIMING

ncclResult_t fake_capture_query(CUstream stream, struct fake_graph_id *out)
{
    CUstreamCaptureStatus status;
    out->graph = NULL;
    out->id = 0;
    out->origin = stream;
    CUCHECK(fake_cu.capture_info(stream, &status, &out->id, &out->graph, NULL, NULL));
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        out->graph = NULL;
    return ncclSuccess;
}

static ncclResult_t make_streams(ncclComm_t comm)
{
    if (comm->scratch_event)
        return ncclSuccess;
    CUCHECK(fake_cu.cuStreamCreate(&comm->live_stream, CU_STREAM_NON_BLOCKING));
    CUCHECK(fake_cu.cuEventCreate(&comm->serial_event, NO_TIMING));
    CUCHECK(fake_cu.cuEventCreate(&comm->scratch_event, NO_TIMING));
    return ncclSuccess;
}

ncclResult_t fake_stream_wait(ncclComm_t comm, CUstream who, CUstream whom)
{
    NCCLCHECK(make_streams(comm));
    CUCHECK(fake_cu.cuEventRecord(comm->scratch_event, whom));
    CUCHECK(fake_cu.cuStreamWaitEvent(who, comm->scratch_event, 0));
    return ncclSuccess;
}

/* The communicator's stream in this graph; entries of finished captures are used again. */
static ncclResult_t capture_of(ncclComm_t comm, const struct fake_graph_id *g,
                               struct fake_capture **out, bool *fresh)
{
    struct fake_capture *spare = NULL;
    *fresh = false;
    for (struct fake_capture *c = comm->captures; c; c = c->next) {
        if (c->id == g->id) {
            *out = c;
            return ncclSuccess;
        }
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        CUCHECK(fake_cu.cuStreamIsCapturing(c->stream, &status));
        if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
            spare = c;
    }
    if (!spare) {
        spare = calloc(1, sizeof(*spare));
        ncclResult_t res = fake_cu_check(
            fake_cu.cuStreamCreate(&spare->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        if (res != ncclSuccess) {
            free(spare);
            return res;
        }
        spare->next = comm->captures;
        comm->captures = spare;
    }
    spare->id = g->id;
    spare->last_record = NULL;
    *out = spare;
    *fresh = true;
    return ncclSuccess;
}

static ncclResult_t join_capture(ncclComm_t comm, const struct fake_graph_id *g,
                                 struct fake_capture *c)
{
    bool mixing = comm->machine.graph_mixing;
    CUCHECK(fake_cu.cuEventRecord(comm->scratch_event, g->origin));
    CUCHECK(fake_cu.cuStreamWaitEvent(c->stream, comm->scratch_event, 0));
    /* In the graph, but behind nothing of the user's. */
    CUCHECK(fake_cu.set_capture_deps(c->stream, NULL, 0));
    if (mixing && !comm->ever_captured)
        CUCHECK(fake_cu.cuEventRecord(comm->serial_event, comm->live_stream));
    comm->ever_captured = true;
    if (mixing)
        CUCHECK(fake_cu.cuStreamWaitEvent(c->stream, comm->serial_event, CU_EVENT_WAIT_EXTERNAL));
    return ncclSuccess;
}

ncclResult_t fake_capture_before(ncclComm_t comm, const struct fake_graph_id *g, CUstream launch)
{
    if (!g->graph) {
        /* Eager order is kept in nccl_exec.c; towards graphs it is kept as NCCL does. */
        if (!comm->ever_captured || !comm->machine.graph_mixing)
            return ncclSuccess;
        CUCHECK(fake_cu.cuStreamWaitEvent(comm->live_stream, comm->serial_event, 0));
        return fake_stream_wait(comm, launch, comm->live_stream);
    }
    struct fake_capture *c;
    bool fresh;
    NCCLCHECK(make_streams(comm));
    NCCLCHECK(capture_of(comm, g, &c, &fresh));
    if (fresh)
        NCCLCHECK(join_capture(comm, g, c));
    else if (c->last_record)
        CUCHECK(fake_cu.set_capture_deps(c->stream, &c->last_record, 1));
    return fake_stream_wait(comm, launch, c->stream);
}

/*
 * The stream's frontier goes on from the kernel. The record node hangs beside it: were it the
 * frontier, a capture that ends here would find the stream not joined to its origin.
 */
ncclResult_t fake_capture_after(ncclComm_t comm, const struct fake_graph_id *g, CUstream launch)
{
    if (!g->graph) {
        if (!comm->ever_captured || !comm->machine.graph_mixing)
            return ncclSuccess;
        NCCLCHECK(fake_stream_wait(comm, comm->live_stream, launch));
        CUCHECK(fake_cu.cuEventRecord(comm->serial_event, comm->live_stream));
        return ncclSuccess;
    }
    struct fake_capture *c;
    bool fresh;
    CUstreamCaptureStatus status;
    const CUgraphNode *nodes = NULL;
    size_t n = 0;
    NCCLCHECK(capture_of(comm, g, &c, &fresh));
    CUCHECK(fake_cu.capture_info(launch, &status, NULL, NULL, &nodes, &n));
    CUCHECK(fake_cu.set_capture_deps(c->stream, (CUgraphNode *)(uintptr_t)nodes, n));
    if (comm->machine.graph_mixing)
        CUCHECK(fake_cu.cuGraphAddEventRecordNode(&c->last_record, g->graph, nodes, n,
                                                  comm->serial_event));
    return ncclSuccess;
}

void fake_capture_fini(ncclComm_t comm)
{
    for (struct fake_capture *c = comm->captures, *next; c; c = next) {
        next = c->next;
        fake_cu.cuStreamDestroy(c->stream);
        free(c);
    }
    comm->captures = NULL;
    if (comm->scratch_event) {
        fake_cu.cuStreamDestroy(comm->live_stream);
        fake_cu.cuEventDestroy(comm->serial_event);
        fake_cu.cuEventDestroy(comm->scratch_event);
        comm->scratch_event = NULL;
    }
}
