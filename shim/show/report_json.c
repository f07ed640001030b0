/* SPDX-License-Identifier: Apache-2.0 */
/* A report for programs. docs/report.md lists the keys; they are only ever added to. */
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/json.h"
#include "shim/show/report.h"

#define REPORT_VERSION 1

/* Append, and give up on the whole array when memory is out. */
static void append(json_t *array, json_t *item)
{
    if (item)
        json_array_append_new(array, item);
}

/* ---- head ------------------------------------------------------------------------------------ */

static json_t *json_copies(const struct overview *f)
{
    json_t *all = json_array();
    char version[UNIT_SIZE];

    for (uint32_t i = 0; i < f->copy_count; i++)
        append(all, json_pack("{s:o, s:s, s:o, s:i}", "path", json_text(f->copies[i].path),
                              "version", nccl_version_text(f->copies[i].version, version),
                              "version_code", json_known(f->copies[i].version), "processes",
                              (int)f->copies[i].processes));
    return all;
}

static json_t *json_gpu(const struct run_gpu *g)
{
    char bus[sizeof(g->gpu.pci_bus_id) + 1];
    json_t *error =
        clock_error(&g->clock) == UINT64_MAX ? json_null() : json_u64(clock_error(&g->clock));

    memcpy(bus, g->gpu.pci_bus_id, sizeof(g->gpu.pci_bus_id));
    bus[sizeof(bus) - 1] = '\0';
    return json_pack("{s:i, s:i, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "ring",
                     (int)g->ring, "device", (int)g->gpu.device, "name", json_text(g->name),
                     "pci_bus_id", json_text(bus), "sm", (int)g->gpu.sm, "stamps",
                     json_text(stamp_text(g->gpu.stamp)), "floor_ns", json_known(g->gpu.floor_ns),
                     "floor_max_ns", json_known(g->gpu.floor_max_ns), "clock_step_ns",
                     json_known(g->gpu.clock_step_ns), "clock_error_ns", error, "memory_bytes",
                     json_known(g->gpu.memory_bytes));
}

static json_t *json_processes(const struct run *r)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < r->process_count; i++) {
        const struct run_process *p = &r->processes[i];
        const struct ncclshim_log_header *h = &p->log->head;
        char host[65], label[300], version[17];
        json_t *gpus = json_array();
        snprintf(host, sizeof(host), "%.*s", (int)sizeof(h->host), h->host);
        snprintf(version, sizeof(version), "%.*s", (int)sizeof(h->shim_version), h->shim_version);
        for (uint32_t k = 0; k < p->gpu_count; k++)
            if (p->gpus[k].gpu.stamp != UINT32_MAX)
                append(gpus, json_gpu(&p->gpus[k]));
        append(all,
               json_pack("{s:o, s:o, s:o, s:I, s:o, s:b, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "log",
                         json_text(p->name), "label",
                         json_text(process_label(r, i, label, sizeof(label))), "host",
                         json_text(host), "pid", (json_int_t)h->pid, "shim_version",
                         json_text(version), "closed", h->state == NCCLSHIM_LOG_CLOSED, "lives",
                         p->lives, "whole", p->whole, "records", json_u64(p->acc.records), "lost",
                         json_u64(p->acc.lost), "torn", json_u64(p->acc.torn), "settings_digest",
                         json_hex(h->settings_digest), "gpus", gpus));
    }
    return all;
}

static json_t *json_run(const struct overview *f)
{
    const struct run *r = f->run;

    return json_pack(
        "{s:o, s:o, s:b, s:b, s:b, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
        json_text(r->name), "path", json_text(r->path), "live", r->live, "simulated", r->simulated,
        "closed", r->closed, "whole", r->whole, "state", run_state(r), "command",
        json_text(r->command), "profile",
        json_text(r->profile && r->profile[0] ? r->profile : "none"), "profile_path",
        json_text(r->profile_path), "started_ns", json_known(r->started_ns), "ended_ns",
        json_known(r->ended_ns), "exit_code",
        r->exit_code < 0 ? json_null() : json_integer(r->exit_code), "signal",
        r->signal < 0 ? json_null() : json_integer(r->signal), "first_start_ns",
        json_known(r->first_ns), "last_end_ns", json_known(r->last_ns));
}

static json_t *json_log(const struct run *r)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "issued",
                     json_u64(r->issued), "timed", json_u64(r->timed), "groups_timed",
                     json_u64(r->groups_timed), "lost", json_u64(r->lost), "unfinished",
                     json_u64(r->unfinished), "torn", json_u64(r->torn), "bad", json_u64(r->bad),
                     "no_room", json_u64(r->unsited), "not_intercepted", json_u64(r->missed_calls),
                     "stamps", stamp_text(r->stamp), "floor_ns", json_known(r->floor_ns),
                     "floor_max_ns", json_known(r->floor_max_ns));
}

/* ---- passes, rows, ranks --------------------------------------------------------------------- */

static json_t *json_passes(const struct run *r)
{
    json_t *all = json_array();
    char label[96];

    for (uint32_t i = 0; i < r->pass_count; i++) {
        const struct run_pass *p = &r->passes[i];
        append(all,
               json_pack("{s:s, s:o, s:i, s:i, s:o, s:o, s:o, s:f}", "label",
                         pass_label(p, label, sizeof(label)), "passes", json_u64(p->passes),
                         "graphs", (int)p->graphs, "calls", (int)p->calls, "pass",
                         json_hist(&p->pass_ns), "communication", json_hist(&p->comm_ns), "period",
                         json_hist(&p->period_ns), "communication_share",
                         p->pass_ns.sum ? (double)p->comm_ns.sum / (double)p->pass_ns.sum : 0.0));
    }
    return all;
}

static json_t *json_wait(const struct run_wait *w)
{
    if (!w->calls)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:f, s:o}", "calls", json_u64(w->calls), "wait_ns",
                     json_u64(w->wait_ns), "busy_ns", json_u64(w->busy_ns), "wait_share",
                     w->busy_ns ? (double)w->wait_ns / (double)w->busy_ns : 0.0, "transfer",
                     json_hist(&w->transfer));
}

static json_t *json_rank_times(const struct run *r, const struct run_row *row)
{
    json_t *all = json_array();
    const struct run_comm *c = &r->comms[row->comm];

    for (uint32_t i = 0; i < c->member_count; i++)
        if (row->rank_ns[i].count)
            append(all, json_pack("{s:i, s:o}", "rank", (int)c->members[i].rank, "time",
                                  json_hist(&row->rank_ns[i])));
    return all;
}

static json_t *json_row(const struct run *r, const struct run_row *row)
{
    bool algo = row->algo != NCCLSHIM_NO_CHOICE, proto = row->proto != NCCLSHIM_NO_CHOICE;
    double bus = row_bus_gbps(r, row, hist_quantile(&row->ns, 0.5));
    json_t *j = json_pack("{s:s, s:o, s:s, s:b, s:b, s:i, s:o, s:o, s:o, s:o, s:o}", "operation",
                          op_name(row->op), "bytes", json_u64(row->bytes), "type",
                          dtype_name(row->dtype), "captured", row->captured, "group_part",
                          row->part, "call_sites", (int)row->sites, "issued", json_u64(row->issued),
                          "stamped", json_u64(row->stamped), "timed", json_u64(row->timed), "lost",
                          json_u64(row->lost), "unfinished", json_u64(row->unfinished));

    if (!j)
        return NULL;
    json_object_set_new(j, "algorithm", algo ? json_string(algo_name(row->algo)) : json_null());
    json_object_set_new(j, "protocol", proto ? json_string(proto_name(row->proto)) : json_null());
    json_object_set_new(j, "channels", json_known(row->channels));
    json_object_set_new(j, "time", json_hist(&row->ns));
    json_object_set_new(j, "gap", json_hist(&row->gap_ns));
    json_object_set_new(j, "bus_gb_per_s", bus > 0 ? json_real(bus) : json_null());
    json_object_set_new(j, "expected_ns", json_known(row->expected_ns));
    json_object_set_new(j, "waiting", json_wait(&row->wait));
    json_object_set_new(j, "ranks", json_rank_times(r, row));
    return j;
}

static json_t *json_arrivals(const struct overview *f, uint32_t comm)
{
    const struct arrivals *a = &f->arrivals[comm];
    const struct run_comm *c = &f->run->comms[comm];
    json_t *ranks = json_array();

    for (uint32_t i = 0; i < c->member_count; i++) {
        char label[300];
        const struct arrival *x = &a->ranks[i];
        append(ranks, json_pack("{s:i, s:o, s:i, s:o, s:o, s:o, s:o}", "rank",
                                (int)c->members[i].rank, "process",
                                json_text(process_label(f->run, c->members[i].process, label,
                                                        sizeof(label))),
                                "device", (int)c->members[i].entry->device, "last",
                                json_u64(x->last), "wait_ns", json_u64(x->wait_ns), "busy_ns",
                                json_u64(x->busy_ns), "late", json_hist(&x->late_ns)));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "calls", json_u64(a->calls), "decided",
                     json_u64(a->decided), "clock_error_ns", json_u64(a->clock_error_ns), "why_not",
                     a->why_not[0] ? json_string(a->why_not) : json_null(), "ranks", ranks);
}

static json_t *json_ctas(int32_t n)
{
    return n == NCCLSHIM_UNDEF ? json_null() : json_integer(n);
}

static json_t *json_comm(const struct overview *f, uint32_t comm, const struct report_options *o)
{
    const struct run *r = f->run;
    const struct run_comm *c = &r->comms[comm];
    const struct ncclshim_comm *m = c->members[0].entry;
    uint32_t count;
    const struct run_row **rows = rows_of_comm(r, comm, o->sort, &count);
    json_t *json_rows = json_array(), *j;

    for (uint32_t i = 0; rows && i < count; i++)
        append(json_rows, json_row(r, rows[i]));
    free(rows);
    j = json_pack(
        "{s:o, s:b, s:i, s:i, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
        json_text(c->name), "named", c->named, "ranks", (int)c->ranks, "ranks_in_run",
        (int)c->member_count, "nodes", c->nodes < 0 ? json_null() : json_integer(c->nodes), "hash",
        json_hex(c->hash), "timed", c->timed, "calls", json_u64(c->wrapped_calls),
        "not_intercepted", c->counted || c->missed_calls ? json_u64(c->missed_calls) : json_null(),
        "failed_calls", json_u64(c->failed_calls), "asked_max_ctas", json_ctas(m->asked_max_ctas),
        "given_max_ctas", json_ctas(m->given_max_ctas), "total_ns", json_u64(c->total_ns), "rows",
        json_rows, "arrivals", json_arrivals(f, comm));
    if (!j)
        return NULL;
    json_object_set_new(j, "eager_and_captured", json_boolean(c->flags & NCCLSHIM_COMM_MIXED_USE));
    json_object_set_new(j, "non_blocking", json_boolean(c->flags & NCCLSHIM_COMM_NONBLOCKING));
    json_object_set_new(j, "device_api", json_boolean(c->flags & NCCLSHIM_COMM_DEVICE_API));
    json_object_set_new(j, "symmetric", json_boolean(c->flags & NCCLSHIM_COMM_SYMMETRIC));
    return j;
}

/* ---- settings, hints, notes ------------------------------------------------------------------ */

static json_t *json_settings(const struct overview *f)
{
    json_t *all = json_array();

    for (size_t i = 0; i < f->settings.count; i++) {
        const struct run_setting *s = &f->settings.items[i];
        const struct run_setting_value *v = run_setting_usual(s, f->run);
        json_t *by_process = json_array();
        for (uint32_t p = 0; s->differs && p < f->run->process_count; p++)
            append(by_process, json_pack("{s:o, s:o}", "log", json_text(f->run->processes[p].name),
                                         "value", json_text(s->by_process[p].value)));
        append(all,
               json_pack("{s:o, s:o, s:s, s:o, s:o, s:b, s:b, s:o}", "name", json_text(s->name),
                         "value", json_text(v ? v->value : NULL), "from",
                         v ? origin_name(v->origin) : "", "got", json_text(v ? v->got : NULL),
                         "read_by_nccl",
                         s->read == SETTING_READ_UNKNOWN ? json_null()
                                                         : json_boolean(s->read == SETTING_READ),
                         "profile_lost", v ? v->lost : false, "differs", s->differs, "processes",
                         by_process));
    }
    return all;
}

static json_t *json_notes(const struct run *r, uint32_t type)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < r->process_count; i++) {
        const struct ncclshim_note *n = NULL;
        char text[2048];
        while ((n = log_note_next(r->processes[i].log, n))) {
            if (n->type != type)
                continue;
            log_note_text(n, 0, text, sizeof(text));
            append(all, json_pack("{s:o, s:o}", "log", json_text(r->processes[i].name), "text",
                                  json_text(text)));
        }
    }
    return all;
}

static json_t *json_hints(const struct overview *f)
{
    json_t *all = json_array();

    for (unsigned i = 0; i < f->hint_count; i++)
        append(all, json_pack("{s:s, s:b, s:o}", "key", f->hints[i].key, "serious",
                              f->hints[i].serious, "text", json_text(f->hints[i].text)));
    return all;
}

json_t *report_json(const struct overview *f, const struct report_options *o)
{
    json_t *comms = json_array(), *j;

    for (uint32_t i = 0; i < f->run->comm_count; i++)
        append(comms, json_comm(f, i, o));
    j = json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o}", "version",
                  REPORT_VERSION, "run", json_run(f), "log", json_log(f->run), "nccl",
                  json_copies(f), "processes", json_processes(f->run), "passes",
                  json_passes(f->run), "communicators", comms, "settings", json_settings(f),
                  "settings_differ", f->settings.differ || f->settings.digests_differ,
                  "not_intercepted", json_notes(f->run, NCCLSHIM_NOTE_MISSED), "warnings",
                  json_notes(f->run, NCCLSHIM_NOTE_WARNING), "hints", json_hints(f));
    return j;
}
