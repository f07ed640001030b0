/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GPU context of this process and what stamping needs there: the stamp kernels, a ring in the
 * log, one cell of device memory per call site. Made in the init wrapper of the first communicator
 * on that context, where waiting for the device is allowed; never on the call path.
 */
#ifndef NCCLSHIM_PRELOAD_GPU_H
#define NCCLSHIM_PRELOAD_GPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/ncclshim/log.h"
#include "shim/preload/driver.h"

#define GPU_MAX 32
#define CELL_BYTES 32u       /* start, end, run: stamp_ptx.h */
#define START_SLOTS 4096u    /* starts of eager calls, one per communicator and stream */

struct gpu {
    _Atomic int state; /* 0 free, 1 being made, 2 ready, 3 can't be stamped */
    CUcontext ctx;
    unsigned long long ctx_id; /* tells a context from a later one at the same address; 0 unknown */
    int device;
    int sm;
    uint32_t ring_number;
    struct ncclshim_ring *ring;
    CUdeviceptr records; /* the ring's records, as the GPU sees them */
    CUdeviceptr lap;     /* the ring head's `lap` word */
    CUdeviceptr cursor;  /* number of the next record */
    CUdeviceptr cells;   /* site_cap of them, by site number */
    CUdeviceptr starts;  /* START_SLOTS times 8 bytes */
    _Atomic uint32_t starts_used;
    uint32_t mask;
    _Atomic uint64_t anchored_ns; /* host time of the last anchor */
    bool dependent; /* programmatic dependent launch, with `attributes` */
    CUlaunchAttribute attributes[2];
    unsigned attribute_count;
    CUmodule module; /* NULL: not loaded */
    CUfunction before, after, after_late;
    bool registered; /* the ring, with the driver */
};

/*
 * The GPU of the current context, made ready if it is the first time. NULL when no context is
 * current, when there is no log, or when stamping is not possible there (said once).
 */
struct gpu *gpu_prepare(void);

/* Forget all (a forked child: the contexts are the parent's). */
void gpu_forget(void);

/* A fresh start slot; 0 when all are taken: the caller then uses the start of the site's own cell. */
CUdeviceptr gpu_start_slot(struct gpu *g);

static inline CUdeviceptr gpu_cell(const struct gpu *g, uint32_t site)
{
    return g->cells + (CUdeviceptr)site * CELL_BYTES;
}

#endif
