/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of stream capture: which captures are under way, what they forbid to whom, and the
 * frontier of nodes that each capturing stream has.
 *
 * All of it in sim_lock.
 */
#include "test/fake/cuda_sim.h"
#include "test/fake/cuda_graph.h"

#include <stdlib.h>
#include <string.h>

static struct capture *under_way;

void capture_unref(struct capture *capture)
{
    if (atomic_fetch_sub(&capture->refs, 1) == 1) {
        free(capture);
    }
}

void capture_spoil(struct capture *capture)
{
    capture->invalid = true;
}

CUresult capture_check_unsafe(void)
{
    struct thread *me = sim_thread();
    CUresult result = CUDA_SUCCESS;
    if (me->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_SUCCESS;
    }
    for (struct capture *c = under_way; c != NULL; c = c->next) {
        bool mine = c->thread == me->id && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool others = c->thread != me->id && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                      me->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (mine || others) {
            capture_spoil(c);
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

static CUresult beside_legacy(CUcontext ctx, bool spoils)
{
    CUresult result = CUDA_SUCCESS;
    for (CUstream stream = ctx->streams; stream != NULL; stream = stream->next) {
        if (stream->capture != NULL && (stream->flags & CU_STREAM_NON_BLOCKING) == 0) {
            if (spoils) {
                capture_spoil(stream->capture);
            }
            result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return result;
}

CUresult capture_check_legacy(CUcontext ctx)
{
    return beside_legacy(ctx, true);
}

CUresult capture_ask_legacy(CUcontext ctx)
{
    return beside_legacy(ctx, false);
}

CUresult capture_check_context(CUcontext ctx)
{
    CUresult result = CUDA_SUCCESS;
    for (CUstream stream = ctx->streams; stream != NULL; stream = stream->next) {
        if (stream->capture != NULL) {
            capture_spoil(stream->capture);
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

CUresult capture_state(CUstream stream, bool *capturing)
{
    *capturing = false;
    if (stream->legacy) {
        return capture_check_legacy(stream->ctx);
    }
    if (stream->capture != NULL) {
        if (stream->capture->invalid) {
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        }
        *capturing = true;
    }
    return CUDA_SUCCESS;
}

/* ---- the frontier ---- */

void capture_set_frontier(CUstream stream, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                          size_t n)
{
    stream->ndeps = 0;
    capture_join_frontier(stream, deps, edges, n);
}

void capture_join_frontier(CUstream stream, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                           size_t n)
{
    stream->deps = sim_grow(stream->deps, stream->ndeps + n + 1, sizeof *stream->deps);
    stream->edges = sim_grow(stream->edges, stream->ndeps + n + 1, sizeof *stream->edges);
    for (size_t i = 0; i < n; i++) {
        size_t known = 0;
        while (known < stream->ndeps && stream->deps[known] != deps[i]) {
            known++;
        }
        if (known == stream->ndeps) {
            stream->deps[stream->ndeps] = deps[i];
            memset(&stream->edges[stream->ndeps], 0, sizeof stream->edges[0]);
            if (edges != NULL) {
                stream->edges[stream->ndeps] = edges[i];
            }
            stream->ndeps++;
        }
    }
}

void capture_leave(CUstream stream)
{
    if (stream->capture != NULL) {
        capture_unref(stream->capture);
        stream->capture = NULL;
    }
    stream->ndeps = 0;
}

CUresult capture_add(CUstream stream, CUgraphNodeType type, struct work *work, CUgraphNode *out)
{
    CUgraphNode node;
    CUgraphEdgeData *edges = sim_alloc((stream->ndeps + 1) * sizeof *edges);
    for (size_t i = 0; i < stream->ndeps; i++) {
        edges[i] = stream->edges[i];
        if (work_is_programmatic(work) && stream->deps[i]->type == CU_GRAPH_NODE_TYPE_KERNEL) {
            edges[i].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
            edges[i].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        }
    }
    CUresult result =
        graph_add(stream->capture->graph, stream->deps, edges, stream->ndeps, type, work, &node);
    free(edges);
    TRY(result);
    capture_set_frontier(stream, &node, NULL, 1);
    if (out != NULL) {
        *out = node;
    }
    return CUDA_SUCCESS;
}

CUresult submit(CUstream stream, CUgraphNodeType type, struct work *work)
{
    bool capturing;
    CUresult result = capture_state(stream, &capturing);
    if (result != CUDA_SUCCESS) {
        work_unref(work);
        return result;
    }
    return capturing ? capture_add(stream, type, work, NULL) : stream_put_work(stream, work);
}

/* ---- beginning ---- */

static CUresult begin(CUstream handle, bool per_thread, CUstreamCaptureMode mode, CUgraph graph,
                      CUstream *out)
{
    static uint64_t ids;
    CUstream stream;
    if (mode != CU_STREAM_CAPTURE_MODE_GLOBAL && mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
        mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(stream_get(handle, per_thread, &stream));
    if (stream->legacy) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream->capture != NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    struct capture *capture = sim_alloc(sizeof *capture);
    atomic_init(&capture->refs, 2); /* the list's and the stream's */
    capture->id = ++ids;
    capture->mode = mode;
    capture->thread = sim_thread()->id;
    capture->origin = stream;
    capture->own_graph = graph == NULL;
    capture->graph = graph != NULL ? graph : graph_new(false);
    capture->graph->capture = capture;
    capture->next = under_way;
    under_way = capture;
    stream->capture = capture;
    stream->ndeps = 0;
    *out = stream;
    return CUDA_SUCCESS;
}

static CUresult do_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode,
                                           bool per_thread)
{
    CUstream stream;
    sim_lock();
    CUresult result = begin(handle, per_thread, mode, NULL, &stream);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode), stream,
             mode)

static CUresult do_cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
                                               const CUgraphNode *deps,
                                               const CUgraphEdgeData *edges, size_t n,
                                               CUstreamCaptureMode mode, bool per_thread)
{
    CUstream stream;
    CUresult result = CUDA_SUCCESS;
    sim_lock();
    if (!handle_is(graph, KIND_GRAPH) || graph->capture != NULL || (n > 0 && deps == NULL)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; result == CUDA_SUCCESS && i < n; i++) {
        if (!handle_is(deps[i], KIND_NODE) || deps[i]->graph != graph) {
            result = CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (result == CUDA_SUCCESS) {
        result = begin(handle, per_thread, mode, graph, &stream);
    }
    if (result == CUDA_SUCCESS) {
        capture_set_frontier(stream, deps, edges, n);
    }
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamBeginCaptureToGraph, _ptsz,
             (CUstream stream, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
              size_t n, CUstreamCaptureMode mode),
             stream, graph, deps, edges, n, mode)

/* ---- ending ---- */

/* Did every stream that joined come back to the origin? */
static bool is_joined(struct capture *capture)
{
    CUstream origin = capture->origin;
    for (CUcontext ctx = sim_contexts; ctx != NULL; ctx = ctx->next) {
        for (CUstream stream = ctx->streams; stream != NULL; stream = stream->next) {
            if (stream->capture == capture && stream != origin &&
                !graph_reaches(capture->graph, origin->deps, origin->ndeps, stream->deps,
                               stream->ndeps)) {
                return false;
            }
        }
    }
    return true;
}

/* The capture is over, one way or the other: no stream is in it any more. */
static void finish(struct capture *capture)
{
    struct capture **link = &under_way;
    while (*link != capture) {
        link = &(*link)->next;
    }
    *link = capture->next;
    for (CUcontext ctx = sim_contexts; ctx != NULL; ctx = ctx->next) {
        for (CUstream stream = ctx->streams; stream != NULL; stream = stream->next) {
            if (stream->capture == capture) {
                capture_leave(stream);
            }
        }
    }
    capture->over = true;
    capture->graph->capture = NULL;
}

void capture_abandon(CUstream stream)
{
    struct capture *capture = stream->capture;
    if (capture == NULL) {
        return;
    }
    capture_spoil(capture);
    if (capture->origin != stream) {
        capture_leave(stream);
        return;
    }
    finish(capture);
    if (capture->own_graph) {
        graph_free(capture->graph);
    }
    capture_unref(capture);
}

static CUresult end(CUstream handle, bool per_thread, CUgraph *out)
{
    CUstream stream;
    TRY(stream_get(handle, per_thread, &stream));
    struct capture *capture = stream->capture;
    if (capture == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (capture->origin != stream) {
        capture_spoil(capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    bool wrong_thread =
        capture->thread != sim_thread()->id && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = wrong_thread         ? CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
                      : capture->invalid   ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      : is_joined(capture) ? CUDA_SUCCESS
                                           : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    finish(capture);
    if (result == CUDA_SUCCESS) {
        *out = capture->graph;
    } else if (capture->own_graph) {
        graph_free(capture->graph);
    }
    capture_unref(capture);
    return result;
}

static CUresult do_cuStreamEndCapture(CUstream stream, CUgraph *out, bool per_thread)
{
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = NULL;
    sim_lock();
    CUresult result = end(stream, per_thread, out);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *out), stream, out)
