/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/tune/tune_book.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"

#define BOOK_RUNS 64 /* of one kind that are looked at */

static const struct {
    const char *key, *text;
} ends[TUNE_ENDS] = {
    [TUNE_GOOD] = {"good", "good"},
    [TUNE_WRONG] = {"wrong", "wrong sums"},
    [TUNE_HUNG] = {"hang", "hung"},
    [TUNE_FAILED] = {"failed", "failed"},
};

const char *tune_end_text(enum tune_end end)
{
    return ends[end].text;
}

const char *tune_end_key(enum tune_end end)
{
    return ends[end].key;
}

int tune_end_of_key(const char *key)
{
    for (int i = 0; key && i < TUNE_ENDS; i++)
        if (!strcmp(ends[i].key, key))
            return i;
    return -1;
}

/* ---- spread --------------------------------------------------------------------------------- */

static bool same_for_row(const struct tune_book *b, const struct tune_trial *t, size_t row,
                         const struct candidate *c)
{
    int class = b->w->rows[row].class;

    return t->kind == TUNE_SEARCH && t->end == TUNE_GOOD && candidate_same_settings(&t->c, c) &&
           (class < 0 || tune_choice_equal(&t->c.rule[class], &c->rule[class]));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_of(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), by_value);
    return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

struct center {
    double log_ns, within; /* median of the runs, and of the variances within them */
    size_t n;
};

/* Medians, of two variances the lesser: a run that was disturbed must not decide anything. */
static struct center center_of(const struct tune_book *b, size_t row, const struct candidate *c)
{
    double values[BOOK_RUNS], within[BOOK_RUNS];
    struct center m = {0, 0, 0};

    for (size_t i = b->count;
         i-- > 0 && m.n < BOOK_RUNS;) { /* the newest, when there are very many */
        const struct tune_trial *t = b->trials[i];
        if (!same_for_row(b, t, row, c))
            continue;
        within[m.n] = t->rows[row].se * t->rows[row].se;
        values[m.n++] = t->rows[row].log_ns;
    }
    if (m.n) {
        qsort(within, m.n, sizeof(*within), by_value);
        m.within = within[(m.n - 1) / 2];
        m.log_ns = median_of(values, m.n);
    }
    return m;
}

/*
 * The distances of all runs from the middle of their own kind. Their median, not the mean of their
 * squares: the search must go on where a disturbed run would drown everything in noise. The proof
 * (tune_prove.c) is not as lenient.
 */
static double spread_of(const struct tune_book *b, size_t row)
{
    double *distances = malloc((b->count + 1) * sizeof(*distances)), spread;
    size_t n = 0;

    for (size_t i = 0; i < b->count && distances; i++) {
        const struct tune_trial *t = b->trials[i];
        struct center m;
        if (!same_for_row(b, t, row, &t->c))
            continue;
        m = center_of(b, row, &t->c);
        if (m.n >= 2) /* of two runs each is half their difference away */
            distances[n++] = fabs(t->rows[row].log_ns - m.log_ns) / sqrt(1 - 1.0 / (double)m.n);
    }
    spread = n < 2 ? BOOK_SPREAD_UNKNOWN : 1.4826 * median_of(distances, n);
    free(distances);
    return n >= 2 && spread < BOOK_SPREAD_LEAST ? BOOK_SPREAD_LEAST : spread;
}

/* ---- keeping -------------------------------------------------------------------------------- */

const struct tune_trial *book_add(struct tune_book *b, const struct tune_trial *t)
{
    struct tune_trial *copy = malloc(sizeof(*copy)), **place;

    if (!copy || !(place = GROW(b->trials, b->count))) {
        free(copy);
        return NULL;
    }
    *copy = *t;
    *place = copy;
    for (size_t i = 0; b->w && i < b->w->row_count; i++)
        b->spread[i] = spread_of(b, i);
    return copy;
}

void book_free(struct tune_book *b)
{
    for (size_t i = 0; i < b->count; i++)
        free(b->trials[i]);
    free(b->trials);
    b->trials = NULL;
    b->count = 0;
}

unsigned book_runs(const struct tune_book *b, const struct candidate *c)
{
    unsigned n = 0;

    for (size_t i = 0; i < b->count; i++)
        n += b->trials[i]->kind == TUNE_SEARCH && candidate_equal(&b->trials[i]->c, c);
    return n;
}

const struct tune_trial *book_bad(const struct tune_book *b, const struct candidate *c)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->trials[i]->kind == TUNE_SEARCH && b->trials[i]->end != TUNE_GOOD &&
            candidate_equal(&b->trials[i]->c, c))
            return b->trials[i];
    return NULL;
}

const struct tune_trial *book_find(const struct tune_book *b, enum tune_kind kind,
                                   const struct candidate *c, unsigned nth)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->trials[i]->kind == kind && b->trials[i]->nth == nth &&
            candidate_equal(&b->trials[i]->c, c))
            return b->trials[i];
    return NULL;
}

/* ---- estimates ------------------------------------------------------------------------------ */

double book_spread(const struct tune_book *b, size_t row)
{
    return b->count ? b->spread[row] : BOOK_SPREAD_UNKNOWN;
}

struct estimate book_row(const struct tune_book *b, size_t row, const struct candidate *c)
{
    struct center m = center_of(b, row, c);
    struct estimate e = {.known = m.n > 0, .log_ns = m.log_ns, .n = m.n};
    double between;

    if (!e.known)
        return e;
    between = book_spread(b, row);
    between *= between;
    /* A median is known a quarter worse than a mean. */
    e.se = (m.n > 2 ? 1.25 : 1) * sqrt((between > m.within ? between : m.within) / (double)m.n);
    e.df = m.n > 1 ? (double)m.n - 1 : 1;
    return e;
}

struct tune_cost book_cost(const struct tune_book *b, const struct candidate *c, int class)
{
    struct tune_cost cost = {.known = true, .worst = -1};
    struct candidate base;
    double variance = 0;

    candidate_init(&base);
    for (size_t i = 0; i < b->w->row_count; i++) {
        const struct tune_row *row = &b->w->rows[i];
        struct estimate mine, theirs;
        double ratio, se;

        if (class != BOOK_ALL && row->class != class)
            continue;
        mine = book_row(b, i, c);
        theirs = book_row(b, i, &base);
        if (!mine.known || !theirs.known) {
            cost.known = false;
            return cost;
        }
        ratio = exp(mine.log_ns - theirs.log_ns);
        se = ratio * sqrt(mine.se * mine.se + theirs.se * theirs.se);
        if (candidate_same_settings(c, &base) &&
            (row->class < 0 || tune_choice_empty(&c->rule[row->class])))
            se = 0; /* it is the default: the same measurements */
        cost.change += row->share * (ratio - 1);
        variance += row->share * row->share * se * se;
        if (ratio - 1 - TUNE_Z * se > cost.worst - TUNE_Z * cost.worst_se) {
            cost.worst = ratio - 1;
            cost.worst_se = se;
            cost.worst_row = i;
        }
    }
    cost.se = sqrt(variance);
    return cost;
}
