/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ranks in one process, a thread and a GPU each (or one GPU for both, SHAPES_ONE_GPU=1), for
 * programs that each show one shape of calling NCCL. Any error ends the program with exit code 1
 * and the line it happened on.
 */
#ifndef NCCLSHIM_TEST_RANKS_H
#define NCCLSHIM_TEST_RANKS_H

#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define RANKS 2

struct rank {
    int number;
    CUcontext ctx;
    CUstream stream; /* non-blocking */
    ncclComm_t comm;
    CUdeviceptr buffer;
    pthread_barrier_t *all;
};

#define BUFFER_BYTES (8u << 20)

void give_up(const char *file, int line, const char *what, int result);
#define CU(e) do { CUresult r_ = (e); if (r_ != CUDA_SUCCESS) give_up(__FILE__, __LINE__, #e, r_); } while (0)
#define NC(e) do { ncclResult_t r_ = (e); if (r_ != ncclSuccess) give_up(__FILE__, __LINE__, #e, r_); } while (0)
#define NEED(e) do { if (!(e)) give_up(__FILE__, __LINE__, #e, 0); } while (0)

/* Run `body` on every rank, with a communicator of all of them when with_comm. */
void on_ranks(void (*body)(struct rank *r), bool with_comm);

/* One thread for all GPUs, as llama.cpp has it: a communicator and a buffer of 64 KiB on each. The last one's context is
 * current then. */
struct device {
    ncclComm_t comm;
    CUcontext ctx;
    CUstream stream; /* non-blocking, when `own` was asked for; else the legacy one */
    CUdeviceptr buffer;
};
void on_devices(struct device *d, bool own);

/* In a group, an all-reduce of `count` floats on each device's `stream`. */
void reduce_devices(struct device *d, size_t count);

/* An all-reduce of `count` floats of the rank's buffer, in place. */
ncclResult_t reduce(struct rank *r, size_t count, CUstream stream);

/* Capture `body` in the given mode and instantiate; the ranks have all done so when it returns. */
CUgraphExec capture(struct rank *r, CUstreamCaptureMode mode, void (*body)(struct rank *r), CUgraph *graph);

/* NCCL's destroy waits until all graphs that use a communicator are gone. */
void drop(CUgraphExec exec, CUgraph graph);

void wait_all(struct rank *r);

/* A function that an older nccl.h does not have. */
void *function(const char *name);

/* The shapes: name, function. */
struct shape {
    const char *name;
    void (*run)(void);
};
extern const struct shape group_shapes[], capture_shapes[], birth_shapes[], process_shapes[], config_shapes[],
    thread_shapes[], operation_shapes[];

#endif
