/* SPDX-License-Identifier: Apache-2.0 */
/* Rules by size: algorithm and protocol, then channels, then chunks. */
#include <math.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/profile/choice.h"
#include "shim/prove/tune/tune_search.h"

#define STARTS 3 /* so many algorithms and protocols go on to channels */
/*
 * A word more in a rule must save so much of its class. Of twenty choices that are all the same,
 * the luckiest looks better by two standard errors: so it must be more than that, up to a limit.
 */
#define WORTH_LEAST 0.005
#define WORTH_MOST 0.015
#define WORTH_Z 3.0
#define CONFIRM_RUNS 3

static void add(struct choice_list *l, struct tune_choice c)
{
    for (size_t i = 0; i < l->count; i++)
        if (tune_choice_equal(&l->list[i], &c))
            return;
    if (l->count < TUNE_CHOICES)
        l->list[l->count++] = c;
}

/* ---- picking -------------------------------------------------------------------------------- */

static double class_share(const struct tune_search *t, int class)
{
    double share = 0;

    for (size_t r = 0; r < t->w->row_count; r++)
        share += t->w->rows[r].class == class ? t->w->rows[r].share : 0;
    return share;
}

struct tune_choice rules_pick(const struct tune_search *t, const struct candidate *base, int class,
                              const struct choice_list *l)
{
    struct tune_choice best = TUNE_NO_RULE;
    struct tune_cost least = {0}, cost;
    struct candidate c = *base;
    bool any = false;

    for (size_t i = 0; i < l->count; i++) {
        c.rule[class] = l->list[i];
        cost = book_cost(&t->book, &c, class);
        /* Good for one way of calling at the cost of the other: only when nothing else is there. */
        if (cost.known &&
            (!any || (tune_guard(&cost) == tune_guard(&least) ? cost.change < least.change
                                                              : tune_guard(&least)))) {
            best = l->list[i];
            least = cost;
            any = true;
        }
    }
    /* What says less and does as well is better: fewer words to be wrong elsewhere. */
    for (size_t i = 0; i < l->count && any; i++) {
        double share = class_share(t, class), near;
        c.rule[class] = l->list[i];
        cost = book_cost(&t->book, &c, class);
        near = WORTH_Z * sqrt(cost.se * cost.se + least.se * least.se);
        near = near < WORTH_LEAST * share  ? WORTH_LEAST * share
               : near > WORTH_MOST * share ? WORTH_MOST * share
                                           : near;
        if (cost.known && !tune_guard(&cost) &&
            tune_choice_words(&l->list[i]) < tune_choice_words(&best) &&
            cost.change - least.change <= near)
            best = l->list[i];
    }
    return best;
}

/* The first n by what is known, no rule left out. */
static void best_few(const struct tune_search *t, const struct candidate *base, int class,
                     const struct choice_list *l, size_t n, struct choice_list *out)
{
    struct choice_list rest = *l;

    out->count = 0;
    while (n-- && rest.count) {
        size_t best = rest.count;
        struct tune_cost least = {0}, cost;
        struct candidate c = *base;
        for (size_t i = 0; i < rest.count; i++) {
            c.rule[class] = rest.list[i];
            cost = book_cost(&t->book, &c, class);
            if (cost.known && (best == rest.count || cost.change < least.change)) {
                best = i;
                least = cost;
            }
        }
        if (best == rest.count)
            return;
        add(out, rest.list[best]);
        rest.list[best] = rest.list[--rest.count];
    }
}

/* ---- lists ---------------------------------------------------------------------------------- */

static void list_protocols(const struct tune_search *t, struct choice_list *lists)
{
    for (size_t k = 0; k < t->w->class_count; k++) {
        memset(&lists[k], 0, sizeof(lists[k]));
        add(&lists[k], (struct tune_choice)TUNE_NO_RULE);
        for (int a = 0; a < ALGO_COUNT; a++)
            for (int p = 0; p < PROTO_COUNT; p++)
                if (t->s->algos & 1u << a && t->s->protos & 1u << p &&
                    choice_protos_of(t->w->classes[k].op, a) & 1u << p)
                    add(&lists[k], (struct tune_choice){(int8_t)a, (int8_t)p, 0, 0});
        for (int p = 0; p < PROTO_COUNT && !t->s->algos; p++)
            if (t->s->protos & 1u << p)
                add(&lists[k], (struct tune_choice){-1, (int8_t)p, 0, 0});
        for (int a = 0; a < ALGO_COUNT && !t->s->protos; a++)
            if (t->s->algos & 1u << a && choice_protos_of(t->w->classes[k].op, a))
                add(&lists[k], (struct tune_choice){(int8_t)a, -1, 0, 0});
    }
}

static void add_channels(const struct tune_search *t, const struct choice_list *from,
                         struct choice_list *to)
{
    *to = *from;
    for (size_t i = 0; i < from->count; i++)
        for (size_t n = 0; n < t->s->channel_count; n++) {
            struct tune_choice c = from->list[i];
            c.channels = (int16_t)t->s->channels[n];
            add(to, c);
        }
}

static void add_chunks(const struct tune_search *t, const struct choice_list *from,
                       struct choice_list *to)
{
    *to = *from;
    for (size_t i = 0; i < from->count; i++)
        for (size_t n = 0; n < t->s->chunk_count; n++) {
            struct tune_choice c = from->list[i];
            c.chunk = t->s->chunks[n];
            add(to, c);
        }
}

/* ---- a step --------------------------------------------------------------------------------- */

typedef void (*widen_fn)(const struct tune_search *t, const struct choice_list *from,
                         struct choice_list *to);

/* All that this step and those before it looked at: a good one may come from any of them. */
struct field {
    struct choice_list seen[TUNE_CLASSES], now[TUNE_CLASSES];
};

static int widen(struct tune_search *t, const struct candidate *base, struct field *f, widen_fn fn,
                 const char *stage, struct error *e)
{
    search_stage(t, stage, 0);
    for (size_t k = 0; k < t->w->class_count; k++) {
        struct choice_list starts;
        best_few(t, base, (int)k, &f->seen[k], STARTS, &starts);
        fn(t, &starts, &f->now[k]);
        for (size_t i = 0; i < f->now[k].count; i++)
            add(&f->seen[k], f->now[k].list[i]);
    }
    return search_halve(t, base, f->now, e);
}

int search_rules(struct tune_search *t, struct candidate *c, bool fine, struct error *e)
{
    struct candidate base = *c;
    struct field f;
    int rc;

    for (size_t k = 0; k < TUNE_CLASSES; k++)
        base.rule[k] = (struct tune_choice)TUNE_NO_RULE;
    if (!t->w->class_count)
        return MEASURED;
    search_stage(t, "algorithms and protocols", 0);
    list_protocols(t, f.now);
    memcpy(f.seen, f.now, sizeof(f.seen));
    /* What was good before may still be: it starts in the list. */
    for (size_t k = 0; k < t->w->class_count; k++)
        if (!tune_choice_empty(&c->rule[k])) {
            add(&f.now[k], c->rule[k]);
            add(&f.seen[k], c->rule[k]);
        }
    rc = search_halve(t, &base, f.now, e);
    if (rc == MEASURED && fine && t->s->channel_count)
        rc = widen(t, &base, &f, add_channels, "channels by size", e);
    if (rc == MEASURED && fine && t->s->chunk_count)
        rc = widen(t, &base, &f, add_chunks, "chunks by size", e);
    for (size_t k = 0; k < t->w->class_count && rc >= 0; k++)
        c->rule[k] = rules_pick(t, &base, (int)k, &f.seen[k]);
    return rc;
}

/* ---- the chosen rules once more ------------------------------------------------------------- */

/*
 * What was picked as the best of many looks better than it is. It is run again, with each of its
 * words left out and without any rule, and must still be better then.
 */
int search_confirm(struct tune_search *t, struct candidate *c, struct error *e)
{
    struct choice_list lists[TUNE_CLASSES];
    size_t longest = 0;
    int rc = MEASURED;

    for (size_t k = 0; k < t->w->class_count; k++) {
        struct tune_choice less = c->rule[k];
        lists[k].count = 0;
        add(&lists[k], c->rule[k]);
        less.chunk = 0;
        add(&lists[k], less);
        less.channels = 0;
        add(&lists[k], less);
        add(&lists[k], (struct tune_choice)TUNE_NO_RULE);
        longest = lists[k].count > longest ? lists[k].count : longest;
    }
    search_stage(t, "chosen rules again", longest * CONFIRM_RUNS);
    for (unsigned run = 0; run < CONFIRM_RUNS && longest > 1; run++)
        for (size_t i = 0; i < longest && rc == MEASURED; i++) {
            struct candidate next = *c;
            for (size_t k = 0; k < t->w->class_count; k++)
                next.rule[k] = lists[k].list[i % lists[k].count];
            rc = search_once(t, &next, e);
        }
    for (size_t k = 0; k < t->w->class_count && rc >= 0; k++)
        c->rule[k] = rules_pick(t, c, (int)k, &lists[k]);
    return rc;
}
