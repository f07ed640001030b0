/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The median of a sample and an interval for it that assumes no distribution: two of the sample's
 * own values (order statistics), the innermost pair that holds the true median with 95 %. Fewer
 * than six values can't give that: then it is their smallest and largest.
 */
#ifndef NCCLSHIM_PROVE_BENCH_CI_H
#define NCCLSHIM_PROVE_BENCH_CI_H

#include <stddef.h>

struct bench_ci {
    double median, low, high;
};

/* Sorts a copy. All 0 for an empty sample, and where memory is out. */
struct bench_ci bench_ci_of(const double *values, size_t count);
/* How many values from each end the interval leaves out. */
size_t bench_ci_rank(size_t count);
/* q in 0..1 by nearest rank; sorts the values given. */
double bench_quantile(double *values, size_t count, double q);

#endif
