/* SPDX-License-Identifier: Apache-2.0 */
/* What stands below the tables of a report: ranks, settings, rules, what was missed, warnings. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/report.h"
#include "shim/show/table.h"

static void note(const struct term *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One indented line, or several where it is long. */
static void note(const struct term *t, const char *fmt, ...)
{
    char text[3000], safe[4000];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fputs("  ", t->out);
    print_wrapped(t, safe_text(text, safe, sizeof(safe)), 4);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static void rank_cells(struct table *table, const struct overview *f, uint32_t comm,
                       uint32_t member, const struct run_row *main_row)
{
    const struct run *r = f->run;
    const struct arrivals *a = &f->arrivals[comm];
    const struct run_member *m = &r->comms[comm].members[member];
    const struct run_process *p = &r->processes[m->process];
    const struct ncclshim_log_header *h = &p->log->head;
    const struct run_gpu *g = m->entry->ring >= 0 ? run_gpu_of(p, (uint32_t)m->entry->ring) : NULL;
    const struct hist *ns = main_row ? &main_row->rank_ns[member] : NULL;
    char x[UNIT_SIZE], host[65];
    bool lined_up = !a->why_not[0] && a->calls;

    snprintf(host, sizeof(host), "%.*s", (int)sizeof(h->host), h->host);
    table_cell(table, "%d", m->rank);
    table_cell(table, "%s:%u", host, h->pid);
    table_cell(table, "%d %.*s", m->entry->device, g ? (int)sizeof(g->gpu.pci_bus_id) : 0,
               g ? g->gpu.pci_bus_id : "");
    table_cell(table, "%s", ns && ns->count ? unit_ns(hist_quantile(ns, 0.5), x) : "-");
    table_cell(table, "%s", ns && ns->count ? unit_ns(hist_quantile(ns, 0.99), x) : "-");
    table_cell(table, "%s",
               lined_up ? unit_ns(hist_quantile(&a->ranks[member].late_ns, 0.5), x) : "");
    table_cell(table, "%s",
               lined_up ? unit_percent((double)a->ranks[member].last / (double)a->calls, x) : "");
    table_cell(
        table, "%s",
        lined_up && a->ranks[member].busy_ns
            ? unit_percent((double)a->ranks[member].wait_ns / (double)a->ranks[member].busy_ns, x)
            : "");
}

static const struct run_row *main_row_of(const struct run *r, uint32_t comm)
{
    for (uint32_t i = 0; i < r->row_count; i++) /* rows stand by time within a communicator */
        if (r->rows[i].comm == comm && r->rows[i].timed)
            return &r->rows[i];
    return NULL;
}

static void print_ranks_of(const struct overview *f, uint32_t comm, const struct term *t)
{
    const struct run *r = f->run;
    const struct arrivals *a = &f->arrivals[comm];
    const struct run_row *row = main_row_of(r, comm);
    char name[300], rest[300], n[UNIT_SIZE], error[UNIT_SIZE], bytes[UNIT_SIZE];
    struct table table;

    if (!row || r->comms[comm].member_count < 2)
        return;
    snprintf(rest, sizeof(rest), "%s (times of %s %s)", comm_label(r, comm, name, sizeof(name)),
             op_name(row->op), unit_bytes(row->bytes, bytes));
    print_title(t, "ranks of", rest);
    table_init(&table);
    table_column(&table, "rank", 0, 0);
    table_column(&table, "process", TABLE_LEFT | TABLE_FLEXIBLE, 2);
    table_column(&table, "gpu", TABLE_LEFT, 3);
    table_column(&table, "p50", 0, 0);
    table_column(&table, "p99", 0, 1);
    table_column(&table, "comes late by", 0, 0);
    table_column(&table, "last in", 0, 0);
    table_column(&table, "waits", 0, 0);
    for (uint32_t i = 0; i < r->comms[comm].member_count; i++)
        rank_cells(&table, f, comm, i, row);
    table_print(&table, t, 2);
    table_free(&table);
    if (a->why_not[0])
        note(t, "waiting not known: %s", a->why_not);
    else if (a->clock_error_ns)
        note(t, "%s newest calls lined up; the ranks' clocks agree to within %s",
             unit_count(a->calls, n), unit_ns(a->clock_error_ns, error));
    else
        note(t, "%s newest calls lined up; all ranks share one GPU's clock",
             unit_count(a->calls, n));
}

#define COMM_SHARE 0.05 /* communicators with less of the time are not broken down by rank */

void print_ranks(const struct overview *f, const struct term *t, bool all)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < f->run->comm_count; i++)
        total += f->run->comms[i].total_ns;
    for (uint32_t i = 0; i < f->run->comm_count; i++)
        if (all || (double)f->run->comms[i].total_ns >= COMM_SHARE * (double)total)
            print_ranks_of(f, i, t);
}

/* ---- settings -------------------------------------------------------------------------------- */

static const char *read_text(const struct run_setting *s, const struct run_setting_value *v)
{
    if (v->got)
        return "answered otherwise";
    return s->read == SETTING_READ ? "yes" : s->read == SETTING_NOT_READ ? "no" : "not known";
}

static bool same_line(const struct run_setting_value *a, const struct run_setting_value *b)
{
    return run_setting_same(a, b) && (!a->value || a->origin == b->origin);
}

#define NAMED 3 /* processes, of those that have the same value */

/* "rank 0", or "rank 0, rank 2, rank 3 and 5 more": those from p on with p's value. */
static void processes_with(const struct run *r, const struct run_setting *s, uint32_t p, char *buf,
                           size_t size)
{
    uint32_t count = 0;
    size_t at = 0;
    char label[300];

    for (uint32_t q = p; q < r->process_count; q++) {
        if (!same_line(&s->by_process[p], &s->by_process[q]) || ++count > NAMED)
            continue;
        at += (size_t)snprintf(buf + at, size - at, "%s%s", count > 1 ? ", " : "",
                               process_label(r, q, label, sizeof(label)));
    }
    if (count > NAMED)
        snprintf(buf + at, size - at, " and %u more", count - NAMED);
}

static bool told_before(const struct run_setting *s, uint32_t p)
{
    for (uint32_t q = 0; q < p; q++)
        if (same_line(&s->by_process[q], &s->by_process[p]))
            return true;
    return false;
}

static void print_differences(const struct overview *f, const struct term *t)
{
    const struct run *r = f->run;
    char labels[NAMED * 302 + 32];
    struct table table;

    print_title(t, "settings that differ", "between processes");
    table_init(&table);
    table_column(&table, "variable", TABLE_LEFT, 0);
    table_column(&table, "process", TABLE_LEFT, 0);
    table_column(&table, "value", TABLE_LEFT | TABLE_FLEXIBLE, 0);
    table_column(&table, "from", TABLE_LEFT, 1);
    for (size_t i = 0; i < f->settings.count; i++) {
        const struct run_setting *s = &f->settings.items[i];
        for (uint32_t p = 0; s->differs && p < r->process_count; p++) {
            const struct run_setting_value *v = &s->by_process[p];
            if (told_before(s, p))
                continue;
            processes_with(r, s, p, labels, sizeof(labels));
            table_cell(&table, "%s", s->name);
            table_cell(&table, "%s", labels);
            table_cell(&table, "%s", v->value ? v->value : "(not set)");
            table_cell(&table, "%s", v->value ? origin_label(v->origin) : "");
        }
    }
    table_print(&table, t, 2);
    table_free(&table);
}

static void print_comm_settings(const struct overview *f, const struct term *t)
{
    const struct run *r = f->run;
    char name[300], text[512], safe[1024];

    for (uint32_t i = 0; i < r->comm_count; i++) {
        const struct run_member *m = &r->comms[i].members[0];
        const struct log_file *log = r->processes[m->process].log;
        const struct ncclshim_note *n = NULL;
        while ((n = log_note_next(log, n))) {
            if (n->type != NCCLSHIM_NOTE_COMM_TEXT || n->a != m->comm || n->b == NCCLSHIM_COMM_NAME)
                continue;
            log_note_text(n, 0, text, sizeof(text));
            fprintf(t->out, "  %s: %s%s\n", comm_label(r, i, name, sizeof(name)),
                    n->b == NCCLSHIM_COMM_SECTION ? "section " : "",
                    safe_text(text, safe, sizeof(safe)));
        }
    }
}

void print_settings(const struct overview *f, const struct term *t)
{
    struct table table;
    bool any = false;

    if (f->settings.differ)
        print_differences(f, t);
    table_init(&table);
    table_column(&table, "variable", TABLE_LEFT, 0);
    table_column(&table, "in force", TABLE_LEFT | TABLE_FLEXIBLE, 0);
    table_column(&table, "from", TABLE_LEFT, 2);
    table_column(&table, "NCCL asked for it", TABLE_LEFT, 1);
    table_column(&table, "", TABLE_LEFT, 3);
    for (size_t i = 0; i < f->settings.count; i++) {
        const struct run_setting *s = &f->settings.items[i];
        const struct run_setting_value *v = run_setting_usual(s, f->run);
        if (!v)
            continue;
        any = true;
        table_cell(&table, "%s", s->name);
        table_cell(&table, "%s", v->got ? v->got : v->value);
        table_cell(&table, "%s", origin_label(v->origin));
        table_cell(&table, "%s", read_text(s, v));
        table_cell(&table, "%s", v->lost ? "the profile asked otherwise" : "");
    }
    if (any) {
        print_title(t, "settings", "");
        table_print(&table, t, 2);
    }
    table_free(&table);
    print_comm_settings(f, t);
}

/* ---- rules ----------------------------------------------------------------------------------- */

void print_rules(const struct overview *f, const struct term *t)
{
    const struct log_file *log = f->run->process_count ? f->run->processes[0].log : NULL;
    const struct ncclshim_note *n = NULL;
    struct ncclshim_rule rule;
    char text[256], a[UNIT_SIZE];
    struct table table;

    table_init(&table);
    table_column(&table, "rule", TABLE_LEFT | TABLE_FLEXIBLE, 0);
    table_column(&table, "applied", 0, 0);
    table_column(&table, "ruled out", 0, 0);
    table_column(&table, "fewer channels", 0, 1);
    while (log && (n = log_note_next(log, n))) {
        if (n->type != NCCLSHIM_NOTE_RULE || n->bytes < sizeof(*n) + sizeof(rule))
            continue;
        memcpy(&rule, n + 1, sizeof(rule));
        log_note_text(n, sizeof(rule), text, sizeof(text));
        table_cell(&table, "%s", text);
        table_cell(&table, "%s", unit_count(rule.matched, a));
        table_cell(&table, "%s", unit_count(rule.masked, a));
        table_cell(&table, "%s", unit_count(rule.capped, a));
    }
    if (table.cell_count) {
        print_title(t, "rules of [tune]", "(as one process saw them)");
        table_print(&table, t, 2);
    }
    table_free(&table);
}

/* ---- not intercepted, warnings --------------------------------------------------------------- */

static bool has_note(const struct log_file *log, const struct ncclshim_note *wanted)
{
    const struct ncclshim_note *n = NULL;

    while ((n = log_note_next(log, n)))
        if (n->type == wanted->type && n->bytes == wanted->bytes &&
            !memcmp(n + 1, wanted + 1, n->bytes - sizeof(*n)))
            return true;
    return false;
}

/*
 * What processes noted, each text once: "rank 0 and 7 more: TEXT". `title`, once told, is NULL;
 * `rest` is said behind the text.
 */
static void print_notes(const struct run *r, uint32_t type, const char **title, const char *rest,
                        const struct term *t)
{
    char label[300], others[40], text[1024];

    for (uint32_t i = 0; i < r->process_count; i++) {
        const struct ncclshim_note *n = NULL;
        while ((n = log_note_next(r->processes[i].log, n))) {
            bool before = false;
            uint32_t more = 0;
            if (n->type != type)
                continue;
            for (uint32_t q = 0; q < i && !before; q++)
                before = has_note(r->processes[q].log, n);
            if (before)
                continue;
            for (uint32_t q = i + 1; q < r->process_count; q++)
                more += has_note(r->processes[q].log, n);
            if (*title)
                print_title(t, *title, "of the shim in the server");
            *title = NULL;
            others[0] = '\0';
            if (more)
                snprintf(others, sizeof(others), " and %u more", more);
            log_note_text(n, 0, text, sizeof(text));
            note(t, "%s%s: %s%s", process_label(r, i, label, sizeof(label)), others, text, rest);
        }
    }
}

static bool any_missed(const struct overview *f)
{
    if (f->run->missed_calls)
        return true;
    for (uint32_t i = 0; i < f->run->process_count; i++) {
        const struct ncclshim_note *n = NULL;
        while ((n = log_note_next(f->run->processes[i].log, n)))
            if (n->type == NCCLSHIM_NOTE_MISSED)
                return true;
    }
    return false;
}

#define MISSED_SHOWN 8 /* communicators */

void print_missed(const struct overview *f, const struct term *t)
{
    const struct run *r = f->run;
    char label[300], a[UNIT_SIZE], b[UNIT_SIZE];
    const char *told = NULL;
    uint32_t count = 0;

    if (!any_missed(f))
        return;
    print_title(t, "not intercepted", "");
    for (uint32_t i = 0; i < r->comm_count; i++) {
        const struct run_comm *c = &r->comms[i];
        if (!c->missed_calls || ++count > MISSED_SHOWN)
            continue;
        note(t, "%s: %s of %s calls were not intercepted", comm_label(r, i, label, sizeof(label)),
             unit_count(c->missed_calls, a), unit_count(c->wrapped_calls + c->missed_calls, b));
    }
    if (count > MISSED_SHOWN)
        note(t, "and calls of %u more communicators", count - MISSED_SHOWN);
    print_notes(r, NCCLSHIM_NOTE_MISSED, &told,
                " is loaded, and no call to it came through the shim", t);
}

void print_warnings(const struct overview *f, const struct term *t)
{
    const struct run *r = f->run;
    const char *title = "warnings";
    char label[300];

    print_notes(r, NCCLSHIM_NOTE_WARNING, &title, "", t);
    for (uint32_t i = 0; i < r->process_count; i++) {
        if (!r->processes[i].log->head.notes_lost)
            continue;
        if (title)
            print_title(t, title, "of the shim in the server");
        title = NULL;
        note(t, "%s: %llu notes found no room in the log",
             process_label(r, i, label, sizeof(label)),
             (unsigned long long)r->processes[i].log->head.notes_lost);
    }
}
