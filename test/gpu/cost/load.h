/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: all-reduces in shapes of which the wall time is known, for measuring what watching them costs.
 *
 *   load [--ranks N] [--one-gpu] [--processes] [--limit S] SHAPE...
 *   SHAPE = NAME:graph|eager|single[:key=value]...
 *
 * graph: `calls` all-reduces in a CUDA graph, replayed; eager: `calls` all-reduces one after the other;
 * single: `calls` times one all-reduce alone, queued behind a kernel that keeps the stream busy, between
 * two events. Ranks are threads of this process, or processes as servers have them (threads wait for one
 * another inside the driver when they launch at the same time), one GPU each or all on one. Eager shapes run
 * first; then every graph of every rank is captured and instantiated before any of them runs, because ranks
 * that share a GPU may otherwise wait for each other for ever.
 *
 * Prints one JSON object a line for each shape: wall_us holds one number for each repeat, per call.
 */
#ifndef NCCLSHIM_TEST_LOAD_H
#define NCCLSHIM_TEST_LOAD_H

#include <cuda.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_RANKS 16
#define MAX_SHAPES 32

enum kind { KIND_GRAPH, KIND_EAGER, KIND_SINGLE };

struct shape {
    char name[32];
    enum kind kind;
    size_t bytes;     /* bytes=43008 */
    int calls;        /* calls=122 */
    int repeats;      /* repeats=50: timed ones */
    int warmup;       /* warmup=5: not timed */
    int small;        /* small=0: tiny kernels before each call, as between a model's all-reduces */
    uint64_t gap_ns;  /* gap=0, in us: a kernel of that length before each call */
    uint64_t late_ns; /* late=0, in us: that much longer on rank 1 */
    uint64_t beside_ns; /* beside=0, in us: before each call a kernel of that length on a second stream */
    bool events;      /* a pair of events around each call (single has them always) */
};

struct options {
    int ranks;
    bool one_gpu;
    bool processes;
    int limit_s;
    int shape_count;
    struct shape shapes[MAX_SHAPES];
};

/* 0, or an exit code; says on stderr what is wrong. */
int load_options(struct options *o, int argc, char **argv);

/* What one rank has for one shape. */
struct state {
    CUgraph graph;
    CUgraphExec exec;
    CUevent *events; /* two a call */
    float *event_us; /* one a call; seen by all ranks */
    double *wall_us; /* one a repeat; seen by all ranks */
};

struct meeting;

struct rank {
    const struct options *opt;
    struct meeting *meeting;
    int number;
    CUdevice device;
    CUcontext ctx;
    CUstream stream, second;
    CUmodule module;
    CUfunction spin;
    ncclComm_t comm;
    CUdeviceptr buffer;
    uint64_t calls; /* all-reduces that ran on the GPU */
    struct state states[MAX_SHAPES];
};

/* What all ranks see, also as processes. */
struct meeting {
    atomic_int arrived, round;
    ncclUniqueId id; /* rank 0 fills it before the first meeting */
    struct rank ranks[MAX_RANKS];
};

/* A rank's whole life. */
void load_rank(struct rank *r, struct meeting *m);

/* All ranks arrive before any goes on. Spins: a sleeping thread would wake too late for a timed repeat. */
void load_meet(const struct rank *r);

#endif
