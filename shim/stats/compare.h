/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs against each other: the first side is what the others are measured by. Rows are matched by
 * what the program asked for (communicator, operation, size, type, captured or eager), not by what
 * NCCL chose, since that is often the point.
 */
#ifndef NCCLSHIM_STATS_COMPARE_H
#define NCCLSHIM_STATS_COMPARE_H

#include "shim/stats/intervals.h"
#include "shim/stats/run.h"

/*
 * A change of up to this is never called a difference when a side is one run: two starts of one
 * server with the same settings were seen to differ by 1 to 3 % (docs/compare.md). With several
 * runs a side their own spread takes its place.
 */
#define COMPARE_MARGIN 0.0075
/*
 * The chance of any false verdict in one comparison is at most the sum of these. Medians get most
 * of it: they are what one asks for, and p99s are rarely known well enough anyway.
 */
#define COMPARE_ALPHA_MEDIAN 0.04
#define COMPARE_ALPHA_P99 0.01

/* Several runs of the same settings; not owned. */
struct compare_side {
    const char *label;
    struct run **runs;
    size_t run_count;
};

enum verdict { VERDICT_NONE, VERDICT_FASTER, VERDICT_SLOWER, VERDICT_MIXED, VERDICT_UNKNOWN };

/* What one side has for a row. */
struct compare_value {
    uint64_t issued, timed, total_ns;
    struct hist ns;
    struct estimate median, p99;
    uint8_t algo, proto, channels; /* of most calls */
    uint64_t choice_calls;
    /* one for each run, while it is worked out */
    struct estimate *medians, *p99s;
};

struct compare_test {
    struct difference difference;
    enum verdict verdict; /* NONE = no difference shown; UNKNOWN = too few calls to tell */
};

struct compare_row {
    char comm[80];
    bool named;
    int32_t ranks;
    uint8_t op, dtype;
    bool captured;
    uint64_t bytes;
    double share;                      /* of the first side's communication time */
    struct compare_value *values;      /* by side */
    struct compare_test *median, *p99; /* by side; the first is not used */
};

/* One side against the first, all rows together. */
struct compare_whole {
    enum verdict verdict;
    uint32_t faster, slower, none, unknown; /* rows by their median */
    uint32_t p99_faster, p99_slower;
    struct difference time; /* communication time for the first side's calls */
};

struct compare {
    const struct compare_side *sides; /* not owned */
    size_t side_count;
    double margin;            /* as given to compare_make */
    struct compare_row *rows; /* largest share first */
    size_t row_count;
    struct compare_whole *whole; /* by side; the first is not used */
};

/* 0, or -1 with *e filled. */
int compare_make(const struct compare_side *sides, size_t count, double margin, struct compare *c,
                 struct error *e);
void compare_free(struct compare *c);

/* Shown to be slower by more than `share` (0.02 = 2 %) in the median of any row. */
bool compare_slower_by(const struct compare *c, size_t side, double share);
const char *verdict_name(enum verdict v);
/* The same for programs: "no_difference_shown", ... */
const char *verdict_key(enum verdict v);

#endif
