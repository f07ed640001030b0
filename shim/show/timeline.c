/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "shim/show/trace.h"

struct pass {
    uint64_t start_ns, dur_ns;
};

/* At most this many passes are kept; beyond, every second one is dropped, again and again. */
#define PASSES_KEPT 200000u

struct passes {
    struct pass *items;
    size_t count;
    uint64_t seen, every;
};

static void keep(struct passes *p, const struct trace_event *e)
{
    if (p->seen++ % p->every)
        return;
    if (p->count == PASSES_KEPT) {
        for (size_t i = 0; i < PASSES_KEPT / 2; i++)
            p->items[i] = p->items[2 * i];
        p->count = PASSES_KEPT / 2;
        p->every *= 2;
    }
    p->items[p->count++] = (struct pass){e->start_ns, e->dur_ns};
}

static int fill(struct timeline *t, const struct passes *p)
{
    struct hist *bins = calloc(TIMELINE_BINS, sizeof(*bins));
    uint64_t first = UINT64_MAX, last = 0;
    int rc = bins ? 0 : -1;

    for (size_t i = 0; i < p->count; i++) {
        first = p->items[i].start_ns < first ? p->items[i].start_ns : first;
        last = p->items[i].start_ns > last ? p->items[i].start_ns : last;
    }
    t->span_ns = p->count ? last - first : 0;
    for (unsigned i = 0; bins && i < TIMELINE_BINS; i++)
        hist_init(&bins[i]);
    for (size_t i = 0; i < p->count && rc == 0; i++) {
        double share = t->span_ns ? (double)(p->items[i].start_ns - first) / (double)t->span_ns : 0;
        unsigned bin = (unsigned)(share * TIMELINE_BINS);
        if (!hist_add(&bins[bin < TIMELINE_BINS ? bin : TIMELINE_BINS - 1], p->items[i].dur_ns))
            rc = -1;
    }
    for (unsigned i = 0; bins && i < TIMELINE_BINS; i++) {
        if (bins[i].count)
            t->bins[i] =
                (struct plot_bin){hist_quantile(&bins[i], 0.1), hist_quantile(&bins[i], 0.5),
                                  hist_quantile(&bins[i], 0.99)};
        hist_free(&bins[i]);
    }
    free(bins);
    return rc;
}

int timeline_make(const struct run *r, struct timeline *t, struct error *e)
{
    struct passes p = {malloc(PASSES_KEPT * sizeof(*p.items)), 0, 0, 1};
    struct trace_event event;
    struct trace *trace;
    int rc;

    memset(t, 0, sizeof(*t));
    if (!p.items)
        return error_set(e, r->path, 0, "out of memory");
    if (trace_open(r, &trace, e) < 0) {
        free(p.items);
        return -1;
    }
    while ((rc = trace_next(trace, &event, e)) > 0)
        if (event.site == TRACE_PASS && event.whole)
            keep(&p, &event);
    trace_close(trace);
    t->passes = p.seen;
    if (rc == 0 && fill(t, &p) < 0)
        rc = error_set(e, r->path, 0, "out of memory");
    free(p.items);
    return rc;
}
