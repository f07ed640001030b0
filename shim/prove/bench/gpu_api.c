/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/bench/gpu_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct gpuapi_cuda gpuapi_cu;
struct gpuapi_nccl gpuapi_nc;

/* A function pointer from dlsym, without the cast that ISO C has no word for. */
static bool look_up(void *lib, const char *name, void *slot)
{
    void *found = dlsym(lib, name);

    memcpy(slot, &found, sizeof(found));
    return found != NULL;
}

static int load_cuda(struct error *e)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!lib)
        return error_set(e, NULL, 0,
                         "no CUDA driver: %s; bench needs a GPU, or the simulator's folder "
                         "in LD_LIBRARY_PATH",
                         dlerror());
#define X(member, name, params)                                                                    \
    if (!look_up(lib, name, &gpuapi_cu.member))                                                    \
        return error_set(e, "libcuda.so.1", 0, "has no %s: a driver for CUDA 11.4 or newer is "    \
                                               "needed", name);
    GPUAPI_CUDA(X)
#undef X
    return 0;
}

static int load_nccl(const char *path, struct error *e)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!lib)
        return error_set(e, NULL, 0, "no NCCL: %s; set NCCLSHIM_NCCL to the path of the server's "
                                     "libnccl.so.2", dlerror());
#define X(member, name, must, params)                                                              \
    if (!look_up(lib, name, &gpuapi_nc.member) && must)                                            \
        return error_set(e, path, 0, "has no %s: is it NCCL?", name);
    GPUAPI_NCCL(X)
#undef X
    look_up(lib, "ncclGetErrorString", &gpuapi_nc.error_text);
    look_up(lib, "ncclGetLastError", &gpuapi_nc.last_error);
    return 0;
}

int gpuapi_load(const char *nccl, struct error *e)
{
    if (load_cuda(e) < 0)
        return -1;
    return load_nccl(nccl, e);
}

struct name {
    const char *member, *exported;
};

static const struct name cuda_names[] = {
#define X(member, name, params) {#member, name},
    GPUAPI_CUDA(X)
#undef X
        {NULL, NULL},
};
static const struct name nccl_names[] = {
#define X(member, name, must, params) {#member, name},
    GPUAPI_NCCL(X)
#undef X
        {NULL, NULL},
};

/* "mem_alloc(&r->arena, bytes)" -> "cuMemAlloc_v2"; what is in no table stays as it is. */
static const char *exported(const struct name *names, const char *call)
{
    size_t n = strcspn(call, "(");

    for (; names->member; names++)
        if (strlen(names->member) == n && !strncmp(names->member, call, n))
            return names->exported;
    return call;
}

int gpuapi_cuda_failed(struct error *e, const char *call, int result)
{
    const char *name = NULL, *words = NULL;

    if (gpuapi_cu.error_name)
        gpuapi_cu.error_name(result, &name);
    if (gpuapi_cu.error_text)
        gpuapi_cu.error_text(result, &words);
    return error_set(e, NULL, 0, "%s failed: %s (%d): %s", exported(cuda_names, call),
                     name ? name : "unknown error", result, words ? words : "no text");
}

int gpuapi_nccl_failed(struct error *e, const char *call, int result)
{
    const char *last = gpuapi_nc.last_error ? gpuapi_nc.last_error(NULL) : NULL;

    return error_set(e, NULL, 0, "%s failed: %s (%d)%s%s%s", exported(nccl_names, call),
                     gpuapi_nc.error_text ? gpuapi_nc.error_text(result) : "error", result,
                     last && *last ? ": " : "", last && *last ? last : "",
                     last && *last ? "" : "; NCCL_DEBUG=WARN tells more");
}
