/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated CUDA driver (build/fake/libcuda.so.1) offers beyond cuda.h, for the simulated
 * NCCL and for tests. Programs under test never use this header: they see cuda.h alone.
 *
 * Time on the simulated device is virtual: each stream has a "now" in nanoseconds of Unix time. An
 * operation starts at max(stream now, the host's clock when it was enqueued, everything it waits
 * for) and ends when its function says. Host calls that wait for the device (synchronize, blocking
 * copies) sleep until the host's clock has caught up with the virtual end, unless
 * NCCLSHIM_FAKE_PACE=0.
 */
#ifndef NCCLSHIM_TEST_FAKECUDA_H
#define NCCLSHIM_TEST_FAKECUDA_H

#include <cuda.h>
#include <stdint.h>

/*
 * One simulated kernel that is host code. Called on the stream's worker thread when the operation
 * is reached (once per replay when it was captured); may block (a rendezvous with other ranks).
 * start_ns is the virtual start; the return value is the virtual end, not below start_ns.
 */
typedef uint64_t (*fakecuda_kernel_fn)(void *arg, uint64_t start_ns);

/*
 * Put `fn` into `stream` as a kernel called `name`; under capture it becomes a kernel node.
 * `arg` stays with the caller until `release(arg)` is called: after the run when eager, and when
 * the graph and all its executable copies are gone when captured. Errors are those of
 * cuLaunchKernel. Thread-safe as cuLaunchKernel is.
 */
CUresult fakecuda_launch(CUstream stream, const char *name, fakecuda_kernel_fn fn, void *arg,
                         void (*release)(void *arg));

/* Count of calls of one driver function since the process started; 0 for a name never called. */
uint64_t fakecuda_calls(const char *function);

/* How often a kernel let its dependents start early (griddepcontrol.launch_dependents). */
uint64_t fakecuda_early_releases(void);

/* Set the value of a conditional handle, as a kernel does by cudaGraphSetConditional. */
void fakecuda_set_conditional(uint64_t handle, unsigned value);

#endif
