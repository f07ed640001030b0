/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/trace.h"

#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/base/names.h"
#include "shim/show/call_text.h"
#include "shim/show/term.h"

/* ---- tracks ---------------------------------------------------------------------------------- */

#define TRACKS_PER_RING 1000000ull

uint64_t trace_track(uint32_t ring, uint32_t comm)
{
    return ring * TRACKS_PER_RING + (comm == TRACE_PASSES ? 1 : 2 + comm);
}

/* ---- the window: a heap, earliest first, the longer one first when both start together ------ */

static bool before(const struct trace_event *a, const struct trace_event *b)
{
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns;
    return a->dur_ns > b->dur_ns;
}

static int heap_push(struct trace *t, const struct trace_event *e)
{
    size_t i = t->heap_count;

    if (!GROW(t->heap, t->heap_count))
        return -1;
    for (; i && before(e, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = *e;
    return 0;
}

static void heap_pop(struct trace *t, struct trace_event *out)
{
    struct trace_event last = t->heap[--t->heap_count];
    size_t i = 0, child;

    *out = t->heap[0];
    for (; (child = 2 * i + 1) < t->heap_count; i = child) {
        if (child + 1 < t->heap_count && before(&t->heap[child + 1], &t->heap[child]))
            child++;
        if (!before(&t->heap[child], &last))
            break;
        t->heap[i] = t->heap[child];
    }
    t->heap[i] = last;
}

/* ---- sources --------------------------------------------------------------------------------- */

static uint64_t host_time(const struct run_gpu *gpu, uint64_t ns)
{
    return gpu ? clock_host(&gpu->clock, ns) : ns;
}

static char *site_text_of(const struct run *r, uint32_t process, uint32_t site)
{
    struct call_facts f;
    char buf[1500], bytes[UNIT_SIZE], comm[500];
    int n = 0;

    if (call_facts_of(r, process, site, &f)) {
        const struct ncclshim_site *s = f.site;
        n = snprintf(
            buf, sizeof(buf),
            ",\"name\":\"%s "
            "%s\",\"cat\":\"%s\",\"args\":{\"comm\":%s,\"rank\":%d,\"bytes\":%llu,\"type\":\"%s\","
            "\"algorithm\":\"%s\",\"protocol\":\"%s\",\"channels\":%u,\"capture\":%u,\"index\":%u,"
            "\"run\":",
            op_name(s->op), unit_bytes(s->bytes, bytes),
            s->flags & NCCLSHIM_SITE_CAPTURED ? "captured" : "eager",
            json_quoted(f.comm_name, comm, sizeof(comm)), f.rank, (unsigned long long)s->bytes,
            dtype_name(s->dtype), site_algo(s), site_proto(s), s->channels, s->capture, s->index);
    }
    return n > 0 && (size_t)n < sizeof(buf) ? strdup(buf) : NULL;
}

static int open_source(struct trace *t, uint32_t process, struct error *e)
{
    struct trace_source *s = &t->sources[process];
    const struct log_file *f = t->r->processes[process].log;

    s->p = &t->r->processes[process];
    s->site_text = calloc(f->site_count + 1, sizeof(*s->site_text));
    s->busy_until = calloc(f->comm_count + 1, sizeof(*s->busy_until));
    s->replays = calloc(f->ring_count + 1, sizeof(*s->replays));
    if (!s->site_text || !s->busy_until || !s->replays)
        return error_set(e, f->path, 0, "out of memory");
    for (uint32_t i = 0; i < f->site_count; i++)
        s->site_text[i] = site_text_of(t->r, process, i);
    for (uint32_t i = 0; i < s->p->acc.site_cap; i++) {
        const struct site_accum *a = &s->p->acc.sites[i];
        uint32_t ring = ring_of_site(s->p, i);
        uint64_t first;
        if (!a->ns.count || ring == RUN_NONE)
            continue;
        first = host_time(run_gpu_of(s->p, ring), a->first_start_ns);
        if (!t->zero_ns || first < t->zero_ns)
            t->zero_ns = first;
    }
    return records_open(s->p, &s->records, e);
}

int trace_open(const struct run *r, struct trace **out, struct error *e)
{
    struct trace *t = calloc(1, sizeof(*t));
    int rc = 0;

    *out = NULL;
    if (t)
        t->sources = calloc(r->process_count + 1, sizeof(*t->sources));
    if (!t || !t->sources) {
        free(t);
        return error_set(e, r->path, 0, "out of memory");
    }
    t->r = r;
    for (uint32_t i = 0; i < r->process_count && rc == 0; i++)
        rc = open_source(t, i, e);
    if (rc < 0) {
        trace_close(t);
        return -1;
    }
    *out = t;
    return 0;
}

void trace_close(struct trace *t)
{
    for (uint32_t i = 0; i < t->r->process_count; i++) {
        struct trace_source *s = &t->sources[i];
        for (uint32_t k = 0; s->site_text && k < s->p->log->site_count; k++)
            free(s->site_text[k]);
        free(s->site_text);
        free(s->busy_until);
        free(s->replays);
        records_close(s->records);
    }
    free(t->sources);
    free(t->heap);
    free(t);
}

/* The record that a source stands at; NULL at its end. */
static int peek(struct trace_source *s, const struct ncclshim_record **out, struct error *e)
{
    const struct ncclshim_record *r;

    *out = NULL;
    while (s->count >= 0) {
        if (s->at == s->count) {
            s->count = records_next(s->records, &s->batch, &s->ring, e);
            s->at = 0;
            s->gpu = run_gpu_of(s->p, s->ring);
            if (s->count < 0)
                return -1;
            if (s->count == 0) {
                s->count = -1; /* the end */
                return 0;
            }
        }
        r = &s->batch[s->at];
        if (r->site < s->p->log->site_count && s->site_text[r->site] && r->end_ns >= r->start_ns) {
            *out = r;
            return 0;
        }
        s->at++;
    }
    return 0;
}

/* ---- passes ---------------------------------------------------------------------------------- */

static int end_replay(struct trace *t, uint32_t process, uint32_t ring, struct trace_replay *replay)
{
    struct trace_event e = {
        .start_ns = replay->start_ns,
        .dur_ns = replay->end_ns - replay->start_ns,
        .track = trace_track(ring, TRACE_PASSES),
        .process = process,
        .site = TRACE_PASS,
        .run = replay->run,
        .capture = replay->capture,
        .calls = replay->seen,
        .whole = replay->seen == replay->calls,
    };

    replay->open = false;
    return heap_push(t, &e);
}

static uint32_t calls_of_capture(const struct run_process *p, uint32_t ring, uint32_t capture)
{
    for (uint32_t i = 0; i < p->acc.pass_count; i++)
        if (p->acc.passes[i].ring == ring && p->acc.passes[i].capture == capture)
            return p->acc.passes[i].calls;
    return 0;
}

static struct trace_replay *replay_of(struct trace_source *s)
{
    for (uint32_t i = 0; i < s->p->log->ring_count; i++)
        if (s->p->log->rings[i].number == s->ring)
            return &s->replays[i];
    return NULL;
}

static int follow_replay(struct trace *t, uint32_t process, const struct trace_event *call)
{
    struct trace_source *s = &t->sources[process];
    struct trace_replay *replay = replay_of(s);
    uint32_t capture = s->p->log->sites[call->site].capture;

    if (!replay || !capture)
        return 0;
    if (replay->open && (replay->capture != capture || replay->run != call->run) &&
        end_replay(t, process, s->ring, replay) < 0)
        return -1;
    if (!replay->open)
        *replay = (struct trace_replay){
            true,           capture,       call->run, 0, calls_of_capture(s->p, s->ring, capture),
            call->start_ns, call->start_ns};
    replay->seen++;
    if (call->start_ns < replay->start_ns)
        replay->start_ns = call->start_ns;
    if (call->start_ns + call->dur_ns > replay->end_ns)
        replay->end_ns = call->start_ns + call->dur_ns;
    return replay->seen == replay->calls ? end_replay(t, process, s->ring, replay) : 0;
}

/* ---- merging --------------------------------------------------------------------------------- */

static int take(struct trace *t, uint32_t process, const struct ncclshim_record *r)
{
    struct trace_source *s = &t->sources[process];
    uint64_t start = host_time(s->gpu, r->start_ns);
    uint32_t comm = s->p->log->sites[r->site].comm;
    struct trace_event e = {
        .start_ns = start > t->zero_ns ? start - t->zero_ns : 0,
        .dur_ns = r->end_ns - r->start_ns,
        .track = trace_track(s->ring, comm),
        .process = process,
        .site = r->site,
        .run = r->run,
    };

    if (e.start_ns < s->busy_until[comm])
        e.track += TRACE_OVERLAP;
    else
        s->busy_until[comm] = e.start_ns + e.dur_ns;
    if (heap_push(t, &e) < 0)
        return -1;
    return follow_replay(t, process, &e);
}

/* Take the earliest record of all sources into the window; 0 when there is none. */
static int take_earliest(struct trace *t, struct error *e)
{
    const struct ncclshim_record *record, *best = NULL;
    uint32_t which = 0;
    uint64_t earliest = 0;

    for (uint32_t i = 0; i < t->r->process_count; i++) {
        uint64_t start;
        if (peek(&t->sources[i], &record, e) < 0)
            return -1;
        if (!record)
            continue;
        start = host_time(t->sources[i].gpu, record->start_ns);
        if (!best || start < earliest) {
            best = record;
            earliest = start;
            which = i;
        }
    }
    if (!best)
        return 0;
    if (take(t, which, best) < 0)
        return error_set(e, t->r->path, 0, "out of memory");
    t->sources[which].at++;
    return 1;
}

static int end_replays(struct trace *t)
{
    for (uint32_t i = 0; i < t->r->process_count; i++)
        for (uint32_t k = 0; k < t->sources[i].p->log->ring_count; k++)
            if (t->sources[i].replays[k].open &&
                end_replay(t, i, t->sources[i].p->log->rings[k].number, &t->sources[i].replays[k]) <
                    0)
                return -1;
    return 0;
}

int trace_next(struct trace *t, struct trace_event *event, struct error *e)
{
    int more = 1;

    while (t->heap_count < TRACE_WINDOW && (more = take_earliest(t, e)) > 0)
        ;
    if (more < 0)
        return -1;
    if (more == 0 && end_replays(t) < 0)
        return error_set(e, t->r->path, 0, "out of memory");
    if (!t->heap_count)
        return 0;
    heap_pop(t, event);
    return 1;
}
