/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a GPU's clock to its host's. Anchors say "between these two host times the GPU's clock read
 * this"; the tightest of the first and of the last ones make a straight line between them, because
 * the two clocks drift apart slowly.
 */
#ifndef NCCLSHIM_STATS_CLOCK_H
#define NCCLSHIM_STATS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "include/ncclshim/log.h"

struct clock_point {
    uint64_t gpu_ns;
    int64_t offset_ns; /* host - gpu */
    uint64_t error_ns; /* half the interval: the offset is known to within this */
};

struct clock {
    bool known;
    struct clock_point first, last; /* the same point when there is one anchor */
};

/* Take one more anchor, in any order. One whose interval runs backwards is left out. */
void clock_add(struct clock *c, const struct ncclshim_anchor *a);
/* Host time of a GPU time; the GPU time itself when no anchor is known. */
uint64_t clock_host(const struct clock *c, uint64_t gpu_ns);
/* How well that is known; UINT64_MAX without an anchor. */
uint64_t clock_error(const struct clock *c);

#endif
