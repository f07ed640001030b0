/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/html.h"
#include "shim/show/plot.h"
#include "shim/show/term.h"
#include "shim/show/timeline.h"

#define PLOTS_MOST 12
#define ROWS_MOST 200

/* ---- head ------------------------------------------------------------------------------------ */

static void write_facts(struct sink *s, const struct overview *f)
{
    const struct run *r = f->run;
    uint64_t from = r->started_ns ? r->started_ns : r->first_ns,
             to = r->ended_ns ? r->ended_ns : r->last_ns;
    char a[UNIT_SIZE], b[UNIT_SIZE];

    sink_text(s, "<dl class=\"facts\">\n");
    html_fact(s, "run", "%s, %s, from %s", run_state(r),
              to > from ? unit_ns(to - from, a) : "no calls", unit_date(from, b));
    html_fact(s, "server", "%s (%u process%s)", r->command ? r->command : "command not on record",
              r->process_count, r->process_count == 1 ? "" : "es");
    for (uint32_t i = 0; i < f->copy_count; i++)
        html_fact(s, i ? "" : "nccl", "%s, %s", nccl_version_text(f->copies[i].version, a),
                  f->copies[i].path);
    for (uint32_t i = 0; i < f->gpu_kinds; i++)
        html_fact(s, i ? "" : "gpus", "%u x %s, sm %u.%u%s", f->gpus[i].count, f->gpus[i].name,
                  f->gpus[i].sm / 10, f->gpus[i].sm % 10,
                  f->rank_count > f->gpu_count ? "; several ranks share one" : "");
    html_fact(s, "profile", "%s", r->profile && r->profile[0] ? r->profile : "none");
    if (r->floor_ns)
        html_fact(s, "measuring", "%s; each time includes a floor of %s (an empty pair, median)",
                  stamp_text(r->stamp), unit_ns(r->floor_ns, a));
    else
        html_fact(s, "measuring", "%s", stamp_text(r->stamp));
    if (!r->whole)
        html_fact(s, "log", "the newest records only, older ones were overwritten");
    sink_text(s, "</dl>\n");
}

static void tile(struct sink *s, const char *value, const char *label)
{
    sink_text(s, "<div class=\"tile\"><b>");
    html_text(s, value);
    sink_text(s, "</b><span>");
    html_text(s, label);
    sink_text(s, "</span></div>\n");
}

static void write_tiles(struct sink *s, const struct overview *f)
{
    const struct run *r = f->run;
    char a[UNIT_SIZE], label[160], name[96];

    sink_text(s, "<div class=\"tiles\">\n");
    tile(s, unit_count(r->timed, a), "calls timed");
    tile(s, unit_count(r->lost, a), "lost");
    tile(s, unit_count(r->missed_calls, a), "not intercepted");
    if (r->pass_count) {
        const struct run_pass *p = &r->passes[0];
        snprintf(label, sizeof(label), "pass p50: %s", pass_label(p, name, sizeof(name)));
        tile(s, unit_ns(hist_quantile(&p->pass_ns, 0.5), a), label);
        tile(s,
             unit_percent(p->pass_ns.sum ? (double)p->comm_ns.sum / (double)p->pass_ns.sum : 0, a),
             "of it communication");
    }
    sink_text(s, "</div>\n");
}

static void write_hints(struct sink *s, const struct overview *f)
{
    if (!f->hint_count)
        return;
    html_section(s, "Worth a look", NULL);
    sink_text(s, "<ul class=\"hints\">\n");
    for (unsigned i = 0; i < f->hint_count; i++) {
        sink_text(s, f->hints[i].serious ? "<li class=\"bad\">" : "<li>");
        html_text(s, f->hints[i].text);
        sink_text(s, "</li>\n");
    }
    sink_text(s, "</ul>");
    html_section_end(s);
}

/* ---- passes ---------------------------------------------------------------------------------- */

static int write_passes(struct sink *s, const struct overview *f)
{
    const struct run *r = f->run;
    struct timeline *t;
    struct error e;
    char a[UNIT_SIZE], label[96];

    if (!r->pass_count)
        return 0;
    html_section(s, "Forward passes", "Replays of captured graphs, first call to last.");
    sink_text(s, "<div class=\"wide\"><table><tr><th class=\"l\">calls of one "
                 "pass</th><th>passes</th><th>pass p50</th>"
                 "<th>p99</th><th>start to start</th><th>communication</th><th>share</th></tr>\n");
    for (uint32_t i = 0; i < r->pass_count && i < ROWS_MOST; i++) {
        const struct run_pass *p = &r->passes[i];
        sink_text(s, "<tr>");
        html_td_left(s, "%s", pass_label(p, label, sizeof(label)));
        html_td(s, "%s", unit_count(p->passes, a));
        html_td(s, "%s", unit_ns(hist_quantile(&p->pass_ns, 0.5), a));
        html_td(s, "%s", unit_ns(hist_quantile(&p->pass_ns, 0.99), a));
        html_td(s, "%s", p->period_ns.count ? unit_ns(hist_quantile(&p->period_ns, 0.5), a) : "-");
        html_td(s, "%s", unit_ns(hist_quantile(&p->comm_ns, 0.5), a));
        html_td(s, "%s", unit_percent((double)p->comm_ns.sum / (double)p->pass_ns.sum, a));
        sink_text(s, "</tr>\n");
    }
    sink_text(s, "</table></div>\n");
    t = malloc(sizeof(*t));
    if (!t || timeline_make(r, t, &e) < 0) {
        free(t);
        return -1;
    }
    if (t->passes > 1) {
        sink_text(s, "<h3>Over the run</h3><p class=\"note\">");
        html_textf(s, "Line: median; band: 10th to 99th percentile; %s passes on record.",
                   unit_count(t->passes, a));
        sink_text(s, "</p>");
        plot_timeline(s, t->bins, TIMELINE_BINS, t->span_ns);
    }
    free(t);
    html_section_end(s);
    return 0;
}

/* ---- communicators --------------------------------------------------------------------------- */

static void write_row(struct sink *s, const struct run *r, const struct run_row *row)
{
    char a[UNIT_SIZE], choice[64];
    const struct hist *h = &row->ns;

    sink_text(s, "<tr>");
    html_td_left(s, "%s%s", op_name(row->op), row->part ? " (in a group)" : "");
    html_td(s, "%s", unit_bytes(row->bytes, a));
    html_td_left(s, "%s", row->captured ? "captured" : "eager");
    html_td(s, "%s", unit_count(row->issued, a));
    html_td(s, "%s", unit_count(row->timed, a));
    html_td(s, "%s", unit_count(row->lost, a));
    html_td(s, "%s", row->timed ? unit_ns(hist_quantile(h, 0.5), a) : "-");
    html_td(s, "%s", row->timed ? unit_ns(hist_quantile(h, 0.9), a) : "-");
    html_td(s, "%s", row->timed ? unit_ns(hist_quantile(h, 0.99), a) : "-");
    html_td(s, "%s", row->timed ? unit_ns(h->max, a) : "-");
    html_td(s, "%s", row->timed ? unit_ns(h->sum, a) : "-");
    html_td(s, "%s", unit_gbps(row_bus_gbps(r, row, hist_quantile(h, 0.5)), a));
    html_td_left(s, "%s", choice_label(row, choice, sizeof(choice)));
    html_td(s, "%s",
            row->wait.busy_ns
                ? unit_percent((double)row->wait.wait_ns / (double)row->wait.busy_ns, a)
                : "-");
    sink_text(s, "</tr>\n");
}

/* One range for all plots of a communicator, so that sizes can be read against each other. */
static struct log_range range_of(const struct run_row **rows, uint32_t count)
{
    uint64_t low = UINT64_MAX, high = 0;

    for (uint32_t i = 0; i < count && i < PLOTS_MOST; i++)
        if (rows[i]->timed) {
            low = rows[i]->ns.min < low ? rows[i]->ns.min : low;
            high = rows[i]->ns.max > high ? rows[i]->ns.max : high;
        }
    return log_range_of(low == UINT64_MAX ? 1 : low, high);
}

static void write_plots(struct sink *s, const struct run_row **rows, uint32_t count)
{
    struct log_range range = range_of(rows, count);
    char bytes[UNIT_SIZE], n[UNIT_SIZE];

    sink_text(s, "<h3>Distributions</h3><p class=\"note\">Both axes logarithmic, one time axis for "
                 "all.</p><div class=\"plots\">\n");
    for (uint32_t i = 0; i < count && i < PLOTS_MOST; i++) {
        const struct hist *h = &rows[i]->ns;
        if (!rows[i]->timed)
            continue;
        sink_text(s, "<figure><figcaption>");
        html_textf(s, "%s %s %s ", op_name(rows[i]->op), unit_bytes(rows[i]->bytes, bytes),
                   rows[i]->captured ? "captured" : "eager");
        sink_printf(s, "<i>%s calls</i></figcaption>", unit_count(rows[i]->timed, n));
        plot_distributions(s, &h, 1, range);
        sink_text(s, "</figure>\n");
    }
    sink_text(s, "</div>\n");
}

static void write_ranks(struct sink *s, const struct overview *f, uint32_t comm)
{
    const struct run_comm *c = &f->run->comms[comm];
    const struct arrivals *a = &f->arrivals[comm];
    struct plot_rank *ranks;
    char n[UNIT_SIZE], error[UNIT_SIZE];

    if (c->member_count < 2)
        return;
    sink_text(s, "<h3>Waiting for peers</h3><p class=\"note\">");
    if (a->why_not[0]) {
        html_textf(s, "Not known: %s.", a->why_not);
        sink_text(s, "</p>");
        return;
    }
    html_textf(s, "Mean of %s newest calls; the ranks' clocks agree to within %s.",
               unit_count(a->calls, n), unit_ns(a->clock_error_ns, error));
    sink_text(s,
              "<span class=\"key\" style=\"background:var(--b)\"></span>waiting for the last rank"
              "<span class=\"key\" style=\"background:var(--a)\"></span>transfer</p>");
    ranks = calloc(c->member_count, sizeof(*ranks));
    for (uint32_t i = 0; ranks && i < c->member_count; i++)
        ranks[i] = (struct plot_rank){c->members[i].rank, a->ranks[i].wait_ns / a->calls,
                                      (a->ranks[i].busy_ns - a->ranks[i].wait_ns) / a->calls};
    if (ranks)
        plot_ranks(s, ranks, c->member_count);
    free(ranks);
}

static int write_comm(struct sink *s, const struct overview *f, uint32_t comm,
                      const struct report_options *o)
{
    const struct run *r = f->run;
    uint32_t count;
    const struct run_row **rows = rows_of_comm(r, comm, o->sort, &count);
    char title[400], label[300];

    if (!rows)
        return -1;
    if (count) {
        snprintf(title, sizeof(title), "Communicator %s (%d ranks)",
                 comm_label(r, comm, label, sizeof(label)) + 5, r->comms[comm].ranks);
        html_section(s, title, r->comms[comm].timed ? NULL : "Counted, not timed.");
        sink_text(s, "<div class=\"wide\"><table><tr><th "
                     "class=\"l\">operation</th><th>size</th><th class=\"l\">how</th>"
                     "<th>calls</th><th>timed</th><th>lost</th><th>p50</th><th>p90</th><th>p99</"
                     "th><th>max</th>"
                     "<th>total</th><th>bus GB/s</th><th class=\"l\">algo proto "
                     "ch</th><th>waits</th></tr>\n");
        for (uint32_t i = 0; i < count && i < ROWS_MOST; i++)
            write_row(s, r, rows[i]);
        sink_text(s, "</table></div>\n");
        write_plots(s, rows, count);
        write_ranks(s, f, comm);
        html_section_end(s);
    }
    free(rows);
    return 0;
}

/* ---- settings -------------------------------------------------------------------------------- */

static void write_settings(struct sink *s, const struct overview *f)
{
    char label[300];

    if (!f->settings.count)
        return;
    html_section(s, "Settings", NULL);
    sink_text(s, "<div class=\"wide\"><table><tr><th class=\"l\">variable</th><th class=\"l\">in "
                 "force</th><th class=\"l\">from</th>"
                 "<th class=\"l\">NCCL asked for it</th></tr>\n");
    for (size_t i = 0; i < f->settings.count; i++) {
        const struct run_setting *item = &f->settings.items[i];
        for (uint32_t p = 0; p < f->run->process_count; p++) {
            const struct run_setting_value *v =
                item->differs ? &item->by_process[p] : run_setting_usual(item, f->run);
            if (!v || (!item->differs && p))
                break;
            sink_text(s, "<tr>");
            html_td_left(s, "%s%s%s", item->name, item->differs ? " on " : "",
                         item->differs ? process_label(f->run, p, label, sizeof(label)) : "");
            sink_text(s, "<td class=\"v\">");
            html_text(s, v->value ? v->value : "(not set)");
            sink_text(s, "</td>");
            html_td_left(s, "%s%s", v->value ? origin_name(v->origin) : "",
                         v->lost ? ", the profile asked otherwise" : "");
            html_td_left(s, "%s",
                         item->read == SETTING_READ       ? "yes"
                         : item->read == SETTING_NOT_READ ? "no"
                                                          : "not known");
            sink_text(s, "</tr>\n");
        }
    }
    sink_text(s, "</table></div>");
    html_section_end(s);
}

int report_html(const struct overview *f, const struct report_options *o, FILE *out)
{
    struct sink *s = malloc(sizeof(*s));
    char title[1024];
    int rc = 0;

    if (!s)
        return -1;
    sink_init(s, out);
    snprintf(title, sizeof(title), "Report of %s", f->run->name);
    html_begin(s, title, f->run->simulated);
    write_facts(s, f);
    write_tiles(s, f);
    write_hints(s, f);
    rc |= write_passes(s, f);
    for (uint32_t i = 0; i < f->run->comm_count; i++)
        rc |= write_comm(s, f, i, o);
    write_settings(s, f);
    html_end(s);
    rc |= sink_flush(s);
    free(s);
    return rc < 0 ? -1 : 0;
}
