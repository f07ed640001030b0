/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills, at once or in stream order. */
#include "test/fake/cuda_sim.h"

#include <string.h>

enum side { SIDE_ANY, SIDE_HOST, SIDE_DEVICE };

/* Does the device know all of this memory? Of host memory it may be pageable. */
static CUresult check_side(CUdeviceptr address, size_t bytes, enum side side, bool *pageable)
{
    struct region region;
    bool known = region_find(address, &region);
    *pageable = !known;
    if (known && bytes > region.end - address && side != SIDE_HOST) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return known || side != SIDE_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct transfer {
    CUdeviceptr to, from;
    size_t bytes;
    enum side to_side, from_side;
};

static CUresult prepare_copy(const struct transfer *transfer, bool capturing, struct work **out,
                             bool *must_wait)
{
    bool to_pageable, from_pageable;
    TRY(check_side(transfer->to, transfer->bytes, transfer->to_side, &to_pageable));
    TRY(check_side(transfer->from, transfer->bytes, transfer->from_side, &from_pageable));
    struct work *work = work_new(WORK_COPY);
    work->u.copy.to = transfer->to;
    work->u.copy.from = transfer->from;
    work->u.copy.bytes = transfer->bytes;
    if (from_pageable && !capturing) {
        /* The driver stages pageable memory: the caller may reuse it at once. */
        work->u.copy.staged = sim_alloc(transfer->bytes + 1);
        memcpy(work->u.copy.staged, (void *)(uintptr_t)transfer->from, transfer->bytes);
    }
    *must_wait = to_pageable && !capturing;
    *out = work;
    return CUDA_SUCCESS;
}

/* After a call that is synchronous: wait for the stream. */
static CUresult settle(CUstream stream)
{
    sim_pace(stream_wait(stream));
    CUresult result = (CUresult)atomic_load(&stream->ctx->sticky);
    stream_unref(stream);
    return result;
}

static CUresult copy(const struct transfer *transfer, CUstream handle, bool per_thread, bool wait)
{
    CUstream stream = NULL;
    bool capturing = false, must_wait = false;
    struct work *work;
    if (transfer->bytes == 0) {
        CUcontext ctx;
        return ctx_current(&ctx);
    }
    sim_lock();
    CUresult result = stream_get(handle, per_thread, &stream);
    if (result == CUDA_SUCCESS) {
        result = capture_state(stream, &capturing);
    }
    if (result == CUDA_SUCCESS && wait) {
        if (capturing) { /* this thread's own default stream */
            capture_spoil(stream->capture);
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    if (result == CUDA_SUCCESS) {
        result = prepare_copy(transfer, capturing, &work, &must_wait);
    }
    if (result == CUDA_SUCCESS) {
        result = submit(stream, CU_GRAPH_NODE_TYPE_MEMCPY, work);
    }
    wait = result == CUDA_SUCCESS && (wait || must_wait);
    if (wait) {
        atomic_fetch_add(&stream->refs, 1);
    }
    sim_unlock();
    return wait ? settle(stream) : result;
}

static CUdeviceptr address_of(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

/* The symbol, its parameters and its transfer; once waiting and once in stream order. */
#define COPY(symbol, asynchronous, to_type, from_type, ...)                                        \
    static CUresult do_##symbol(to_type to, from_type from, size_t bytes, bool per_thread)         \
    {                                                                                              \
        struct transfer transfer = {__VA_ARGS__};                                                  \
        return copy(&transfer, NULL, per_thread, true);                                            \
    }                                                                                              \
    WITH_VARIANT(symbol, _ptds, (to_type to, from_type from, size_t bytes), to, from, bytes)       \
    static CUresult do_##asynchronous(to_type to, from_type from, size_t bytes, CUstream stream,   \
                                      bool per_thread)                                             \
    {                                                                                              \
        struct transfer transfer = {__VA_ARGS__};                                                  \
        return copy(&transfer, stream, per_thread, false);                                         \
    }                                                                                              \
    WITH_VARIANT(asynchronous, _ptsz, (to_type to, from_type from, size_t bytes, CUstream stream), \
                 to, from, bytes, stream)

COPY(cuMemcpy, cuMemcpyAsync, CUdeviceptr, CUdeviceptr, to, from, bytes, SIDE_ANY, SIDE_ANY)
COPY(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, to, address_of(from), bytes,
     SIDE_DEVICE, SIDE_HOST)
COPY(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, address_of(to), from, bytes,
     SIDE_HOST, SIDE_DEVICE)
COPY(cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, to, from, bytes, SIDE_DEVICE,
     SIDE_DEVICE)

/* ---- fills ---- */

static CUresult fill(CUdeviceptr to, unsigned value, unsigned size, size_t n, CUstream handle,
                     bool per_thread)
{
    CUstream stream;
    CUcontext ctx;
    if (n == 0) {
        return ctx_current(&ctx);
    }
    if (to % size != 0 || !region_covers(to, n * size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    CUresult result = stream_get(handle, per_thread, &stream);
    if (result == CUDA_SUCCESS) {
        struct work *work = work_new(WORK_SET);
        work->u.set = (CUDA_MEMSET_NODE_PARAMS){
            .dst = to, .value = value, .elementSize = size, .width = n, .height = 1};
        result = submit(stream, CU_GRAPH_NODE_TYPE_MEMSET, work);
    }
    sim_unlock();
    return result;
}

/* A fill of device memory doesn't block the host, in either form. */
#define FILL(symbol, asynchronous, type, size)                                                     \
    static CUresult do_##symbol(CUdeviceptr to, type value, size_t n, bool per_thread)             \
    {                                                                                              \
        return fill(to, value, size, n, NULL, per_thread);                                         \
    }                                                                                              \
    WITH_VARIANT(symbol, _ptds, (CUdeviceptr to, type value, size_t n), to, value, n)              \
    static CUresult do_##asynchronous(CUdeviceptr to, type value, size_t n, CUstream stream,       \
                                      bool per_thread)                                             \
    {                                                                                              \
        return fill(to, value, size, n, stream, per_thread);                                       \
    }                                                                                              \
    WITH_VARIANT(asynchronous, _ptsz, (CUdeviceptr to, type value, size_t n, CUstream stream), to, \
                 value, n, stream)

FILL(cuMemsetD8_v2, cuMemsetD8Async, unsigned char, 1)
FILL(cuMemsetD16_v2, cuMemsetD16Async, unsigned short, 2)
FILL(cuMemsetD32_v2, cuMemsetD32Async, unsigned int, 4)
