/* SPDX-License-Identifier: Apache-2.0 */
/* The same call found on every rank of a communicator, and the ranks' clocks brought together. */
#ifndef NCCLSHIM_STATS_LINEUP_H
#define NCCLSHIM_STATS_LINEUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/stats/run.h"

struct lineup_event {
    uint64_t key;       /* of the call: the same on all ranks */
    int64_t start, end; /* host clock, ns */
    uint32_t row;
};

/* What one rank did. */
struct lineup_lane {
    struct lineup_event *events; /* malloc'ed */
    size_t count;
    const struct run_gpu *gpu;
    bool far; /* on another host than rank 0, whose clock runs by itself */
};

struct lineup {
    struct lineup_lane *lanes; /* by rank */
    uint32_t ranks;
    uint32_t *at; /* where the events of a call are, rank by rank; call after call */
    size_t calls; /* on record on every rank */
};

/* Find the calls. 0, or -1 when memory is out. */
int lineup_find(struct lineup *l);
/*
 * Bring the clocks together, which changes the events' times, and with several hosts drops calls
 * that come alone. 0, and *error_ns within which they agree then; else the number of the rank whose
 * clock no shift brings together with rank 0's.
 */
uint32_t lineup_clocks(struct lineup *l, uint64_t *error_ns);

const struct lineup_event *lineup_at(const struct lineup *l, size_t call, uint32_t rank);
void lineup_free(struct lineup *l);

#endif
