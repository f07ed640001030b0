/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/compare_show.h"
#include "shim/show/html.h"
#include "shim/show/plot.h"

#define ROWS_MOST 100
#define PLOTS_MOST 12

static int sign_of(enum verdict v)
{
    return v == VERDICT_FASTER ? -1 : v == VERDICT_SLOWER ? 1 : 0;
}

static void write_facts(struct sink *s, const struct compare *c)
{
    char label[4], n[UNIT_SIZE];

    sink_text(s, "<dl class=\"facts\">\n");
    for (size_t i = 0; i < c->side_count; i++) {
        const struct compare_side *side = &c->sides[i];
        uint64_t timed = 0;
        for (size_t k = 0; k < side->run_count; k++)
            timed += side->runs[k]->timed;
        snprintf(label, sizeof(label), "%c", (int)('A' + i % 26));
        html_fact(s, label, "%s: profile %s, %zu run%s, %s calls timed", side->label,
                  side->runs[0]->profile && side->runs[0]->profile[0] ? side->runs[0]->profile
                                                                      : "none",
                  side->run_count, side->run_count == 1 ? "" : "s", unit_count(timed, n));
    }
    sink_text(s, "</dl>\n");
}

static void row_name(const struct compare_row *r, char *buf, size_t size)
{
    char bytes[UNIT_SIZE];

    snprintf(buf, size, "%s %s %s", op_name(r->op), unit_bytes(r->bytes, bytes),
             r->captured ? "captured" : "eager");
}

static void quantile_row(struct sink *s, const struct compare_row *r, const struct compare_test *t,
                         size_t side, double q)
{
    const struct hist *a = &r->values[0].ns, *b = &r->values[side].ns;
    const struct difference *d = &t->difference;
    char name[128], share[UNIT_SIZE], text[UNIT_SIZE];
    const char *class = t->verdict == VERDICT_FASTER   ? "l faster"
                        : t->verdict == VERDICT_SLOWER ? "l slower"
                                                       : "l";

    row_name(r, name, sizeof(name));
    sink_text(s, "<tr>");
    html_td_left(s, "%s", q > 0.5 ? "" : name);
    html_td_left(s, "%s", q > 0.5 ? "p99" : "p50");
    html_td(s, "%s", a->count ? unit_ns(hist_quantile(a, q), text) : "-");
    html_td(s, "%s", b->count ? unit_ns(hist_quantile(b, q), text) : "-");
    html_td(s, "%s", d->known ? change_text(d->change, text) : "-");
    if (d->known)
        html_td_left(s, "%+.1f to %+.1f %%", d->low * 100, d->high * 100);
    else
        html_td_left(s, "%s", "");
    sink_printf(s, "<td class=\"%s\">", class);
    html_text(s, !a->count ? "not in A" : !b->count ? "only in A" : verdict_name(t->verdict));
    sink_text(s, "</td>");
    html_td(s, "%s", q > 0.5 ? "" : unit_percent(r->share, share));
    sink_text(s, "</tr>\n");
}

static void write_forest(struct sink *s, const struct compare *c, size_t side)
{
    struct plot_change changes[PLOTS_MOST];
    char names[PLOTS_MOST][128];
    unsigned count = 0;

    for (size_t i = 0; i < c->row_count && count < PLOTS_MOST; i++) {
        const struct compare_test *t = &c->rows[i].median[side];
        if (!t->difference.known)
            continue;
        row_name(&c->rows[i], names[count], sizeof(names[0]));
        changes[count] = (struct plot_change){names[count], t->difference.change, t->difference.low,
                                              t->difference.high, sign_of(t->verdict)};
        count++;
    }
    if (!count)
        return;
    sink_text(s, "<h3>Change of the median</h3>");
    plot_changes(s, changes, count);
}

static void write_distributions(struct sink *s, const struct compare *c, size_t side)
{
    char name[128];

    sink_text(s, "<h3>Distributions</h3><p class=\"note\">Both axes logarithmic."
                 "<span class=\"key\" style=\"background:var(--a)\"></span>A<span class=\"key\" "
                 "style=\"background:var(--b)\"></span>");
    sink_printf(s, "%c</p><div class=\"plots\">\n", (int)('A' + side % 26));
    for (size_t i = 0; i < c->row_count && i < PLOTS_MOST; i++) {
        const struct hist *hists[2] = {&c->rows[i].values[0].ns, &c->rows[i].values[side].ns};
        uint64_t low = UINT64_MAX, high = 0;
        for (unsigned k = 0; k < 2; k++)
            if (hists[k]->count) {
                low = hists[k]->min < low ? hists[k]->min : low;
                high = hists[k]->max > high ? hists[k]->max : high;
            }
        if (!high)
            continue;
        row_name(&c->rows[i], name, sizeof(name));
        sink_text(s, "<figure><figcaption>");
        html_text(s, name);
        sink_text(s, "</figcaption>");
        plot_distributions(s, hists, 2, log_range_of(low, high));
        sink_text(s, "</figure>\n");
    }
    sink_text(s, "</div>\n");
}

static void write_side(struct sink *s, const struct compare *c, size_t side)
{
    char title[16], text[300];

    snprintf(title, sizeof(title), "%c against A", (int)('A' + side % 26));
    html_section(s, title, NULL);
    sink_printf(s, "<p class=\"%s\">",
                c->whole[side].verdict == VERDICT_FASTER   ? "faster"
                : c->whole[side].verdict == VERDICT_SLOWER ? "slower"
                                                           : "");
    html_text(s, whole_text(c, side, text, sizeof(text)));
    sink_text(s, "</p>\n<div class=\"wide\"><table><tr><th class=\"l\">kind of "
                 "call</th><th></th><th>A</th>");
    sink_printf(s,
                "<th>%c</th><th>change</th><th class=\"l\">95 %% interval</th><th "
                "class=\"l\">verdict</th><th>share of time</th></tr>\n",
                (int)('A' + side % 26));
    for (size_t i = 0; i < c->row_count && i < ROWS_MOST; i++) {
        quantile_row(s, &c->rows[i], &c->rows[i].median[side], side, 0.5);
        quantile_row(s, &c->rows[i], &c->rows[i].p99[side], side, 0.99);
    }
    sink_text(s, "</table></div>\n");
    write_forest(s, c, side);
    write_distributions(s, c, side);
    html_section_end(s);
}

static void write_changes(struct sink *s, const struct compare *c,
                          const struct setting_changes *changes)
{
    if (!changes->count)
        return;
    html_section(s, "Settings that differ", NULL);
    sink_text(s, "<div class=\"wide\"><table><tr><th class=\"l\">variable</th>");
    for (size_t k = 0; k < c->side_count; k++)
        sink_printf(s, "<th class=\"l\">%c</th>", (int)('A' + k % 26));
    sink_text(s, "</tr>\n");
    for (size_t i = 0; i < changes->count; i++) {
        sink_text(s, "<tr>");
        html_td_left(s, "%s", changes->items[i].name);
        for (size_t k = 0; k < c->side_count; k++) {
            sink_text(s, "<td class=\"v\">");
            html_text(s, changes->items[i].values[k] ? changes->items[i].values[k] : "(not set)");
            sink_text(s, "</td>");
        }
        sink_text(s, "</tr>\n");
    }
    sink_text(s, "</table></div>");
    html_section_end(s);
}

int compare_html(const struct compare *c, const struct setting_changes *changes, FILE *out)
{
    struct sink *s = malloc(sizeof(*s));
    bool simulated = false;
    int rc;

    if (!s)
        return -1;
    sink_init(s, out);
    for (size_t i = 0; i < c->side_count; i++)
        for (size_t k = 0; k < c->sides[i].run_count; k++)
            simulated |= c->sides[i].runs[k]->simulated;
    html_begin(s, "Comparison of runs", simulated);
    write_facts(s, c);
    for (size_t i = 1; i < c->side_count; i++)
        write_side(s, c, i);
    write_changes(s, c, changes);
    html_end(s);
    rc = sink_flush(s);
    free(s);
    return rc;
}
