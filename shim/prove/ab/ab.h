/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command under several profiles in turns, and a comparison: what `ncclshim ab` does. Each turn
 * is a run of its own (`ncclshim run` in a process of its own, with a run folder of its own).
 */
#ifndef NCCLSHIM_PROVE_AB_H
#define NCCLSHIM_PROVE_AB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/error.h"
#include "shim/prove/ab/metric.h"
#include "shim/prove/run/runfolder.h"
#include "shim/stats/compare.h"

#define AB_SIDES 8
#define AB_ROUNDS 1000
#define AB_PATH 4200

struct ab_options {
    const char *profiles[AB_SIDES];
    size_t sides;
    unsigned rounds;
    const char *metric; /* regular expressions; NULL = none */
    bool lower;
    const char *ready, *load; /* load: for the shell */
    uint32_t timeout_s;       /* of one turn */
    uint32_t grace_s;         /* between SIGINT, SIGTERM and SIGKILL */
    double margin;
    bool keep_all;
    const char *out_dir; /* NULL = a new one below ncclshim-runs */
    char *const *command;
    void (*progress)(void *user, const char *line); /* NULL = silent */
    void *user;
};
#define AB_OPTIONS                                                              \
    {                                                                           \
        .rounds = 3, .timeout_s = 1800, .grace_s = 10, .margin = COMPARE_MARGIN \
    }

struct ab_turn {
    size_t side, round;
    char run_dir[AB_PATH], output[AB_PATH], load[AB_PATH]; /* load: "" when there was none */
    struct metric_value metric;
    uint64_t took_ns;
    bool done;
};

struct ab_result {
    struct ab_options o;
    struct runfolder folder;
    char labels[AB_SIDES][64];
    struct metric metric;
    bool has_metric;
    struct ab_turn *turns; /* in the order of time */
    size_t turn_count;
    struct metric_value *values[AB_SIDES]; /* by round */
    struct metric_test tests[AB_SIDES];    /* the first is not used */
    struct compare_side compared[AB_SIDES];
    struct compare calls;
    bool has_calls, simulated;
    char no_calls[768]; /* why calls could not be compared; "" = they were */
    int stopped;        /* by this signal; 0 = no */
};

/*
 * Take all turns and compare. 0, or -1 with *e filled: a turn failed, took too long, or could not
 * be started; what was recorded until then stays in the folder. ab_free always.
 */
int ab_run(struct ab_result *r, const struct ab_options *o, struct error *e);
void ab_free(struct ab_result *r);

/* The word on a side: the metric's where there is one, since that is what counts; else the calls'.
 */
enum verdict ab_verdict(const struct ab_result *r, size_t side);
/* Shown to be worse by more than `share`, in the metric or in any call. */
bool ab_slower_by(const struct ab_result *r, size_t side, double share);

/* ab_turn.c: one turn. 0, or -1 with *e filled. */
struct nursery;
struct ready;
int ab_take_turn(struct ab_result *r, struct nursery *n, struct ready *ready, size_t turn,
                 struct error *e);

#endif
