/* SPDX-License-Identifier: Apache-2.0 */
/* The profile that was found, with what speaks for each line of it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/base/names.h"
#include "shim/base/size.h"
#include "shim/profile/profile.h"
#include "shim/prove/tune/tune.h"

#define FROM_ZERO (64u << 10) /* the smallest size measured speaks for smaller ones up to here */

/* ---- sizes ---------------------------------------------------------------------------------- */

static uint64_t power_up(uint64_t n)
{
    uint64_t p = 1;

    while (p < n)
        p *= 2;
    return p;
}

static uint64_t power_down(uint64_t n)
{
    uint64_t p = 1;

    while (p * 2 <= n)
        p *= 2;
    return p;
}

/* The measured size of the same operation next below or above; 0 = none. */
static uint64_t next_size(const struct tune_work *w, size_t class, bool above)
{
    const struct tune_class *c = &w->classes[class];
    uint64_t best = 0;

    for (size_t i = 0; i < w->class_count; i++) {
        uint64_t b = w->classes[i].bytes;
        if (w->classes[i].op != c->op || (above ? b <= c->bytes : b >= c->bytes))
            continue;
        if (!best || (above ? b < best : b > best))
            best = b;
    }
    return best;
}

/* Last size that belongs to the smaller one of two measured sizes. */
static uint64_t boundary(uint64_t small, uint64_t large)
{
    uint64_t middle = (uint64_t)sqrt((double)small * (double)large),
             p = power_down(middle ? middle : 1);

    return p >= small ? p : middle;
}

/*
 * A measured size speaks for half and for twice of it, to the next power of two, but not past the
 * middle to the next measured one. Nothing was measured further away, and NCCL keeps its choice
 * there.
 */
void tune_range(const struct tune_work *w, size_t class, uint64_t *least, uint64_t *most)
{
    uint64_t bytes = w->classes[class].bytes, below = next_size(w, class, false),
             above = next_size(w, class, true), b;

    *most = power_up(2 * bytes);
    *least = bytes <= FROM_ZERO ? 0 : power_down(bytes / 2);
    if (below && (b = boundary(below, bytes) + 1) > *least)
        *least = b;
    if (above && (b = boundary(bytes, above)) < *most)
        *most = b;
}

/* ---- evidence ------------------------------------------------------------------------------- */

/* One candidate against another, all rows or one class, as a change. */
static bool change_between(const struct tune *t, const struct candidate *from,
                           const struct candidate *to, int class, double *change)
{
    struct tune_cost a = book_cost(&t->search.book, from, class),
                     b = book_cost(&t->search.book, to, class);
    double share = 0;

    for (size_t i = 0; i < t->work.row_count; i++)
        share += class == BOOK_ALL || t->work.rows[i].class == class ? t->work.rows[i].share : 0;
    if (!a.known || !b.known || !(share + a.change > 0))
        return false;
    *change = (share + b.change) / (share + a.change) - 1;
    return true;
}

static void setting_evidence(const struct tune *t, size_t setting, FILE *out)
{
    struct candidate none, alone, without = t->search.best;
    double change;

    candidate_init(&none);
    alone = none;
    alone.value[setting] = t->search.best.value[setting];
    without.value[setting] = -1;
    if (change_between(t, &none, &alone, BOOK_ALL, &change))
        fprintf(out, "; alone %+.1f %%", change * 100);
    else
        fprintf(out, "; not measured alone");
    if (change_between(t, &without, &t->search.best, BOOK_ALL, &change))
        fprintf(out, "; beside all the rest %+.1f %%", change * 100);
    fputc('\n', out);
}

/* The best that another protocol or algorithm did for this class under the same settings. */
static bool best_other(const struct tune *t, size_t class, struct tune_choice *other)
{
    const struct tune_choice *mine = &t->search.best.rule[class];
    struct candidate c = t->search.best;
    double least = 0;
    bool any = false;

    for (size_t i = 0; i < t->search.book.count; i++) {
        const struct tune_trial *x = t->search.book.trials[i];
        const struct tune_choice *r = &x->c.rule[class];
        struct tune_cost cost;
        if (x->end != TUNE_GOOD || tune_choice_empty(r) ||
            !candidate_same_settings(&x->c, &t->search.best) ||
            (r->proto == mine->proto && r->algo == mine->algo))
            continue;
        c.rule[class] = *r;
        cost = book_cost(&t->search.book, &c, (int)class);
        if (cost.known && (!any || cost.change < least)) {
            least = cost.change;
            *other = *r;
            any = true;
        }
    }
    return any;
}

static void rule_evidence(const struct tune *t, size_t class, FILE *out)
{
    struct candidate without = t->search.best, instead = t->search.best;
    struct tune_choice other;
    char size[SIZE_TEXT_MAX], text[96];
    double change;

    without.rule[class] = (struct tune_choice)TUNE_NO_RULE;
    fprintf(out, "; measured at %s", size_text(t->work.classes[class].bytes, size, sizeof(size)));
    if (change_between(t, &without, &t->search.best, (int)class, &change))
        fprintf(out, "; against no rule %+.1f %%", change * 100);
    if (best_other(t, class, &other)) {
        instead.rule[class] = other;
        if (change_between(t, &instead, &t->search.best, (int)class, &change))
            fprintf(out, "; against %s %+.1f %%", tune_choice_text(&other, text, sizeof(text)),
                    change * 100);
    }
    fputc('\n', out);
}

/* ---- the file ------------------------------------------------------------------------------- */

static void write_head(const struct tune *t, FILE *out)
{
    char date[32];
    time_t now = time(NULL);
    struct tm tm;

    strftime(date, sizeof(date), "%Y-%m-%d", localtime_r(&now, &tm));
    fprintf(out, TUNE_MARK " on %s for %d x %s (%s), NCCL %s\n; evidence: %s\n", date, t->ranks,
            t->gpu, t->placement, t->nccl, t->folder.path);
    if (t->simulated)
        fputs("; SIMULATED: no GPU took part, all times are invented; nothing here holds for a "
              "real machine\n",
              out);
    fprintf(out, "; workload: %s\n", t->source);
    if (!t->proof_runs)
        return;
    fprintf(out,
            "; proof: %u fresh runs of NCCL's default and of this, shuffled; sums right in all\n",
            2 * t->proof_runs);
    for (size_t i = 0; i < t->work.row_count; i++) {
        const struct tune_row *row = &t->work.rows[i];
        const struct tune_proof_row *p = &t->proof[i];
        char size[SIZE_TEXT_MAX];
        fprintf(out, ";   %s %s %s  %.1f us -> %.1f us  %+.1f %% [%+.1f, %+.1f]\n", row->op,
                size_text(row->bytes, size, sizeof(size)), row->graph ? "captured" : "eager",
                exp(p->before.log_ns) / 1e3, exp(p->after.log_ns) / 1e3, p->difference.change * 100,
                p->difference.low * 100, p->difference.high * 100);
    }
}

static void write_profile(const struct tune *t, FILE *out)
{
    fprintf(out, "[profile]\ndescription = Found by tune%s for ",
            t->simulated ? " (SIMULATED)" : "");
    for (const char *p = t->source; *p;
         p++) /* what would end a value, or begin a comment, has no place there */
        fputc(strchr(";#\"'", *p) || (unsigned char)*p < ' ' ? '_' : *p, out);
    fputc('\n', out);
    if (t->version >= 20900)
        fprintf(out, "nccl = >=%d.%d\n", t->version / 10000, t->version / 100 % 100);
}

static void write_settings(const struct tune *t, bool comm, FILE *out)
{
    bool any = false;

    for (size_t i = 0; i < t->space.setting_count; i++) {
        const struct space_setting *x = &t->space.settings[i];
        if (t->search.best.value[i] < 0 || x->comm != comm)
            continue;
        if (!any)
            fputs(comm ? "\n[comm]\n" : "\n[env]\n", out);
        any = true;
        setting_evidence(t, i, out);
        if (!strcmp(x->name, "NCCL_GRAPH_MIXING_SUPPORT"))
            fputs("; condition (NCCL's): no eager call on a communicator while a graph that uses "
                  "it still runs, not\n"
                  "; even in stream order, and no two graphs of one communicator at a time\n",
                  out);
        fprintf(out, "%s = %s\n", x->name, x->values[t->search.best.value[i]]);
    }
}

static void write_rules(const struct tune *t, FILE *out)
{
    char op[32], low[SIZE_TEXT_MAX], high[SIZE_TEXT_MAX], text[96];
    uint64_t least, most;
    bool any = false;

    for (size_t i = 0; i < t->work.class_count; i++) {
        const struct tune_choice *c = &t->search.best.rule[i];
        if (tune_choice_empty(c))
            continue;
        if (!any)
            fputs("\n[tune]\n", out);
        any = true;
        rule_evidence(t, i, out);
        tune_range(&t->work, i, &least, &most);
        fprintf(out, "%s %s-%s = %s\n", candidate_rule_op(t->work.classes[i].op, op, sizeof(op)),
                size_text(least, low, sizeof(low)), size_text(most, high, sizeof(high)),
                tune_choice_text(c, text, sizeof(text)));
    }
}

int tune_profile_loads(const char *path, struct error *e)
{
    struct profile *p;

    if (profile_load(path, &p, e) < 0)
        return -1;
    profile_free(p);
    return 0;
}

int tune_write(struct tune *t, struct error *e)
{
    FILE *out;

    tune_path(t, "winner.ini", t->profile, sizeof(t->profile));
    out = fopen(t->profile, "we");
    if (!out)
        return error_set(e, t->profile, 0, "can't be written: %s", strerror(errno));
    write_head(t, out);
    write_profile(t, out);
    write_settings(t, false, out);
    write_settings(t, true, out);
    write_rules(t, out);
    if (fclose(out) != 0)
        return error_set(e, t->profile, 0, "can't be written: %s", strerror(errno));
    return tune_profile_loads(t->profile, e);
}
