/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/plot.h"

#include <math.h>
#include <string.h>

#include "shim/show/html.h"
#include "shim/show/term.h"

#define WIDTH 640.0    /* of every plot, in its own units; the page scales it */
#define TICK_ROOM 96.0 /* for the text of one tick at the size that the page gives it */

static const char *const series[] = {"var(--a)", "var(--b)", "var(--c)"};

/* ---- axes ------------------------------------------------------------------------------------ */

/* The largest of 1, 2, 5 a decade that is at most v (up = false), or the smallest that is at least
 * v. */
static uint64_t round_step(uint64_t v, bool up)
{
    static const uint64_t steps[] = {1, 2, 5};
    uint64_t best = 1;

    for (uint64_t decade = 1; decade < 100000000000000000ull; decade *= 10) /* past LONGEST */
        for (unsigned i = 0; i < 3; i++) {
            if (steps[i] * decade >= v)
                return up || steps[i] * decade == v ? steps[i] * decade : best;
            best = steps[i] * decade;
        }
    return best;
}

#define LONGEST 500000000000000ull /* 6 days: a damaged log may say anything */

struct log_range log_range_of(uint64_t low, uint64_t high)
{
    struct log_range r;

    low = low < LONGEST / 2 ? low : LONGEST / 2;
    high = high < LONGEST ? high : LONGEST;
    r = (struct log_range){round_step(low ? low : 1, false), round_step(high ? high : 1, true)};
    if (r.high <= r.low)
        r.high = r.low * 2;
    return r;
}

static double log_place(const struct log_range *r, double v, double from, double to)
{
    double low = log((double)r->low), high = log((double)r->high);

    v = v < (double)r->low ? (double)r->low : v > (double)r->high ? (double)r->high : v;
    return from + (log(v) - low) / (high - low) * (to - from);
}

static void log_axis(struct sink *s, const struct log_range *r, double from, double to, double y,
                     double top)
{
    char text[UNIT_SIZE];
    double last = -100;

    for (uint64_t t = r->low; t <= r->high; t = round_step(t + 1, true)) {
        double x = log_place(r, (double)t, from, to);
        sink_printf(s, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", x,
                    x, top, y);
        if (x - last < TICK_ROOM && t != r->low)
            continue;
        sink_printf(s, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>", x, y + 20,
                    x < from + 20 ? "start"
                    : x > to - 20 ? "end"
                                  : "middle",
                    unit_ns(t, text));
        last = x;
    }
}

static void begin(struct sink *s, const char *class, double height, const char *label)
{
    sink_printf(s, "<svg class=\"%s\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", class,
                WIDTH, height);
    html_text(s, label);
    sink_text(s, "\">");
}

/* ---- distributions --------------------------------------------------------------------------- */

#define PIECES 160 /* columns of a distribution */

/* How many calls fall into each of the columns of the range. */
static double columns_of(const struct hist *h, const struct log_range *r, double *columns)
{
    double most = 0;

    memset(columns, 0, PIECES * sizeof(*columns));
    for (unsigned o = 0; o < HIST_OCTAVES; o++)
        for (unsigned b = 0; h->octave[o] && b < HIST_BUCKETS; b++) {
            uint64_t low, high;
            double from, to;
            if (!h->octave[o][b])
                continue;
            hist_bucket_range(o, b, &low, &high);
            from = log_place(r, (double)low, 0, PIECES);
            to = log_place(r, (double)high, 0, PIECES);
            if (to - from < 1e-9)
                to = from + 1e-9;
            for (int k = (int)from; k <= (int)to && k < PIECES;
                 k++) { /* a bucket may lie over an edge */
                double left = from > k ? from : k, right = to < k + 1 ? to : k + 1;
                if (right > left)
                    columns[k] += h->octave[o][b] * (right - left) / (to - from);
            }
        }
    for (int k = 0; k < PIECES; k++)
        most = columns[k] > most ? columns[k] : most;
    return most;
}

static void mark(struct sink *s, const struct log_range *r, uint64_t ns, const char *name,
                 const char *colour, double top, double bottom, double text_y)
{
    double x = log_place(r, (double)ns, 8, WIDTH - 8);
    char text[UNIT_SIZE];

    sink_printf(s,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                "stroke-dasharray=\"3 3\"/>",
                x, x, top, bottom, colour);
    sink_printf(s, "<text class=\"ink\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s %s</text>",
                x > WIDTH - 150 ? x - 4 : x + 4, text_y, x > WIDTH - 150 ? "end" : "start", name,
                unit_ns(ns, text));
}

static void outline(struct sink *s, const double *columns, double most, const char *colour,
                    double top, double bottom)
{
    double step = (WIDTH - 16) / PIECES;

    sink_printf(
        s, "<path fill=\"%s\" fill-opacity=\".28\" stroke=\"%s\" stroke-width=\"1.4\" d=\"M8 %.1f",
        colour, colour, bottom);
    for (int k = 0; k < PIECES; k++) {
        double share = columns[k] >= 0.5 && most > 0 ? log(1 + columns[k]) / log(1 + most) : 0;
        double y = bottom - share * (bottom - top);
        sink_printf(s, "V%.1fH%.1f", y, 8 + (k + 1) * step);
    }
    sink_printf(s, "V%.1fZ\"/>", bottom);
}

void plot_distributions(struct sink *s, const struct hist *const *hists, unsigned count,
                        struct log_range x)
{
    const double top = 50, bottom = 192;
    double columns[3][PIECES], most = 0;

    begin(s, "dist", 218, "distribution of times, both axes logarithmic");
    log_axis(s, &x, 8, WIDTH - 8, bottom, top);
    if (count > 3)
        count = 3;
    for (unsigned i = 0; i < count; i++) {
        double m = columns_of(hists[i], &x, columns[i]);
        most = m > most ? m : most;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!hists[i]->count)
            continue;
        outline(s, columns[i], most, series[i], top, bottom);
        mark(s, &x, hist_quantile(hists[i], 0.5), "p50", series[i], 20 + 22 * (i % 2), bottom,
             18 + 22 * (i % 2));
        if (count == 1)
            mark(s, &x, hist_quantile(hists[i], 0.99), "p99", series[i], 42, bottom, 40);
    }
    sink_printf(s, "<line class=\"axis\" x1=\"8\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/></svg>",
                WIDTH - 8, bottom, bottom);
}

/* ---- time line ------------------------------------------------------------------------------- */

static void band(struct sink *s, const struct plot_bin *bins, unsigned count,
                 const struct log_range *y, double left, double step, double top, double bottom)
{
    for (unsigned i = 0; i < count; i++) {
        double a, b;
        if (!bins[i].middle_ns)
            continue;
        a = log_place(y, (double)bins[i].high_ns, bottom, top);
        b = log_place(y, (double)bins[i].low_ns, bottom, top);
        sink_printf(s,
                    "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"var(--a)\" "
                    "fill-opacity=\".25\"/>",
                    left + i * step, a, step, b - a < 1 ? 1 : b - a);
    }
}

static void middle_line(struct sink *s, const struct plot_bin *bins, unsigned count,
                        const struct log_range *y, double left, double step, double top,
                        double bottom)
{
    bool pen = false;

    sink_text(s, "<path fill=\"none\" stroke=\"var(--a)\" stroke-width=\"1.6\" d=\"");
    for (unsigned i = 0; i < count; i++) {
        if (bins[i].middle_ns)
            sink_printf(s, "%c%.1f %.1f", pen ? 'L' : 'M', left + (i + 0.5) * step,
                        log_place(y, (double)bins[i].middle_ns, bottom, top));
        pen = bins[i].middle_ns != 0;
    }
    sink_text(s, "\"/>");
}

void plot_timeline(struct sink *s, const struct plot_bin *bins, unsigned count, uint64_t span_ns)
{
    const double left = 80, right = WIDTH - 8, top = 10, bottom = 168;
    double last = bottom + 100;
    uint64_t low = UINT64_MAX, high = 0;
    struct log_range y;
    char text[UNIT_SIZE];

    for (unsigned i = 0; i < count; i++)
        if (bins[i].middle_ns) {
            low = bins[i].low_ns < low ? bins[i].low_ns : low;
            high = bins[i].high_ns > high ? bins[i].high_ns : high;
        }
    if (!high)
        return;
    y = log_range_of(low, high);
    begin(s, "time", 196, "time of forward passes over the run");
    for (uint64_t t = y.low; t <= y.high; t = round_step(t + 1, true)) {
        double at = log_place(&y, (double)t, bottom, top);
        if (last - at < 16) /* over each other, they can't be read */
            continue;
        last = at;
        sink_printf(s,
                    "<line class=\"axis\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/><text "
                    "x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
                    left, right, at, at, left - 6, at + 4, unit_ns(t, text));
    }
    band(s, bins, count, &y, left, (right - left) / count, top, bottom);
    middle_line(s, bins, count, &y, left, (right - left) / count, top, bottom);
    for (int i = 0; i <= 4; i++)
        sink_printf(s, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>",
                    left + (right - left) * i / 4, bottom + 21,
                    i == 0   ? "start"
                    : i == 4 ? "end"
                             : "middle",
                    i ? unit_ns(span_ns * (uint64_t)i / 4, text) : "0");
    sink_text(s, "</svg>");
}

/* ---- ranks ----------------------------------------------------------------------------------- */

void plot_ranks(struct sink *s, const struct plot_rank *ranks, unsigned count)
{
    const double left = 80, right = WIDTH - 190, bar = 16, step = 24;
    uint64_t most = 1;
    char a[UNIT_SIZE], b[UNIT_SIZE];

    for (unsigned i = 0; i < count; i++)
        if (ranks[i].wait_ns + ranks[i].transfer_ns > most)
            most = ranks[i].wait_ns + ranks[i].transfer_ns;
    begin(s, "bars", 8 + step * count, "waiting and transfer of each rank");
    for (unsigned i = 0; i < count; i++) {
        double y = 4 + step * i, wait = (right - left) * (double)ranks[i].wait_ns / (double)most;
        double transfer = (right - left) * (double)ranks[i].transfer_ns / (double)most;
        unit_ns(ranks[i].wait_ns, a);
        unit_ns(ranks[i].transfer_ns, b);
        sink_printf(s, "<g><title>rank %d: waits %s, transfer %s</title>", ranks[i].rank, a, b);
        sink_printf(s,
                    "<text class=\"ink\" x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">rank %d</text>",
                    left - 8, y + 12, ranks[i].rank);
        sink_printf(s,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" rx=\"2\" "
                    "fill=\"var(--b)\"/>",
                    left, y, wait, bar);
        sink_printf(s,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" rx=\"2\" "
                    "fill=\"var(--a)\"/>",
                    left + wait, y, transfer, bar);
        sink_printf(s, "<text x=\"%.1f\" y=\"%.1f\">%s + %s</text></g>", left + wait + transfer + 8,
                    y + 12, a, b);
    }
    sink_text(s, "</svg>");
}

/* ---- changes --------------------------------------------------------------------------------- */

void plot_changes(struct sink *s, const struct plot_change *changes, unsigned count)
{
    const double left = 240, right = WIDTH - 90, step = 28;
    double most = 0.01;

    for (unsigned i = 0; i < count; i++) {
        most = fabs(changes[i].low) > most ? fabs(changes[i].low) : most;
        most = fabs(changes[i].high) > most ? fabs(changes[i].high) : most;
    }
    begin(s, "bars", 34 + step * count, "change of each kind of call with its interval");
    sink_printf(s, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%.1f\"/>",
                (left + right) / 2, (left + right) / 2, step * count + 6);
    for (unsigned i = 0; i < count; i++) {
        const struct plot_change *c = &changes[i];
        double y = 14 + step * i, middle = (left + right) / 2, unit = (right - left) / 2 / most;
        const char *colour = c->verdict < 0   ? "var(--fast)"
                             : c->verdict > 0 ? "var(--bad)"
                                              : "var(--soft)";
        sink_printf(s, "<text class=\"ink\" x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">", left - 10,
                    y + 4);
        html_text(s, c->label);
        sink_printf(s,
                    "</text><line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                    "stroke-width=\"3\" stroke-linecap=\"round\"/>",
                    middle + c->low * unit, middle + c->high * unit, y, y, colour);
        sink_printf(s, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\"/>",
                    middle + c->change * unit, y, colour);
        sink_printf(s, "<text class=\"ink\" x=\"%.0f\" y=\"%.1f\">%+.1f %%</text>", right + 10,
                    y + 4, c->change * 100);
    }
    sink_printf(s,
                "<text x=\"%.1f\" y=\"%.1f\">faster</text><text x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"middle\">0</text>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">slower</text></svg>",
                left, step * count + 22, (left + right) / 2, step * count + 22, right,
                step * count + 22);
}
