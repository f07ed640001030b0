/* SPDX-License-Identifier: Apache-2.0 */
/* The first screen of a report: what ran, what was in force, where the time went. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/report.h"
#include "shim/show/table.h"

#define ROWS_SHOWN 12 /* of one communicator, without --all */
#define COMMS_SHOWN 8 /* without --all */
#define PASSES_SHOWN 8
#define LABEL_COLUMNS 10 /* of the header: "measuring " */

/* ---- header ---------------------------------------------------------------------------------- */

static void line(const struct term *t, const char *label, const char *text)
{
    char safe[4096];

    fprintf(t->out, "%s%-*s%s", term_on(t, COLOUR_DIM), LABEL_COLUMNS, label, term_off(t));
    print_wrapped(t, safe_text(text, safe, sizeof(safe)), LABEL_COLUMNS);
}

static void print_run_line(const struct overview *f, const struct term *t)
{
    const struct run *r = f->run;
    uint64_t from = r->started_ns ? r->started_ns : r->first_ns;
    uint64_t to = r->ended_ns ? r->ended_ns : r->last_ns;
    char text[4200], span[UNIT_SIZE] = "no calls", ending[48] = "";

    if (to > from)
        unit_ns(to - from, span);
    if (r->signal > 0)
        snprintf(ending, sizeof(ending), ", ended by signal %d", r->signal);
    else if (r->exit_code > 0)
        snprintf(ending, sizeof(ending), ", exit code %d", r->exit_code);
    snprintf(text, sizeof(text), "%s, %s, %s%s", r->live ? r->path : r->name, span, run_state(r),
             ending);
    line(t, "run", text);
}

static void print_server_line(const struct overview *f, const struct term *t)
{
    const struct run *r = f->run;
    char text[4200], hosts[32] = "";

    if (f->host_count > 1)
        snprintf(hosts, sizeof(hosts), " on %u hosts", f->host_count);
    snprintf(text, sizeof(text), "%s (%u process%s%s)",
             r->command ? r->command : "command not on record", r->process_count,
             r->process_count == 1 ? "" : "es", hosts);
    line(t, "server", text);
}

static void print_nccl_lines(const struct overview *f, const struct term *t)
{
    char text[700], version[UNIT_SIZE];

    if (!f->copy_count)
        line(t, "nccl", "not on record");
    for (uint32_t i = 0; i < f->copy_count; i++) {
        const struct nccl_copy *c = &f->copies[i];
        char where[64] = "";
        if (f->copy_count > 1)
            snprintf(where, sizeof(where), ", in %u process%s", c->processes,
                     c->processes == 1 ? "" : "es");
        else if (f->most_copies == 1)
            snprintf(where, sizeof(where), ", one copy");
        snprintf(text, sizeof(text), "%s, %s%s", nccl_version_text(c->version, version), c->path,
                 where);
        line(t, i ? "" : "nccl", text);
    }
}

static void print_gpu_line(const struct overview *f, const struct term *t)
{
    char text[1200] = "", sm[24];
    size_t at = 0;

    for (uint32_t i = 0; i < f->gpu_kinds && at < sizeof(text); i++) {
        const struct gpu_kind *g = &f->gpus[i];
        snprintf(sm, sizeof(sm), ", sm %u.%u", g->sm / 10, g->sm % 10);
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u x %s%s", i ? "; " : "", g->count,
                               g->name, g->sm ? sm : "");
    }
    if (f->gpu_count && f->rank_count > f->gpu_count && at < sizeof(text))
        snprintf(text + at, sizeof(text) - at, "; %u ranks share %s", f->rank_count,
                 f->gpu_count == 1 ? "it" : "them");
    line(t, "gpus", at ? text : "not on record");
}

static void print_profile_line(const struct overview *f, const struct term *t)
{
    const struct run *r = f->run;
    char text[4000];
    size_t at = (size_t)snprintf(text, sizeof(text), "%s",
                                 r->profile && r->profile[0] ? r->profile : "none");
    unsigned ours = 0, users = 0;

    for (size_t i = 0; i < f->settings.count && at < sizeof(text); i++) {
        const struct run_setting_value *v = run_setting_usual(&f->settings.items[i], r);
        if (!v)
            continue;
        if (v->origin != NCCLSHIM_ORIGIN_PROFILE && v->origin != NCCLSHIM_ORIGIN_OVERRIDE) {
            users++;
            continue;
        }
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %s=%s", ours++ ? "" : ":",
                               f->settings.items[i].name, v->value);
    }
    if (users && at < sizeof(text))
        snprintf(text + at, sizeof(text) - at, "%s %u NCCL setting%s from elsewhere (below)",
                 ours ? ";" : ",", users, users == 1 ? "" : "s");
    line(t, "profile", text);
}

static void print_log_lines(const struct overview *f, const struct term *t)
{
    const struct run *r = f->run;
    char text[600], a[UNIT_SIZE], b[UNIT_SIZE], c[UNIT_SIZE], d[UNIT_SIZE];
    size_t at;

    at =
        (size_t)snprintf(text, sizeof(text), "%s calls, %s timed, %s lost",
                         unit_count(r->issued, a), unit_count(r->timed, b), unit_count(r->lost, c));
    if (r->groups_timed)
        at += (size_t)snprintf(text + at, sizeof(text) - at, ", %s groups timed as a whole",
                               unit_count(r->groups_timed, c));
    if (r->torn)
        at += (size_t)snprintf(text + at, sizeof(text) - at, ", %s torn", unit_count(r->torn, c));
    if (r->unfinished)
        at += (size_t)snprintf(text + at, sizeof(text) - at, ", %s not finished",
                               unit_count(r->unfinished, c));
    at += (size_t)snprintf(text + at, sizeof(text) - at, ", %s not intercepted",
                           unit_count(r->missed_calls, d));
    if (!r->whole)
        snprintf(text + at, sizeof(text) - at,
                 "; the newest records only, older ones were overwritten");
    line(t, "log", text);
    if (r->stamp == NCCLSHIM_STAMP_NONE)
        snprintf(text, sizeof(text), "%s", stamp_text(r->stamp));
    else if (r->floor_ns)
        snprintf(text, sizeof(text), "%s; each time includes a floor of %s (an empty pair, median)",
                 stamp_text(r->stamp), unit_ns(r->floor_ns, a));
    else
        snprintf(text, sizeof(text), "%s; floor not measured", stamp_text(r->stamp));
    line(t, "measuring", text);
}

static void print_header(const struct overview *f, const struct term *t)
{
    if (f->run->simulated)
        print_simulated(t);
    print_run_line(f, t);
    print_server_line(f, t);
    print_nccl_lines(f, t);
    print_gpu_line(f, t);
    print_profile_line(f, t);
    print_log_lines(f, t);
}

/* ---- forward passes -------------------------------------------------------------------------- */

static void print_passes(const struct overview *f, const struct term *t, bool all)
{
    const struct run *r = f->run;
    char label[96], a[UNIT_SIZE];
    struct table table;

    if (!r->pass_count)
        return;
    print_title(t, "forward passes", "(replays of captured graphs, first call to last)");
    table_init(&table);
    table_column(&table, "calls of one pass", TABLE_LEFT | TABLE_FLEXIBLE, 0);
    table_column(&table, "passes", 0, 0);
    table_column(&table, "graphs", 0, 3);
    table_column(&table, "pass p50", 0, 0);
    table_column(&table, "p99", 0, 2);
    table_column(&table, "start to start", 0, 4);
    table_column(&table, "in calls", 0, 0);
    table_column(&table, "share", 0, 0);
    for (uint32_t i = 0; i < r->pass_count && (all || i < PASSES_SHOWN); i++) {
        const struct run_pass *p = &r->passes[i];
        table_cell(&table, "%s", pass_label(p, label, sizeof(label)));
        table_cell(&table, "%s", unit_count(p->passes, a));
        table_cell(&table, "%s", p->graphs > 1 ? unit_count(p->graphs, a) : "");
        table_cell(&table, "%s", unit_ns(hist_quantile(&p->pass_ns, 0.5), a));
        table_cell(&table, "%s", unit_ns(hist_quantile(&p->pass_ns, 0.99), a));
        table_cell(&table, "%s",
                   p->period_ns.count ? unit_ns(hist_quantile(&p->period_ns, 0.5), a) : "");
        table_cell(&table, "%s", unit_ns(hist_quantile(&p->comm_ns, 0.5), a));
        table_cell(&table, "%s", unit_percent((double)p->comm_ns.sum / (double)p->pass_ns.sum, a));
    }
    table_print(&table, t, 2);
    table_free(&table);
    if (!all && r->pass_count > PASSES_SHOWN)
        fprintf(t->out, "  ... and %u more kinds: --all\n", r->pass_count - PASSES_SHOWN);
}

/* ---- communicators --------------------------------------------------------------------------- */

static void row_columns(struct table *table)
{
    table_init(table);
    table_column(table, "operation", TABLE_LEFT, 0);
    table_column(table, "size", 0, 0);
    table_column(table, "how", TABLE_LEFT, 1);
    table_column(table, "calls", 0, 0);
    table_column(table, "timed", 0, 0);
    table_column(table, "lost", 0, 0);
    table_column(table, "p50", 0, 0);
    table_column(table, "p90", 0, 9);
    table_column(table, "p99", 0, 0);
    table_column(table, "max", 0, 7);
    table_column(table, "total", 0, 8);
    table_column(table, "bus GB/s", 0, 5);
    table_column(table, "algo proto ch", TABLE_LEFT, 3);
    table_column(table, "type", TABLE_LEFT, 12);
    table_column(table, "expected", 0, 4);
    table_column(table, "waits", 0, 2);
    table_column(table, "transfer", 0, 6);
}

static void time_cell(struct table *table, const struct run_row *row, double q)
{
    char a[UNIT_SIZE];

    table_cell(table, "%s", row->timed ? unit_ns(hist_quantile(&row->ns, q), a) : "-");
}

static void row_cells(struct table *table, const struct run *r, const struct run_row *row)
{
    char a[UNIT_SIZE], choice[64];
    const struct run_wait *w = &row->wait;

    table_cell(table, "%s%s", row->part ? ". " : "", op_name(row->op));
    table_cell(table, "%s", unit_bytes(row->bytes, a));
    table_cell(table, "%s%s", row->captured ? "captured" : "eager",
               row->part ? ", in a group" : "");
    table_cell(table, "%s", unit_count(row->issued, a));
    table_cell(table, "%s", row->timed != row->issued ? unit_count(row->timed, a) : "");
    table_cell(table, "%s", row->lost ? unit_count(row->lost, a) : "");
    time_cell(table, row, 0.5);
    time_cell(table, row, 0.9);
    time_cell(table, row, 0.99);
    table_cell(table, "%s", row->timed ? unit_ns(row->ns.max, a) : "-");
    table_cell(table, "%s", row->timed ? unit_ns(row->ns.sum, a) : "-");
    table_cell(table, "%s", unit_gbps(row_bus_gbps(r, row, hist_quantile(&row->ns, 0.5)), a));
    table_cell(table, "%s", choice_label(row, choice, sizeof(choice)));
    table_cell(table, "%s", dtype_name(row->dtype));
    table_cell(table, "%s", row->expected_ns ? unit_ns(row->expected_ns, a) : "");
    table_cell(table, "%s",
               w->busy_ns ? unit_percent((double)w->wait_ns / (double)w->busy_ns, a) : "");
    table_cell(table, "%s", w->calls ? unit_ns(hist_quantile(&w->transfer, 0.5), a) : "");
}

static void comm_title(const struct overview *f, uint32_t comm, const struct term *t)
{
    const struct run *r = f->run;
    const struct run_comm *c = &r->comms[comm];
    char name[300], rest[256], nodes[40] = "";

    if (c->nodes > 1)
        snprintf(nodes, sizeof(nodes), " on %d nodes", c->nodes);
    snprintf(rest, sizeof(rest), "(%d rank%s%s)%s%s", c->ranks, c->ranks == 1 ? "" : "s", nodes,
             c->timed ? "" : ", counted, not timed",
             c->flags & NCCLSHIM_COMM_NONBLOCKING ? ", non-blocking" : "");
    comm_label(r, comm, name, sizeof(name));
    print_title(t, name, rest);
}

static void print_comm(const struct overview *f, uint32_t comm, const struct report_options *o,
                       const struct term *t)
{
    const struct run *r = f->run;
    uint32_t count, shown;
    const struct run_row **rows = rows_of_comm(r, comm, o->sort, &count);
    uint64_t left_ns = 0, all_ns = 0;
    char a[UNIT_SIZE];
    struct table table;

    if (!rows || !count) {
        free(rows);
        return;
    }
    comm_title(f, comm, t);
    row_columns(&table);
    shown = o->all || count <= ROWS_SHOWN + 2 ? count : ROWS_SHOWN;
    for (uint32_t i = 0; i < shown; i++)
        row_cells(&table, r, rows[i]);
    table_print(&table, t, 2);
    table_free(&table);
    for (uint32_t i = 0; i < count; i++) {
        all_ns += rows[i]->ns.sum;
        left_ns += i >= shown ? rows[i]->ns.sum : 0;
    }
    if (shown < count)
        fprintf(t->out, "  ... and %u more kinds of call, %s of the time: --all\n", count - shown,
                unit_percent(all_ns ? (double)left_ns / (double)all_ns : 0, a));
    free(rows);
}

/* ---- worth a look ---------------------------------------------------------------------------- */

static void print_hints(const struct overview *f, const struct term *t)
{
    if (!f->hint_count)
        return;
    print_title(t, "worth a look", "");
    for (unsigned i = 0; i < f->hint_count; i++) {
        const struct hint *h = &f->hints[i];
        fprintf(t->out, "  %s%s%s ", h->serious ? term_on(t, COLOUR_RED) : "",
                h->serious ? "!" : "-", h->serious ? term_off(t) : "");
        print_wrapped(t, h->text, 4);
    }
}

/* Of the communicators that made calls, those that take most of the time. */
static void print_comms(const struct overview *f, const struct report_options *o,
                        const struct term *t)
{
    const struct run *r = f->run;
    uint32_t count = 0, shown, at = 0;
    uint64_t left_ns = 0, all_ns = 0;
    char a[UNIT_SIZE];

    for (uint32_t i = 0; i < r->row_count; i++)
        count += !i || r->rows[i].comm != r->rows[i - 1].comm;
    shown = o->all || count <= COMMS_SHOWN + 2 ? count : COMMS_SHOWN;
    for (uint32_t i = 0; i < r->row_count; i++) {
        if (!i || r->rows[i].comm != r->rows[i - 1].comm) {
            if (at < shown)
                print_comm(f, r->rows[i].comm, o, t);
            at++;
        }
        all_ns += r->rows[i].ns.sum;
        left_ns += at > shown ? r->rows[i].ns.sum : 0;
    }
    if (shown < count)
        fprintf(t->out, "\n... and %u more communicators, %s of the time: --all, or --comm NAME\n",
                count - shown, unit_percent(all_ns ? (double)left_ns / (double)all_ns : 0, a));
}

void report_text(const struct overview *f, const struct report_options *o, const struct term *t)
{
    print_header(f, t);
    print_passes(f, t, o->all);
    print_comms(f, o, t);
    if (!f->run->row_count)
        fprintf(t->out, "\nno collective is on record\n");
    print_hints(f, t);
    print_missed(f, t);
    print_ranks(f, t, o->all);
    print_settings(f, t);
    print_rules(f, t);
    print_warnings(f, t);
}
