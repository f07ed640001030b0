/* SPDX-License-Identifier: Apache-2.0 */
/* Events: recorded in a stream, in a capture (no time, only a place), or by a node of a graph. */
#include "test/fake/cuda_sim.h"

#include <stdlib.h>

void event_unref(CUevent event)
{
    if (atomic_fetch_sub(&event->refs, 1) == 1) {
        mark_unref(event->last);
        free(event->deps);
        free(event->edges);
        if (event->capture != NULL) {
            capture_unref(event->capture);
        }
        free(event);
    }
}

void event_forget_capture(CUevent event)
{
    if (event->capture != NULL) {
        capture_unref(event->capture);
        event->capture = NULL;
    }
    event->ndeps = 0;
}

struct mark *event_renew(CUevent event)
{
    event_forget_capture(event);
    mark_unref(event->last);
    event->last = mark_new();
    return mark_ref(event->last);
}

static CUresult get(CUevent handle)
{
    CUcontext ctx;
    TRY(ctx_current(&ctx));
    return handle_is(handle, KIND_EVENT) ? ctx_check(handle->ctx) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    CUcontext ctx;
    ENTER(cuEventCreate);
    TRY(ctx_current(&ctx));
    if (out == NULL || (flags & ~known) != 0 ||
        ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUevent event = sim_alloc(sizeof *event);
    atomic_init(&event->refs, 1);
    event->ctx = ctx;
    event->flags = flags;
    event->alive = true;
    sim_lock();
    handle_add(event, KIND_EVENT);
    sim_unlock();
    *out = event;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    ENTER(cuEventDestroy_v2);
    sim_lock();
    CUresult result = handle_is(event, KIND_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        handle_drop(event);
        event->alive = false;
        event_unref(event);
    }
    sim_unlock();
    return result;
}

/* ---- recording ---- */

static CUresult record_in_capture(CUevent event, CUstream stream, unsigned flags)
{
    if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0) {
        struct work *work = work_new(WORK_RECORD);
        work->u.event = event;
        atomic_fetch_add(&event->refs, 1);
        return capture_add(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, work, NULL);
    }
    event_forget_capture(event);
    event->capture = stream->capture;
    atomic_fetch_add(&event->capture->refs, 1);
    event->ndeps = stream->ndeps;
    event->deps = sim_grow(event->deps, event->ndeps + 1, sizeof *event->deps);
    event->edges = sim_grow(event->edges, event->ndeps + 1, sizeof *event->edges);
    for (size_t i = 0; i < event->ndeps; i++) {
        event->deps[i] = stream->deps[i];
        event->edges[i] = stream->edges[i];
    }
    return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream handle, unsigned flags, bool per_thread)
{
    CUstream stream;
    bool capturing;
    TRY(get(event));
    TRY(stream_get(handle, per_thread, &stream));
    if (event->ctx != stream->ctx) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if ((flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(capture_state(stream, &capturing));
    if (capturing) {
        return record_in_capture(event, stream, flags);
    }
    if (flags != 0) {
        return CUDA_ERROR_ILLEGAL_STATE; /* "external" means something in a capture alone */
    }
    struct op *op = op_new(OP_MARK);
    op->mark = event_renew(event);
    return stream_put(stream, op);
}

static CUresult do_cuEventRecord(CUevent event, CUstream stream, bool per_thread)
{
    sim_lock();
    CUresult result = record(event, stream, 0, per_thread);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuEventRecord, _ptsz, (CUevent event, CUstream stream), event, stream)

static CUresult do_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags,
                                          bool per_thread)
{
    sim_lock();
    CUresult result = record(event, stream, flags, per_thread);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned int flags),
             event, stream, flags)

/* ---- waiting in a stream ---- */

static CUresult wait_for_captured(CUstream stream, CUevent event)
{
    if (event->capture->over) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (event->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (stream->legacy) {
        capture_spoil(event->capture);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->capture == NULL) {
        /* A fork: the stream joins the capture. */
        stream->capture = event->capture;
        atomic_fetch_add(&stream->capture->refs, 1);
        capture_set_frontier(stream, event->deps, event->edges, event->ndeps);
        return CUDA_SUCCESS;
    }
    if (stream->capture != event->capture) {
        capture_spoil(stream->capture);
        capture_spoil(event->capture);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    capture_join_frontier(stream, event->deps, event->edges, event->ndeps);
    return CUDA_SUCCESS;
}

static CUresult wait_event(CUstream handle, CUevent event, unsigned flags, bool per_thread)
{
    CUstream stream;
    bool capturing = false;
    TRY(get(event));
    TRY(stream_get(handle, per_thread, &stream));
    if ((flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream->capture != NULL || event->capture == NULL) {
        TRY(capture_state(stream, &capturing));
    }
    if (capturing && (flags & CU_EVENT_WAIT_EXTERNAL) != 0) {
        struct work *work = work_new(WORK_WAIT);
        work->u.event = event;
        atomic_fetch_add(&event->refs, 1);
        return capture_add(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, work, NULL);
    }
    if (flags != 0) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (event->capture != NULL) {
        return wait_for_captured(stream, event);
    }
    if (capturing) {
        if (event->last == NULL) {
            return CUDA_SUCCESS;
        }
        /* The graph would depend on work that is not in it. */
        capture_spoil(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    return event->last == NULL ? CUDA_SUCCESS : stream_put_wait(stream, mark_ref(event->last));
}

static CUresult do_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags,
                                     bool per_thread)
{
    sim_lock();
    CUresult result = wait_event(stream, event, flags, per_thread);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned int flags), stream,
             event, flags)

/* ---- asking and waiting on the host ---- */

/* A reference to the event's mark, or NULL when it was never recorded. */
static CUresult look(CUevent event, struct mark **mark)
{
    *mark = NULL;
    TRY(get(event));
    if (event->capture != NULL) {
        if (event->capture->over) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        capture_spoil(event->capture);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    TRY(capture_check_unsafe());
    if (event->last != NULL) {
        *mark = mark_ref(event->last);
    }
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
    struct mark *mark;
    uint64_t time_ns;
    ENTER(cuEventQuery);
    sim_lock();
    CUresult result = look(event, &mark);
    if (mark != NULL) {
        result = mark_is_done(mark, &time_ns) && sim_is_past(time_ns) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_NOT_READY;
        mark_unref(mark);
    }
    sim_unlock();
    return result;
}

CUresult cuEventSynchronize(CUevent event)
{
    struct mark *mark;
    CUcontext ctx = NULL;
    ENTER(cuEventSynchronize);
    sim_lock();
    CUresult result = look(event, &mark);
    if (mark != NULL) {
        ctx = event->ctx;
    }
    sim_unlock();
    if (mark != NULL) {
        sim_pace(mark_wait(mark));
        mark_unref(mark);
        result = (CUresult)atomic_load(&ctx->sticky);
    }
    return result;
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end)
{
    uint64_t start_ns, end_ns;
    TRY(get(start));
    TRY(get(end));
    if (milliseconds == NULL || start->capture != NULL || end->capture != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (start->ctx != end->ctx || start->last == NULL || end->last == NULL ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!mark_is_done(start->last, &start_ns) || !mark_is_done(end->last, &end_ns) ||
        !sim_is_past(start_ns) || !sim_is_past(end_ns)) {
        return CUDA_ERROR_NOT_READY;
    }
    *milliseconds = (float)((double)(int64_t)(end_ns - start_ns) / 1e6);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    ENTER(cuEventElapsedTime);
    sim_lock();
    CUresult result = elapsed(milliseconds, start, end);
    sim_unlock();
    return result;
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    ENTER(cuEventElapsedTime_v2);
    sim_lock();
    CUresult result = elapsed(milliseconds, start, end);
    sim_unlock();
    return result;
}
