/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a workload becomes when it is measured: units, each one captured graph or one stretch of
 * eager calls, with a place in memory for each call's buffers; rows, one for each kind of call,
 * each measured by a unit of its own; and the pass, which plays the workload's own blocks in order.
 *
 * The plan follows from workload, settings and number of ranks alone: every rank makes it for
 * itself, and all come to the same.
 */
#ifndef NCCLSHIM_PROVE_BENCH_PLAN_H
#define NCCLSHIM_PROVE_BENCH_PLAN_H

#include "shim/prove/bench/workload.h"

#define BENCH_CALLS 122       /* a row's calls, when nobody says: those of one forward pass */
#define BENCH_ARENA (256u << 20) /* a row's calls, when nobody says, fit in so much memory */
#define BENCH_PASS_TIMES 4    /* how often the most frequent block comes in a pass */

/* One call of NCCL in a unit. */
struct bench_op {
    uint32_t step;       /* index in the workload */
    uint32_t call;       /* number in the unit: chooses its values */
    bool opens, closes;  /* ncclGroupStart before it, ncclGroupEnd behind it */
    uint64_t gap_ns;
    uint64_t send_at, recv_at; /* offsets in the arena; equal in place */
};

struct bench_unit {
    bool graph;
    uint32_t first, count; /* of its ops */
    uint32_t calls;        /* calls as a user counts: a group is one */
};

/* A kind of call: one step, or a group of several. */
struct bench_row {
    uint32_t unit;
    uint32_t step, steps; /* the first of its kind in the workload */
    bool graph;
    uint64_t weight;      /* calls in the recorded run (of one rank); 1 each otherwise */
    uint64_t bytes;       /* of a group: the sum */
};

/* One turn of the pass. */
struct bench_turn {
    uint32_t unit, times;
};

struct bench_plan {
    struct bench_op *ops;
    uint32_t op_count;
    struct bench_unit *units;
    uint32_t unit_count;
    struct bench_row *rows;
    uint32_t row_count;
    struct bench_turn *turns; /* of the pass; none: there is no pass */
    uint32_t turn_count;
    uint64_t pass_calls;
    uint64_t arena_bytes;
};

struct bench_plan_options {
    int ranks;
    uint32_t calls; /* of a row's unit; 0 = BENCH_CALLS, fewer when they are large */
    bool rows, pass; /* make them */
};

/* 0, or -1 with *e filled. */
int bench_plan_make(struct bench_plan *p, const struct workload *w,
                    const struct bench_plan_options *o, struct error *e);
void bench_plan_free(struct bench_plan *p);

/* Index of the next step behind the call (one step or one group) that begins at `step`. */
uint32_t bench_call_end(const struct workload *w, uint32_t step);

#endif
