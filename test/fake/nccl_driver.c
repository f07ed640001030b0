/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver is opened when it is first needed, as NCCL does: version, unique id, group calls and
 * error strings work on a machine without one. Only the simulated driver will do (it has
 * fakecuda_launch).
 */
#include "test/fake/nccl_fake.h"

#include <dlfcn.h>

struct fake_driver fake_cu;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static ncclResult_t outcome;

/* cuStreamGetCaptureInfo in its CUDA 12.3 (v3) and 11.3 (v2) forms. */
typedef CUresult (*info_v3)(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
                            const CUgraphNode **, const CUgraphEdgeData **, size_t *);
typedef CUresult (*info_v2)(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
                            const CUgraphNode **, size_t *);
static info_v3 get_info_v3;
static CUresult capture_info_v3(CUstream s, CUstreamCaptureStatus *st, cuuint64_t *id, CUgraph *g,
                                const CUgraphNode **deps, size_t *n)
{
    const CUgraphEdgeData *edges = NULL;
    return get_info_v3(s, st, id, g, deps, deps ? &edges : NULL, n);
}

typedef CUresult (*deps_v2)(CUstream, CUgraphNode *, const CUgraphEdgeData *, size_t, unsigned);
typedef CUresult (*deps_v1)(CUstream, CUgraphNode *, size_t, unsigned);
static deps_v2 update_deps_v2;
static deps_v1 update_deps_v1;
static CUresult set_deps(CUstream s, CUgraphNode *deps, size_t n)
{
    return update_deps_v2 ? update_deps_v2(s, deps, NULL, n, CU_STREAM_SET_CAPTURE_DEPENDENCIES)
                          : update_deps_v1(s, deps, n, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

static void find(void)
{
    outcome = ncclUnhandledCudaError;
    fake_getenv("CUDA_LAUNCH_BLOCKING");
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        WARN("Failed to find CUDA library libcuda.so.1 : %s", dlerror());
        return;
    }
    fake_ask_stage(STAGE_CUDA);
#define FIND(member, symbol, ret, args) *(void **)&fake_cu.member = dlsym(lib, symbol);
    FAKE_DRIVER(FIND)
    if (!fake_cu.launch) {
        WARN("the simulated NCCL works with the simulated driver only: libcuda.so.1 has no "
             "fakecuda_launch");
        return;
    }
    get_info_v3 = (info_v3)dlsym(lib, "cuStreamGetCaptureInfo_v3");
    fake_cu.capture_info =
        get_info_v3 ? capture_info_v3 : (info_v2)dlsym(lib, "cuStreamGetCaptureInfo_v2");
    update_deps_v2 = (deps_v2)dlsym(lib, "cuStreamUpdateCaptureDependencies_v2");
    update_deps_v1 = (deps_v1)dlsym(lib, "cuStreamUpdateCaptureDependencies");
    fake_cu.set_capture_deps = update_deps_v2 || update_deps_v1 ? set_deps : NULL;
#define PRESENT(member, symbol, ret, args)             \
    if (!fake_cu.member) {                             \
        WARN("the simulated driver lacks %s", symbol); \
        return;                                        \
    }
    FAKE_DRIVER(PRESENT)
    if (!fake_cu.capture_info || !fake_cu.set_capture_deps) {
        WARN("the simulated driver lacks cuStreamGetCaptureInfo or "
             "cuStreamUpdateCaptureDependencies");
        return;
    }
    if (fake_cu_check(fake_cu.cuInit(0), "cuInit") != ncclSuccess)
        return;
    int version = 0;
    fake_cu.cuDriverGetVersion(&version);
    INFO(NCCL_INIT, "cudaDriverVersion %d", version);
    outcome = ncclSuccess;
}

ncclResult_t fake_driver_need(void)
{
    pthread_once(&once, find);
    if (outcome != ncclSuccess)
        WARN("Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'");
    return outcome;
}

ncclResult_t fake_cu_check(CUresult res, const char *what)
{
    if (res == CUDA_SUCCESS)
        return ncclSuccess;
    WARN("Cuda failure %d in %.60s", (int)res, what);
    return ncclUnhandledCudaError;
}

ncclResult_t fake_current_device(CUdevice *dev)
{
    CUcontext ctx = NULL;
    NCCLCHECK(fake_driver_need());
    CUCHECK(fake_cu.cuCtxGetCurrent(&ctx));
    if (!ctx) { /* what the CUDA runtime inside NCCL does at its first use */
        CUdevice first;
        CUCHECK(fake_cu.cuDeviceGet(&first, 0));
        CUCHECK(fake_cu.cuDevicePrimaryCtxRetain(&ctx, first));
        CUCHECK(fake_cu.cuCtxSetCurrent(ctx));
    }
    CUCHECK(fake_cu.cuCtxGetDevice(dev));
    return ncclSuccess;
}
