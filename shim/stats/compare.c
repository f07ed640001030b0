/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/stats/compare_rows.h"

/* ---- tests ----------------------------------------------------------------------------------- */

/* One run a side can't know how much two starts differ; several can. */
static double margin_for(const struct compare *c, size_t side)
{
    return c->sides[0].run_count > 1 && c->sides[side].run_count > 1 ? 0 : c->margin;
}

static enum verdict direction(const struct difference *d)
{
    return d->change < 0 ? VERDICT_FASTER : VERDICT_SLOWER;
}

struct family {
    double *p;
    struct compare_test **tests;
    bool *accepted;
    size_t count;
};

static void add_test(struct family *f, struct compare_test *t, const struct estimate *a,
                     const struct estimate *b, double margin)
{
    t->difference = difference_of(a, b, margin);
    t->verdict = t->difference.known ? VERDICT_NONE : VERDICT_UNKNOWN;
    if (!t->difference.known)
        return;
    f->p[f->count] = t->difference.p;
    f->tests[f->count++] = t;
}

/*
 * All tests of all rows and sides of one quantile are one family: one false verdict in any of them
 * would mislead.
 */
static int judge(struct compare *c, bool median)
{
    size_t most = c->row_count * c->side_count + 1;
    struct family f = {malloc(most * sizeof(*f.p)), malloc(most * sizeof(*f.tests)), malloc(most),
                       0};
    int rc = f.p && f.tests && f.accepted ? 0 : -1;

    for (size_t i = 0; i < c->row_count && rc == 0; i++)
        for (size_t s = 1; s < c->side_count; s++) {
            struct compare_row *r = &c->rows[i];
            const struct compare_value *a = &r->values[0], *b = &r->values[s];
            add_test(&f, median ? &r->median[s] : &r->p99[s], median ? &a->median : &a->p99,
                     median ? &b->median : &b->p99, margin_for(c, s));
        }
    if (rc == 0)
        rc = holm(f.p, f.count, median ? COMPARE_ALPHA_MEDIAN : COMPARE_ALPHA_P99, f.accepted);
    for (size_t i = 0; i < f.count && rc == 0; i++)
        if (f.accepted[i])
            f.tests[i]->verdict = direction(&f.tests[i]->difference);
    free(f.p);
    free(f.tests);
    free(f.accepted);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void count_row(struct compare_whole *w, const struct compare_row *r, size_t side)
{
    switch (r->median[side].verdict) {
    case VERDICT_FASTER:
        w->faster++;
        break;
    case VERDICT_SLOWER:
        w->slower++;
        break;
    case VERDICT_UNKNOWN:
        w->unknown++;
        break;
    default:
        w->none++;
    }
    w->p99_faster += r->p99[side].verdict == VERDICT_FASTER;
    w->p99_slower += r->p99[side].verdict == VERDICT_SLOWER;
}

/* What the first side's calls would take: each row's change by its share of the time. */
static void weigh(const struct compare *c, size_t side, struct compare_whole *w)
{
    double change = 0, variance = 0, share = 0, half;

    for (size_t i = 0; i < c->row_count; i++) {
        const struct compare_row *r = &c->rows[i];
        const struct difference *d = &r->median[side].difference;
        if (!d->known)
            continue;
        half = (d->high - d->low) / 2;
        share += r->share;
        change += r->share * d->change;
        variance += r->share * r->share * half * half;
    }
    if (!(share > 0))
        return;
    w->time.known = true;
    w->time.change = change / share;
    w->time.low = w->time.change - sqrt(variance) / share;
    w->time.high = w->time.change + sqrt(variance) / share;
}

static enum verdict verdict_of(const struct compare_whole *w)
{
    bool faster = w->faster || w->p99_faster, slower = w->slower || w->p99_slower;

    if (faster && slower)
        return VERDICT_MIXED;
    if (faster || slower)
        return faster ? VERDICT_FASTER : VERDICT_SLOWER;
    return w->none ? VERDICT_NONE : VERDICT_UNKNOWN;
}

static void sum_up(struct compare *c)
{
    double total = 0;

    for (size_t i = 0; i < c->row_count; i++)
        total += (double)c->rows[i].values[0].total_ns;
    for (size_t i = 0; i < c->row_count; i++)
        c->rows[i].share = total > 0 ? (double)c->rows[i].values[0].total_ns / total : 0;
    for (size_t s = 1; s < c->side_count; s++) {
        for (size_t i = 0; i < c->row_count; i++)
            count_row(&c->whole[s], &c->rows[i], s);
        weigh(c, s, &c->whole[s]);
        c->whole[s].verdict = verdict_of(&c->whole[s]);
    }
}

static int largest_first(const void *a, const void *b)
{
    const struct compare_row *x = a, *y = b;
    uint64_t s = x->values[0].total_ns, t = y->values[0].total_ns;

    if (s != t)
        return s > t ? -1 : 1;
    if (x->captured != y->captured)
        return x->captured ? -1 : 1;
    if (x->op != y->op)
        return x->op < y->op ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

int compare_make(const struct compare_side *sides, size_t count, double margin, struct compare *c,
                 struct error *e)
{
    memset(c, 0, sizeof(*c));
    c->sides = sides;
    c->side_count = count;
    c->margin = margin;
    c->whole = calloc(count, sizeof(*c->whole));
    if (!c->whole)
        return error_set(e, "", 0, "out of memory");
    if (compare_gather(c, e) < 0) {
        compare_free(c);
        return -1;
    }
    if (judge(c, true) < 0 || judge(c, false) < 0) {
        compare_free(c);
        return error_set(e, "", 0, "out of memory");
    }
    if (c->row_count)
        qsort(c->rows, c->row_count, sizeof(*c->rows), largest_first);
    sum_up(c);
    return 0;
}

void compare_free(struct compare *c)
{
    for (size_t i = 0; i < c->row_count; i++) {
        struct compare_row *r = &c->rows[i];
        for (size_t s = 0; s < c->side_count; s++) {
            hist_free(&r->values[s].ns);
            free(r->values[s].medians);
            free(r->values[s].p99s);
        }
        free(r->values);
        free(r->median);
        free(r->p99);
    }
    free(c->rows);
    free(c->whole);
    memset(c, 0, sizeof(*c));
}

bool compare_slower_by(const struct compare *c, size_t side, double share)
{
    for (size_t i = 0; i < c->row_count; i++) {
        const struct compare_test *t = &c->rows[i].median[side];
        if (t->verdict == VERDICT_SLOWER && t->difference.change > share)
            return true;
    }
    return false;
}

static const struct {
    const char *name, *key;
} verdicts[] = {
    [VERDICT_NONE] = {"no difference shown", "no_difference_shown"},
    [VERDICT_FASTER] = {"faster", "faster"},
    [VERDICT_SLOWER] = {"slower", "slower"},
    [VERDICT_MIXED] = {"mixed", "mixed"},
    [VERDICT_UNKNOWN] = {"too few calls", "too_few_calls"},
};

const char *verdict_name(enum verdict v)
{
    return verdicts[v].name;
}

const char *verdict_key(enum verdict v)
{
    return verdicts[v].key;
}
