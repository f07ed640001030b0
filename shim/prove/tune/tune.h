/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a profile: what `ncclshim tune` does. Everything lies in one folder:
 *
 *   workload        what is played; made once
 *   space.ini       what is tried; after what can't be tried here was taken out
 *   tune.json       all measurements so far, renewed after each one: a stopped search goes on from
 * it trials/         profile, result and messages of each bench winner.ini      the profile found
 *   default, winner run folders of one recorded bench each, for `report` and `compare`
 */
#ifndef NCCLSHIM_PROVE_TUNE_H
#define NCCLSHIM_PROVE_TUNE_H

#include <jansson.h>

#include "shim/prove/bench/bench.h"
#include "shim/prove/run/offspring.h"
#include "shim/prove/run/runfolder.h"
#include "shim/prove/tune/tune_machine.h"
#include "shim/prove/tune/tune_search.h"
#include "shim/stats/compare.h"

#define TUNE_BUDGET_NS 600000000000ull
#define TUNE_PATH 4300
#define TUNE_NOTES 24
#define TUNE_PROOF_MAX 10 /* runs of each side */
#define TUNE_PROOF_LEAST 3

struct tune_options {
    const char *from, *sizes, *workload; /* one of them; none: bench's own list of sizes */
    const char *op, *type;               /* for bench */
    enum bench_how how;
    int ranks;
    bool one_process, one_gpu, waits;
    uint32_t calls, repeats, timeout_s; /* 0 = as bench / by how long the default takes */
    uint32_t proof_runs;                /* of each side; 0 = by budget */
    uint64_t
        budget_ns; /* 0 = TUNE_BUDGET_NS; going on: what was left. Given anew it counts from then */
    const char *space, *write, *out_dir, *resume;
    /* transient: a line that the next one may overwrite */
    void (*say)(void *user, const char *line, bool transient);
    void *user;
};
#define TUNE_OPTIONS  \
    {                 \
        .repeats = 10 \
    }

struct tune_proof_row {
    struct estimate before, after;
    struct difference difference;
    enum verdict verdict; /* NONE, FASTER or SLOWER */
};

struct tune {
    struct tune_options o;
    struct runfolder folder;
    struct nursery nursery;
    struct tune_space space;
    struct tune_work work;
    struct tune_search search;
    struct tune_book loaded;       /* of the search that is gone on with */
    struct tune_book all;          /* every trial, in the order of time: what tune.json holds */
    size_t reused;                 /* trials that were taken from `loaded` */
    unsigned trial;                /* number of the last one, for names */
    uint64_t started_ns, spent_ns; /* monotonic; spent in earlier calls */
    uint64_t mean_ns;              /* of a good trial */
    bool resumed;

    /* of the first bench */
    bool simulated, known, mixed;
    char nccl[32], gpu[128], placement[24], source[512];
    int version, ranks;
    struct tune_machine machine;
    char notes[TUNE_NOTES][512];
    size_t note_count;

    /* the proof */
    uint32_t proof_runs;
    struct tune_proof_row proof[TUNE_ROWS];
    struct difference whole; /* what counts, all rows together */
    bool proven, winner_differs;
    char verdict[400];       /* one sentence */
    char profile[TUNE_PATH]; /* winner.ini; "" = none was written */
    char written[TUNE_PATH]; /* where --write put it; "" = nowhere */
};

/*
 * 0 when the search came to a result, be it that nothing is better (t->proven tells); -1 with *e
 * filled otherwise; t->nursery.stopped when a signal ended it: then it can be gone on with.
 */
int tune_run(struct tune *t, const struct tune_options *o, struct error *e);
void tune_free(struct tune *t);

/* ---- between the files of tune ---- */

void tune_note(struct tune *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tune_say(const struct tune *t, bool transient, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
uint64_t tune_spent(const struct tune *t);
void tune_path(const struct tune *t, const char *name, char *buf, size_t size);

/* tune_work.c: make the workload file, and learn its rows from a first bench of the default. */
int tune_work_make(struct tune *t, struct error *e);
int tune_work_learn(struct tune *t, const json_t *bench, struct error *e);

/* tune_trial.c: one bench under a profile ("none" or a path). 0, NO_TIME, or -1. */
int tune_trial_run(struct tune *t, const char *profile, struct tune_trial *out, struct error *e);
/* The search's own question: from what is loaded, or by a bench. */
int tune_measure(void *user, const struct candidate *c, unsigned nth, struct tune_trial *out,
                 struct error *e);
/* A command of ours to its end; *good: exit code 0. 0, or -1 with *e (stopped). until_ns:
 * monotonic. */
int tune_command(struct tune *t, char *const *argv, const char *out, const char *err,
                 uint64_t until_ns, bool *good, bool *late, struct error *e);
#define TUNE_ARGS 40
/* Arguments of a bench; points into t and buf. */
struct tune_args {
    char *argv[TUNE_ARGS];
    int count;
    char self[4096], workload[TUNE_PATH], number[4][16];
};
void tune_args_bench(const struct tune *t, const char *profile, struct tune_args *a);
void tune_args_add(struct tune_args *a, const char *word);

/* tune_state.c */
int tune_state_save(const struct tune *t, struct error *e);
int tune_state_load(struct tune *t, struct error *e);

/* tune_prove.c: default against winner in fresh runs. 0, or -1. */
int tune_prove(struct tune *t, struct error *e);
/* One recorded run of each, for report and compare. */
int tune_record(struct tune *t, struct error *e);

#define TUNE_MARK "; found by `ncclshim tune`" /* first line of what is written */
/* tune_write.c: winner.ini with its evidence. 0, or -1 with *e filled. */
int tune_write(struct tune *t, struct error *e);
/* What was written can be read by who will use it. */
int tune_profile_loads(const char *path, struct error *e);
/* tune_install.c: a copy where --write names it. 0, or -1 with *e filled. */
int tune_install(struct tune *t, struct error *e);
/* Sizes that a rule measured at `bytes` is written for. */
void tune_range(const struct tune_work *w, size_t class, uint64_t *least, uint64_t *most);

#endif
