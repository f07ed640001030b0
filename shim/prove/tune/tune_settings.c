/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that hold for every size: each alone, the good ones together, and their neighbours. */
#include <math.h>
#include <string.h>

#include "shim/prove/tune/tune_search.h"

#define NOTICEABLE 0.005 /* less than half a percent of a size is not worth a setting */

static struct candidate with(const struct candidate *c, size_t setting, int value)
{
    struct candidate made = *c;

    made.value[setting] = (int8_t)value;
    return made;
}

/* ---- each alone ----------------------------------------------------------------------------- */

/*
 * What it could save: rows that it makes slower may get a rule that makes good for it, so only what
 * gets faster counts. `z`: how far from chance it must be.
 */
static double potential(const struct tune_search *t, const struct candidate *c, double z)
{
    struct candidate none;
    double sum = 0;

    candidate_init(&none);
    for (size_t i = 0; i < t->w->row_count; i++) {
        struct estimate a = book_row(&t->book, i, &none), b = book_row(&t->book, i, c);
        double se = sqrt(a.se * a.se + b.se * b.se), d = b.log_ns - a.log_ns;
        if (a.known && b.known && d < -NOTICEABLE && d + z * se < 0)
            sum += t->w->rows[i].share * -expm1(d);
    }
    return sum;
}

int search_settings(struct tune_search *t, struct error *e)
{
    struct candidate none;
    size_t total = 0;
    int rc = MEASURED;

    candidate_init(&none);
    for (size_t i = 0; i < t->s->setting_count; i++)
        total += t->s->settings[i].count;
    search_stage(t, "settings, each alone", total);
    for (size_t i = 0; i < t->s->setting_count; i++)
        for (size_t v = 0; v < t->s->settings[i].count && rc == MEASURED; v++)
            rc = search_until(t, (struct candidate[]){with(&none, i, (int)v)}, 1, e);
    /* Those that look good are looked at again. */
    for (size_t i = 0; i < t->s->setting_count; i++)
        for (size_t v = 0; v < t->s->settings[i].count && rc == MEASURED; v++) {
            struct candidate c = with(&none, i, (int)v);
            if (potential(t, &c, 1) > 0) {
                t->stage_total++;
                rc = search_until(t, &c, 2, e);
            }
        }
    return rc;
}

/* ---- together ------------------------------------------------------------------------------- */

struct promise {
    size_t setting;
    int value;
    double gain;
};

static size_t promising(const struct tune_search *t, struct promise *list)
{
    struct candidate none;
    size_t n = 0;

    candidate_init(&none);
    for (size_t i = 0; i < t->s->setting_count; i++)
        for (size_t v = 0; v < t->s->settings[i].count; v++) {
            struct candidate c = with(&none, i, (int)v);
            struct promise p = {i, (int)v, book_bad(&t->book, &c) ? 0 : potential(t, &c, TUNE_Z)};
            size_t at = n;
            if (!(p.gain > 0))
                continue;
            for (; at && list[at - 1].gain < p.gain; at--)
                list[at] = list[at - 1];
            list[at] = p;
            n++;
        }
    return n;
}

/* For each class the better of the rule in `rules` and no rule, by what is known under c's
 * settings. */
static void better_rules(const struct tune_search *t, struct candidate *c,
                         const struct candidate *rules)
{
    struct choice_list l = {.count = 2};

    for (size_t k = 0; k < t->w->class_count; k++) {
        l.list[0] = (struct tune_choice)TUNE_NO_RULE;
        l.list[1] = rules->rule[k];
        c->rule[k] = rules_pick(t, c, (int)k, &l);
    }
}

/* Measure settings with these rules and without, and compose the better of both. */
static int try_settings(struct tune_search *t, struct candidate *c, const struct candidate *rules,
                        unsigned runs, struct error *e)
{
    struct candidate bare, ruled = *c;
    int rc;

    candidate_init(&bare);
    memcpy(bare.value, c->value, sizeof(bare.value));
    memcpy(ruled.rule, rules->rule, sizeof(ruled.rule));
    rc = search_until(t, &bare, runs, e);
    if (rc == MEASURED && !candidate_equal(&bare, &ruled))
        rc = search_until(t, &ruled, runs, e);
    *c = ruled;
    if (book_bad(&t->book, &bare)) {
        *c = bare;
        return rc;
    }
    if (!book_bad(&t->book, &ruled))
        better_rules(t, c, rules);
    else
        *c = bare;
    return rc;
}

static bool accept(const struct tune_search *t, const struct candidate *c,
                   const struct candidate *now)
{
    struct tune_cost cost = book_cost(&t->book, c, BOOK_ALL),
                     before = book_cost(&t->book, now, BOOK_ALL);

    return !book_bad(&t->book, c) && tune_less(&cost, &before) && !tune_guard(&cost);
}

int search_together(struct tune_search *t, struct candidate *c, struct error *e)
{
    struct promise list[SPACE_SETTINGS * SPACE_VALUES];
    size_t n = promising(t, list);
    int rc = MEASURED;

    search_stage(t, "settings together", 2 * n);
    for (size_t i = 0; i < n && rc == MEASURED; i++) {
        struct candidate next = with(c, list[i].setting, list[i].value);
        rc = try_settings(t, &next, c, 1, e);
        if (rc == MEASURED && accept(t, &next, c))
            rc = try_settings(t, &next, c, 2, e);
        if (rc == MEASURED && accept(t, &next, c))
            *c = next;
    }
    return rc;
}

/* ---- neighbours ----------------------------------------------------------------------------- */

/* Values to hold against the chosen one: those beside it, and none; all where none is chosen. */
static bool is_neighbour(int chosen, int value)
{
    return chosen < 0 || value < 0 || value == chosen - 1 || value == chosen + 1;
}

/* Leaving a setting out is better already when it makes no difference. */
static bool better(const struct tune_search *t, const struct candidate *next,
                   const struct candidate *now, bool fewer)
{
    struct tune_cost a = book_cost(&t->book, next, BOOK_ALL),
                     b = book_cost(&t->book, now, BOOK_ALL);

    if (!a.known || !b.known || book_bad(&t->book, next) || tune_guard(&a))
        return false;
    return fewer ? a.change - b.change <= 0.002 : tune_less(&a, &b);
}

static int try_neighbour(struct tune_search *t, struct candidate *c, size_t setting, int value,
                         bool *moved, struct error *e)
{
    struct candidate next = with(c, setting, value);
    bool fewer = value < 0;
    int rc;

    t->stage_total++;
    rc = search_until(t, &next, 1, e);
    if (rc == MEASURED && better(t, &next, c, fewer)) { /* so it seems: once more, both */
        rc = search_until(t, &next, 3, e);
        if (rc == MEASURED)
            rc = search_until(t, c, 3, e);
    }
    if (rc == MEASURED && better(t, &next, c, fewer)) {
        *c = next;
        *moved = *moved || !fewer;
    }
    return rc;
}

int search_neighbours(struct tune_search *t, struct candidate *c, bool *moved, struct error *e)
{
    int rc;

    *moved = false;
    search_stage(t, "neighbours", 1);
    rc = search_until(t, c, 2, e);
    for (size_t i = 0; i < t->s->setting_count; i++)
        for (int v = -1; v < (int)t->s->settings[i].count && rc == MEASURED; v++) {
            struct candidate none, alone;
            if (v == c->value[i] || !is_neighbour(c->value[i], v))
                continue;
            candidate_init(&none);
            alone = with(&none, i, v);
            if (book_bad(&t->book, &alone))
                continue;
            rc = try_neighbour(t, c, i, v, moved, e);
        }
    return rc;
}
