/* SPDX-License-Identifier: Apache-2.0 */
/* Units of work: how they end, and what running each kind means. */
#include "test/fake/cuda_sim.h"
#include "test/fake/ptx.h"

#include <stdlib.h>
#include <string.h>

struct work *work_new(enum work_kind kind)
{
    struct work *work = sim_alloc(sizeof *work);
    atomic_init(&work->refs, 1);
    work->kind = kind;
    return work;
}

struct work *work_ref(struct work *work)
{
    atomic_fetch_add_explicit(&work->refs, 1, memory_order_relaxed);
    return work;
}

void work_unref(struct work *work)
{
    if (atomic_fetch_sub_explicit(&work->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    switch (work->kind) {
    case WORK_KERNEL:
        free(work->u.kernel.params);
        free(work->u.kernel.param_pointers);
        module_unref(work->u.kernel.function->module);
        break;
    case WORK_HOST_KERNEL:
        if (work->u.host_kernel.release != NULL) {
            sim_later(work->u.host_kernel.release, work->u.host_kernel.arg);
        }
        break;
    case WORK_COPY:
        free(work->u.copy.staged);
        break;
    case WORK_RECORD:
    case WORK_WAIT:
        event_unref(work->u.event);
        break;
    case WORK_EMPTY:
    case WORK_SET:
    case WORK_HOST:
    case WORK_FREE:
        break;
    }
    free(work);
}

bool work_is_kernel(const struct work *work)
{
    return work != NULL && (work->kind == WORK_KERNEL || work->kind == WORK_HOST_KERNEL);
}

bool work_is_programmatic(const struct work *work)
{
    return work != NULL && work->kind == WORK_KERNEL && work->u.kernel.programmatic;
}

static uint64_t run_kernel(const struct work *work, CUcontext ctx, uint64_t start_ns)
{
    /* One a worker thread: what it has accessed before it may most likely access again. */
    static __thread struct region_cache cache;
    struct ptx_launch launch = {
        .params = work->u.kernel.params,
        .now_ns = start_ns + COST_KERNEL_HEAD_NS,
        .memory = &cache,
    };
    memcpy(launch.grid, work->u.kernel.grid, sizeof launch.grid);
    memcpy(launch.block, work->u.kernel.block, sizeof launch.block);
    CUresult result = ptx_run(work->u.kernel.function->kernel, &launch);
    if (result != CUDA_SUCCESS) {
        int none = CUDA_SUCCESS;
        atomic_compare_exchange_strong(&ctx->sticky, &none, (int)result);
    }
    return launch.now_ns + COST_KERNEL_TAIL_NS;
}

static void run_set(const CUDA_MEMSET_NODE_PARAMS *set)
{
    for (size_t row = 0; row < set->height; row++) {
        unsigned char *to = (unsigned char *)(uintptr_t)set->dst + row * set->pitch;
        if (set->elementSize == 1) {
            memset(to, (int)set->value, set->width);
        }
        for (size_t i = 0; set->elementSize == 2 && i < set->width; i++) {
            ((uint16_t *)to)[i] = (uint16_t)set->value;
        }
        for (size_t i = 0; set->elementSize == 4 && i < set->width; i++) {
            ((uint32_t *)to)[i] = set->value;
        }
    }
}

static uint64_t run_host(const struct work *work, CUcontext ctx, uint64_t start_ns)
{
    struct thread *thread = sim_thread();
    sim_pace(start_ns);
    thread->in_host_function = true;
    if (work->u.host.callback != NULL) {
        work->u.host.callback(work->u.host.stream, (CUresult)atomic_load(&ctx->sticky),
                              work->u.host.data);
    } else {
        work->u.host.fn(work->u.host.data);
    }
    thread->in_host_function = false;
    uint64_t now_ns = sim_now();
    return sim_env()->pace && now_ns > start_ns ? now_ns : start_ns;
}

uint64_t work_run(struct work *work, CUcontext ctx, uint64_t start_ns, struct mark *mark)
{
    uint64_t end;
    bool broken = atomic_load_explicit(&ctx->sticky, memory_order_relaxed) != CUDA_SUCCESS;
    switch (work->kind) {
    case WORK_KERNEL:
        return broken ? start_ns : run_kernel(work, ctx, start_ns);
    case WORK_HOST_KERNEL:
        if (broken) {
            return start_ns;
        }
        end = work->u.host_kernel.fn(work->u.host_kernel.arg, start_ns);
        return end > start_ns ? end : start_ns;
    case WORK_COPY:
        if (!broken) {
            memcpy((void *)(uintptr_t)work->u.copy.to,
                   work->u.copy.staged != NULL ? work->u.copy.staged
                                               : (void *)(uintptr_t)work->u.copy.from,
                   work->u.copy.bytes);
        }
        return start_ns + COST_COPY_NS + work->u.copy.bytes / COPY_BYTES_PER_NS;
    case WORK_SET:
        if (!broken) {
            run_set(&work->u.set);
        }
        return start_ns + COST_COPY_NS +
               work->u.set.width * work->u.set.height * work->u.set.elementSize / COPY_BYTES_PER_NS;
    case WORK_HOST:
        return run_host(work, ctx, start_ns);
    case WORK_RECORD:
        mark_finish(mark, start_ns + COST_RECORD_NS);
        return start_ns + COST_RECORD_NS;
    case WORK_WAIT:
        end = mark != NULL ? mark_wait(mark) : start_ns;
        return end > start_ns ? end : start_ns;
    case WORK_FREE: {
        struct region gone;
        if (region_drop((uint64_t)(uintptr_t)work->u.memory, REGION_DEVICE, &gone)) {
            free(work->u.memory);
        }
        return start_ns;
    }
    case WORK_EMPTY:
        return start_ns;
    }
    return start_ns;
}
