/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/stamp.h"

#include <string.h>

bool gpu_enter(const struct gpu *g, bool *pushed)
{
    const struct driver *d = driver_get();
    CUcontext now = NULL;

    *pushed = false;
    if (!d || d->ctx_get_current(&now) != CUDA_SUCCESS)
        return false;
    if (now == g->ctx)
        return true;
    *pushed = d->ctx_push(g->ctx) == CUDA_SUCCESS;
    return *pushed;
}

void gpu_leave(bool pushed)
{
    CUcontext popped;

    if (pushed)
        driver_get()->ctx_pop(&popped);
}

static bool launch_one(const struct gpu *g, CUfunction fn, CUstream stream, void **params)
{
    const struct driver *d = driver_get();
    CUlaunchConfig config = {
        .grid = {1, 1, 1},
        .block = {1, 1, 1},
        .stream = stream,
        .attributes = g->attributes,
        .attribute_count = g->attribute_count,
    };
    CUresult r = g->dependent ? d->launch_ex(&config, fn, params, NULL)
                              : d->launch(fn, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);

    return r == CUDA_SUCCESS;
}

bool stamp_before(struct gpu *g, CUstream stream, CUdeviceptr start)
{
    void *params[] = {&start};

    return launch_one(g, g->before, stream, params);
}

bool stamp_after(struct gpu *g, CUstream stream, CUdeviceptr start, uint32_t site, bool late)
{
    CUdeviceptr cell = gpu_cell(g, site);
    void *params[] = {&g->cursor, &g->records, &g->lap, &cell, &start, &g->mask, &site};

    return launch_one(g, late ? g->after_late : g->after, stream, params);
}
