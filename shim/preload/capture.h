/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph captures that are under way, by the driver's capture id: our number for each, and how many
 * calls it has had. What is stamped depends on that count alone, so that repeated captures of the
 * same work get the same nodes and cudaGraphExecUpdate goes on working.
 */
#ifndef NCCLSHIM_PRELOAD_CAPTURE_H
#define NCCLSHIM_PRELOAD_CAPTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/preload/driver.h"

struct capture {
    _Atomic uint64_t id;      /* the driver's; 0 = free */
    uint32_t number;          /* ours, from 1 */
    _Atomic uint32_t calls;   /* stamped or not */
    /* The last `after` stamp put into it: where the next call starts right behind it, with nothing
     * between, its end is the start of that call, and no `before` is needed. */
    _Atomic(CUgraphNode) last_node;
    CUdeviceptr last_end;
    const void *last_gpu;
};

/* The capture with this id; begun if it is new. Any thread; NULL never. */
struct capture *capture_of(uint64_t id);

void capture_forget(void);

#endif
