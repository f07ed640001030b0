/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the PTX machine: what its parser, its decoder and its runner share. */
#ifndef NCCLSHIM_TEST_FAKE_PTX_PARTS_H
#define NCCLSHIM_TEST_FAKE_PTX_PARTS_H

#include "test/fake/ptx.h"

struct ptx_module {
    struct ptx_kernel *kernels;
    size_t nkernels;
    struct ptx_variable *variables;
    size_t nvariables;
    int version, target;
};

/* One declaration: a register, or `count` numbered ones. */
struct ptx_name {
    char text[64];
    int count; /* 0: exactly this name */
    int slot, bytes;
    char kind;
};

struct ptx_names {
    struct ptx_name *list;
    size_t n;
};

enum ptx_op {
    I_NOTHING,
    I_LD_PARAM,
    I_LD,
    I_ST,
    I_ST_16,
    I_ADD_MEM,
    I_EXCH_MEM,
    I_CAS_MEM,
    I_MAX_MEM,
    I_MIN_MEM,
    I_AND_MEM,
    I_OR_MEM,
    I_XOR_MEM,
    I_MOV,
    I_PACK,
    I_UNPACK,
    I_SPECIAL,
    I_CLOCK,
    I_TIMER,
    I_ADD,
    I_SUB,
    I_MUL_LO,
    I_MUL_HI,
    I_MUL_WIDE,
    I_MAD_LO,
    I_MAD_WIDE,
    I_AND,
    I_OR,
    I_XOR,
    I_NOT,
    I_NEG,
    I_ABS,
    I_SHL,
    I_SHR,
    I_MIN,
    I_MAX,
    I_REM,
    I_DIV,
    I_CVT,
    I_FADD,
    I_FSUB,
    I_FMUL,
    I_FFMA,
    I_FNEG,
    I_SETP,
    I_FSETP,
    I_SELP,
    I_BRA,
    I_RET,
    I_FENCE,
    I_NANOSLEEP,
    I_DEP_WAIT,
    I_DEP_LAUNCH,
    I_TRAP,
};

enum ptx_compare { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE };

struct ptx_insn {
    uint8_t op;
    uint8_t bytes; /* width of the type */
    uint8_t is_signed;
    uint8_t n; /* elements of a vector */
    uint8_t compare, from_bytes, from_signed;
    bool negate;       /* @!p */
    int16_t predicate; /* -1: none */
    int16_t d[4], s[4];
    int32_t offset; /* of an address; target of a branch; which special register */
    uint64_t mask;  /* of the result's width */
};

/* One instruction as text, split: "@!%p1", "ld.global.u64", operands. */
struct ptx_text {
    const char *line; /* for messages */
    bool has_predicate, negate;
    char predicate[64];
    char parts[12][24]; /* ld, global, u64 */
    int nparts;
    char operands[8][160];
    int noperands;
};

/* The kernel being read. */
struct ptx_scope {
    struct ptx_kernel *kernel;
    struct ptx_names *names;
    const struct ptx_module *module;
    int target, version; /* sm_NN; PTX version times ten */
};

/* One access to memory, on registers `r`; refuses what is not allowed or misaligned. */
CUresult ptx_access(const struct ptx_insn *insn, uint64_t *r, struct region_cache *known);
void ptx_fence(void);

static inline int64_t ptx_extend(uint64_t value, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(value << shift) >> shift;
}

/* Its slot, or -1. *kind: 'p' predicate, 'f' float, 'i' integer, 'b' untyped bits. */
int ptx_register(struct ptx_scope *scope, const char *name, int *bytes, char *kind);
/* Bytes of a type's name without its dot; 0 if it is none. *kind as above. */
int ptx_type_bytes(const char *type, char *kind);
int ptx_slots(struct ptx_kernel *kernel, int n); /* that many new ones: the first, or -1 */
int ptx_register_bytes(const struct ptx_scope *scope, int slot);
int ptx_constant(struct ptx_scope *scope, uint64_t value);
/* NULL, or why not. A branch's target is left as text in operands[0]. */
const char *ptx_decode(struct ptx_scope *scope, const struct ptx_text *text, struct ptx_insn *out);

#endif
