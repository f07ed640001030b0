/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver's functions that the shim uses, found at run time in the libcuda.so.1 that the
 * process has: no CUDA header or library at build time, any driver from CUDA 11.4 on. Types and
 * numbers are the driver API's (cuda.h); test/unit/test_driver_abi.c compares them.
 */
#ifndef NCCLSHIM_PRELOAD_DRIVER_H
#define NCCLSHIM_PRELOAD_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef unsigned long long CUdeviceptr;
typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
};
enum { CU_STREAM_NON_BLOCKING = 1 };
enum { CU_MEMHOSTREGISTER_PORTABLE = 1, CU_MEMHOSTREGISTER_DEVICEMAP = 2 };
enum { CU_STREAM_CAPTURE_STATUS_NONE = 0, CU_STREAM_CAPTURE_STATUS_ACTIVE = 1 };
enum { CU_STREAM_CAPTURE_MODE_GLOBAL = 0, CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum {
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT = 126,
};
enum {
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9,
};

typedef struct {
    int id;
    char pad[8 - sizeof(int)];
    union {
        char bytes[64];
        int number;
        struct {
            unsigned char default_, remote;
        } domains;
    } value;
} CUlaunchAttribute;

typedef struct {
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
    CUstream stream;
    const CUlaunchAttribute *attributes;
    unsigned int attribute_count;
} CUlaunchConfig;

/* X(member, exported name, must it be there, result type is CUresult; parameters) */
#define NCCLSHIM_DRIVER(X)                                                                         \
    X(ctx_get_current, "cuCtxGetCurrent", 1, (CUcontext *))                                        \
    X(ctx_push, "cuCtxPushCurrent_v2", 1, (CUcontext))                                             \
    X(ctx_pop, "cuCtxPopCurrent_v2", 1, (CUcontext *))                                             \
    X(ctx_get_device, "cuCtxGetDevice", 1, (CUdevice *))                                           \
    X(ctx_get_id, "cuCtxGetId", 0, (CUcontext, unsigned long long *))                              \
    X(device_get, "cuDeviceGet", 1, (CUdevice *, int))                                             \
    X(device_get_count, "cuDeviceGetCount", 1, (int *))                                            \
    X(device_get_attribute, "cuDeviceGetAttribute", 1, (int *, int, CUdevice))                     \
    X(device_get_name, "cuDeviceGetName", 1, (char *, int, CUdevice))                              \
    X(device_get_uuid, "cuDeviceGetUuid", 0, (CUuuid *, CUdevice))                                 \
    X(device_get_pci, "cuDeviceGetPCIBusId", 0, (char *, int, CUdevice))                           \
    X(device_total_mem, "cuDeviceTotalMem_v2", 0, (size_t *, CUdevice))                            \
    X(primary_retain, "cuDevicePrimaryCtxRetain", 1, (CUcontext *, CUdevice))                      \
    X(primary_release, "cuDevicePrimaryCtxRelease_v2", 1, (CUdevice))                              \
    X(module_load, "cuModuleLoadData", 1, (CUmodule *, const void *))                              \
    X(module_unload, "cuModuleUnload", 1, (CUmodule))                                              \
    X(module_get_function, "cuModuleGetFunction", 1, (CUfunction *, CUmodule, const char *))       \
    X(mem_alloc, "cuMemAlloc_v2", 1, (CUdeviceptr *, size_t))                                      \
    X(mem_free, "cuMemFree_v2", 1, (CUdeviceptr))                                                  \
    X(memset_d8_async, "cuMemsetD8Async", 1, (CUdeviceptr, unsigned char, size_t, CUstream))       \
    X(memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2", 1, (void *, CUdeviceptr, size_t, CUstream))       \
    X(host_register, "cuMemHostRegister_v2", 1, (void *, size_t, unsigned int))                    \
    X(host_unregister, "cuMemHostUnregister", 1, (void *))                                         \
    X(host_device_pointer, "cuMemHostGetDevicePointer_v2", 1, (CUdeviceptr *, void *, unsigned))   \
    X(stream_create, "cuStreamCreate", 1, (CUstream *, unsigned int))                              \
    X(stream_destroy, "cuStreamDestroy_v2", 1, (CUstream))                                         \
    X(stream_sync, "cuStreamSynchronize", 1, (CUstream))                                           \
    X(stream_begin_capture, "cuStreamBeginCapture_v2", 1, (CUstream, int))                         \
    X(stream_end_capture, "cuStreamEndCapture", 1, (CUstream, CUgraph *))                          \
    X(stream_capture_info, "cuStreamGetCaptureInfo_v2", 0,                                         \
      (CUstream, int *, uint64_t *, CUgraph *, const CUgraphNode **, size_t *))                    \
    X(stream_capture_info3, "cuStreamGetCaptureInfo_v3", 0,                                        \
      (CUstream, int *, uint64_t *, CUgraph *, const CUgraphNode **, const void **, size_t *))     \
    X(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", 1, (int *))                      \
    X(graph_instantiate, "cuGraphInstantiateWithFlags", 0,                                         \
      (CUgraphExec *, CUgraph, unsigned long long))                                                \
    X(graph_launch, "cuGraphLaunch", 1, (CUgraphExec, CUstream))                                   \
    X(graph_exec_destroy, "cuGraphExecDestroy", 1, (CUgraphExec))                                  \
    X(graph_destroy, "cuGraphDestroy", 1, (CUgraph))                                               \
    X(launch, "cuLaunchKernel", 1,                                                                 \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
       void **, void **))                                                                          \
    X(launch_ex, "cuLaunchKernelEx", 0, (const CUlaunchConfig *, CUfunction, void **, void **))

struct driver {
#define X(member, name, must, params) CUresult(*member) params;
    NCCLSHIM_DRIVER(X)
#undef X
};

/*
 * The driver, or NULL when the process has none that fits. Looked for again at each call until it is
 * found; then the same pointer for good. Any thread.
 */
const struct driver *driver_get(void);

/* Is `stream` being captured? Its capture id and the nodes that the next one would depend on. */
struct capture_info {
    bool active;
    bool refused; /* the driver would not tell (legacy stream during somebody's capture) */
    uint64_t id;
    const CUgraphNode *frontier;
    size_t frontier_count;
};
void driver_capture_info(const struct driver *d, CUstream stream, struct capture_info *out);

#endif
