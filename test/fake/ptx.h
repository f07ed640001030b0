/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small PTX machine: takes PTX text apart once, then runs kernels thread after thread.
 *
 * It knows what hand-written kernels of few threads use (integers, 32-bit floats, global memory,
 * atomics, fences, clocks, predicates, branches). Anything else is refused when the text is loaded,
 * never skipped.
 */
#ifndef NCCLSHIM_TEST_FAKE_PTX_H
#define NCCLSHIM_TEST_FAKE_PTX_H

#include "test/fake/cuda_sim.h"

enum { PTX_MAX_PARAMS = 64, PTX_MAX_THREADS = 1 << 22 };

struct ptx_module;

struct ptx_param {
    char name[64];
    uint32_t offset, bytes;
};

struct ptx_kernel {
    char name[128];
    struct ptx_param params[PTX_MAX_PARAMS];
    uint32_t nparams, params_bytes;
    struct ptx_insn *code;
    uint32_t ncode;
    uint64_t *registers; /* as they are at the start: zero, and constants */
    uint32_t nregisters;
    bool waits_for_dependencies; /* has griddepcontrol.wait */
};

struct ptx_variable {
    char name[64];
    void *memory;
    size_t bytes;
};

/* CUDA_ERROR_INVALID_PTX and the like, with the reason in `log`. `sm`: of the device. */
CUresult ptx_load(const char *text, int sm, struct ptx_module **out, char *log, size_t log_bytes);
void ptx_unload(struct ptx_module *module);
const struct ptx_kernel *ptx_kernel(const struct ptx_module *module, const char *name);
const struct ptx_variable *ptx_variable(const struct ptx_module *module, const char *name);
size_t ptx_variables(const struct ptx_module *module, const struct ptx_variable **out);

struct ptx_launch {
    unsigned grid[3], block[3];
    const unsigned char *params;
    uint64_t now_ns; /* in: of the first instruction; out: of the last one */
    struct region_cache *memory;
};

/* CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS or CUDA_ERROR_LAUNCH_FAILED (trap). */
CUresult ptx_run(const struct ptx_kernel *kernel, struct ptx_launch *launch);

/* ---- between ptx_parse.c, ptx_decode.c and ptx_run.c ---- */

enum ptx_op {
    I_NOTHING, I_LD_PARAM, I_LD, I_ST, I_ST_16, I_ADD_MEM, I_EXCH_MEM, I_CAS_MEM, I_MAX_MEM, I_MIN_MEM,
    I_AND_MEM, I_OR_MEM, I_XOR_MEM, I_MOV, I_PACK, I_UNPACK, I_SPECIAL, I_CLOCK, I_TIMER, I_ADD, I_SUB,
    I_MUL_LO, I_MUL_HI, I_MUL_WIDE, I_MAD_LO, I_MAD_WIDE, I_AND, I_OR, I_XOR, I_NOT, I_NEG, I_ABS,
    I_SHL, I_SHR, I_MIN, I_MAX, I_REM, I_DIV, I_CVT, I_FADD, I_FSUB, I_FMUL, I_FFMA, I_FNEG, I_SETP,
    I_FSETP, I_SELP, I_BRA, I_RET, I_FENCE, I_NANOSLEEP, I_DEP_WAIT, I_DEP_LAUNCH, I_TRAP,
};

enum ptx_compare { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE };

struct ptx_insn {
    uint8_t op;
    uint8_t bytes;  /* width of the type */
    uint8_t is_signed;
    uint8_t n;      /* elements of a vector */
    uint8_t compare, from_bytes, from_signed;
    bool negate;    /* @!p */
    int16_t predicate; /* -1: none */
    int16_t d[4], s[4];
    int32_t offset;    /* of an address; target of a branch; which special register */
    uint64_t mask;     /* of the result's width */
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

struct ptx_names; /* registers of one kernel */

/* What decoding needs to know; ptx_parse.c offers it. */
struct ptx_scope {
    struct ptx_kernel *kernel;
    struct ptx_names *names;
    const struct ptx_module *module;
    int target, version; /* sm_NN; PTX version times ten */
};

/* Its slot, or -1. *kind: 'p' predicate, 'f' float, 'i' integer, 'b' untyped bits. */
int ptx_register(struct ptx_scope *scope, const char *name, int *bytes, char *kind);
int ptx_register_bytes(const struct ptx_scope *scope, int slot);
int ptx_constant(struct ptx_scope *scope, uint64_t value);
/* NULL, or why not. A branch's target is left as text in operands[0]. */
const char *ptx_decode(struct ptx_scope *scope, const struct ptx_text *text,
                       struct ptx_insn *out);

#endif
