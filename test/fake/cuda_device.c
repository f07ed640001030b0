/* SPDX-License-Identifier: Apache-2.0 */
/* What a device says about itself. */
#include "test/fake/cuda_sim.h"

#include <stdio.h>
#include <string.h>

#define TOTAL_MEMORY ((size_t)80 << 30)

static CUresult check(CUdevice device)
{
    return device >= 0 && device < sim_env()->gpus ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount);
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = sim_env()->gpus;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER(cuDeviceGet);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check(ordinal));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    ENTER(cuDeviceGetName);
    if (name == NULL || length <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check(device));
    snprintf(name, (size_t)length, "Simulated GPU");
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    ENTER(cuDeviceTotalMem_v2);
    if (bytes == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check(device));
    *bytes = TOTAL_MEMORY;
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    ENTER(cuDeviceComputeCapability);
    if (major == NULL || minor == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check(device));
    *major = sim_env()->sm / 10;
    *minor = sim_env()->sm % 10;
    return CUDA_SUCCESS;
}

static CUresult uuid(CUuuid *out, CUdevice device)
{
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check(device));
    memcpy(out->bytes, "simulated GPU\0\0", 15);
    out->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device)
{
    ENTER(cuDeviceGetUuid);
    return uuid(out, device);
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device)
{
    ENTER(cuDeviceGetUuid_v2);
    return uuid(out, device);
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
    ENTER(cuDeviceGetPCIBusId);
    if (id == NULL || length < 13) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check(device));
    snprintf(id, (size_t)length, "0000:%02X:00.0", (unsigned)(device + 1) * 2 % 256);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    unsigned domain, bus, slot;
    ENTER(cuDeviceGetByPCIBusId);
    if (device == NULL || id == NULL || sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3 ||
        domain != 0 || slot != 0 || bus % 2 != 0 || bus == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check((int)bus / 2 - 1));
    *device = (int)bus / 2 - 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    ENTER(cuDeviceCanAccessPeer);
    if (can == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check(device));
    TRY(check(peer));
    *can = device != peer;
    return CUDA_SUCCESS;
}

static int attribute(CUdevice_attribute which, CUdevice device)
{
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return sim_env()->sm / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return sim_env()->sm % 10;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
        return (int)sim_domains();
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        return 65535;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        return 32;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return 132;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        return 1000000;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        return 48 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return 227 << 10;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
        return 64 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
        return 65536;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return (device + 1) * 2;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        return 3;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
        return 1;
    default:
        return 0;
    }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    ENTER(cuDeviceGetAttribute);
    if (value == NULL || which <= 0 || which >= CU_DEVICE_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check(device));
    *value = attribute(which, device);
    return CUDA_SUCCESS;
}
