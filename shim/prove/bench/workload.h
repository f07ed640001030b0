/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload: the collectives that `bench` plays, in order. Where it comes from: a list of sizes, a
 * file (docs/bench.md has the grammar), or a recorded run.
 *
 * It is one list for all ranks; a rank plays the steps of the communicators that it is in. A
 * communicator is a partition of the ranks: `all`, or disjoint groups, as ncclCommSplit makes them.
 * A workload belongs to one thread and owns all it points to.
 */
#ifndef NCCLSHIM_PROVE_WORKLOAD_H
#define NCCLSHIM_PROVE_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "shim/base/error.h"
#include "shim/base/names.h"

#define WORKLOAD_RANKS 64 /* most ranks that bench plays with */
#define WORKLOAD_COMMS 16
#define WORKLOAD_NAME 48
#define WORKLOAD_STEPS (1u << 20)

struct workload_comm {
    char name[WORKLOAD_NAME];
    uint32_t groups;                   /* 0 = all ranks, however many there are */
    int16_t group_of[WORKLOAD_RANKS];  /* by rank; -1 = in none */
};

struct workload_step {
    uint32_t comm;     /* index in workload.comms */
    uint8_t op, dtype, redop; /* redop: REDOP_SUM also where it has no meaning */
    bool in_place;
    int32_t root;      /* of the communicator; 0 where it has no meaning */
    uint64_t count;    /* elements, as NCCL's function takes them */
    uint32_t group;    /* following steps with the same number > 0 are one ncclGroup */
    uint32_t graph;    /* number of the captured graph it belongs to; 0 = eager */
    uint64_t gap_ns;   /* the GPU is busy with something else for so long before it */
    uint64_t runs;     /* how often it was called, or its graph replayed: its weight */
};

struct workload {
    struct workload_comm comms[WORKLOAD_COMMS];
    uint32_t comm_count;
    struct workload_step *steps; /* those of one graph follow each other */
    uint32_t step_count;
    bool sequence;   /* the order means something: it can be played as a whole */
    uint32_t ranks;  /* of the run it was taken from; 0 = any number */
    char source[512]; /* for people: "run ncclshim-runs/...", "sizes 8K-64M" */
    char left_out[256]; /* what of a run can't be played; "" = nothing */
    char nccl[512];  /* path of the NCCL that the run used; "" = unknown */
};

void workload_init(struct workload *w);
void workload_free(struct workload *w);
/* A communicator of all ranks with that name; index, or -1 when there are too many. */
int workload_add_comm(struct workload *w, const char *name);
/* 0, or -1 when memory is out or there are too many. */
int workload_add_step(struct workload *w, const struct workload_step *s);

/* Number of ranks of the group that `rank` is in, and its place there (-1: in none). */
int workload_place(const struct workload_comm *c, int ranks, int rank, int *group_ranks);
/* Ranks of its largest group. */
int workload_comm_ranks(const struct workload_comm *c, int ranks);

/* Bytes of the send and the receive buffer of one rank, root or not, in a group of n ranks. */
uint64_t workload_send_bytes(const struct workload_step *s, int n);
uint64_t workload_recv_bytes(const struct workload_step *s, int n);
/* The larger of the two: what nccl-tests calls size. */
uint64_t workload_bytes(const struct workload_step *s, int n);
/* Does the operation reduce, has it a root? */
bool workload_op_reduces(unsigned op);
bool workload_op_has_root(unsigned op);
/*
 * Can bench play it? all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather,
 * scatter
 */
bool workload_op_playable(unsigned op);
/* Same call, wherever it stands: all but graph number, group, gap and weight. */
bool workload_same_call(const struct workload_step *a, const struct workload_step *b);

/*
 * Can it be played by so many ranks: roots, groups and counts fit. 0, or -1 with *e filled.
 */
int workload_check(const struct workload *w, int ranks, struct error *e);

/*
 * "8K-64M" (doubling), "8K,42K,4M", and mixtures; each becomes one step, eager and captured as
 * asked. Sizes are nccl-tests': the larger buffer of one rank. 0, or -1 with *e filled.
 */
struct workload_sizes {
    const char *list;
    uint8_t op, dtype;
    bool eager, graph;
    int ranks;
};
int workload_from_sizes(struct workload *w, const struct workload_sizes *s, struct error *e);

/* The file: docs/bench.md. 0, or -1 with *e filled, file and line in it. */
int workload_parse(struct workload *w, const char *text, const char *file, struct error *e);
int workload_read(struct workload *w, const char *path, struct error *e);
/* Written so that workload_parse reads the same back. 0, or -1 with errno set. */
int workload_write(const struct workload *w, FILE *out);

/* From a recorded run (a folder, or what run_open_given takes). 0, or -1 with *e filled. */
int workload_from_run(struct workload *w, const char *run, struct error *e);

/* Leave only captured (1) or eager (0) steps. */
void workload_keep(struct workload *w, int captured);

/* Equal for equal workloads: ranks compare it before they play. */
uint64_t workload_digest(const struct workload *w);

#endif
