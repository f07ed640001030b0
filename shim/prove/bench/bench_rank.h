/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of a bench: what it holds, and the parts of its work. A rank is a process or, with
 * --one-process, a thread; nothing here is shared between ranks but bench_meet and the slots.
 *
 * Order: all that may wait for the device (context, module, memory, communicators, captures,
 * instantiation, events) is done on every rank before anything is timed. With all ranks on one GPU
 * it is even done before any collective runs, because there one rank's running collective would
 * keep another from instantiating.
 */
#ifndef NCCLSHIM_PROVE_BENCH_RANK_H
#define NCCLSHIM_PROVE_BENCH_RANK_H

#include "shim/prove/bench/bench_meet.h"
#include "shim/prove/bench/gpu_api.h"

#define BENCH_EVENT_CALLS 128u /* eager calls of a row that get an event pair */

struct bench_member {
    gpuapi_comm comm; /* NULL: not in it */
    int rank, ranks;
};

struct bench_rank {
    struct bench_share *share;
    const struct bench_settings *set;
    struct workload w; /* its steps lie in the share */
    struct bench_plan plan;
    struct bench_meet meet;
    struct bench_slot *slot;
    struct error *e;   /* = &slot->error */
    int rank;

    int device;
    bool simulated;
    char gpu[96];
    gpuapi_ctx ctx;
    gpuapi_stream stream;
    gpuapi_module module;
    gpuapi_function spin;
    gpuapi_ptr arena;
    struct bench_member members[WORKLOAD_COMMS];
    gpuapi_exec *execs; /* by unit */
    gpuapi_event *events; /* a pair for each call that is timed so */
    gpuapi_event span[2]; /* one pair around a sample */
    uint32_t event_count;

    unsigned char *got, *want, *tile; /* host buffers for checks */
    uint64_t *wrong;    /* by row, and the pass last: elements on this rank */
    uint64_t checked;
    double *samples;    /* [measure][repeat], this rank's; then all ranks' (bench_time.c) */
    double *gpu_ns;     /* [row][2]: p50, p99 by event pairs */
    uint32_t *batch;    /* by measure: plays in one sample */
};

/* Be rank `rank` of the share, to the end. 0, or -1: the slot says why. */
int bench_rank_run(struct bench_share *share, int rank);

/* Tell what this rank is doing now; counts as progress. */
void bench_rank_at(struct bench_rank *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* bench_issue.c: calls into the stream. 0, or -1 with r->e filled. */
int bench_issue_unit(struct bench_rank *r, const struct bench_unit *u);
int bench_issue_op(struct bench_rank *r, const struct bench_op *o);
int bench_spin(struct bench_rank *r, uint64_t ns);        /* the GPU is busy for so long */
int bench_play_unit(struct bench_rank *r, uint32_t unit); /* launch its graph, or issue it */
int bench_capture_all(struct bench_rank *r);
int bench_sync(struct bench_rank *r); /* wait, and look for errors that came later */
/* Where a rank of a group finds its buffers; send is what NCCL reads. */
void bench_buffers(const struct bench_rank *r, const struct bench_op *o, gpuapi_ptr *send,
                   gpuapi_ptr *recv);

/* bench_check.c: play every unit once with known values and look at all results. */
int bench_check_all(struct bench_rank *r);

/* bench_time.c */
int bench_warm_up(struct bench_rank *r);
int bench_time_all(struct bench_rank *r);
int bench_time_events(struct bench_rank *r);

#endif
