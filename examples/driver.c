/* SPDX-License-Identifier: Apache-2.0 */
#include "examples/driver.h"

#include <dlfcn.h>
#include <stdio.h>

struct driver cu;

const char spin_ptx[] = ".version 6.0\n"
                        ".target sm_60\n"
                        ".address_size 64\n"
                        ".visible .entry example_spin(.param .u64 ns)\n"
                        "{\n"
                        "    .reg .pred %p;\n"
                        "    .reg .u64 %start, %now, %limit;\n"
                        "    ld.param.u64 %limit, [ns];\n"
                        "    mov.u64 %start, %globaltimer;\n"
                        "again:\n"
                        "    mov.u64 %now, %globaltimer;\n"
                        "    sub.u64 %now, %now, %start;\n"
                        "    setp.lt.u64 %p, %now, %limit;\n"
                        "    @%p bra again;\n"
                        "    ret;\n"
                        "}\n";

/* Two steps, so that cuda.h's macros (cuMemAlloc is cuMemAlloc_v2) are expanded before they become
 * text. */
#define TEXT(name) TEXT_(name)
#define TEXT_(name) #name

const char *driver_load(void)
{
    static char missing[128];
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!lib)
        return "libcuda.so.1 can't be loaded: no NVIDIA driver here, and the simulator's folder is "
               "not in "
               "LD_LIBRARY_PATH";
#define X(name)                                                                                    \
    cu.name = (__typeof__(cu.name))dlsym(lib, TEXT(name));                                         \
    if (!cu.name) {                                                                                \
        snprintf(missing, sizeof(missing),                                                         \
                 "libcuda.so.1 has no %s: a driver for CUDA 11.4 or newer is needed", TEXT(name)); \
        return missing;                                                                            \
    }
    DRIVER_FUNCTIONS(X)
#undef X
    return NULL;
}

const char *driver_error(CUresult result)
{
    static _Thread_local char text[256];
    const char *name = NULL, *words = NULL;

    cu.cuGetErrorName(result, &name);
    cu.cuGetErrorString(result, &words);
    snprintf(text, sizeof(text), "%s: %s", name ? name : "unknown error",
             words ? words : "no text");
    return text;
}
