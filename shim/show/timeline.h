/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes over the time of a run, in bins, from the records that are there. */
#ifndef NCCLSHIM_SHOW_TIMELINE_H
#define NCCLSHIM_SHOW_TIMELINE_H

#include "shim/show/plot.h"
#include "shim/stats/run.h"

#define TIMELINE_BINS 160u

struct timeline {
    struct plot_bin bins[TIMELINE_BINS];
    uint64_t span_ns;
    uint64_t passes;
};

/* All ranks together. 0, or -1 with *e filled. */
int timeline_make(const struct run *r, struct timeline *t, struct error *e);

#endif
