/* SPDX-License-Identifier: Apache-2.0 */
/* What functions say about themselves. */
#include "test/fake/cuda_sim.h"
#include "test/fake/ptx.h"

static CUresult check(CUfunction function)
{
    sim_lock();
    bool known = handle_is(function, KIND_FUNCTION);
    sim_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel)
{
    CUcontext ctx;
    ENTER(cuKernelGetFunction);
    TRY(ctx_current(&ctx));
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check((CUfunction)kernel));
    *out = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    ENTER(cuFuncGetName);
    if (name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check(function));
    *name = function->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function)
{
    ENTER(cuFuncGetAttribute);
    if (value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check(function));
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = function->kernel != NULL ? (int)function->kernel->nregisters : 32;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = sim_env()->sm;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->max_dynamic_shared != 0 ? function->max_dynamic_shared : 48 << 10;
        return CUDA_SUCCESS;
    default:
        *value = 0;
        return which >= 0 && which < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS
                                                           : CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value)
{
    ENTER(cuFuncSetAttribute);
    TRY(check(function));
    if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value < 0 || value > 227 << 10) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        function->max_dynamic_shared = value;
        return CUDA_SUCCESS;
    }
    return which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncLoad(CUfunction function)
{
    CUcontext ctx;
    ENTER(cuFuncLoad);
    TRY(ctx_current(&ctx));
    TRY(check(function));
    ctx_wait_for_device(ctx->device);
    sim_lock();
    function->loaded = true;
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    ENTER(cuFuncIsLoaded);
    if (state == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(check(function));
    sim_lock();
    *state =
        function->loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    sim_unlock();
    return CUDA_SUCCESS;
}
