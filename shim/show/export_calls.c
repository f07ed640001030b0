/* SPDX-License-Identifier: Apache-2.0 */
/* One line a call: CSV and JSON. Process by process, each in the order in which its calls ended. */
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/call_text.h"
#include "shim/show/export.h"
#include "shim/show/sink.h"
#include "shim/show/term.h"
#include "shim/stats/records.h"

/* A format: how a site's fixed part looks, and what stands before and after the numbers. */
struct format {
    int (*site)(const struct call_facts *f, char *buf, size_t size);
    const char *run, *start, *end, *time, *stop;
};

#define SITE_TEXT 1400

static int csv_site(const struct call_facts *f, char *buf, size_t size)
{
    const struct ncclshim_site *s = f->site;
    char host[420], comm[500];
    bool captured = s->flags & NCCLSHIM_SITE_CAPTURED;

    return snprintf(buf, size, "%s,%u,%d,%s,%d,%d,%s,%llu,%s,%s,%u,%u,%s,%s,%u",
                    csv_field(f->host, host, sizeof(host)), f->process->log->head.pid, f->device,
                    csv_field(f->comm_name, comm, sizeof(comm)), f->comm->ranks, f->rank,
                    op_name(s->op), (unsigned long long)s->bytes, dtype_name(s->dtype),
                    captured ? "captured" : "eager", s->capture, s->index, site_algo(s),
                    site_proto(s), s->channels);
}

static int json_site(const struct call_facts *f, char *buf, size_t size)
{
    const struct ncclshim_site *s = f->site;
    char host[420], comm[500];

    return snprintf(buf, size,
                    "{\"host\":%s,\"pid\":%u,\"gpu\":%d,\"comm\":%s,\"ranks\":%d,\"rank\":%d,"
                    "\"operation\":\"%s\","
                    "\"bytes\":%llu,\"type\":\"%s\",\"captured\":%s,\"capture\":%u,\"index\":%u,"
                    "\"algorithm\":\"%s\","
                    "\"protocol\":\"%s\",\"channels\":%u",
                    json_quoted(f->host, host, sizeof(host)), f->process->log->head.pid, f->device,
                    json_quoted(f->comm_name, comm, sizeof(comm)), f->comm->ranks, f->rank,
                    op_name(s->op), (unsigned long long)s->bytes, dtype_name(s->dtype),
                    s->flags & NCCLSHIM_SITE_CAPTURED ? "true" : "false", s->capture, s->index,
                    site_algo(s), site_proto(s), s->channels);
}

static const struct format csv = {csv_site, ",", ",", ",", ",", "\n"};
static const struct format json = {
    json_site, ",\"run\":", ",\"start_ns\":", ",\"end_ns\":", ",\"time_ns\":", "}"};

/* The fixed part of each site, made when its first record comes. */
struct texts {
    char **text; /* by site; "" = not wanted */
    uint16_t *length;
};

static const char *text_of(struct texts *t, const struct run *r, uint32_t process, uint32_t site,
                           const struct format *format)
{
    struct call_facts facts;
    char buf[SITE_TEXT];
    int n = 0;

    if (t->text[site])
        return t->text[site];
    if (call_facts_of(r, process, site, &facts))
        n = format->site(&facts, buf, sizeof(buf));
    if (n < 0 || n >= SITE_TEXT)
        n = 0;
    buf[n] = '\0';
    t->text[site] = strdup(buf);
    t->length[site] = (uint16_t)n;
    return t->text[site];
}

static void write_call(struct sink *s, const struct format *f, const char *text, size_t length,
                       const struct ncclshim_record *r, uint64_t start)
{
    uint64_t time = r->end_ns - r->start_ns;

    sink_bytes(s, text, length);
    sink_text(s, f->run);
    sink_u64(s, r->run);
    sink_text(s, f->start);
    sink_u64(s, start);
    sink_text(s, f->end);
    sink_u64(s, start + time);
    sink_text(s, f->time);
    sink_u64(s, time);
    sink_text(s, f->stop);
}

static int write_process(const struct run *r, uint32_t process, struct sink *s,
                         const struct format *f, struct texts *t, uint64_t *written,
                         struct error *e)
{
    const struct run_process *p = &r->processes[process];
    const struct ncclshim_record *batch;
    struct records *records;
    uint32_t ring;
    long n;

    if (records_open(p, &records, e) < 0)
        return -1;
    while ((n = records_next(records, &batch, &ring, e)) > 0) {
        const struct run_gpu *gpu = run_gpu_of(p, ring);
        for (long i = 0; i < n; i++) {
            const struct ncclshim_record *rec = &batch[i];
            const char *text;
            if (rec->site >= p->log->site_count || rec->end_ns < rec->start_ns)
                continue;
            if (!(text = text_of(t, r, process, rec->site, f))) {
                records_close(records);
                return error_set(e, p->log->path, 0, "out of memory");
            }
            if (!t->length[rec->site])
                continue;
            if (f == &json && (*written)++)
                sink_bytes(s, ",\n", 2);
            write_call(s, f, text, t->length[rec->site], rec,
                       gpu ? clock_host(&gpu->clock, rec->start_ns) : rec->start_ns);
        }
        if (s->failed)
            break;
    }
    records_close(records);
    return n < 0 ? -1 : 0;
}

static int write_calls(const struct run *r, struct sink *s, const struct format *f, struct error *e)
{
    uint64_t written = 0;
    int rc = 0;

    for (uint32_t i = 0; i < r->process_count && rc == 0; i++) {
        uint32_t sites = r->processes[i].log->site_count;
        struct texts t = {calloc(sites + 1, sizeof(*t.text)), calloc(sites + 1, sizeof(*t.length))};
        if (!t.text || !t.length)
            rc = error_set(e, r->path, 0, "out of memory");
        else
            rc = write_process(r, i, s, f, &t, &written, e);
        for (uint32_t k = 0; t.text && k < sites; k++)
            free(t.text[k]);
        free(t.text);
        free(t.length);
    }
    return rc;
}

static int finish(struct sink *s, int rc, struct error *e)
{
    if (sink_flush(s) < 0 && rc == 0)
        rc = error_set(e, "", 0, "the output can't be written: %m");
    free(s);
    return rc;
}

int export_csv(const struct run *r, FILE *out, struct error *e)
{
    struct sink *s = malloc(sizeof(*s));

    if (!s)
        return error_set(e, r->path, 0, "out of memory");
    sink_init(s, out);
    sink_text(
        s, "host,pid,gpu,comm,ranks,rank,operation,bytes,type,how,capture,index,algorithm,protocol,"
           "channels,run,start_ns,end_ns,time_ns\n");
    return finish(s, write_calls(r, s, &csv, e), e);
}

int export_json(const struct run *r, FILE *out, struct error *e)
{
    struct sink *s = malloc(sizeof(*s));
    char name[1024], quoted[1100];
    int rc;

    if (!s)
        return error_set(e, r->path, 0, "out of memory");
    sink_init(s, out);
    sink_printf(s,
                "{\"version\":1,\"run\":%s,\"simulated\":%s,\"whole\":%s,\"lost\":%llu,\"floor_"
                "ns\":%u,\"calls\":[\n",
                json_quoted(safe_text(r->name, name, sizeof(name)), quoted, sizeof(quoted)),
                r->simulated ? "true" : "false", r->whole ? "true" : "false",
                (unsigned long long)r->lost, r->floor_ns);
    rc = write_calls(r, s, &json, e);
    sink_text(s, "\n]}\n");
    return finish(s, rc, e);
}
