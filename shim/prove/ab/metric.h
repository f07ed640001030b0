/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number that a program prints about itself (tokens/s): the first group of the last match of a
 * POSIX extended regular expression in its output; and what several such numbers tell.
 */
#ifndef NCCLSHIM_PROVE_METRIC_H
#define NCCLSHIM_PROVE_METRIC_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "shim/base/error.h"
#include "shim/stats/compare.h"

#define METRIC_LABEL 40

struct metric {
    regex_t re;
    bool lower;               /* less is better */
    char label[METRIC_LABEL]; /* "tok/s": what stands behind or before the group; or "metric" */
};

/* 0, or -1 with *e filled. Free with metric_free. */
int metric_init(struct metric *m, const char *regex, bool lower, struct error *e);
void metric_free(struct metric *m);

/* Its value in one line: the last match. Only positive numbers count: 1,234.5 as well. */
struct metric_value {
    double value;
    double step; /* of the last digit printed: 0.1 for 82.0 */
};
bool metric_in_line(const struct metric *m, const char *line, struct metric_value *out);
/* In a file. 0, or -1 with *e filled when there is none. */
int metric_in_file(const struct metric *m, const char *path, struct metric_value *out,
                   struct error *e);

/*
 * One side against the first, round by round: round i of one against round i of the other, so that
 * what changes from round to round falls out. `higher is better` decides what VERDICT_FASTER means:
 * better. Unknown with less than two rounds; honest with two or three, that is, wide.
 */
struct metric_test {
    struct difference difference;
    enum verdict verdict;
};
void metric_compare(const struct metric_value *first, const struct metric_value *other,
                    size_t rounds, double margin, struct metric_test *out);
/* Verdicts of `count` sides together: at most one false one in 20 comparisons. 0, -1 = memory. */
int metric_judge(struct metric_test *tests, size_t count, bool lower);

/* Geometric mean. */
double metric_mean(const struct metric_value *v, size_t n);

#endif
