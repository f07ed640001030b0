/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bench from beginning to end: what `ncclshim bench` does and `tune` builds on. bench_run plays a
 * workload under a profile in fresh processes and hands back what was measured.
 *
 * Twice, when stamps are wanted: first as it is, by the host's clock; then once more under the
 * shim's stamps, which tell how long each call took on the GPU but cost a little themselves. The
 * two never mix.
 */
#ifndef NCCLSHIM_PROVE_BENCH_H
#define NCCLSHIM_PROVE_BENCH_H

#include "shim/prove/bench/bench_ci.h"
#include "shim/prove/bench/bench_plan.h"
#include "shim/prove/bench/ranks.h"

enum bench_how { BENCH_AS_IS, BENCH_GRAPH, BENCH_EAGER, BENCH_BOTH };
enum bench_stamps { BENCH_STAMPS_AUTO, BENCH_STAMPS_ON, BENCH_STAMPS_OFF };

struct bench_options {
    /* one of them; none: `sizes` of the default list */
    const char *from, *sizes, *file;
    uint8_t op, dtype; /* with sizes */
    enum bench_how
        how; /* AS_IS: both, with sizes; else as recorded. Else a filter on what is recorded */
    const char *profile; /* NULL = NCCLSHIM_PROFILE, or none */
    int ranks;           /* 0 = as recorded, the launcher's, or the GPUs at hand */
    bool one_process, one_gpu;
    uint32_t calls;      /* 0 = by size */
    uint32_t repeats, warmup;
    bool check;
    uint32_t timeout_s;  /* without progress */
    enum bench_stamps stamps;
    const char *write_workload; /* NULL, a path, or "-" */
};
#define BENCH_OPTIONS                                                                              \
    {.op = OP_ALL_REDUCE, .dtype = DTYPE_BFLOAT16, .repeats = 20, .warmup = 3, .check = true,      \
     .timeout_s = 60}

struct bench_row_result {
    struct bench_ci ns;      /* a call, slowest rank, host clock */
    double p99_ns;
    const char *p99_from;    /* "stamps", "events" or "samples" */
    uint64_t wrong;
    double event_p50_ns;     /* eager, event pairs; 0 = none */
    double stamp_p50_ns, stamp_p99_ns; /* 0 = none */
    uint64_t stamped;        /* calls behind them */
};

struct bench_result {
    struct bench_options o;
    struct workload w;
    struct bench_plan plan;
    struct bench_share *share; /* samples and outcome of the first playing */
    int fd;
    struct bench_row_result *rows; /* by plan row */
    struct bench_ci pass;
    char profile[64], profile_path[4096];
    const char *placement;   /* "processes", "threads", "one_gpu" */
    bool speaks;             /* this process prints (rank 0's, under a launcher) */
    bool stamps;             /* there were some */
    char no_stamps[768];     /* why not; "" = not asked for */
    struct ranks_result ranks;
    uint64_t started_ns, ended_ns; /* host clock */
};

/*
 * 0 when the ranks were started (b->ranks.end tells what came of them), 1 when only the workload
 * was to be written, or -1 with *e filled: the request can't be carried out. bench_free always.
 */
int bench_run(struct bench_result *b, const struct bench_options *o, struct error *e);
void bench_free(struct bench_result *b);

/* bench_build.c: the workload that the options ask for, and how many ranks. 0, or -1. */
int bench_build(struct bench_result *b, struct bench_settings *set, struct error *e);
/* bench_stamps.c: fill the rows' stamps from the logs in a folder. 0, or -1 with *e filled. */
int bench_read_stamps(struct bench_result *b, const char *log_dir, uint64_t warm_ns,
                      struct error *e);

#endif
