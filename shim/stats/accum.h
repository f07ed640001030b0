/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of all records of one process, however many there were: per call site a histogram,
 * per captured graph the forward passes. Fed record by record, by the collector while the server
 * runs and by `report` when it reads a bare log; written to disk as PROCESS.hist (histfile.h).
 *
 * Times are as stamped (end - start), floor included; who prints subtracts or tells the floor.
 */
#ifndef NCCLSHIM_STATS_ACCUM_H
#define NCCLSHIM_STATS_ACCUM_H

#include <stddef.h>

#include "include/ncclshim/log.h"
#include "shim/stats/hist.h"
#include "shim/stats/map.h"

struct site_accum {
    struct hist ns; /* end - start of each run */
    /* this start - end of the record before it on the same ring and communicator */
    struct hist gap_ns;
    uint64_t first_start_ns, last_end_ns;
    uint64_t runs_max; /* largest run number seen + 1: runs the GPU made, also those we lost */
};

/*
 * One graph capture: its replays are forward passes. The calls of one replay carry the same run
 * number; a replay that not all of its timed calls reported (lost records, a killed process, a
 * branch of a conditional node that was not taken) is incomplete and enters no histogram.
 */
struct pass_accum {
    uint32_t capture; /* number of the capture */
    uint32_t ring;
    uint32_t calls;        /* call sites of the capture that are timed */
    struct hist pass_ns;   /* first start to last end of one replay */
    struct hist comm_ns;   /* sum of the calls of one replay */
    struct hist period_ns; /* start of one replay to start of the next, both complete */
    /* the replay under way */
    uint32_t run;
    uint32_t seen;
    uint64_t start_ns, end_ns, sum_ns, last_start_ns;
    uint64_t incomplete; /* replays closed before all their calls were seen */
};

struct accum {
    struct site_accum *sites; /* by site number; room for site_cap */
    uint32_t site_cap;
    struct pass_accum *passes; /* sorted by (ring, capture) */
    uint32_t pass_count, pass_cap;
    uint64_t records;       /* fed */
    uint64_t bad;           /* records that named no site, or ended before they started */
    uint64_t lost, torn;    /* from the ring cursors */
    struct map last_end;    /* ring and communicator -> end of its last record, for gaps */
    struct map calls;       /* capture -> its timed call sites */
    uint32_t calls_counted; /* site_count when `calls` was filled; UINT32_MAX = fill it anew */
};

int accum_init(struct accum *a);
void accum_free(struct accum *a);
/*
 * Feed records of one ring, in ring order. `sites`/`site_count` is the site table of the log (it
 * may have grown since the last call). 0, or -1 when memory is out.
 */
int accum_feed(struct accum *a, uint32_t ring, const struct ncclshim_record *r, size_t n,
               const struct ncclshim_site *sites, uint32_t site_count);
/* Make room for site number `site`, as feeding does by itself. 0, or -1 when memory is out. */
int accum_reserve(struct accum *a, uint32_t site);
/*
 * Records of this ring were lost just here: the replay under way can't be completed, and the time
 * since the last record is no gap.
 */
void accum_break(struct accum *a, uint32_t ring);
/* Close the replays under way (the end of a run). */
void accum_finish(struct accum *a);

#endif
