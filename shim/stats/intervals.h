/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well a quantile of a run is known. The calls of a run are not independent: neighbours are
 * alike, clocks drift, disturbances come in bursts. So the spread is taken from blocks of the run
 * in the order of time, at several block lengths, and the widest answer counts.
 *
 * The method: for the quantile q, each call is either above it or not. The share of such calls in a
 * block varies from block to block; that variance, not the number of calls, gives the interval of
 * the share, and the order statistics at its ends give the interval of the quantile. No shape of
 * the distribution is assumed, so heavy tails do no harm.
 */
#ifndef NCCLSHIM_STATS_INTERVALS_H
#define NCCLSHIM_STATS_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/stats/hist.h"

/* One quantile of one run (or of several), on the logarithmic scale, where changes are ratios. */
struct estimate {
    bool known;
    double log_ns; /* natural logarithm of the quantile */
    double se;     /* its standard error */
    double df;     /* degrees of freedom behind that error */
    uint64_t n;    /* calls it rests on */
};

/* Student's t: probability of at most t, and the inverse. df may be a fraction. */
double student_cdf(double t, double df);
double student_quantile(double p, double df);

/*
 * The quantile q of n times in nanoseconds, in order of time. `sorted` is the same in order of
 * size. Not known with fewer than 64 calls, or fewer than 16 above (or below) the quantile.
 */
struct estimate estimate_quantile(const uint64_t *in_time, const uint64_t *sorted, size_t n,
                                  double q);

/*
 * The same from a histogram alone, which has lost the order of time: as wide as if only one call in
 * 16 told anything new.
 */
struct estimate estimate_from_hist(const struct hist *h, double q);

/* A whole-run quantile whose spread comes from its newest part: moved to h's, and widened by half
 * of the distance. */
struct estimate estimate_moved(struct estimate part, const struct hist *h, double q);

/* Several runs of one side: the runs are the units where they differ more than each is uncertain.
 */
struct estimate estimate_of_runs(const struct estimate *runs, size_t n);

/* Quantile with linear interpolation inside the bucket. */
double hist_quantile_fine(const struct hist *h, double q);

struct difference {
    bool known;
    double change;    /* b / a - 1 */
    double low, high; /* 95 % interval of it */
    double p;         /* of a difference as large as this, when the truth is within the margin */
};

/* b against a. margin: a change (0.01 = 1 %) that is not called a difference. */
struct difference difference_of(const struct estimate *a, const struct estimate *b, double margin);

/* Holm's step-down over n p-values: accepted[i] = the i-th stands at the level alpha. 0, -1 =
 * memory. */
int holm(const double *p, size_t n, double alpha, bool *accepted);

#endif
