/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of nanoseconds with a bounded relative error: 64 buckets to each power of two, so a
 * value read back is within 0.8 % of the value put in (exact below 64). Memory is taken per power
 * of two that was really met (256 bytes each), so that ten thousand call sites stay small.
 */
#ifndef NCCLSHIM_STATS_HIST_H
#define NCCLSHIM_STATS_HIST_H

#include <stdbool.h>
#include <stdint.h>

#define HIST_BUCKETS 64
#define HIST_OCTAVES 48 /* values above 2^48 ns (3 days) are counted in the last bucket */

struct hist {
    uint64_t count;
    uint64_t sum; /* exact */
    uint64_t min; /* exact; UINT64_MAX when empty */
    uint64_t max; /* exact */
    uint32_t *octave[HIST_OCTAVES];
};

void hist_init(struct hist *h);
void hist_free(struct hist *h);
/* false when memory is out: the value is then in count, sum, min and max alone. */
bool hist_add(struct hist *h, uint64_t ns);
bool hist_merge(struct hist *into, const struct hist *from);
/* q in 0..1 (0.5 = median, by nearest rank); 0 for an empty histogram. */
uint64_t hist_quantile(const struct hist *h, double q);
double hist_mean(const struct hist *h);

/* Buckets for plots and for writing to disk. Bucket b of octave o covers [low, high). */
unsigned hist_octave_of(uint64_t ns, unsigned *bucket);
void hist_bucket_range(unsigned octave, unsigned bucket, uint64_t *low, uint64_t *high);

#endif
