/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the simulated driver share.
 *
 * The same binaries run against a real driver (LD_LIBRARY_PATH before the built-in path): what they
 * expect is then checked against the real thing. Tests of what only the simulator has skip there.
 */
#ifndef NCCLSHIM_TEST_FAKE_CUDA_TESTING_H
#define NCCLSHIM_TEST_FAKE_CUDA_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "test/fake/fakecuda.h"

#pragma weak fakecuda_launch
#pragma weak fakecuda_calls
#pragma weak fakecuda_early_releases
#pragma weak fakecuda_set_conditional

#define NEEDS_SIMULATOR()             \
    do {                              \
        if (fakecuda_calls == NULL) { \
            skip();                   \
        }                             \
    } while (0)

static inline const char *result_name(CUresult result)
{
    const char *name = NULL;
    cuGetErrorName(result, &name);
    return name != NULL ? name : "(no name)";
}

/* The result that a call must have, by name, so that a failure reads well. */
#define GIVES(call, result) assert_string_equal(result_name(call), result_name(result))
#define WORKS(call) GIVES(call, CUDA_SUCCESS)

/* Device 0's primary context, current; and two kernels that most tests use. */
struct bench {
    CUcontext ctx;
    CUmodule module;
    CUfunction count; /* (u64 *cell): adds one */
    CUfunction spin;  /* (u64 ns): runs that long */
    CUfunction hold;  /* (u32 *flag): runs until the host sets it */
    CUfunction stamp; /* (u64 *cell): the time */
    uint64_t *cells;  /* pinned, 512 */
    CUdeviceptr device_cells;
    CUstream stream;
};

static const char bench_ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
                                ".visible .entry count(.param .u64 cell) {\n"
                                "  .reg .b64 %rd<4>;\n"
                                "  ld.param.u64 %rd1, [cell];\n"
                                "  red.global.add.u64 [%rd1], 1;\n"
                                "  membar.sys;\n"
                                "  ret;\n}\n"
                                ".visible .entry spin(.param .u64 ns) {\n"
                                "  .reg .b64 %rd<6>; .reg .pred %p<2>;\n"
                                "  ld.param.u64 %rd1, [ns];\n"
                                "  mov.u64 %rd2, %globaltimer;\n"
                                "again:\n"
                                "  mov.u64 %rd3, %globaltimer;\n"
                                "  sub.u64 %rd4, %rd3, %rd2;\n"
                                "  setp.lt.u64 %p1, %rd4, %rd1;\n"
                                "  @%p1 bra again;\n"
                                "  ret;\n}\n"
                                ".visible .entry hold(.param .u64 flag) {\n"
                                "  .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p<2>;\n"
                                "  ld.param.u64 %rd1, [flag];\n"
                                "again:\n"
                                "  ld.volatile.global.u32 %r1, [%rd1];\n"
                                "  setp.eq.u32 %p1, %r1, 0;\n"
                                "  @%p1 bra again;\n"
                                "  ret;\n}\n"
                                ".visible .entry stamp(.param .u64 cell) {\n"
                                "  .reg .b64 %rd<3>;\n"
                                "  ld.param.u64 %rd1, [cell];\n"
                                "  mov.u64 %rd2, %globaltimer;\n"
                                "  st.volatile.global.u64 [%rd1], %rd2;\n"
                                "  ret;\n}\n";

static inline int bench_setup(void **state)
{
    static struct bench *volatile last; /* in a child nobody else keeps it */
    struct bench *b = last = calloc(1, sizeof *b);
    WORKS(cuInit(0));
    WORKS(cuDevicePrimaryCtxRetain(&b->ctx, 0));
    WORKS(cuCtxSetCurrent(b->ctx));
    WORKS(cuModuleLoadData(&b->module, bench_ptx));
    WORKS(cuModuleGetFunction(&b->count, b->module, "count"));
    WORKS(cuModuleGetFunction(&b->spin, b->module, "spin"));
    WORKS(cuModuleGetFunction(&b->hold, b->module, "hold"));
    WORKS(cuModuleGetFunction(&b->stamp, b->module, "stamp"));
    WORKS(cuMemHostAlloc((void **)&b->cells, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(b->cells, 0, 4096);
    WORKS(cuMemHostGetDevicePointer(&b->device_cells, b->cells, 0));
    WORKS(cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING));
    *state = b;
    return 0;
}

static inline int bench_teardown(void **state)
{
    struct bench *b = *state;
    memset(b->cells, 0xff, 4096); /* whatever a failed test still holds may end */
    WORKS(cuCtxSetCurrent(b->ctx));
    WORKS(cuStreamDestroy(b->stream));
    WORKS(cuModuleUnload(b->module));
    WORKS(cuMemFreeHost(b->cells));
    WORKS(cuDevicePrimaryCtxRelease(0));
    WORKS(cuCtxSetCurrent(NULL));
    free(b);
    return 0;
}

static inline CUresult launch_at(CUfunction function, CUstream stream, uint64_t argument)
{
    void *params[] = {&argument};
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

/* count() on cell `i`. */
static inline CUresult launch_count(struct bench *b, CUstream stream, int i)
{
    return launch_at(b->count, stream, b->device_cells + 8u * (unsigned)i);
}

static inline CUresult launch_hold(struct bench *b, CUstream stream, int i)
{
    return launch_at(b->hold, stream, b->device_cells + 8u * (unsigned)i);
}

static inline void let_go(struct bench *b, int i)
{
    __atomic_store_n((uint32_t *)&b->cells[i], 1, __ATOMIC_RELEASE);
}

static inline uint64_t cell(struct bench *b, int i)
{
    return __atomic_load_n(&b->cells[i], __ATOMIC_ACQUIRE);
}

static inline double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/*
 * Run this program again with one more environment variable ("NAME=value") and the word `what`, for
 * settings that are read once and for faults that a process does not survive. Returns its exit
 * code, or 128 and more for a signal.
 */
static inline int run_self(const char *variable, const char *what)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        putenv((char *)(uintptr_t)variable);
        execl("/proc/self/exe", "test", what, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In the child: a result as an exit code that says which line it was. */
#define CHILD_WANTS(call, result)                                                      \
    do {                                                                               \
        CUresult child_result = (call);                                                \
        if (child_result != (result)) {                                                \
            fprintf(stderr, "%s:%d: %s gives %s, not %s\n", __FILE__, __LINE__, #call, \
                    result_name(child_result), result_name(result));                   \
            return 1;                                                                  \
        }                                                                              \
    } while (0)

#endif
