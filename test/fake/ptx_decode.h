/* SPDX-License-Identifier: Apache-2.0 */
/* Between ptx_decode.c and ptx_operand.c. Functions return NULL, or the reason of a refusal. */
#ifndef NCCLSHIM_TEST_FAKE_PTX_DECODE_H
#define NCCLSHIM_TEST_FAKE_PTX_DECODE_H

#include "test/fake/ptx_parts.h"

#define UNKNOWN "instruction not known to the simulator"
#define MISMATCH "arguments mismatch for instruction"

struct type {
    int bytes;
    char kind; /* b u s f p */
};

/* What the parts behind the first one said. */
struct parts {
    struct type types[2];
    int ntypes;
    int vector;
    bool volatile_, ordered, scope, global, param;
    char operation[24]; /* add, exch, lt, wide, … */
    int noperations;
};

extern const struct type ptx_address_type;

uint64_t ptx_mask(int bytes);
/* A register to write; loads and conversions may write a wider one. */
const char *ptx_destination(struct ptx_scope *scope, const char *name, struct type type, bool wider,
                            int16_t *out);
/* A register, a variable's address or a constant to read. */
const char *ptx_source(struct ptx_scope *scope, const char *name, struct type type, bool wider,
                       int16_t *out);
/* [reg], [reg+n], [variable+n], [parameter+n] */
const char *ptx_address(struct ptx_scope *scope, const char *text, bool param,
                        struct ptx_insn *out);
/* "{a,b}" or "a", of `expected` elements. */
const char *ptx_vector(struct ptx_scope *scope, const char *text, struct type type, bool write,
                       int expected, int16_t *out);

#endif
