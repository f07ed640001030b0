/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/tune/tune_search.h"

#include <math.h>
#include <string.h>

#define DEFAULT_RUNS 3 /* enough to begin with an idea of the spread */
#define ROUNDS_OF_NEIGHBOURS 2

/* ---- one measurement ------------------------------------------------------------------------ */

void search_stage(struct tune_search *t, const char *name, size_t total)
{
    t->stage = name;
    t->stage_done = 0;
    t->stage_total = total;
}

int search_once(struct tune_search *t, const struct candidate *c, struct error *e)
{
    struct tune_trial trial;
    int rc;

    if (t->progress)
        t->progress(t->user, t->stage, t->stage_done, t->stage_total);
    t->stage_done++;
    if (book_bad(&t->book, c))
        return MEASURED;
    memset(&trial, 0, sizeof(trial));
    trial.nth = book_runs(&t->book, c);
    trial.c = *c;
    if (candidate_check(c, t->s, t->w, e) < 0) { /* a contradiction: NCCL need not be asked */
        trial.end = TUNE_FAILED;
        snprintf(trial.why, sizeof(trial.why), "%.*s", (int)sizeof(trial.why) - 1, e->text);
        return book_add(&t->book, &trial) ? MEASURED : error_set(e, NULL, 0, "out of memory");
    }
    rc = t->measure(t->user, c, trial.nth, &trial, e);
    if (rc == NO_TIME)
        t->out_of_time = true;
    if (rc == MEASURED && !book_add(&t->book, &trial))
        rc = error_set(e, NULL, 0, "out of memory");
    return rc;
}

int search_until(struct tune_search *t, const struct candidate *c, unsigned runs, struct error *e)
{
    int rc = MEASURED;

    while (rc == MEASURED && !book_bad(&t->book, c) && book_runs(&t->book, c) < runs)
        rc = search_once(t, c, e);
    return rc;
}

/* ---- judging -------------------------------------------------------------------------------- */

bool tune_guard(const struct tune_cost *c)
{
    return c->known && c->worst - TUNE_Z * c->worst_se > TUNE_SLACK;
}

bool tune_less(const struct tune_cost *a, const struct tune_cost *b)
{
    double se = sqrt(a->se * a->se + b->se * b->se);

    return a->known && b->known && b->change - a->change > TUNE_Z * se &&
           b->change - a->change > 0.002;
}

/* ---- the steps ------------------------------------------------------------------------------ */

static int measure_default(struct tune_search *t, struct error *e)
{
    const struct tune_trial *bad;
    struct candidate none;
    int rc;

    candidate_init(&none);
    search_stage(t, "default", DEFAULT_RUNS);
    rc = search_until(t, &none, DEFAULT_RUNS, e);
    if ((bad = book_bad(&t->book, &none)))
        return error_set(e, NULL, 0, "NCCL's default itself %s: %s",
                         bad->end == TUNE_WRONG  ? "gave wrong sums"
                         : bad->end == TUNE_HUNG ? "hung"
                                                 : "failed",
                         bad->why);
    if (rc == NO_TIME && !book_runs(&t->book, &none))
        return error_set(
            e, NULL, 0,
            "the budget is over before NCCL's default was measured once; give more --budget");
    return rc;
}

/*
 * No setting may cost a size more than it may lose: without settings, rules are left, chosen size
 * by size; and of those the ones go that help one way of calling at the cost of the other.
 */
static void keep_guard(struct tune_search *t, struct candidate *c)
{
    struct candidate rules;
    struct tune_cost cost;
    int class;

    candidate_init(&rules);
    memcpy(rules.rule, t->rules, sizeof(rules.rule));
    for (;;) {
        cost = book_cost(&t->book, c, BOOK_ALL);
        if (!tune_guard(&cost))
            return;
        snprintf(t->guarded, sizeof(t->guarded), "%s of %llu bytes would be %.1f %% slower",
                 t->w->rows[cost.worst_row].op,
                 (unsigned long long)t->w->rows[cost.worst_row].bytes, cost.worst * 100);
        class = t->w->rows[cost.worst_row].class;
        if (!candidate_same_settings(c, &rules))
            *c = rules;
        else if (class >= 0 && !tune_choice_empty(&c->rule[class]))
            c->rule[class] = (struct tune_choice)TUNE_NO_RULE;
        else
            return;
    }
}

static int steps(struct tune_search *t, struct error *e)
{
    struct candidate rules;
    bool moved = true;
    int rc = measure_default(t, e);

    if (rc == MEASURED)
        rc = search_settings(t, e);
    candidate_init(&rules);
    if (rc == MEASURED)
        rc = search_rules(t, &rules, false, e);
    memcpy(t->rules, rules.rule, sizeof(t->rules));
    t->best = rules;
    if (rc == MEASURED)
        rc = search_together(t, &t->best, e);
    if (rc == MEASURED)
        rc = search_rules(t, &t->best, true, e);
    for (int i = 0; i < ROUNDS_OF_NEIGHBOURS && rc == MEASURED && moved; i++) {
        rc = search_neighbours(t, &t->best, &moved, e);
        if (rc == MEASURED && moved)
            rc = search_rules(t, &t->best, true, e);
    }
    return rc == MEASURED ? search_confirm(t, &t->best, e) : rc;
}

int tune_search(struct tune_search *t, struct error *e)
{
    t->book.w = t->w;
    candidate_init(&t->best);
    for (size_t i = 0; i < TUNE_CLASSES; i++)
        t->rules[i] = (struct tune_choice)TUNE_NO_RULE;
    if (steps(t, e) < 0)
        return -1;
    keep_guard(t, &t->best);
    return 0;
}

void tune_search_free(struct tune_search *t)
{
    book_free(&t->book);
}
