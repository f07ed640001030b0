/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/bench/bench_ci.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/*
 * The number of values below the median is binomial with one half. The largest r for which fewer
 * than r + 1 ... i.e. P(X <= r - 1) stays within 2.5 % at each end.
 */
size_t bench_ci_rank(size_t count)
{
    double log_half = (double)count * log(0.5), below = 0;
    size_t r;

    for (r = 0; r < count / 2; r++) {
        below += exp(lgamma((double)count + 1) - lgamma((double)r + 1) -
                     lgamma((double)(count - r) + 1) + log_half);
        if (below > 0.025)
            break;
    }
    return r ? r - 1 : 0;
}

struct bench_ci bench_ci_of(const double *values, size_t count)
{
    struct bench_ci ci = {0, 0, 0};
    double *v = count ? malloc(count * sizeof(*v)) : NULL;
    size_t r;

    if (!v)
        return ci;
    memcpy(v, values, count * sizeof(*v));
    qsort(v, count, sizeof(*v), by_value);
    r = bench_ci_rank(count);
    ci.median = (v[(count - 1) / 2] + v[count / 2]) / 2;
    ci.low = v[r];
    ci.high = v[count - 1 - r];
    free(v);
    return ci;
}

double bench_quantile(double *values, size_t count, double q)
{
    size_t at;

    if (!count)
        return 0;
    qsort(values, count, sizeof(*values), by_value);
    at = (size_t)ceil(q * (double)count);
    return values[at ? (at > count ? count : at) - 1 : 0];
}
