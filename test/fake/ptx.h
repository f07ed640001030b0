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

#endif
