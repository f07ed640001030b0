/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: primary and created ones, and which is current to a thread. */
#include "test/fake/cuda_sim.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES 64

static CUcontext primaries[MAX_DEVICES];
static unsigned primary_flags[MAX_DEVICES];
CUcontext sim_contexts;

static CUresult check_device(CUdevice device)
{
    return device >= 0 && device < sim_env()->gpus ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static uint64_t ids; /* given out */

static CUcontext ctx_new(int device, unsigned flags, bool primary)
{
    CUcontext ctx = sim_alloc(sizeof *ctx);
    ctx->id = ++ids;
    ctx->device = device;
    ctx->flags = flags;
    ctx->primary = primary;
    ctx->alive = true;
    ctx->legacy = stream_new(ctx, 0, 0);
    ctx->legacy->legacy = true;
    ctx->next = sim_contexts;
    sim_contexts = ctx;
    handle_add(ctx, KIND_CONTEXT);
    return ctx;
}

/*
 * Everything of the context goes with it. The struct itself stays, for threads that still have it
 * current: their calls learn that it was destroyed.
 */
static void ctx_kill(CUcontext ctx)
{
    for (CUstream stream = ctx->streams, next; stream != NULL; stream = next) {
        next = stream->next;
        stream_destroy(stream);
    }
    ctx->legacy = NULL;
    modules_drop_context(ctx);
    regions_drop_context(ctx);
    ctx->alive = false;
    atomic_store(&ctx->sticky, CUDA_SUCCESS);
}

CUresult ctx_check(CUcontext ctx)
{
    if (ctx == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!ctx->alive) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return (CUresult)atomic_load_explicit(&ctx->sticky, memory_order_acquire);
}

static CUcontext top(void)
{
    struct thread *thread = sim_thread();
    return thread->depth > 0 ? thread->stack[thread->depth - 1] : NULL;
}

CUresult ctx_current(CUcontext *out)
{
    *out = top();
    return ctx_check(*out);
}

static void push(CUcontext ctx)
{
    struct thread *thread = sim_thread();
    if (thread->depth == thread->room) {
        thread->room = thread->room == 0 ? 8 : 2 * thread->room;
        thread->stack = sim_grow(thread->stack, thread->room, sizeof *thread->stack);
    }
    thread->stack[thread->depth++] = ctx;
}

/* ---- primary contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRetain);
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check_device(device));
    sim_lock();
    CUcontext ctx = primaries[device];
    if (ctx == NULL) {
        ctx = primaries[device] = ctx_new(device, primary_flags[device], true);
    } else if (!ctx->alive) {
        /* The same handle comes back to life, as with the real driver; it is another context. */
        ctx->alive = true;
        ctx->id = ++ids;
        ctx->legacy = stream_new(ctx, 0, 0);
        ctx->legacy->legacy = true;
    }
    ctx->retained++;
    *out = ctx;
    sim_unlock();
    return CUDA_SUCCESS;
}

static void wait_for_streams(CUcontext ctx)
{
    struct mark **marks;
    size_t n;
    sim_lock();
    CUresult result = ctx_marks(ctx, &marks, &n);
    sim_unlock();
    for (size_t i = 0; result == CUDA_SUCCESS && i < n; i++) {
        mark_wait(marks[i]);
        mark_unref(marks[i]);
    }
    free(result == CUDA_SUCCESS ? marks : NULL);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRelease_v2);
    TRY(check_device(device));
    sim_lock();
    CUcontext ctx = primaries[device];
    bool last = ctx != NULL && ctx->alive && ctx->retained == 1;
    if (ctx == NULL || !ctx->alive || ctx->retained == 0) {
        sim_unlock();
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    sim_unlock();
    if (last) {
        wait_for_streams(ctx);
    }
    sim_lock();
    if (--ctx->retained == 0) {
        ctx_kill(ctx);
    }
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxReset_v2);
    TRY(check_device(device));
    CUcontext ctx = primaries[device];
    if (ctx != NULL && ctx->alive) {
        wait_for_streams(ctx);
        sim_lock();
        ctx_kill(ctx);
        ctx->retained = 0;
        sim_unlock();
    }
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    ENTER(cuDevicePrimaryCtxGetState);
    TRY(check_device(device));
    sim_lock();
    if (flags != NULL) {
        *flags = primary_flags[device];
    }
    if (active != NULL) {
        *active = primaries[device] != NULL && primaries[device]->alive;
    }
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    ENTER(cuDevicePrimaryCtxSetFlags_v2);
    TRY(check_device(device));
    if ((flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    primary_flags[device] = flags;
    sim_unlock();
    return CUDA_SUCCESS;
}

/* ---- created contexts ---- */

static CUresult create(CUcontext *out, unsigned flags, CUdevice device)
{
    if (out == NULL || (flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check_device(device));
    sim_lock();
    *out = ctx_new(device, flags, false);
    push(*out);
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device)
{
    ENTER(cuCtxCreate_v2);
    return create(out, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags,
                        CUdevice device)
{
    ENTER(cuCtxCreate_v4);
    (void)params;
    return create(out, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    ENTER(cuCtxDestroy_v2);
    sim_lock();
    bool good = handle_is(ctx, KIND_CONTEXT) && ctx->alive && !ctx->primary;
    sim_unlock();
    if (!good) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    wait_for_streams(ctx);
    sim_lock();
    ctx_kill(ctx);
    struct thread *thread = sim_thread();
    if (thread->depth > 0 && thread->stack[thread->depth - 1] == ctx) {
        thread->depth--;
    }
    sim_unlock();
    return CUDA_SUCCESS;
}

/* ---- the current one ---- */

CUresult cuCtxGetCurrent(CUcontext *out)
{
    ENTER(cuCtxGetCurrent);
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = top();
    return CUDA_SUCCESS;
}

static CUresult check_handle(CUcontext ctx)
{
    CUresult result = CUDA_SUCCESS;
    sim_lock();
    if (!handle_is(ctx, KIND_CONTEXT)) {
        result = CUDA_ERROR_INVALID_CONTEXT;
    } else if (!ctx->alive) {
        result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    sim_unlock();
    return result;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    ENTER(cuCtxSetCurrent);
    struct thread *thread = sim_thread();
    if (ctx != NULL) {
        TRY(check_handle(ctx));
    }
    if (thread->depth > 0) {
        thread->depth--;
    }
    if (ctx != NULL) {
        push(ctx);
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    ENTER(cuCtxPushCurrent_v2);
    TRY(check_handle(ctx));
    push(ctx);
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    ENTER(cuCtxPopCurrent_v2);
    struct thread *thread = sim_thread();
    if (thread->depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    thread->depth--;
    if (out != NULL) {
        *out = thread->stack[thread->depth];
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUcontext ctx;
    ENTER(cuCtxGetDevice);
    TRY(ctx_current(&ctx));
    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *device = ctx->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    CUcontext ctx;
    ENTER(cuCtxGetFlags);
    TRY(ctx_current(&ctx));
    if (flags == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = ctx->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
    ENTER(cuCtxGetId);
    if (id == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (ctx == NULL) {
        TRY(ctx_current(&ctx));
    } else {
        TRY(check_handle(ctx));
    }
    *id = ctx->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    ENTER(cuCtxGetApiVersion);
    if (version == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (ctx != NULL) {
        TRY(check_handle(ctx));
    }
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CUcontext ctx;
    ENTER(cuCtxGetStreamPriorityRange);
    TRY(ctx_current(&ctx));
    if (least != NULL) {
        *least = 0;
    }
    if (greatest != NULL) {
        *greatest = -5;
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    CUcontext ctx;
    ENTER(cuCtxEnablePeerAccess);
    TRY(ctx_current(&ctx));
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : check_handle(peer);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    CUcontext ctx;
    ENTER(cuCtxDisablePeerAccess);
    TRY(ctx_current(&ctx));
    return check_handle(peer);
}

/* ---- waiting ---- */

CUresult ctx_marks(CUcontext ctx, struct mark ***out, size_t *n)
{
    *out = NULL;
    *n = 0;
    for (CUstream stream = ctx->streams; stream != NULL; stream = stream->next) {
        struct mark *mark;
        TRY(stream_mark(stream, &mark));
        *out = sim_grow(*out, *n + 1, sizeof **out);
        (*out)[(*n)++] = mark;
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    CUcontext ctx;
    struct mark **marks = NULL;
    size_t n = 0;
    uint64_t latest = 0;
    ENTER(cuCtxSynchronize);
    TRY(ctx_current(&ctx));
    sim_lock();
    CUresult result = capture_check_context(ctx);
    if (result == CUDA_SUCCESS) {
        result = capture_check_unsafe();
    }
    if (result == CUDA_SUCCESS) {
        result = ctx_marks(ctx, &marks, &n);
    }
    sim_unlock();
    for (size_t i = 0; i < n; i++) {
        uint64_t end = mark_wait(marks[i]);
        latest = end > latest ? end : latest;
        mark_unref(marks[i]);
    }
    free(marks);
    TRY(result);
    sim_pace(latest);
    return ctx_check(ctx);
}

void ctx_wait_for_device(int device)
{
    CUstream *busy = NULL;
    uint64_t *until = NULL;
    size_t n = 0;
    if (!sim_env()->sync_load) {
        return;
    }
    sim_lock();
    for (CUcontext ctx = sim_contexts; ctx != NULL; ctx = ctx->next) {
        for (CUstream stream = ctx->streams; stream != NULL; stream = stream->next) {
            uint64_t number;
            if (ctx->device == device && stream_runs_kernel(stream, &number)) {
                busy = sim_grow(busy, n + 1, sizeof *busy);
                until = sim_grow(until, n + 1, sizeof *until);
                atomic_fetch_add(&stream->refs, 1);
                until[n] = number;
                busy[n++] = stream;
            }
        }
    }
    sim_unlock();
    for (size_t i = 0; i < n; i++) {
        stream_wait_until(busy[i], until[i]);
        stream_unref(busy[i]);
    }
    free(busy);
    free(until);
}
