/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/hist.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void hist_init(struct hist *h)
{
    memset(h, 0, sizeof(*h));
    h->min = UINT64_MAX;
}

void hist_free(struct hist *h)
{
    for (unsigned o = 0; o < HIST_OCTAVES; o++)
        if (h->octave[o]) /* most are empty, and there are thousands of histograms */
            free(h->octave[o]);
    hist_init(h);
}

/*
 * Octave o holds [2^o, 2^(o+1)), the first one 0 as well. Below 64 an octave has fewer values than
 * buckets, so each value has one of its own.
 */
unsigned hist_octave_of(uint64_t ns, unsigned *bucket)
{
    unsigned o;

    if (ns < 2) {
        *bucket = (unsigned)ns * (HIST_BUCKETS / 2);
        return 0;
    }
    o = 63u - (unsigned)__builtin_clzll(ns);
    if (o >= HIST_OCTAVES) {
        *bucket = HIST_BUCKETS - 1;
        return HIST_OCTAVES - 1;
    }
    *bucket = (unsigned)(o < 6 ? ns << (6 - o) : ns >> (o - 6)) & (HIST_BUCKETS - 1);
    return o;
}

/* Lowest value of a bucket that several share; where values have one each, the next one up. */
static uint64_t bucket_low(unsigned octave, unsigned bucket)
{
    if (octave == 0)
        return (bucket + HIST_BUCKETS / 2 - 1) / (HIST_BUCKETS / 2);
    if (octave < 6)
        return (1ull << octave) + ((bucket + (1ull << (6 - octave)) - 1) >> (6 - octave));
    return (uint64_t)(HIST_BUCKETS + bucket) << (octave - 6);
}

void hist_bucket_range(unsigned octave, unsigned bucket, uint64_t *low, uint64_t *high)
{
    *low = bucket_low(octave, bucket);
    if (octave == HIST_OCTAVES - 1 && bucket == HIST_BUCKETS - 1)
        *high = UINT64_MAX;
    else
        *high = bucket_low(octave, bucket + 1);
}

/* A bucket that is full (days of one steady call): halve all, their proportions stay. */
static void halve(struct hist *h)
{
    for (unsigned o = 0; o < HIST_OCTAVES; o++)
        for (unsigned b = 0; h->octave[o] && b < HIST_BUCKETS; b++)
            h->octave[o][b] -= h->octave[o][b] / 2;
}

static bool add_to_bucket(struct hist *h, unsigned o, unsigned b, uint32_t n)
{
    if (!h->octave[o] && !(h->octave[o] = calloc(HIST_BUCKETS, sizeof(uint32_t))))
        return false;
    while (h->octave[o][b] > UINT32_MAX - n) {
        halve(h);
        n -= n / 2;
    }
    h->octave[o][b] += n;
    return true;
}

bool hist_add(struct hist *h, uint64_t ns)
{
    unsigned bucket, octave = hist_octave_of(ns, &bucket);
    uint32_t *counts = h->octave[octave];

    h->count++;
    h->sum += ns;
    if (ns < h->min)
        h->min = ns;
    if (ns > h->max)
        h->max = ns;
    if (__builtin_expect(counts && counts[bucket] != UINT32_MAX, 1)) {
        counts[bucket]++;
        return true;
    }
    return add_to_bucket(h, octave, bucket, 1);
}

bool hist_merge(struct hist *into, const struct hist *from)
{
    bool ok = true;

    into->count += from->count;
    into->sum += from->sum;
    if (from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
    for (unsigned o = 0; o < HIST_OCTAVES; o++)
        for (unsigned b = 0; from->octave[o] && b < HIST_BUCKETS; b++)
            if (from->octave[o][b])
                ok = add_to_bucket(into, o, b, from->octave[o][b]) && ok;
    return ok;
}

/* What the buckets hold in all: less than count after halve(), or when memory was out. */
static uint64_t bucket_sum(const struct hist *h)
{
    uint64_t sum = 0;

    for (unsigned o = 0; o < HIST_OCTAVES; o++)
        for (unsigned b = 0; h->octave[o] && b < HIST_BUCKETS; b++)
            sum += h->octave[o][b];
    return sum;
}

/* The middle of a bucket, never outside of what was really met. */
static uint64_t value_of(const struct hist *h, unsigned o, unsigned b)
{
    uint64_t low, high, middle;

    hist_bucket_range(o, b, &low, &high);
    middle = low + (high - low) / 2;
    if (middle < h->min)
        return h->min;
    return middle > h->max ? h->max : middle;
}

uint64_t hist_quantile(const struct hist *h, double q)
{
    uint64_t total = bucket_sum(h), rank, below = 0;

    if (h->count == 0)
        return 0;
    if (!(q > 0))
        return h->min;
    if (q >= 1 || total == 0)
        return h->max;
    rank = (uint64_t)ceil(q * (double)total);
    for (unsigned o = 0; o < HIST_OCTAVES; o++)
        for (unsigned b = 0; h->octave[o] && b < HIST_BUCKETS; b++) {
            below += h->octave[o][b];
            if (below >= rank)
                return value_of(h, o, b);
        }
    return h->max;
}

double hist_mean(const struct hist *h)
{
    return h->count ? (double)h->sum / (double)h->count : 0.0;
}
