/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/ab_show.h"

#include <math.h>
#include <stdio.h>

#include "shim/base/names.h"
#include "shim/show/compare_show.h"
#include "shim/show/table.h"

/* A metric is better or worse; only times are faster and slower. */
static const char *metric_word(enum verdict v)
{
    return v == VERDICT_FASTER   ? "better"
           : v == VERDICT_SLOWER ? "worse"
           : v == VERDICT_NONE   ? "no difference shown"
                                 : "one round tells nothing";
}

static void change_cells(struct table *table, const struct difference *d)
{
    char text[UNIT_SIZE];

    table_cell(table, "%s", d->known ? change_text(d->change, text) : "-");
    if (d->known)
        table_cell(table, "[%+.1f, %+.1f]", d->low * 100, d->high * 100);
    else
        table_cell(table, "%s", "");
}

static void metric_row(const struct ab_result *r, size_t side, struct table *table)
{
    const struct metric_test *t = &r->tests[side];

    table_cell(table, "%s", r->metric.label);
    table_cell(table, "%s", "");
    table_cell(table, "%s", "");
    table_cell(table, "%.4g", metric_mean(r->values[0], r->o.rounds));
    table_cell(table, "%.4g", metric_mean(r->values[side], r->o.rounds));
    change_cells(table, &t->difference);
    table_cell_colour(table, verdict_colour(t->verdict), metric_word(t->verdict));
}

static const char *value_of(const struct compare_value *v, char *buf)
{
    if (!v->ns.count)
        return "-";
    return unit_ns(v->median.known ? (uint64_t)(exp(v->median.log_ns) + 0.5)
                                   : hist_quantile(&v->ns, 0.5),
                   buf);
}

static void call_row(const struct compare_row *c, size_t side, struct table *table)
{
    const struct compare_test *t = &c->median[side];
    char text[UNIT_SIZE];

    table_cell(table, "%s", op_name(c->op));
    table_cell(table, "%s", unit_bytes(c->bytes, text));
    table_cell(table, "%s", c->captured ? "captured" : "eager");
    table_cell(table, "%s", value_of(&c->values[0], text));
    table_cell(table, "%s", value_of(&c->values[side], text));
    change_cells(table, &t->difference);
    table_cell_colour(table, verdict_colour(t->verdict), verdict_name(t->verdict));
}

static void side_table(const struct ab_result *r, size_t side, const struct term *t)
{
    struct table table;

    table_init(&table);
    table_column(&table, "", TABLE_LEFT, 0);
    table_column(&table, "", 0, 0);
    table_column(&table, "", TABLE_LEFT, 1);
    table_column(&table, r->labels[0], 0, 0);
    table_column(&table, r->labels[side], 0, 0);
    table_column(&table, "change", 0, 0);
    table_column(&table, "95 %", TABLE_LEFT, 2);
    table_column(&table, "", TABLE_LEFT, 0);
    if (r->has_metric)
        metric_row(r, side, &table);
    for (size_t i = 0; r->has_calls && i < r->calls.row_count; i++)
        call_row(&r->calls.rows[i], side, &table);
    table_print(&table, t, 0);
    table_free(&table);
}

static void verdict_line(const struct ab_result *r, size_t side, const struct term *t)
{
    enum verdict v = ab_verdict(r, side);
    const char *colour = term_on(t, verdict_colour(v)), *off = term_off(t);

    fprintf(t->out, "verdict: %s", colour);
    if (v == VERDICT_NONE)
        fprintf(t->out, "no difference shown between %s and %s", r->labels[0], r->labels[side]);
    else if (v == VERDICT_UNKNOWN)
        fprintf(t->out, "none for %s: %s", r->labels[side],
                r->has_metric ? "one round tells nothing about the next; take -n 3 or more"
                              : "too few calls on both sides");
    else if (v == VERDICT_MIXED)
        fprintf(t->out, "%s is faster in some calls and slower in others", r->labels[side]);
    else
        fprintf(t->out, "%s is %s", r->labels[side],
                r->has_metric ? metric_word(v) : verdict_name(v));
    fprintf(t->out, "%s", off);
    if (r->has_metric && r->has_calls && v == VERDICT_NONE &&
        r->calls.whole[side].verdict != VERDICT_NONE &&
        r->calls.whole[side].verdict != VERDICT_UNKNOWN)
        fprintf(t->out, " in %s, whatever its calls do (%s)", r->metric.label,
                verdict_name(r->calls.whole[side].verdict));
    fputc('\n', t->out);
}

void ab_text(const struct ab_result *r, const struct term *t)
{
    if (r->simulated)
        print_simulated(t);
    for (size_t s = 1; s < r->o.sides; s++) {
        side_table(r, s, t);
        fputc('\n', t->out);
    }
    if (r->no_calls[0])
        fprintf(t->out, "calls were not compared: %s\n", r->no_calls);
    for (size_t s = 1; s < r->o.sides; s++)
        verdict_line(r, s, t);
    fprintf(t->out, "%u rounds, runs in %s\n", r->o.rounds, r->folder.path);
}
