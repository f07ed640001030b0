/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Successive halving. In each round every choice that is left is run once more, the k-th choices of
 * all classes in one bench; then those go whose interval lies above the best one's. When the
 * intervals still say nothing, the better half goes on, so that it ends.
 */
#include <string.h>

#include "shim/prove/tune/tune_search.h"

#define ROUNDS 3
#define MANY 8 /* with so many left after the first round, half of them must do */

size_t halve_keep(const struct tune_cost *c, size_t n, bool *kept)
{
    size_t best = n, count = 0;

    for (size_t i = 0; i < n; i++)
        if (c[i].known && (best == n || c[i].change < c[best].change))
            best = i;
    for (size_t i = 0; i < n; i++) {
        kept[i] = best < n && c[i].known &&
                  c[i].change - TUNE_Z * c[i].se <= c[best].change + TUNE_Z * c[best].se;
        count += kept[i];
    }
    return count;
}

/* Costs of all choices of a class; those that are not known, or ended badly, are not. */
static void cost_all(const struct tune_search *t, const struct candidate *base, int class,
                     const struct choice_list *l, struct tune_cost *costs)
{
    struct candidate c = *base;

    for (size_t i = 0; i < l->count; i++) {
        c.rule[class] = l->list[i];
        costs[i] = book_cost(&t->book, &c, class);
    }
}

static void keep_only(struct choice_list *l, const bool *kept)
{
    size_t n = 0;

    for (size_t i = 0; i < l->count; i++)
        if (kept[i])
            l->list[n++] = l->list[i];
    l->count = n;
}

/* The half with the smaller means. */
static void keep_half(const struct tune_cost *c, size_t n, bool *kept, size_t count)
{
    while (count > (n + 1) / 2) {
        size_t worst = n;
        for (size_t i = 0; i < n; i++)
            if (kept[i] && (worst == n || c[i].change > c[worst].change))
                worst = i;
        kept[worst] = false;
        count--;
    }
}

static void drop_losers(const struct tune_search *t, const struct candidate *base,
                        struct choice_list *lists, int round)
{
    struct tune_cost costs[TUNE_CHOICES];
    bool kept[TUNE_CHOICES];

    for (size_t k = 0; k < t->w->class_count; k++) {
        size_t count;
        cost_all(t, base, (int)k, &lists[k], costs);
        count = halve_keep(costs, lists[k].count, kept);
        if (round > 0 || count > MANY)
            keep_half(costs, lists[k].count, kept, count);
        keep_only(&lists[k], kept);
    }
}

static size_t longest(const struct tune_search *t, const struct choice_list *lists)
{
    size_t most = 0;

    for (size_t k = 0; k < t->w->class_count; k++)
        most = lists[k].count > most ? lists[k].count : most;
    return most;
}

/* A class whose choices are all through runs its best ones again: more is known of them then. */
static struct candidate compose(const struct tune_search *t, const struct candidate *base,
                                const struct choice_list *lists, size_t at)
{
    struct candidate c = *base;

    for (size_t k = 0; k < t->w->class_count; k++)
        if (lists[k].count)
            c.rule[k] = lists[k].list[at % lists[k].count];
    return c;
}

int search_halve(struct tune_search *t, const struct candidate *base, struct choice_list *lists,
                 struct error *e)
{
    int rc = MEASURED;

    for (int round = 0; round < ROUNDS && rc == MEASURED && longest(t, lists) > 1; round++) {
        size_t n = longest(t, lists);
        t->stage_total = t->stage_done + n;
        for (size_t i = 0; i < n && rc == MEASURED; i++) {
            struct candidate c = compose(t, base, lists, i);
            /* In the first round what is known already need not be run again. */
            rc = round == 0 ? search_until(t, &c, 1, e) : search_once(t, &c, e);
        }
        if (rc == MEASURED || rc == NO_TIME)
            drop_losers(t, base, lists, round);
    }
    return rc;
}
