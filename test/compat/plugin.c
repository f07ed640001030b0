/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library linked to NCCL, as libtorch_cuda.so is. Python opens such libraries with local scope. It
 * defines no NCCL name itself, or, linked with NCCL's own objects, all of them.
 */
#include "test/compat/calls.h"

#include <dlfcn.h>

void plugin_main(void);
void *plugin_next(const char *name);

void plugin_main(void)
{
    static const struct calls c = CALLS_LINKED;
    const struct calls *const one[] = {&c};

    calls_main(one, 1);
}

/* The object behind this one: what a library that wraps NCCL asks for. */
void *plugin_next(const char *name)
{
    void *volatile found = dlsym(RTLD_NEXT, name); /* no tail call: dlsym looks at who calls */

    return found;
}
