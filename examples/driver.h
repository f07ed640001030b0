/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver as the examples use it: found at run time (libcuda.so.1 by dlopen, each function
 * by dlsym), so that one binary runs on a GPU, on the simulator and, up to the first call, on a
 * machine without either. cuda.h gives the types and, through its own macros, the versioned symbol
 * names.
 */
#ifndef NCCLSHIM_EXAMPLES_DRIVER_H
#define NCCLSHIM_EXAMPLES_DRIVER_H

#include <cuda.h>
#include <stdint.h>

#define DRIVER_FUNCTIONS(X)        \
    X(cuInit)                      \
    X(cuGetErrorName)              \
    X(cuGetErrorString)            \
    X(cuDeviceGetCount)            \
    X(cuDeviceGet)                 \
    X(cuDeviceGetName)             \
    X(cuDevicePrimaryCtxRetain)    \
    X(cuDevicePrimaryCtxRelease)   \
    X(cuCtxSetCurrent)             \
    X(cuModuleLoadData)            \
    X(cuModuleGetFunction)         \
    X(cuModuleUnload)              \
    X(cuLaunchKernel)              \
    X(cuMemAlloc)                  \
    X(cuMemFree)                   \
    X(cuMemcpyHtoD)                \
    X(cuMemcpyDtoH)                \
    X(cuMemcpyDtoDAsync)           \
    X(cuMemsetD8Async)             \
    X(cuStreamCreate)              \
    X(cuStreamDestroy)             \
    X(cuStreamSynchronize)         \
    X(cuStreamBeginCapture)        \
    X(cuStreamEndCapture)          \
    X(cuGraphInstantiateWithFlags) \
    X(cuGraphUpload)               \
    X(cuGraphLaunch)               \
    X(cuGraphDestroy)              \
    X(cuGraphExecDestroy)

struct driver {
#define X(name) __typeof__(name) *name;
    DRIVER_FUNCTIONS(X)
#undef X
};

/* The functions; valid after driver_load returned NULL. Read-only from then on, any thread. */
extern struct driver cu;

/* Fill `cu`. NULL, or a static sentence that says what is missing. Call once, before any thread. */
const char *driver_load(void);

/* "CUDA_ERROR_...: text" of a result; static storage of the driver or of this function. */
const char *driver_error(CUresult result);

/*
 * A kernel of one warp, `example_spin(uint64_t ns)`, that keeps the GPU busy for so many
 * nanoseconds: the stand-in for the work between two all-reduces. PTX for sm_60 and later.
 */
extern const char spin_ptx[];
#define SPIN_KERNEL "example_spin"

#endif
