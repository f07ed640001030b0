/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another preloaded library that defines dlsym, the way vGPU libraries do: names of its own (cu...)
 * are counted, everything else goes to the next dlsym; RTLD_NEXT is told apart, since the real one
 * would take this library for the caller.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_int cuda_names;

void *dlsym(void *handle, const char *name)
{
    static void *(*next)(void *, const char *);

    if (!next)
        next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!next)
        next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!strncmp(name, "cu", 2))
        atomic_fetch_add(&cuda_names, 1);
    return next(handle, name);
}

__attribute__((destructor)) static void tell(void)
{
    printf("other dlsym %s\n", atomic_load(&cuda_names) ? "was asked for cu names" : "was never asked");
    fflush(stdout);
}
