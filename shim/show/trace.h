/* SPDX-License-Identifier: Apache-2.0 */
/* The calls and passes of all processes of a run, merged in order of time. */
#ifndef NCCLSHIM_SHOW_TRACE_H
#define NCCLSHIM_SHOW_TRACE_H

#include "shim/stats/records.h"
#include "shim/stats/run.h"

#define TRACE_WINDOW 65536u /* events held back to put them in order */
#define TRACE_PASS UINT32_MAX
#define TRACE_OVERLAP \
    500000ull /* added to a track for calls that lie over the one before (two streams) */
#define TRACE_PASSES UINT32_MAX /* trace_track of a ring's passes */

struct trace_event {
    uint64_t start_ns, dur_ns; /* since the trace's zero */
    uint64_t track;
    uint32_t process;
    uint32_t site; /* TRACE_PASS = a pass */
    uint32_t run;
    uint32_t capture, calls; /* of a pass */
    bool whole;              /* the pass has all its calls */
};

/* The replay under way on one ring. */
struct trace_replay {
    bool open;
    uint32_t capture, run, seen, calls;
    uint64_t start_ns, end_ns;
};

/* One process being read. */
struct trace_source {
    const struct run_process *p;
    struct records *records;
    const struct ncclshim_record *batch;
    long count, at;
    uint32_t ring;
    const struct run_gpu *gpu;
    char **site_text;             /* by site: name, category and arguments up to the run's number */
    uint64_t *busy_until;         /* by communicator: end of the last call on its track */
    struct trace_replay *replays; /* by place of the ring */
};

struct trace {
    const struct run *r;
    uint64_t zero_ns;
    uint64_t written; /* for whoever writes it down */
    struct trace_source *sources;
    struct trace_event *heap;
    size_t heap_count;
};

int trace_open(const struct run *r, struct trace **out, struct error *e);
/* 1 and *event, 0 at the end, -1 with *e filled. */
int trace_next(struct trace *t, struct trace_event *event, struct error *e);
void trace_close(struct trace *t);

/* Number of the track of a communicator (or TRACE_PASSES) on a ring. */
uint64_t trace_track(uint32_t ring, uint32_t comm);

#endif
