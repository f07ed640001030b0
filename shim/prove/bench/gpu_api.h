/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the CUDA driver and of NCCL that `bench` calls, found at run time: libcuda.so.1
 * and libnccl.so.2 (or NCCLSHIM_NCCL), so that the command is built without CUDA and runs without.
 * Types and numbers are those of cuda.h (11.4 on) and nccl.h (2.8 on), as own declarations;
 * test/unit/test_bench_gpu_api.c compares them with the headers at hand.
 *
 * Names are looked up with dlsym on the handle: with the shim in front, its wrappers answer.
 */
#ifndef NCCLSHIM_PROVE_GPU_API_H
#define NCCLSHIM_PROVE_GPU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/error.h"

typedef struct gpuapi_handle *gpuapi_ctx, *gpuapi_module, *gpuapi_function, *gpuapi_stream,
    *gpuapi_event, *gpuapi_graph, *gpuapi_exec, *gpuapi_comm;
typedef unsigned long long gpuapi_ptr;
typedef struct {
    char internal[128];
} gpuapi_id; /* ncclUniqueId: passed by value */

enum { GPUAPI_STREAM_NON_BLOCKING = 1, GPUAPI_CAPTURE_RELAXED = 2, GPUAPI_EVENT_DEFAULT = 0 };
enum { GPUAPI_NCCL_IN_PROGRESS = 7 };

/* X(member, exported name, parameters); each returns a CUresult */
#define GPUAPI_CUDA(X)                                                                             \
    X(init, "cuInit", (unsigned))                                                                  \
    X(error_name, "cuGetErrorName", (int, const char **))                                          \
    X(error_text, "cuGetErrorString", (int, const char **))                                        \
    X(driver_version, "cuDriverGetVersion", (int *))                                               \
    X(device_count, "cuDeviceGetCount", (int *))                                                   \
    X(device_get, "cuDeviceGet", (int *, int))                                                     \
    X(device_name, "cuDeviceGetName", (char *, int, int))                                          \
    X(primary_retain, "cuDevicePrimaryCtxRetain", (gpuapi_ctx *, int))                             \
    X(primary_release, "cuDevicePrimaryCtxRelease_v2", (int))                                      \
    X(ctx_set, "cuCtxSetCurrent", (gpuapi_ctx))                                                    \
    X(module_load, "cuModuleLoadData", (gpuapi_module *, const void *))                            \
    X(module_unload, "cuModuleUnload", (gpuapi_module))                                            \
    X(module_function, "cuModuleGetFunction",                                                      \
      (gpuapi_function *, gpuapi_module, const char *))                                            \
    X(launch, "cuLaunchKernel",                                                                    \
      (gpuapi_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,      \
       gpuapi_stream, void **, void **))                                                           \
    X(mem_alloc, "cuMemAlloc_v2", (gpuapi_ptr *, size_t))                                          \
    X(mem_free, "cuMemFree_v2", (gpuapi_ptr))                                                      \
    X(copy_in, "cuMemcpyHtoDAsync_v2", (gpuapi_ptr, const void *, size_t, gpuapi_stream))          \
    X(copy_out, "cuMemcpyDtoHAsync_v2", (void *, gpuapi_ptr, size_t, gpuapi_stream))               \
    X(fill, "cuMemsetD8Async", (gpuapi_ptr, unsigned char, size_t, gpuapi_stream))                 \
    X(stream_create, "cuStreamCreate", (gpuapi_stream *, unsigned))                                \
    X(stream_destroy, "cuStreamDestroy_v2", (gpuapi_stream))                                       \
    X(stream_sync, "cuStreamSynchronize", (gpuapi_stream))                                         \
    X(capture_begin, "cuStreamBeginCapture_v2", (gpuapi_stream, int))                              \
    X(capture_end, "cuStreamEndCapture", (gpuapi_stream, gpuapi_graph *))                          \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                            \
      (gpuapi_exec *, gpuapi_graph, unsigned long long))                                           \
    X(graph_upload, "cuGraphUpload", (gpuapi_exec, gpuapi_stream))                                 \
    X(graph_launch, "cuGraphLaunch", (gpuapi_exec, gpuapi_stream))                                 \
    X(exec_destroy, "cuGraphExecDestroy", (gpuapi_exec))                                           \
    X(graph_destroy, "cuGraphDestroy", (gpuapi_graph))                                             \
    X(event_create, "cuEventCreate", (gpuapi_event *, unsigned))                                   \
    X(event_destroy, "cuEventDestroy_v2", (gpuapi_event))                                          \
    X(event_record, "cuEventRecord", (gpuapi_event, gpuapi_stream))                                \
    X(event_elapsed, "cuEventElapsedTime", (float *, gpuapi_event, gpuapi_event))

/* X(member, exported name, must it be there, parameters); each returns an ncclResult_t */
#define GPUAPI_NCCL(X)                                                                             \
    X(version, "ncclGetVersion", 1, (int *))                                                       \
    X(unique_id, "ncclGetUniqueId", 1, (gpuapi_id *))                                              \
    X(comm_init, "ncclCommInitRank", 1, (gpuapi_comm *, int, gpuapi_id, int))                      \
    X(comm_destroy, "ncclCommDestroy", 1, (gpuapi_comm))                                           \
    X(comm_error, "ncclCommGetAsyncError", 1, (gpuapi_comm, int *))                                \
    X(group_start, "ncclGroupStart", 1, (void))                                                    \
    X(group_end, "ncclGroupEnd", 1, (void))                                                        \
    X(all_reduce, "ncclAllReduce", 1,                                                              \
      (const void *, void *, size_t, int, int, gpuapi_comm, gpuapi_stream))                        \
    X(all_gather, "ncclAllGather", 1,                                                              \
      (const void *, void *, size_t, int, gpuapi_comm, gpuapi_stream))                             \
    X(reduce_scatter, "ncclReduceScatter", 1,                                                      \
      (const void *, void *, size_t, int, int, gpuapi_comm, gpuapi_stream))                        \
    X(broadcast, "ncclBroadcast", 1,                                                               \
      (const void *, void *, size_t, int, int, gpuapi_comm, gpuapi_stream))                        \
    X(reduce, "ncclReduce", 1,                                                                     \
      (const void *, void *, size_t, int, int, int, gpuapi_comm, gpuapi_stream))                   \
    X(send, "ncclSend", 1, (const void *, size_t, int, int, gpuapi_comm, gpuapi_stream))           \
    X(recv, "ncclRecv", 1, (void *, size_t, int, int, gpuapi_comm, gpuapi_stream))                 \
    X(all_to_all, "ncclAlltoAll", 0,                                                               \
      (const void *, void *, size_t, int, gpuapi_comm, gpuapi_stream))                             \
    X(gather, "ncclGather", 0,                                                                     \
      (const void *, void *, size_t, int, int, gpuapi_comm, gpuapi_stream))                        \
    X(scatter, "ncclScatter", 0,                                                                   \
      (const void *, void *, size_t, int, int, gpuapi_comm, gpuapi_stream))

struct gpuapi_cuda {
#define X(member, name, params) int(*member) params;
    GPUAPI_CUDA(X)
#undef X
};
struct gpuapi_nccl {
#define X(member, name, must, params) int(*member) params;
    GPUAPI_NCCL(X)
#undef X
    const char *(*error_text)(int);
    const char *(*last_error)(gpuapi_comm); /* NULL before 2.13 */
};

/* Valid after gpuapi_load returned 0; only read from then on, any thread. */
extern struct gpuapi_cuda gpuapi_cu;
extern struct gpuapi_nccl gpuapi_nc;

/* Load both, NCCL from `nccl` (a path or a name). Before any thread. 0, or -1 with *e filled. */
int gpuapi_load(const char *nccl, struct error *e);

/* What a call (a member, or any words) that was not 0 said. Always -1, for `return`. */
int gpuapi_cuda_failed(struct error *e, const char *call, int result);
int gpuapi_nccl_failed(struct error *e, const char *call, int result);

/* Leave the function with *e filled when a call fails. */
#define GPUAPI_CU(e, call)                                                                         \
    do {                                                                                           \
        int gpuapi_result_ = gpuapi_cu.call;                                                       \
        if (gpuapi_result_)                                                                        \
            return gpuapi_cuda_failed(e, #call, gpuapi_result_);                                   \
    } while (0)
#define GPUAPI_NC(e, call)                                                                         \
    do {                                                                                           \
        int gpuapi_result_ = gpuapi_nc.call;                                                       \
        if (gpuapi_result_)                                                                        \
            return gpuapi_nccl_failed(e, #call, gpuapi_result_);                                   \
    } while (0)

#endif
