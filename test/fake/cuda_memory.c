/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the device may touch. Device memory is ordinary host memory: one address space, so
 * that simulated collectives can add up buffers. A sorted table of regions says what is allowed.
 */
#include "test/fake/cuda_sim.h"

#include <stdlib.h>
#include <string.h>

#define TOTAL_MEMORY ((size_t)80 << 30)

atomic_uint_fast64_t region_generation;

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct region *regions; /* sorted by base, disjoint */
static size_t nregions;

/* Index of the last region that starts at or below `address`, or -1. */
static long below(uint64_t address)
{
    size_t low = 0, high = nregions;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (regions[middle].base <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return (long)low - 1;
}

void region_add(const struct region *region)
{
    static uint64_t ids;
    pthread_rwlock_wrlock(&lock);
    size_t at = (size_t)(below(region->base) + 1);
    regions = sim_grow(regions, nregions + 1, sizeof *regions);
    memmove(&regions[at + 1], &regions[at], (nregions - at) * sizeof *regions);
    regions[at] = *region;
    regions[at].id = ++ids;
    nregions++;
    pthread_rwlock_unlock(&lock);
}

static void remove_at(size_t at)
{
    memmove(&regions[at], &regions[at + 1], (nregions - at - 1) * sizeof *regions);
    nregions--;
    atomic_fetch_add(&region_generation, 1);
}

bool region_drop(uint64_t base, enum region_kind kind, struct region *out)
{
    pthread_rwlock_wrlock(&lock);
    long at = below(base);
    bool found = at >= 0 && regions[at].base == base && regions[at].kind == kind;
    if (found) {
        *out = regions[at];
        remove_at((size_t)at);
    }
    pthread_rwlock_unlock(&lock);
    return found;
}

void regions_drop_context(CUcontext ctx)
{
    pthread_rwlock_wrlock(&lock);
    for (size_t i = nregions; i-- > 0;) {
        /* Host memory is portable to all contexts, but belongs to the one that made it. */
        if (regions[i].ctx == ctx) {
            if (regions[i].kind == REGION_DEVICE || regions[i].kind == REGION_HOST) {
                free((void *)(uintptr_t)regions[i].base);
            }
            remove_at(i);
        }
    }
    pthread_rwlock_unlock(&lock);
}

bool region_find(uint64_t address, struct region *out)
{
    pthread_rwlock_rdlock(&lock);
    long at = below(address);
    bool found = at >= 0 && address < regions[at].end;
    if (found) {
        *out = regions[at];
    }
    pthread_rwlock_unlock(&lock);
    return found;
}

bool region_covers(uint64_t address, size_t bytes)
{
    struct region region;
    return region_find(address, &region) && bytes <= region.end - address;
}

bool region_overlaps(uint64_t base, uint64_t end, struct region *out)
{
    pthread_rwlock_rdlock(&lock);
    long at = below(end - 1);
    bool overlaps = at >= 0 && regions[at].end > base;
    if (overlaps) {
        *out = regions[at];
    }
    pthread_rwlock_unlock(&lock);
    return overlaps;
}

bool region_lookup(struct region_cache *cache, uint64_t address, size_t bytes)
{
    uint64_t generation = atomic_load(&region_generation);
    struct region region;
    if (cache->generation != generation) {
        memset(cache, 0, sizeof *cache);
        cache->generation = generation;
    }
    if (!region_find(address, &region) || bytes > region.end - address) {
        return false;
    }
    cache->base[cache->next] = region.base;
    cache->end[cache->next] = region.end;
    cache->next = (cache->next + 1) % 4;
    return true;
}

/* ---- allocating ---- */

/* What allocations, frees and registrations have in common; true in *out is the context. */
static CUresult begin(CUcontext *ctx)
{
    TRY(ctx_current(ctx));
    sim_lock();
    CUresult result = capture_check_unsafe();
    sim_unlock();
    TRY(result);
    ctx_wait_for_device((*ctx)->device);
    return CUDA_SUCCESS;
}

/* Freeing waits for what is queued, which may still use the memory: as the real driver does. */
static void wait_for_users(CUcontext ctx)
{
    struct mark **marks;
    size_t n;
    sim_lock();
    CUresult result = ctx_marks(ctx, &marks, &n);
    sim_unlock();
    for (size_t i = 0; i < n; i++) {
        mark_wait(marks[i]);
        mark_unref(marks[i]);
    }
    free(marks);
    (void)result;
}

static CUresult allocate(CUcontext ctx, size_t bytes, enum region_kind kind, unsigned flags,
                         void **out)
{
    size_t size = (bytes + 511) & ~(size_t)511;
    void *memory;
    if (bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size > TOTAL_MEMORY || size < bytes) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory = aligned_alloc(kind == REGION_HOST ? 4096 : 512,
                           kind == REGION_HOST ? (size + 4095) & ~(size_t)4095 : size);
    if (memory == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t base = (uint64_t)(uintptr_t)memory;
    region_add(&(struct region){base, base + bytes, kind, ctx, flags, 0});
    *out = memory;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    CUcontext ctx;
    void *memory;
    ENTER(cuMemAlloc_v2);
    TRY(begin(&ctx));
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(allocate(ctx, bytes, REGION_DEVICE, 0, &memory));
    *out = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    CUcontext ctx;
    struct region region;
    ENTER(cuMemFree_v2);
    TRY(begin(&ctx));
    if (pointer == 0) {
        return CUDA_SUCCESS;
    }
    wait_for_users(ctx);
    if (!region_drop(pointer, REGION_DEVICE, &region)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    free((void *)(uintptr_t)pointer);
    return CUDA_SUCCESS;
}

static CUresult alloc_async(CUstream handle, bool per_thread, CUdeviceptr *out, size_t bytes)
{
    CUstream stream;
    bool capturing;
    void *memory;
    TRY(stream_get(handle, per_thread, &stream));
    TRY(capture_state(stream, &capturing));
    if (capturing) {
        /* Memory nodes are not simulated. */
        capture_spoil(stream->capture);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    TRY(capture_check_unsafe());
    TRY(allocate(stream->ctx, bytes, REGION_DEVICE, 0, &memory));
    *out = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

static CUresult do_cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream, bool per_thread)
{
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    CUresult result = alloc_async(stream, per_thread, out, bytes);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuMemAllocAsync, _ptsz, (CUdeviceptr * out, size_t bytes, CUstream stream), out, bytes,
             stream)

static CUresult free_async(CUdeviceptr pointer, CUstream handle, bool per_thread)
{
    CUstream stream;
    bool capturing;
    struct region region;
    TRY(stream_get(handle, per_thread, &stream));
    TRY(capture_state(stream, &capturing));
    if (capturing) {
        capture_spoil(stream->capture);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    TRY(capture_check_unsafe());
    if (!region_find(pointer, &region) || region.base != pointer || region.kind != REGION_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct work *work = work_new(WORK_FREE);
    work->u.memory = (void *)(uintptr_t)pointer;
    return stream_put_work(stream, work);
}

static CUresult do_cuMemFreeAsync(CUdeviceptr pointer, CUstream stream, bool per_thread)
{
    sim_lock();
    CUresult result = free_async(pointer, stream, per_thread);
    sim_unlock();
    return result;
}
WITH_VARIANT(cuMemFreeAsync, _ptsz, (CUdeviceptr pointer, CUstream stream), pointer, stream)

CUresult cuMemAllocHost_v2(void **out, size_t bytes)
{
    CUcontext ctx;
    ENTER(cuMemAllocHost_v2);
    TRY(begin(&ctx));
    return out == NULL ? CUDA_ERROR_INVALID_VALUE
                       : allocate(ctx, bytes, REGION_HOST, CU_MEMHOSTALLOC_DEVICEMAP, out);
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
    CUcontext ctx;
    ENTER(cuMemHostAlloc);
    TRY(begin(&ctx));
    if (out == NULL || (flags & ~(unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
                                            CU_MEMHOSTALLOC_WRITECOMBINED)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate(ctx, bytes, REGION_HOST, flags | CU_MEMHOSTALLOC_DEVICEMAP, out);
}

CUresult cuMemFreeHost(void *pointer)
{
    CUcontext ctx;
    struct region region;
    ENTER(cuMemFreeHost);
    TRY(begin(&ctx));
    if (pointer == NULL) {
        return CUDA_SUCCESS;
    }
    wait_for_users(ctx);
    if (!region_drop((uint64_t)(uintptr_t)pointer, REGION_HOST, &region)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    free(pointer);
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
    const unsigned known =
        CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    CUcontext ctx;
    struct region region;
    uint64_t base = (uint64_t)(uintptr_t)pointer;
    ENTER(cuMemHostRegister_v2);
    TRY(begin(&ctx));
    if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (pointer == NULL || bytes == 0 || (flags & ~known) != 0 || base + bytes < base) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (region_overlaps(base, base + bytes, &region)) {
        return region.kind == REGION_REGISTERED ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                                : CUDA_ERROR_INVALID_VALUE;
    }
    TRY(hostreg_check(base, base + bytes, (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0));
    region_add(&(struct region){base, base + bytes, REGION_REGISTERED, ctx, flags, 0});
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *pointer)
{
    CUcontext ctx;
    struct region region;
    ENTER(cuMemHostUnregister);
    TRY(begin(&ctx));
    uint64_t base = (uint64_t)(uintptr_t)pointer;
    if (pointer == NULL ||
        (region_find(base, &region) && (region.base != base || region.kind != REGION_REGISTERED))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    wait_for_users(ctx);
    return region_drop(base, REGION_REGISTERED, &region) ? CUDA_SUCCESS
                                                         : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
