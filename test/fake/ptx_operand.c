/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of PTX instructions: registers, constants, addresses, vectors. */
#include "test/fake/ptx_decode.h"

#include <stdlib.h>
#include <string.h>

static bool constant(const char *text, struct type type, uint64_t *out)
{
    char *end;
    if (text[0] == '0' && (text[1] == 'f' || text[1] == 'F')) {
        *out = strtoull(text + 2, &end, 16);
        return *end == '\0' && strlen(text) == 10;
    }
    if (type.kind == 'f') {
        float value = strtof(text, &end);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        *out = bits;
        return *text != '\0' && *end == '\0' && type.bytes == 4;
    }
    *out = strtoull(text, &end, 0);
    if (*end == 'U') {
        end++;
    }
    return end != text && *end == '\0';
}

uint64_t ptx_mask(int bytes)
{
    return bytes >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;
}

static bool fits(struct type type, int bytes, char kind, bool wider)
{
    if ((type.kind == 'p') != (kind == 'p')) {
        return false;
    }
    if ((type.kind == 'f' && kind == 'i') ||
        (kind == 'f' && (type.kind == 'u' || type.kind == 's'))) {
        return false;
    }
    /* Registers of 8 bits don't exist: such types use wider ones. */
    return bytes == type.bytes || ((wider || type.bytes == 1) && bytes > type.bytes);
}

/* A register to write; loads and conversions may write a wider one. */
const char *ptx_destination(struct ptx_scope *scope, const char *name, struct type type, bool wider,
                            int16_t *out)
{
    int bytes;
    char kind;
    int slot = ptx_register(scope, name, &bytes, &kind);
    if (slot < 0) {
        return "register not declared";
    }
    *out = (int16_t)slot;
    return fits(type, bytes, kind, wider) ? NULL : MISMATCH;
}

/* A register or a constant to read. */
const char *ptx_source(struct ptx_scope *scope, const char *name, struct type type, bool wider,
                       int16_t *out)
{
    uint64_t value;
    int bytes, slot;
    char kind;
    if ((slot = ptx_register(scope, name, &bytes, &kind)) >= 0) {
        *out = (int16_t)slot;
        return fits(type, bytes, kind, wider) ? NULL : MISMATCH;
    }
    const struct ptx_variable *variable = ptx_variable(scope->module, name);
    if (variable != NULL && type.bytes == 8) {
        value = (uint64_t)(uintptr_t)variable->memory;
    } else if (!constant(name, type, &value)) {
        return "operand is no register, variable or constant";
    }
    slot = ptx_constant(scope, value & ptx_mask(type.bytes));
    *out = (int16_t)slot;
    return slot < 0 ? "too many constants" : NULL;
}

const struct type ptx_address_type = {8, 'b'};

/* [reg], [reg+n], [variable+n], [parameter+n] */
const char *ptx_address(struct ptx_scope *scope, const char *text, bool param, struct ptx_insn *out)
{
    char name[160];
    size_t length = strlen(text);
    if (length < 3 || text[0] != '[' || text[length - 1] != ']') {
        return "address in brackets expected";
    }
    memcpy(name, text + 1, length - 2);
    name[length - 2] = '\0';
    char *offset = strpbrk(name + 1, "+-");
    if (offset != NULL) {
        char *end;
        long value = strtol(*offset == '+' ? offset + 1 : offset, &end, 0);
        if (*end != '\0') {
            return "offset expected";
        }
        *offset = '\0';
        out->offset = (int32_t)value;
    }
    if (!param) {
        return ptx_source(scope, name, ptx_address_type, false, &out->s[0]);
    }
    for (uint32_t i = 0; i < scope->kernel->nparams; i++) {
        const struct ptx_param *known = &scope->kernel->params[i];
        if (strcmp(known->name, name) == 0) {
            uint32_t end = (uint32_t)out->offset + (uint32_t)out->bytes * out->n;
            out->offset += (int32_t)known->offset;
            return end <= known->bytes ? NULL : "load behind the end of a parameter";
        }
    }
    return "parameter not declared";
}

/* "{a,b}" or "a": each through `one`. */
const char *ptx_vector(struct ptx_scope *scope, const char *text, struct type type, bool write,
                       int expected, int16_t *out)
{
    char copy[160], *rest = copy, *item;
    int n = 0;
    if (text[0] != '{') {
        if (expected != 1) {
            return "vector expected";
        }
        return write ? ptx_destination(scope, text, type, true, out)
                     : ptx_source(scope, text, type, true, out);
    }
    strcpy(copy, text + 1);
    copy[strcspn(copy, "}")] = '\0';
    while ((item = strsep(&rest, ",")) != NULL) {
        if (n == expected) {
            return "vector too long";
        }
        const char *reason = write ? ptx_destination(scope, item, type, true, &out[n])
                                   : ptx_source(scope, item, type, true, &out[n]);
        if (reason != NULL) {
            return reason;
        }
        n++;
    }
    return n == expected ? NULL : "vector too short";
}
