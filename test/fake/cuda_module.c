/* SPDX-License-Identifier: Apache-2.0 */
/* Modules and libraries of PTX text, and their functions. */
#include "test/fake/cuda_sim.h"
#include "test/fake/ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUmod_st {
    atomic_int refs;
    CUcontext ctx; /* NULL: of a library, which belongs to no context */
    struct ptx_module *ptx;
    CUfunction functions;
    CUmodule next; /* in ctx->modules */
};

struct CUlib_st {
    CUmodule module;
};

static void free_functions(CUfunction function)
{
    for (CUfunction next; function != NULL; function = next) {
        next = function->next;
        free(function->name);
        free(function);
    }
}

void module_ref(CUmodule module)
{
    if (module != NULL) {
        atomic_fetch_add(&module->refs, 1);
    }
}

void module_unref(CUmodule module)
{
    if (module != NULL && atomic_fetch_sub(&module->refs, 1) == 1) {
        free_functions(module->functions);
        ptx_unload(module->ptx);
        free(module);
    }
}

/* The handles go; the code stays while queued work and graphs use it. In sim_lock. */
static void retire(CUmodule module)
{
    const struct ptx_variable *variables;
    struct region region;
    size_t n = ptx_variables(module->ptx, &variables);
    for (size_t i = 0; i < n; i++) {
        region_drop((uint64_t)(uintptr_t)variables[i].memory, REGION_MODULE, &region);
    }
    for (CUfunction function = module->functions; function != NULL; function = function->next) {
        handle_drop(function);
    }
    handle_drop(module);
    module_unref(module);
}

void modules_drop_context(CUcontext ctx)
{
    while (ctx->modules != NULL) {
        CUmodule module = ctx->modules;
        ctx->modules = module->next;
        retire(module);
    }
}

static CUfunction function_new(const char *name)
{
    CUfunction function = sim_alloc(sizeof *function);
    function->name = strdup(name);
    handle_add(function, KIND_FUNCTION);
    return function;
}

CUfunction function_named(const char *name)
{
    static CUfunction all;
    for (CUfunction function = all; function != NULL; function = function->next) {
        if (strcmp(function->name, name) == 0) {
            return function;
        }
    }
    CUfunction function = function_new(name);
    function->next = all;
    return all = function;
}

CUcontext function_context(CUfunction function)
{
    return function->module != NULL ? function->module->ctx : NULL;
}

size_t function_params_bytes(CUfunction function)
{
    return function->kernel->params_bytes;
}

/* ---- loading ---- */

static void print_once(const char *log)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&printed)) {
        fprintf(stderr, "simulated CUDA driver: PTX refused: %s\n", log);
    }
}

static void fill_log(const char *log, unsigned n, CUjit_option *options, void **values)
{
    char *buffer = NULL;
    size_t bytes = 0;
    for (unsigned i = 0; i < n; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
            buffer = values[i];
        } else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            bytes = (size_t)(uintptr_t)values[i];
        }
    }
    if (buffer != NULL && bytes > 0) {
        snprintf(buffer, bytes, "%s", log);
    }
}

static CUresult load(const void *image, CUcontext ctx, unsigned n, CUjit_option *options,
                     void **values, CUmodule *out)
{
    char log[512] = "";
    struct ptx_module *ptx = NULL;
    const struct ptx_variable *variables;
    if (image == NULL || out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (strncmp(image, "\177ELF", 4) == 0 || strncmp(image, "\x50\xed\x55\xba", 4) == 0) {
        /* Machine code of a real GPU: this one has another. */
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (strstr(image, ".version") == NULL) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    CUresult result = ptx_load(image, sim_env()->sm, &ptx, log, sizeof log);
    if (result != CUDA_SUCCESS) {
        print_once(log);
        fill_log(log, n, options, values);
        return result;
    }
    CUmodule module = sim_alloc(sizeof *module);
    atomic_init(&module->refs, 1);
    module->ctx = ctx;
    module->ptx = ptx;
    size_t nvariables = ptx_variables(ptx, &variables);
    for (size_t i = 0; i < nvariables; i++) {
        uint64_t base = (uint64_t)(uintptr_t)variables[i].memory;
        region_add(&(struct region){base, base + variables[i].bytes, REGION_MODULE, ctx, 0, 0});
    }
    *out = module;
    return CUDA_SUCCESS;
}

static CUresult load_module(CUmodule *out, const void *image, unsigned n, CUjit_option *options,
                            void **values)
{
    CUcontext ctx;
    TRY(ctx_current(&ctx));
    sim_lock();
    CUresult result = capture_check_unsafe();
    sim_unlock();
    TRY(result);
    ctx_wait_for_device(ctx->device);
    TRY(load(image, ctx, n, options, values, out));
    sim_lock();
    (*out)->next = ctx->modules;
    ctx->modules = *out;
    handle_add(*out, KIND_MODULE);
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    ENTER(cuModuleLoadData);
    return load_module(out, image, 0, NULL, NULL);
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int n, CUjit_option *options,
                            void **values)
{
    ENTER(cuModuleLoadDataEx);
    return n > 0 && (options == NULL || values == NULL)
               ? CUDA_ERROR_INVALID_VALUE
               : load_module(out, image, n, options, values);
}

CUresult cuModuleUnload(CUmodule module)
{
    CUcontext ctx;
    ENTER(cuModuleUnload);
    TRY(ctx_current(&ctx));
    sim_lock();
    CUresult result = capture_check_unsafe();
    sim_unlock();
    TRY(result);
    ctx_wait_for_device(ctx->device);
    sim_lock();
    result = handle_is(module, KIND_MODULE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        CUmodule *link = &module->ctx->modules;
        while (*link != module) {
            link = &(*link)->next;
        }
        *link = module->next;
        retire(module);
    }
    sim_unlock();
    return result;
}

/* In sim_lock. */
static CUresult get_function(CUmodule module, const char *name, CUfunction *out)
{
    const struct ptx_kernel *kernel = ptx_kernel(module->ptx, name);
    if (kernel == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    for (CUfunction function = module->functions; function != NULL; function = function->next) {
        if (function->kernel == kernel) {
            *out = function;
            return CUDA_SUCCESS;
        }
    }
    CUfunction function = function_new(name);
    function->module = module;
    function->kernel = kernel;
    function->next = module->functions;
    module->functions = function;
    *out = function;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    CUcontext ctx;
    ENTER(cuModuleGetFunction);
    TRY(ctx_current(&ctx));
    if (out == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    CUresult result = handle_is(module, KIND_MODULE) ? get_function(module, name, out)
                                                     : CUDA_ERROR_INVALID_HANDLE;
    sim_unlock();
    return result;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                              const char *name)
{
    CUcontext ctx;
    ENTER(cuModuleGetGlobal_v2);
    TRY(ctx_current(&ctx));
    if (name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    const struct ptx_variable *variable = NULL;
    bool known = handle_is(module, KIND_MODULE);
    if (known) {
        variable = ptx_variable(module->ptx, name);
    }
    if (variable != NULL && address != NULL) {
        *address = (CUdeviceptr)(uintptr_t)variable->memory;
    }
    if (variable != NULL && bytes != NULL) {
        *bytes = variable->bytes;
    }
    sim_unlock();
    return !known             ? CUDA_ERROR_INVALID_HANDLE
           : variable == NULL ? CUDA_ERROR_NOT_FOUND
                              : CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    ENTER(cuModuleGetLoadingMode);
    if (mode == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

/* ---- libraries: modules without a context; a kernel's handle is that of its function ---- */

CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *options, void **values,
                           unsigned int n, CUlibraryOption *library_options, void **library_values,
                           unsigned int nlibrary)
{
    ENTER(cuLibraryLoadData);
    (void)library_options;
    (void)library_values;
    (void)nlibrary;
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUlibrary library = sim_alloc(sizeof *library);
    CUresult result = load(code, NULL, n, options, values, &library->module);
    if (result != CUDA_SUCCESS) {
        free(library);
        return result;
    }
    sim_lock();
    handle_add(library, KIND_LIBRARY);
    sim_unlock();
    *out = library;
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    ENTER(cuLibraryUnload);
    sim_lock();
    bool known = handle_is(library, KIND_LIBRARY);
    if (known) {
        handle_drop(library);
        retire(library->module);
        free(library);
    }
    sim_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name)
{
    ENTER(cuLibraryGetKernel);
    CUfunction function = NULL;
    if (out == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    CUresult result = handle_is(library, KIND_LIBRARY)
                          ? get_function(library->module, name, &function)
                          : CUDA_ERROR_INVALID_HANDLE;
    sim_unlock();
    *out = (CUkernel)function;
    return result;
}
