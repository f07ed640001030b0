/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/floor.h"

#include <stdlib.h>
#include <string.h>

#include "shim/preload/stamp.h"

#define PAIRS 33u   /* odd: a median without averaging */
#define ANCHOR_EVERY_NS 10000000000ull
#define ANCHORS 5   /* tries; the one with the least uncertainty is kept */

#define TRY(e) if ((r = (e)) != CUDA_SUCCESS) { *what = #e; return r; }

/* before, after, before, after, ... on the cell of site 0, as the wrappers would put them. */
static bool empty_pairs(struct gpu *g, CUstream stream)
{
    for (unsigned i = 0; i < PAIRS; i++)
        if (!stamp_before(g, stream, gpu_cell(g, 0)) ||
            !stamp_after(g, stream, gpu_cell(g, 0), 0, false))
            return false;
    return true;
}

/* In a graph, as server calls are: launched one by one they would wait for the host. */
static CUresult run_as_graph(struct gpu *g, CUstream stream, const char **what)
{
    const struct driver *d = driver_get();
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUresult r;
    bool good;

    TRY(d->stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    good = empty_pairs(g, stream);
    r = d->stream_end_capture(stream, &graph);
    if (r == CUDA_SUCCESS && !good)
        r = -1;
    if (r == CUDA_SUCCESS)
        r = d->graph_instantiate(&exec, graph, 0);
    for (int i = 0; i < 2 && r == CUDA_SUCCESS; i++)
        r = d->graph_launch(exec, stream);
    if (r == CUDA_SUCCESS)
        r = d->stream_sync(stream);
    if (exec)
        d->graph_exec_destroy(exec);
    if (graph)
        d->graph_destroy(graph);
    if (r != CUDA_SUCCESS)
        *what = "a captured stamp";
    return r;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The second half of the records that the pairs left behind: the first replay warms up. */
static void read_floor(const struct gpu *g, struct floor_result *out)
{
    const struct ncclshim_record *rec = (const void *)((const uint8_t *)g->ring + sizeof(*g->ring));
    uint64_t ns[PAIRS], step = UINT64_MAX;

    for (unsigned i = 0; i < PAIRS; i++) {
        const struct ncclshim_record *k = &rec[PAIRS + 1 + i];
        uint64_t d = k->end_ns - k->start_ns;
        ns[i] = d;
        if (d && d < step)
            step = d;
        for (unsigned j = 0; j < i; j++) { /* smallest difference between any two readings */
            uint64_t apart = ns[i] > ns[j] ? ns[i] - ns[j] : ns[j] - ns[i];
            if (apart && apart < step)
                step = apart;
        }
    }
    qsort(ns, PAIRS, sizeof(ns[0]), by_value);
    out->floor_ns = (uint32_t)ns[PAIRS / 2];
    out->floor_max_ns = (uint32_t)ns[PAIRS - 1];
    out->clock_step_ns = step == UINT64_MAX ? 0 : (uint32_t)step;
}

CUresult floor_measure(struct gpu *g, struct log_writer *log, CUstream stream,
                       struct floor_result *out, const char **what)
{
    const struct driver *d = driver_get();
    struct ncclshim_record *rec = (void *)((uint8_t *)g->ring + sizeof(*g->ring));
    CUresult r;

    memset(out, 0, sizeof(*out));
    /* Eagerly once, with the late form that the graph does not hold. */
    if (!stamp_before(g, stream, gpu_cell(g, 0)) ||
        !stamp_after(g, stream, gpu_cell(g, 0), 0, true)) {
        *what = "the first stamp";
        return -1;
    }
    TRY(d->stream_sync(stream));
    if (d->graph_instantiate) {
        r = run_as_graph(g, stream, what);
        if (r != CUDA_SUCCESS)
            return r;
        read_floor(g, out);
    }
    /* Give back a clean ring: record number 0 is the program's first. */
    TRY(d->memset_d8_async(g->cells, 0, CELL_BYTES, stream));
    TRY(d->memset_d8_async(g->cursor, 0, 8, stream));
    TRY(d->stream_sync(stream));
    memset(rec, 0, (2 * PAIRS + 1) * sizeof(*rec));
    g->ring->lap = 0;
    floor_anchor(g, log);
    return CUDA_SUCCESS;
}

void floor_anchor(struct gpu *g, struct log_writer *log)
{
    const struct driver *d = driver_get();
    struct ncclshim_anchor best = {.host_after_ns = UINT64_MAX};
    CUdeviceptr slot = g->starts + (START_SLOTS - 1) * 8; /* the last slot is kept for this */
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    uint64_t now = log_now_ns();
    CUstream stream;
    bool relaxed;

    /* A program may make thousands of communicators; clocks drift by far less than that. */
    if (now - atomic_load_explicit(&g->anchored_ns, memory_order_relaxed) < ANCHOR_EVERY_NS)
        return;
    atomic_store_explicit(&g->anchored_ns, now, memory_order_relaxed);
    relaxed = d->exchange_capture_mode(&mode) == CUDA_SUCCESS;
    if (d->stream_create(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS) {
        for (int i = 0; i < ANCHORS; i++) {
            struct ncclshim_anchor a = {.host_before_ns = log_now_ns()};
            if (!stamp_before(g, stream, slot) || d->stream_sync(stream) != CUDA_SUCCESS)
                break;
            a.host_after_ns = log_now_ns();
            if (d->memcpy_dtoh_async(&a.gpu_ns, slot, 8, stream) != CUDA_SUCCESS ||
                d->stream_sync(stream) != CUDA_SUCCESS)
                break;
            if (a.host_after_ns - a.host_before_ns < best.host_after_ns - best.host_before_ns)
                best = a;
        }
        d->stream_destroy(stream);
    }
    if (relaxed) /* else `mode` is ours still, and would stay this thread's */
        d->exchange_capture_mode(&mode);
    if (best.gpu_ns)
        log_note(log, NCCLSHIM_NOTE_ANCHOR, g->ring_number, 0, 0, &best, sizeof(best), NULL, 0);
}
