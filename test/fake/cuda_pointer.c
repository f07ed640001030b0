/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about pointers and memory. */
#include "test/fake/cuda_sim.h"

static bool is_host(const struct region *region)
{
    return region->kind == REGION_HOST || region->kind == REGION_REGISTERED;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *pointer, unsigned int flags)
{
    CUcontext ctx;
    struct region region;
    ENTER(cuMemHostGetDevicePointer_v2);
    TRY(ctx_current(&ctx));
    if (out == NULL || flags != 0 || !region_find((uint64_t)(uintptr_t)pointer, &region) ||
        !is_host(&region)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = (CUdeviceptr)(uintptr_t)pointer;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *pointer)
{
    CUcontext ctx;
    struct region region;
    ENTER(cuMemHostGetFlags);
    TRY(ctx_current(&ctx));
    if (flags == NULL || !region_find((uint64_t)(uintptr_t)pointer, &region) ||
        region.kind != REGION_HOST) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = region.flags;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    CUcontext ctx;
    ENTER(cuMemGetInfo_v2);
    TRY(ctx_current(&ctx));
    if (available == NULL || total == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *total = (size_t)80 << 30;
    *available = (size_t)79 << 30;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
    CUcontext ctx;
    struct region region;
    ENTER(cuMemGetAddressRange_v2);
    TRY(ctx_current(&ctx));
    if (!region_find(pointer, &region)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (base != NULL) {
        *base = region.base;
    }
    if (bytes != NULL) {
        *bytes = region.end - region.base;
    }
    return CUDA_SUCCESS;
}

static CUresult attribute(void *data, CUpointer_attribute which, const struct region *region,
                          CUdeviceptr pointer)
{
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = region->ctx;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = is_host(region) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = pointer;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!is_host(region)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *(void **)data = (void *)(uintptr_t)pointer;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = region->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = region->ctx->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = region->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = region->end - region->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr pointer)
{
    CUcontext ctx;
    struct region region;
    ENTER(cuPointerGetAttribute);
    TRY(ctx_current(&ctx));
    if (data == NULL || !region_find(pointer, &region)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return attribute(data, which, &region, pointer);
}

CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *which, void **data,
                                CUdeviceptr pointer)
{
    CUcontext ctx;
    struct region region;
    ENTER(cuPointerGetAttributes);
    TRY(ctx_current(&ctx));
    if (n == 0 || which == NULL || data == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool known = region_find(pointer, &region);
    for (unsigned i = 0; i < n; i++) {
        if (!known || attribute(data[i], which[i], &region, pointer) != CUDA_SUCCESS) {
            /* Of a pointer that CUDA doesn't know, this call says zero and no error. */
            switch (which[i]) {
            case CU_POINTER_ATTRIBUTE_CONTEXT:
            case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
                *(uint64_t *)data[i] = 0;
                break;
            case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
                *(int *)data[i] = -2;
                break;
            default:
                *(unsigned *)data[i] = 0;
                break;
            }
        }
    }
    return CUDA_SUCCESS;
}
