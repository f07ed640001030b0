/* SPDX-License-Identifier: Apache-2.0 */
/* The stream functions, but for capture. */
#include <unistd.h>
#include "test/fake/cuda_sim.h"

#include <stdlib.h>

/* The per-thread default stream of this thread in this context. */
static CUstream own_stream(CUcontext ctx)
{
    struct thread *thread = sim_thread();
    for (size_t i = 0; i < thread->nown; i++) {
        if (thread->own_streams[i]->ctx == ctx && thread->own_streams[i]->alive) {
            return thread->own_streams[i];
        }
    }
    thread->own_streams =
        sim_grow(thread->own_streams, thread->nown + 1, sizeof *thread->own_streams);
    CUstream stream = stream_new(ctx, 0, 0);
    atomic_fetch_add(&stream->refs, 1);
    return thread->own_streams[thread->nown++] = stream;
}

CUresult stream_get(CUstream handle, bool per_thread, CUstream *out)
{
    CUcontext ctx;
    TRY(ctx_current(&ctx));
    if (handle == NULL) {
        handle = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    }
    if (handle == CU_STREAM_LEGACY) {
        *out = ctx->legacy;
        return CUDA_SUCCESS;
    }
    if (handle == CU_STREAM_PER_THREAD) {
        *out = own_stream(ctx);
        return CUDA_SUCCESS;
    }
    if (!handle_is(handle, KIND_STREAM)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *out = handle;
    return ctx_check(handle->ctx);
}

static CUresult create(CUstream *out, unsigned flags, int priority)
{
    CUcontext ctx;
    TRY(ctx_current(&ctx));
    if (out == NULL || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    *out = stream_new(ctx, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    handle_add(*out, KIND_STREAM);
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
    ENTER(cuStreamCreate);
    return create(out, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
    ENTER(cuStreamCreateWithPriority);
    return create(out, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
    CUcontext ctx;
    ENTER(cuStreamDestroy_v2);
    TRY(ctx_current(&ctx));
    sim_lock();
    if (!handle_is(handle, KIND_STREAM)) {
        sim_unlock();
        return CUDA_ERROR_INVALID_HANDLE;
    }
    /* What is queued still runs, and a later free of its memory would have to wait for it; but a stream
     * that is gone is not waited for any more. So give its work, which is short unless somebody holds a
     * kernel, the time to end first. */
    for (int ms = 0; ms < 200 && handle->capture == NULL && !stream_is_idle(handle); ms++) {
        sim_unlock();
        usleep(1000);
        sim_lock();
        if (!handle_is(handle, KIND_STREAM)) {
            sim_unlock();
            return CUDA_ERROR_INVALID_HANDLE;
        }
    }
    stream_destroy(handle);
    sim_unlock();
    return CUDA_SUCCESS;
}

/* What querying and synchronizing have in common: refused of a stream that captures. */
static CUresult get_to_look_at(CUstream handle, bool per_thread, CUstream *out)
{
    TRY(stream_get(handle, per_thread, out));
    if ((*out)->legacy) {
        TRY(capture_check_legacy((*out)->ctx));
    }
    if ((*out)->capture != NULL) {
        capture_spoil((*out)->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return capture_check_unsafe();
}

static CUresult do_cuStreamQuery(CUstream handle, bool per_thread)
{
    CUstream stream;
    sim_lock();
    CUresult result = get_to_look_at(handle, per_thread, &stream);
    if (result == CUDA_SUCCESS && !stream_is_idle(stream)) {
        result = CUDA_ERROR_NOT_READY;
    }
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamQuery, _ptsz, (CUstream handle), handle)

static CUresult do_cuStreamSynchronize(CUstream handle, bool per_thread)
{
    CUstream stream;
    struct mark **marks = NULL;
    size_t n = 0;
    sim_lock();
    CUresult result = get_to_look_at(handle, per_thread, &stream);
    if (result == CUDA_SUCCESS) {
        atomic_fetch_add(&stream->refs, 1);
        if (stream->legacy) {
            /* Waiting for the legacy stream is waiting for all blocking streams too. */
            for (CUstream s = stream->ctx->streams; s != NULL; s = s->next) {
                if (s != stream && (s->flags & CU_STREAM_NON_BLOCKING) == 0 && s->has_worker) {
                    marks = sim_grow(marks, n + 1, sizeof *marks);
                    if (stream_mark(s, &marks[n]) == CUDA_SUCCESS) {
                        n++;
                    }
                }
            }
        }
    }
    sim_unlock();
    TRY(result);
    uint64_t end = stream_wait(stream);
    for (size_t i = 0; i < n; i++) {
        uint64_t other = mark_wait(marks[i]);
        end = other > end ? other : end;
        mark_unref(marks[i]);
    }
    free(marks);
    sim_pace(end);
    result = (CUresult)atomic_load(&stream->ctx->sticky);
    stream_unref(stream);
    return result;
}
WITH_VARIANT(cuStreamSynchronize, _ptsz, (CUstream handle), handle)

/* ---- what a stream says about itself ---- */

#define GETTER(symbol, type, expression)                                     \
    static CUresult do_##symbol(CUstream handle, type *out, bool per_thread) \
    {                                                                        \
        CUstream stream;                                                     \
        if (out == NULL) {                                                   \
            return CUDA_ERROR_INVALID_VALUE;                                 \
        }                                                                    \
        sim_lock();                                                          \
        CUresult result = stream_get(handle, per_thread, &stream);           \
        if (result == CUDA_SUCCESS) {                                        \
            *out = (expression);                                             \
        }                                                                    \
        sim_unlock();                                                        \
        return result;                                                       \
    }                                                                        \
    WITH_VARIANT(symbol, _ptsz, (CUstream handle, type * out), handle, out)

GETTER(cuStreamGetCtx, CUcontext, stream->ctx)
GETTER(cuStreamGetId, unsigned long long, stream->id)
GETTER(cuStreamGetPriority, int, stream->priority)
GETTER(cuStreamGetFlags, unsigned int, stream->flags)

/* ---- host functions in stream order ---- */

static CUresult put_host(CUstream handle, bool per_thread, CUhostFn fn, CUstreamCallback callback,
                         void *data)
{
    CUstream stream;
    TRY(stream_get(handle, per_thread, &stream));
    if (callback != NULL && stream->capture != NULL) {
        /* Callbacks are the old way, from before graphs: refused there. */
        capture_spoil(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    struct work *work = work_new(WORK_HOST);
    work->u.host.fn = fn;
    work->u.host.callback = callback;
    work->u.host.stream = handle;
    work->u.host.data = data;
    return submit(stream, CU_GRAPH_NODE_TYPE_HOST, work);
}

static CUresult do_cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *data, bool per_thread)
{
    if (fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    CUresult result = put_host(handle, per_thread, fn, NULL, data);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuLaunchHostFunc, _ptsz, (CUstream handle, CUhostFn fn, void *data), handle, fn, data)

static CUresult do_cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *data,
                                       unsigned flags, bool per_thread)
{
    if (callback == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    CUresult result = put_host(handle, per_thread, NULL, callback, data);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamAddCallback, _ptsz,
             (CUstream handle, CUstreamCallback callback, void *data, unsigned int flags), handle,
             callback, data, flags)
