/* SPDX-License-Identifier: Apache-2.0 */
/* What was loaded: looking up its kernels and variables, and its end. */
#include "test/fake/ptx_parts.h"

#include <stdlib.h>
#include <string.h>

void ptx_unload(struct ptx_module *module)
{
    for (size_t i = 0; i < module->nkernels; i++) {
        free(module->kernels[i].code);
        free(module->kernels[i].registers);
    }
    for (size_t i = 0; i < module->nvariables; i++) {
        free(module->variables[i].memory);
    }
    free(module->kernels);
    free(module->variables);
    free(module);
}

const struct ptx_kernel *ptx_kernel(const struct ptx_module *module, const char *name)
{
    for (size_t i = 0; i < module->nkernels; i++) {
        if (strcmp(module->kernels[i].name, name) == 0) {
            return &module->kernels[i];
        }
    }
    return NULL;
}

const struct ptx_variable *ptx_variable(const struct ptx_module *module, const char *name)
{
    for (size_t i = 0; i < module->nvariables; i++) {
        if (strcmp(module->variables[i].name, name) == 0) {
            return &module->variables[i];
        }
    }
    return NULL;
}

size_t ptx_variables(const struct ptx_module *module, const struct ptx_variable **out)
{
    *out = module->variables;
    return module->nvariables;
}
