/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting and transfer told apart. A call that all ranks must enter before any can leave
 * (all_reduce, all_gather, reduce_scatter, all_to_all) is lined up across the ranks of its
 * communicator: the last rank's start divides each rank's time into waiting for peers and transfer.
 *
 * The ranks' GPU clocks are brought to the host's clock by anchors. The calls themselves say more:
 * no rank can leave before every rank has come. Where the anchors contradict that, the clock is
 * shifted by as little as it takes; where no shift helps, the calls can't be lined up, and that is
 * said. Ranks on several hosts are lined up by the calls alone.
 */
#ifndef NCCLSHIM_STATS_WAIT_H
#define NCCLSHIM_STATS_WAIT_H

#include "shim/stats/run.h"

#define WAIT_NEWEST 65536u /* records of each ring that are looked at */

struct arrival {
    uint64_t last;       /* calls in which this rank came last, by more than the clocks' error */
    uint64_t wait_ns;    /* sum of its waiting */
    uint64_t busy_ns;    /* sum of its time in the calls */
    struct hist late_ns; /* how long after the first rank it came */
};

struct arrivals {
    char why_not[128];       /* "" = lined up; else the reason why nothing follows */
    uint64_t calls;          /* lined up */
    uint64_t decided;        /* those with one rank clearly last */
    uint64_t clock_error_ns; /* the ranks' clocks agree to within this */
    struct arrival *ranks;   /* by member of the communicator */
};

/*
 * Measure every communicator of the run, newest records only, and fill in the rows' `wait`. *out
 * has one entry a communicator. 0, or -1 with *e filled.
 */
int wait_measure(struct run *r, struct arrivals **out, struct error *e);
void wait_free(struct arrivals *a, const struct run *r);

#endif
