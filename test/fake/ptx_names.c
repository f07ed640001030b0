/* SPDX-License-Identifier: Apache-2.0 */
/* What names mean in a kernel: registers, and the slots that registers and constants have. */
#include "test/fake/ptx_parts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SLOTS = 16384 };

int ptx_type_bytes(const char *type, char *kind)
{
    if (strcmp(type, "pred") == 0) {
        *kind = 'p';
        return 1;
    }
    if (strchr("busf", type[0]) == NULL || type[0] == '\0') {
        return 0;
    }
    *kind = type[0] == 'f' ? 'f' : type[0] == 'b' ? 'b' : 'i';
    int bits = atoi(type + 1);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? bits / 8 : 0;
}

int ptx_register(struct ptx_scope *scope, const char *name, int *bytes, char *kind)
{
    size_t length = strlen(name), stem = length;
    while (stem > 0 && isdigit((unsigned char)name[stem - 1])) {
        stem--;
    }
    for (size_t i = 0; i < scope->names->n; i++) {
        const struct ptx_name *known = &scope->names->list[i];
        int number = 0;
        if (known->count == 0
                ? strcmp(known->text, name) != 0
                : stem == length || strncmp(known->text, name, stem) != 0 ||
                      known->text[stem] != '\0' || (number = atoi(name + stem)) >= known->count) {
            continue;
        }
        *bytes = known->bytes;
        *kind = known->kind;
        return known->slot + number;
    }
    return -1;
}

int ptx_register_bytes(const struct ptx_scope *scope, int slot)
{
    for (size_t i = 0; i < scope->names->n; i++) {
        const struct ptx_name *known = &scope->names->list[i];
        if (slot >= known->slot && slot < known->slot + (known->count > 0 ? known->count : 1)) {
            return known->bytes;
        }
    }
    return 8;
}

int ptx_slots(struct ptx_kernel *kernel, int n)
{
    int slot = (int)kernel->nregisters;
    if (n < 0 || slot + n > MAX_SLOTS) {
        return -1;
    }
    kernel->nregisters += (uint32_t)n;
    kernel->registers = sim_grow(kernel->registers, kernel->nregisters + 1, sizeof(uint64_t));
    memset(kernel->registers + slot, 0, (size_t)n * sizeof(uint64_t));
    return slot;
}

int ptx_constant(struct ptx_scope *scope, uint64_t value)
{
    int slot = ptx_slots(scope->kernel, 1);
    if (slot >= 0) {
        scope->kernel->registers[slot] = value;
    }
    return slot;
}
