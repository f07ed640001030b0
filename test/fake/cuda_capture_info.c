/* SPDX-License-Identifier: Apache-2.0 */
/* What a program may ask and change about a capture: status, frontier, the thread's mode. */
#include "test/fake/cuda_sim.h"
#include "test/fake/cuda_graph.h"

struct info {
    CUstreamCaptureStatus *status;
    cuuint64_t *id;
    CUgraph *graph;
    const CUgraphNode **deps;
    const CUgraphEdgeData **edges;
    size_t *ndeps;
};

static CUresult get_info(CUstream handle, bool per_thread, const struct info *info)
{
    CUstream stream;
    if (info->status == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(stream_get(handle, per_thread, &stream));
    if (stream->legacy) {
        /* While a blocking stream captures, the legacy stream may not even be asked. */
        TRY(capture_ask_legacy(stream->ctx));
    }
    struct capture *capture = stream->capture;
    *info->status = capture == NULL    ? CU_STREAM_CAPTURE_STATUS_NONE
                    : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (capture == NULL || capture->invalid) {
        return CUDA_SUCCESS;
    }
    if (info->id != NULL) {
        *info->id = capture->id;
    }
    if (info->graph != NULL) {
        *info->graph = capture->graph;
    }
    if (info->deps != NULL && info->edges == NULL) {
        for (size_t i = 0; i < stream->ndeps; i++) {
            if (!edge_is_plain(&stream->edges[i])) {
                return CUDA_ERROR_LOSSY_QUERY;
            }
        }
    }
    if (info->deps != NULL) {
        *info->deps = stream->deps;
    }
    if (info->edges != NULL) {
        *info->edges = stream->edges;
    }
    if (info->ndeps != NULL) {
        *info->ndeps = stream->ndeps;
    }
    return CUDA_SUCCESS;
}

static CUresult do_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status,
                                       bool per_thread)
{
    sim_lock();
    CUresult result = get_info(stream, per_thread, &(struct info){.status = status});
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus *status), stream,
             status)

static CUresult do_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status,
                                          cuuint64_t *id, bool per_thread)
{
    sim_lock();
    CUresult result = get_info(stream, per_thread, &(struct info){.status = status, .id = id});
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamGetCaptureInfo, _ptsz,
             (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id), stream, status, id)

static CUresult do_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
                                             cuuint64_t *id, CUgraph *graph,
                                             const CUgraphNode **deps, size_t *ndeps,
                                             bool per_thread)
{
    struct info info = {status, id, graph, deps, NULL, ndeps};
    sim_lock();
    CUresult result = get_info(stream, per_thread, &info);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamGetCaptureInfo_v2, _ptsz,
             (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
              const CUgraphNode **deps, size_t *ndeps),
             stream, status, id, graph, deps, ndeps)

static CUresult do_cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
                                             cuuint64_t *id, CUgraph *graph,
                                             const CUgraphNode **deps,
                                             const CUgraphEdgeData **edges, size_t *ndeps,
                                             bool per_thread)
{
    struct info info = {status, id, graph, deps, edges, ndeps};
    sim_lock();
    CUresult result = get_info(stream, per_thread, &info);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamGetCaptureInfo_v3, _ptsz,
             (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
              const CUgraphNode **deps, const CUgraphEdgeData **edges, size_t *ndeps),
             stream, status, id, graph, deps, edges, ndeps)

static CUresult update(CUstream handle, bool per_thread, CUgraphNode *deps,
                       const CUgraphEdgeData *edges, size_t n, unsigned flags)
{
    CUstream stream;
    TRY(stream_get(handle, per_thread, &stream));
    if (stream->capture == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (stream->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if ((n > 0 && deps == NULL) || (flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES &&
                                    flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < n; i++) {
        if (!handle_is(deps[i], KIND_NODE) || deps[i]->graph != stream->capture->graph) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        capture_set_frontier(stream, deps, edges, n);
    } else {
        capture_join_frontier(stream, deps, edges, n);
    }
    return CUDA_SUCCESS;
}

static CUresult do_cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *deps, size_t n,
                                                     unsigned flags, bool per_thread)
{
    sim_lock();
    CUresult result = update(stream, per_thread, deps, NULL, n, flags);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamUpdateCaptureDependencies, _ptsz,
             (CUstream stream, CUgraphNode *deps, size_t n, unsigned int flags), stream, deps, n,
             flags)

static CUresult do_cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *deps,
                                                        const CUgraphEdgeData *edges, size_t n,
                                                        unsigned flags, bool per_thread)
{
    sim_lock();
    CUresult result = update(stream, per_thread, deps, edges, n, flags);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamUpdateCaptureDependencies_v2, _ptsz,
             (CUstream stream, CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n,
              unsigned int flags),
             stream, deps, edges, n, flags)

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    ENTER(cuThreadExchangeStreamCaptureMode);
    struct thread *thread = sim_thread();
    if (mode == NULL ||
        (*mode != CU_STREAM_CAPTURE_MODE_GLOBAL && *mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
         *mode != CU_STREAM_CAPTURE_MODE_RELAXED)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUstreamCaptureMode old = thread->capture_mode;
    thread->capture_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
