/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/intervals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FINEST 32 /* blocks of the shortest length; halved once for the longer ones */
#define COARSEST 16
#define LEAST_CALLS 64
#define LEAST_BEYOND 16.0  /* calls on the thinner side of the quantile */
#define LEAST_IN_BLOCK 3.0 /* the same inside a block, where blocks are looked at alone */
#define RHO_BELIEVED 0.35  /* two standard errors of a correlation of 32 blocks */
#define CONFIDENCE 0.975   /* both ends: 95 % */
#define BLIND_DISPERSION 16.0

/* ---- one run --------------------------------------------------------------------------------- */

/* Value at a share between 0 and 1 of the sorted times, between neighbours by interpolation. */
static double value_at(const uint64_t *sorted, size_t n, double share)
{
    double at = share * (double)n - 0.5;
    size_t i;

    if (at <= 0)
        return (double)sorted[0];
    if (at >= (double)(n - 1))
        return (double)sorted[n - 1];
    i = (size_t)at;
    return (double)sorted[i] + (at - (double)i) * ((double)sorted[i + 1] - (double)sorted[i]);
}

/* Spread of the mean of n block means, as if the blocks were independent. */
static double error_of(const double *mean, unsigned n)
{
    double sum = 0, squares = 0;

    for (unsigned i = 0; i < n; i++)
        sum += mean[i];
    for (unsigned i = 0; i < n; i++)
        squares += (mean[i] - sum / n) * (mean[i] - sum / n);
    return sqrt(squares / (n - 1) / n);
}

/* Correlation of neighbouring blocks, less its bias. */
static double neighbours_alike(const double *mean, unsigned n)
{
    double sum = 0, squares = 0, products = 0;

    for (unsigned i = 0; i < n; i++)
        sum += mean[i];
    for (unsigned i = 0; i < n; i++) {
        double d = mean[i] - sum / n;
        squares += d * d;
        if (i)
            products += d * (mean[i - 1] - sum / n);
    }
    return squares > 0 ? products / squares + 1.0 / n : 0;
}

struct spread {
    double error, df;
};

static void widest(struct spread *s, double error, double df)
{
    if (error * student_quantile(CONFIDENCE, df) > s->error * student_quantile(CONFIDENCE, s->df)) {
        s->error = error;
        s->df = df;
    }
}

/*
 * Error of the share of calls above the quantile. Halving the number of blocks shows what shorter
 * blocks hide; blocks that still look like their neighbours tell of a drift longer than any block,
 * for which there are fewer independent pieces than blocks.
 */
static struct spread spread_of(double *mean)
{
    struct spread s = {.error = 0, .df = FINEST - 1};
    unsigned n = FINEST;

    for (;; n /= 2) {
        widest(&s, error_of(mean, n), n - 1);
        if (n == FINEST / 2) {
            double rho = neighbours_alike(mean, n);
            rho = rho > 0.9 ? 0.9 : rho;
            if (rho > RHO_BELIEVED) {
                double pieces = n * (1 - rho) / (1 + rho);
                widest(&s, error_of(mean, n) * sqrt((1 + rho) / (1 - rho)),
                       pieces > 4 ? pieces - 1 : 3);
            }
        }
        if (n == COARSEST)
            return s;
        for (unsigned i = 0; i < n / 2; i++)
            mean[i] = (mean[2 * i] + mean[2 * i + 1]) / 2;
    }
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Shares of calls above the value in each block; a call right at it counts as half. */
static void shares_above(const uint64_t *in_time, size_t n, double value, double *mean)
{
    for (unsigned b = 0; b < FINEST; b++) {
        size_t from = n * b / FINEST, to = n * (b + 1) / FINEST;
        double above = 0;
        for (size_t i = from; i < to; i++)
            above += (double)in_time[i] > value ? 1 : (double)in_time[i] < value ? 0 : 0.5;
        mean[b] = above / (double)(to - from);
    }
}

/*
 * Where a drift is larger than the noise, whole blocks lie above or below the quantile, and their
 * shares say nothing any more about how far. Then the blocks' own quantiles are what varies.
 */
static struct estimate from_block_quantiles(const uint64_t *in_time, size_t n, double q,
                                            double log_value)
{
    struct estimate e = {.n = n};
    double mean[FINEST];
    uint64_t *block = malloc((n / FINEST + 1) * sizeof(*block));
    struct spread s;

    if (!block || (double)(n / FINEST) * (q < 0.5 ? q : 1 - q) < LEAST_IN_BLOCK) {
        free(block);
        return e;
    }
    for (unsigned b = 0; b < FINEST; b++) {
        size_t from = n * b / FINEST, count = n * (b + 1) / FINEST - from;
        memcpy(block, in_time + from, count * sizeof(*block));
        qsort(block, count, sizeof(*block), by_size);
        mean[b] = log(fmax(value_at(block, count, q), 1));
    }
    free(block);
    s = spread_of(mean);
    e.known = true;
    e.log_ns = log_value;
    e.se = s.error;
    e.df = s.df;
    return e;
}

struct estimate estimate_quantile(const uint64_t *in_time, const uint64_t *sorted, size_t n,
                                  double q)
{
    struct estimate e = {.n = n};
    double mean[FINEST], value, least, t, low, high;
    struct spread s;

    if (n < LEAST_CALLS || (double)n * (q < 0.5 ? q : 1 - q) < LEAST_BEYOND)
        return e;
    value = value_at(sorted, n, q);
    if (!(value > 0))
        return e;
    shares_above(in_time, n, value, mean);
    s = spread_of(mean);
    least = sqrt(q * (1 - q) / (double)n); /* never surer than independent calls would be */
    if (s.error < least)
        s.error = least;
    t = student_quantile(CONFIDENCE, s.df);
    low = q - t * s.error;
    high = q + t * s.error;
    if (low < 0.5 / (double)n || high > 1 - 0.5 / (double)n)
        return from_block_quantiles(in_time, n, q, log(value));
    e.known = true;
    e.log_ns = log(value);
    e.df = s.df;
    e.se = (log(value_at(sorted, n, high)) - log(value_at(sorted, n, low))) / (2 * t);
    return e;
}

/* ---- histograms ------------------------------------------------------------------------------ */

double hist_quantile_fine(const struct hist *h, double q)
{
    double want = q * (double)h->count, seen = 0;

    for (unsigned o = 0; o < HIST_OCTAVES; o++) {
        if (!h->octave[o])
            continue;
        for (unsigned b = 0; b < HIST_BUCKETS; b++) {
            double here = h->octave[o][b];
            uint64_t low, high;
            if (here > 0 && seen + here >= want) {
                double value;
                hist_bucket_range(o, b, &low, &high);
                value = (double)low + (double)(high - low) * (want - seen) / here;
                return value < (double)h->min   ? (double)h->min
                       : value > (double)h->max ? (double)h->max
                                                : value;
            }
            seen += here;
        }
    }
    return (double)h->max;
}

struct estimate estimate_from_hist(const struct hist *h, double q)
{
    struct estimate e = {.n = h->count, .df = 7};
    double error, t = student_quantile(CONFIDENCE, e.df), value;

    if (h->count < LEAST_CALLS * BLIND_DISPERSION ||
        (double)h->count * (1 - q) < LEAST_BEYOND * BLIND_DISPERSION)
        return e;
    error = sqrt(BLIND_DISPERSION * q * (1 - q) / (double)h->count);
    value = hist_quantile_fine(h, q);
    if (!(value > 0) || q - t * error <= 0 || q + t * error >= 1)
        return e;
    e.known = true;
    e.log_ns = log(value);
    e.se = (log(hist_quantile_fine(h, q + t * error)) - log(hist_quantile_fine(h, q - t * error))) /
           (2 * t);
    return e;
}

struct estimate estimate_moved(struct estimate part, const struct hist *h, double q)
{
    double value = hist_quantile_fine(h, q), moved;

    if (!part.known || !(value > 0))
        return part;
    moved = log(value) - part.log_ns;
    part.log_ns = log(value);
    part.se = sqrt(part.se * part.se + moved * moved / 4);
    part.n = h->count;
    return part;
}

struct estimate estimate_of_runs(const struct estimate *runs, size_t n)
{
    struct estimate e = {.known = n > 0};
    double within = 0, between = 0, df = INFINITY;

    for (size_t i = 0; i < n; i++) {
        e.known &= runs[i].known;
        e.n += runs[i].n;
        e.log_ns += runs[i].log_ns / (double)n;
        within += runs[i].se * runs[i].se / (double)(n * n);
        df = runs[i].df < df ? runs[i].df : df;
    }
    if (!e.known || n == 1)
        return n == 1 ? runs[0] : e;
    for (size_t i = 0; i < n; i++)
        between += (runs[i].log_ns - e.log_ns) * (runs[i].log_ns - e.log_ns);
    between /= (double)((n - 1) * n);
    e.se = sqrt(between > within ? between : within);
    e.df = between > within ? (double)(n - 1) : df;
    return e;
}

/* ---- two sides ------------------------------------------------------------------------------- */

struct difference difference_of(const struct estimate *a, const struct estimate *b, double margin)
{
    struct difference d = {.p = 1};
    double va = a->se * a->se, vb = b->se * b->se, se = sqrt(va + vb), df, t, beyond;
    double delta = b->log_ns - a->log_ns;

    if (!a->known || !b->known)
        return d;
    d.known = true;
    d.change = expm1(delta);
    if (!(se > 0)) {
        d.low = d.high = d.change;
        d.p = fabs(delta) > log1p(margin) ? 0 : 1;
        return d;
    }
    /* Welch's degrees of freedom */
    df = (va + vb) * (va + vb) / (va * va / a->df + vb * vb / b->df);
    t = student_quantile(CONFIDENCE, df);
    d.low = expm1(delta - t * se);
    d.high = expm1(delta + t * se);
    beyond = fabs(delta) - log1p(margin);
    d.p = beyond > 0 ? 2 * (1 - student_cdf(beyond / se, df)) : 1;
    return d;
}

struct ranked {
    double p;
    size_t index;
};

static int by_p(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    return x->p < y->p ? -1 : x->p > y->p;
}

int holm(const double *p, size_t n, double alpha, bool *accepted)
{
    struct ranked *order = malloc((n + 1) * sizeof(*order));

    if (!order)
        return -1;
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct ranked){p[i], i};
        accepted[i] = false;
    }
    qsort(order, n, sizeof(*order), by_p);
    for (size_t i = 0; i < n && order[i].p <= alpha / (double)(n - i); i++)
        accepted[order[i].index] = true;
    free(order);
    return 0;
}
