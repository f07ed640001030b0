/* SPDX-License-Identifier: Apache-2.0 */
/* The times of each row's calls in order of time: what is on record, thinned evenly when it is
 * much. */
#ifndef NCCLSHIM_STATS_SAMPLES_H
#define NCCLSHIM_STATS_SAMPLES_H

#include "shim/stats/run.h"

/* Of each process at most about this many; whole replays are kept or left out. */
#define SAMPLES_PER_PROCESS 262144u

struct sample {
    uint64_t start_ns, ns;
};

struct row_samples {
    struct sample *samples; /* by start */
    size_t count;
};

/* One entry a row of the run. 0, or -1 with *e filled. */
int samples_gather(const struct run *r, struct row_samples **out, struct error *e);
void samples_free(struct row_samples *s, const struct run *r);

#endif
