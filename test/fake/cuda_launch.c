/* SPDX-License-Identifier: Apache-2.0 */
/* Launching kernels: PTX ones, and the ones that are host code. */
#include "test/fake/cuda_sim.h"
#include "test/fake/ptx.h"

#include <stdlib.h>
#include <string.h>

static CUresult check_shape(const struct launch *launch)
{
    const unsigned long long threads =
        (unsigned long long)launch->block[0] * launch->block[1] * launch->block[2];
    if (threads == 0 || threads > 1024 || launch->block[2] > 64 || launch->grid[0] == 0 ||
        launch->grid[1] == 0 || launch->grid[2] == 0 || launch->grid[1] > 65535 ||
        launch->grid[2] > 65535 || launch->grid[0] > 2147483647) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* Not a rule of CUDA: more would take this interpreter too long. */
    if (threads * launch->grid[0] * launch->grid[1] * launch->grid[2] > PTX_MAX_THREADS) {
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    int most = launch->function->max_dynamic_shared;
    return launch->shared > (unsigned)(most > 48 << 10 ? most : 48 << 10) ? CUDA_ERROR_INVALID_VALUE
                                                                          : CUDA_SUCCESS;
}

/* extra: {CU_LAUNCH_PARAM_BUFFER_POINTER, p, CU_LAUNCH_PARAM_BUFFER_SIZE, &n, END}. */
static CUresult read_extra(void **extra, const void **buffer, size_t *bytes)
{
    *buffer = NULL;
    *bytes = 0;
    for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            *buffer = extra[i + 1];
        } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            *bytes = *(size_t *)extra[i + 1];
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult copy_params(const struct launch *launch, struct work *work)
{
    const struct ptx_kernel *kernel = launch->function->kernel;
    const void *buffer = NULL;
    size_t bytes = 0;
    if (kernel->nparams > 0 && (launch->params == NULL) == (launch->extra == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (launch->extra != NULL) {
        TRY(read_extra(launch->extra, &buffer, &bytes));
        if (bytes < kernel->params_bytes || (kernel->params_bytes > 0 && buffer == NULL)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    work->u.kernel.bytes = kernel->params_bytes;
    work->u.kernel.params = sim_alloc(kernel->params_bytes + 1);
    work->u.kernel.param_pointers = sim_alloc((kernel->nparams + 1) * sizeof(void *));
    if (buffer != NULL) {
        memcpy(work->u.kernel.params, buffer, kernel->params_bytes);
    }
    for (uint32_t i = 0; i < kernel->nparams; i++) {
        unsigned char *to = work->u.kernel.params + kernel->params[i].offset;
        work->u.kernel.param_pointers[i] = to;
        if (buffer == NULL) {
            memcpy(to, launch->params[i], kernel->params[i].bytes);
        }
    }
    return CUDA_SUCCESS;
}

CUresult launch_prepare(const struct launch *launch, struct work **out)
{
    if (!handle_is(launch->function, KIND_FUNCTION)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (launch->function->kernel == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check_shape(launch));
    struct work *work = work_new(WORK_KERNEL);
    work->u.kernel.function = launch->function;
    module_ref(launch->function->module);
    memcpy(work->u.kernel.grid, launch->grid, sizeof launch->grid);
    memcpy(work->u.kernel.block, launch->block, sizeof launch->block);
    work->u.kernel.shared = launch->shared;
    work->u.kernel.programmatic = launch->programmatic;
    CUresult result = copy_params(launch, work);
    if (result != CUDA_SUCCESS) {
        work_unref(work);
        return result;
    }
    *out = work;
    return CUDA_SUCCESS;
}

static CUresult put(const struct launch *launch, CUstream handle, bool per_thread)
{
    CUstream stream;
    struct work *work;
    TRY(stream_get(handle, per_thread, &stream));
    TRY(launch_prepare(launch, &work));
    CUcontext ctx = function_context(launch->function);
    if (ctx != NULL && ctx != stream->ctx) {
        work_unref(work);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    launch->function->loaded = true;
    sim_count_kernel(launch->function->name);
    return submit(stream, CU_GRAPH_NODE_TYPE_KERNEL, work);
}

static CUresult do_launch(const struct launch *launch, CUstream stream, bool per_thread)
{
    CUcontext ctx;
    bool first = false;
    TRY(ctx_current(&ctx));
    sim_lock();
    if (handle_is(launch->function, KIND_FUNCTION)) {
        first = !launch->function->loaded;
    }
    sim_unlock();
    if (first) {
        /* Kernels load lazily, at their first launch. */
        ctx_wait_for_device(ctx->device);
    }
    sim_lock();
    CUresult result = put(launch, stream, per_thread);
    sim_unlock();
    return result;
}

static CUresult do_cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                  unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                  CUstream stream, void **params, void **extra, bool per_thread)
{
    struct launch launch = {.function = function,
                            .grid = {gx, gy, gz},
                            .block = {bx, by, bz},
                            .shared = shared,
                            .params = params,
                            .extra = extra};
    return do_launch(&launch, stream, per_thread);
}
WITH_VARIANT(cuLaunchKernel, _ptsz,
             (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
              unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
              CUstream stream, void **params, void **extra),
             function, gx, gy, gz, bx, by, bz, shared, stream, params, extra)

/* As many as GPUs of compute capability 9.0 have; older ones have one. */
unsigned sim_domains(void)
{
    return sim_env()->sm >= 90 ? MAX_DOMAINS : 1;
}

static CUresult read_attribute(const CUlaunchAttribute *attribute, struct launch *launch)
{
    switch (attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        launch->programmatic = attribute->value.programmaticStreamSerializationAllowed != 0;
        return launch->programmatic && sim_env()->sm < 90 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        launch->remote = attribute->value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        launch->domains[0] = attribute->value.memSyncDomainMap.default_;
        launch->domains[1] = attribute->value.memSyncDomainMap.remote;
        return launch->domains[0] < sim_domains() && launch->domains[1] < sim_domains()
                   ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static CUresult do_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                    void **params, void **extra, bool per_thread)
{
    if (config == NULL || (config->numAttrs > 0 && config->attrs == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct launch launch = {
        .function = function,
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .shared = config->sharedMemBytes,
        .params = params,
        .extra = extra,
        .domains = {0, sim_domains() > 1},
    };
    for (unsigned i = 0; i < config->numAttrs; i++) {
        TRY(read_attribute(&config->attrs[i], &launch));
    }
    sim_count_domain(launch.domains[launch.remote]);
    return do_launch(&launch, config->hStream, per_thread);
}
WITH_VARIANT(cuLaunchKernelEx, _ptsz,
             (const CUlaunchConfig *config, CUfunction function, void **params, void **extra),
             config, function, params, extra)

CUresult fakecuda_launch(CUstream handle, const char *name, fakecuda_kernel_fn fn, void *arg,
                         void (*release)(void *))
{
    CUstream stream;
    if (name == NULL || fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(sim_ready());
    sim_lock();
    CUresult result = stream_get(handle, false, &stream);
    bool capturing;
    if (result == CUDA_SUCCESS) {
        result = capture_state(stream, &capturing);
    }
    if (result == CUDA_SUCCESS) {
        struct work *work = work_new(WORK_HOST_KERNEL);
        work->u.host_kernel.function = function_named(name);
        work->u.host_kernel.fn = fn;
        work->u.host_kernel.arg = arg;
        work->u.host_kernel.release = release;
        work_ref(work);
        result = submit(stream, CU_GRAPH_NODE_TYPE_KERNEL, work);
        if (result != CUDA_SUCCESS) {
            work->u.host_kernel.release = NULL; /* `arg` stays with the caller */
        }
        work_unref(work);
    }
    sim_unlock();
    return result;
}
