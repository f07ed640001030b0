/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a report says about a run, worked out once; text, JSON and HTML print it.
 */
#ifndef NCCLSHIM_SHOW_OVERVIEW_H
#define NCCLSHIM_SHOW_OVERVIEW_H

#include "shim/stats/run.h"
#include "shim/stats/run_settings.h"
#include "shim/stats/wait.h"

/* One thing worth a look, most important first. */
struct hint {
    const char *key; /* stable, for JSON: "straggler", "lost", ... */
    bool serious;    /* the numbers above can't be taken at face value, or data is at risk */
    char text[640];  /* a sentence or two: what is seen, against which threshold, what to do */
};
#define HINTS_MAX 24

/* One NCCL library, as loaded by some of the processes. */
struct nccl_copy {
    char path[512];
    uint64_t version; /* version code; 0 = not told */
    uint32_t processes;
};
#define COPIES_MAX 16

struct gpu_kind {
    char name[96];
    uint32_t sm, count;
};
#define GPU_KINDS_MAX 8

struct overview {
    struct run *run; /* not owned */
    struct arrivals *arrivals;
    struct run_settings settings;
    struct nccl_copy copies[COPIES_MAX];
    uint32_t copy_count;
    uint32_t most_copies; /* in one process */
    struct gpu_kind gpus[GPU_KINDS_MAX];
    uint32_t gpu_kinds, gpu_count; /* distinct GPUs */
    uint32_t rank_count;           /* rings with records: ranks that were timed */
    uint32_t host_count;
    struct hint hints[HINTS_MAX];
    unsigned hint_count;
};

/* 0, or -1 with *e filled. */
int overview_make(struct run *r, struct overview *f, struct error *e);
void overview_free(struct overview *f);

/* hints.c: called by overview_make. */
void hints_make(struct overview *f);

/* "rank 3", or "HOST:PID" where a process is not one rank. Returns buf. */
const char *process_label(const struct run *r, uint32_t process, char *buf, size_t size);
/* "comm tp" or "comm 1", made harmless. Returns buf. */
const char *comm_label(const struct run *r, uint32_t comm, char *buf, size_t size);
/* "122 x all_reduce 42 KiB" or "100 x all_reduce 42 KiB + 22 others". Returns buf. */
const char *pass_label(const struct run_pass *p, char *buf, size_t size);
/* "ring LL 2"; "-" for what NCCL did not tell. Returns buf. */
const char *choice_label(const struct run_row *row, char *buf, size_t size);
/* "2.28.9" of 22809. Returns buf (32 bytes). */
const char *nccl_version_text(uint64_t code, char *buf);
/* "closed", "still running", "not closed (killed?)", ... Returns a static string. */
const char *run_state(const struct run *r);
const char *stamp_text(uint32_t stamp);

#endif
