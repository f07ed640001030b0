/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the command and the rank processes which it started share: what to do, how far
 * each rank is, and what came out. A file without a name (memfd); a rank finds it by its descriptor
 * after exec. One writer each: settings and workload are written before any rank starts, a slot by
 * its rank, the outcome by rank 0.
 */
#ifndef NCCLSHIM_PROVE_BENCH_SHARE_H
#define NCCLSHIM_PROVE_BENCH_SHARE_H

#include <stdatomic.h>

#include "shim/prove/bench/bench_launcher.h"
#include "shim/prove/bench/bench_plan.h"

#define BENCH_SHARE_MAGIC 0x6e6362656e636831ull
#define BENCH_STAGE 4096u
#define BENCH_ENV_TEXT (32u << 10)

struct bench_settings {
    int ranks;
    int first_rank, local_ranks; /* those that this command starts: all, or one under a launcher */
    bool one_process, one_gpu;
    bool check, events, rows, pass;
    uint32_t calls, repeats, warmup;
    uint64_t batch_ns;     /* play so often in one sample that it takes about so long */
    bool launched;         /* by mpirun, srun, torchrun, ... */
    struct bench_launcher launcher;
    uint32_t phase;        /* counts the times that the ranks were started */
    uint32_t timeout_s;
    char nccl[512];        /* path or name for dlopen */
};

enum bench_state { BENCH_RUNNING, BENCH_DONE, BENCH_WRONG, BENCH_FAILED };

/* One rank's word to the command. */
struct bench_slot {
    _Atomic uint64_t progress; /* goes up with every step forward */
    _Atomic uint32_t state;    /* enum bench_state; stored after error */
    char where[192];           /* what it is doing, for the message about a hang */
    struct error error; /* BENCH_FAILED, BENCH_WRONG. Empty text: another rank failed first */
};

/* Ranks of one host meet here (bench_meet.h). */
struct bench_shm {
    _Atomic uint32_t arrived, generation, failed;
    char stage[WORKLOAD_RANKS][BENCH_STAGE];
};

struct bench_row_outcome {
    uint64_t wrong;           /* elements, all ranks and both checks */
    double gpu_p50_ns,
        gpu_p99_ns; /* eager, by event pairs, of the slowest rank; 0 = not measured */
};

struct bench_outcome {
    bool filled;              /* by rank 0, at its end */
    bool timed;               /* samples are there: nothing was wrong */
    bool simulated;
    int nccl, driver;         /* versions */
    char gpu[96];
    uint64_t warm_ns;         /* host clock at the end of the warm-up */
    uint64_t checked;         /* elements found right, all ranks */
    char env[BENCH_ENV_TEXT]; /* NAME=VALUE \n of rank 0: NCCL_*, as they were at its end */
};

struct bench_share {
    uint64_t magic, bytes;
    struct bench_settings set;
    struct workload w;        /* its pointer means nothing: the steps lie at steps_at */
    uint64_t steps_at;
    struct bench_slot slots[WORKLOAD_RANKS];
    struct bench_shm shm;
    struct bench_outcome out;
    uint32_t row_count, measure_count; /* rows, and one more for the pass */
    uint64_t rows_at;         /* bench_row_outcome, by row */
    uint64_t samples_at;      /* double [measure][repeat]: ns of a call, or of a pass */
};

/* Make one; *fd is its descriptor (close-on-exec). NULL with *e filled. */
struct bench_share *bench_share_make(const struct bench_settings *set, const struct workload *w,
                                     const struct bench_plan *p, int *fd, struct error *e);
/* Map the one behind a descriptor; NULL with *e filled when it is none. */
struct bench_share *bench_share_map(int fd, struct error *e);
void bench_share_free(struct bench_share *s, int fd);

/* The workload in it, as a struct of its own; do not free it. */
struct workload bench_share_workload(struct bench_share *s);
struct bench_row_outcome *bench_share_row(struct bench_share *s, uint32_t row);
double *bench_share_samples(struct bench_share *s, uint32_t measure);

#endif
