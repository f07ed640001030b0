/* SPDX-License-Identifier: Apache-2.0 */
/* Plots as SVG inside an HTML page. Colours come from the page's style (--a, --b, --c). */
#ifndef NCCLSHIM_SHOW_PLOT_H
#define NCCLSHIM_SHOW_PLOT_H

#include "shim/show/sink.h"
#include "shim/stats/hist.h"

/* Times from `low` to `high`, whole steps of 1, 2, 5 a decade around what was given. */
struct log_range {
    uint64_t low, high;
};
struct log_range log_range_of(uint64_t low, uint64_t high);

/*
 * Distributions over each other, one colour each (--a, --b, --c, then again), both axes
 * logarithmic; the range is given so that several plots can be read side by side. Marks p50 and
 * p99.
 */
void plot_distributions(struct sink *s, const struct hist *const *hists, unsigned count,
                        struct log_range x);

/* One bin of a time line. */
struct plot_bin {
    uint64_t low_ns, middle_ns, high_ns; /* 10th, 50th, 99th percentile; middle 0 = nothing */
};
/* The bins cover span_ns from left to right. */
void plot_timeline(struct sink *s, const struct plot_bin *bins, unsigned count, uint64_t span_ns);

/* One bar a rank: waiting, then transfer. */
struct plot_rank {
    int32_t rank;
    uint64_t wait_ns, transfer_ns; /* means of one call */
};
void plot_ranks(struct sink *s, const struct plot_rank *ranks, unsigned count);

/* Changes with their intervals; shares, 0.1 = 10 %. */
struct plot_change {
    const char *label;
    double change, low, high;
    int verdict; /* < 0 faster, > 0 slower, 0 none */
};
void plot_changes(struct sink *s, const struct plot_change *changes, unsigned count);

#endif
