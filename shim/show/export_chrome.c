/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace for Perfetto and chrome://tracing: a process for each process, in it a track for the
 * passes of each GPU and one for each communicator on it. Calls of all processes are merged in
 * order of time; a window of events evens out what is not quite in order (streams side by side,
 * passes, which are known when they end).
 */
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/call_text.h"
#include "shim/show/export.h"
#include "shim/show/overview.h"
#include "shim/show/sink.h"
#include "shim/show/term.h"
#include "shim/show/trace.h"

static void write_event(struct sink *s, const struct trace_event *e, struct trace *t)
{
    sink_text(s, t->written++ ? ",\n{\"ph\":\"X\",\"pid\":" : "\n{\"ph\":\"X\",\"pid\":");
    sink_u64(s, e->process + 1);
    sink_text(s, ",\"tid\":");
    sink_u64(s, e->track);
    sink_text(s, ",\"ts\":");
    sink_us(s, e->start_ns);
    sink_text(s, ",\"dur\":");
    sink_us(s, e->dur_ns);
    sink_text(s, e->site == TRACE_PASS
                     ? ",\"name\":\"pass\",\"cat\":\"pass\",\"args\":{\"capture\":"
                     : t->sources[e->process].site_text[e->site]);
    if (e->site == TRACE_PASS) {
        sink_u64(s, e->capture);
        sink_text(s, ",\"calls\":");
        sink_u64(s, e->calls);
        sink_text(s, e->whole ? ",\"complete\":true,\"run\":" : ",\"complete\":false,\"run\":");
    }
    sink_u64(s, e->run);
    sink_text(s, "}}");
}

static void name_track(struct sink *s, struct trace *t, uint32_t process, uint64_t track,
                       const char *name)
{
    char quoted[1400];

    sink_printf(
        s,
        "%s{\"ph\":\"M\",\"pid\":%u,\"tid\":%llu,\"name\":\"thread_name\",\"args\":{\"name\":%s}}",
        t->written++ ? ",\n" : "\n", process + 1, (unsigned long long)track,
        json_quoted(name, quoted, sizeof(quoted)));
    sink_printf(s,
                ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%llu,\"name\":\"thread_sort_index\",\"args\":{"
                "\"sort_index\":%llu}}",
                process + 1, (unsigned long long)track, (unsigned long long)track);
}

static void name_process(struct sink *s, struct trace *t, const struct run *r, uint32_t process)
{
    const struct run_process *p = &r->processes[process];
    char label[300], host[400], name[900], quoted[1000];

    snprintf(host, sizeof(host), "%.*s", (int)sizeof(p->log->head.host), p->log->head.host);
    snprintf(name, sizeof(name), "%s, host %s, pid %u",
             process_label(r, process, label, sizeof(label)), safe_text(host, quoted, 400),
             p->log->head.pid);
    sink_printf(s, "%s{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":%s}}",
                t->written++ ? ",\n" : "\n", process + 1,
                json_quoted(name, quoted, sizeof(quoted)));
    for (uint32_t i = 0; i < p->log->ring_count; i++) {
        snprintf(name, sizeof(name), "GPU %d passes", p->log->rings[i].device);
        name_track(s, t, process, trace_track(p->log->rings[i].number, TRACE_PASSES), name);
    }
    for (uint32_t i = 0; i < p->log->comm_count; i++) {
        if (p->comm_of[i] == RUN_NONE || p->log->comms[i].ring < 0)
            continue;
        snprintf(name, sizeof(name), "GPU %d %s", p->log->comms[i].device,
                 comm_label(r, p->comm_of[i], label, sizeof(label)));
        name_track(s, t, process, trace_track((uint32_t)p->log->comms[i].ring, i), name);
        snprintf(name, sizeof(name), "GPU %d %s, second stream", p->log->comms[i].device,
                 comm_label(r, p->comm_of[i], label, sizeof(label)));
        name_track(s, t, process, trace_track((uint32_t)p->log->comms[i].ring, i) + TRACE_OVERLAP,
                   name);
    }
}

/* How well the tracks of different GPUs and hosts lie above each other. */
static void write_head(struct sink *s, const struct run *r, const struct trace *t)
{
    char name[1024], quoted[1100];
    uint64_t worst = 0;
    bool unknown = false, hosts = false;

    for (uint32_t i = 0; i < r->process_count; i++) {
        const struct run_process *p = &r->processes[i];
        hosts |= strncmp(p->log->head.boot_id, r->processes[0].log->head.boot_id,
                         sizeof(p->log->head.boot_id)) != 0;
        for (uint32_t k = 0; k < p->gpu_count; k++) {
            unknown |= !p->gpus[k].clock.known;
            if (p->gpus[k].clock.known && clock_error(&p->gpus[k].clock) > worst)
                worst = clock_error(&p->gpus[k].clock);
        }
    }
    sink_printf(s,
                "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"run\":%s,\"simulated\":%s,\"time_"
                "zero_unix_ns\":\"%llu\",",
                json_quoted(safe_text(r->name, name, sizeof(name)), quoted, sizeof(quoted)),
                r->simulated ? "true" : "false", (unsigned long long)t->zero_ns);
    if (unknown)
        sink_text(s, "\"clock_error_ns\":null,");
    else
        sink_printf(s, "\"clock_error_ns\":%llu,", (unsigned long long)worst);
    sink_printf(s,
                "\"clock\":\"GPU clocks brought to their host's by "
                "anchors%s%s\",\"floor_ns\":%u},\"traceEvents\":[",
                unknown ? "; a GPU without an anchor keeps its own clock" : "",
                hosts ? "; clocks of different hosts are as far apart as their system clocks" : "",
                r->floor_ns);
}

int export_chrome(const struct run *r, FILE *out, struct error *e)
{
    struct sink *s = malloc(sizeof(*s));
    struct trace_event event;
    struct trace *t;
    int rc;

    if (!s)
        return error_set(e, r->path, 0, "out of memory");
    if (trace_open(r, &t, e) < 0) {
        free(s);
        return -1;
    }
    sink_init(s, out);
    write_head(s, r, t);
    for (uint32_t i = 0; i < r->process_count; i++)
        name_process(s, t, r, i);
    while ((rc = trace_next(t, &event, e)) > 0 && !s->failed)
        write_event(s, &event, t);
    sink_text(s, "\n]}\n");
    if (sink_flush(s) < 0 && rc >= 0)
        rc = error_set(e, "", 0, "the output can't be written: %m");
    trace_close(t);
    free(s);
    return rc < 0 ? -1 : 0;
}
