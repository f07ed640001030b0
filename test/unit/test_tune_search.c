/* SPDX-License-Identifier: Apache-2.0 */
/* The search on invented machines, whose best settings are known. */
#include "test/unit/test_tune_world.h"

/* ---- halving ----------------------------------------------------------------------------------
 */

static void those_whose_interval_reaches_the_best_stay(void **state)
{
    const struct tune_cost c[] = {{.known = true, .change = -0.10, .se = 0.01},
                                  {.known = true, .change = -0.07, .se = 0.01},
                                  {.known = true, .change = -0.05, .se = 0.01},
                                  {.known = true, .change = 0.40, .se = 0.25},
                                  {.known = false, .change = -0.90}};
    bool kept[5];

    (void)state;
    assert_int_equal(halve_keep(c, 5, kept), 3);
    assert_true(kept[0] && kept[1] && !kept[2] && kept[3] && !kept[4]);
}

static void nothing_known_keeps_nothing(void **state)
{
    const struct tune_cost c[2] = {{.known = false}, {.known = false}};
    bool kept[2];

    (void)state;
    assert_int_equal(halve_keep(c, 2, kept), 0);
}

static void the_spread_between_starts_is_learnt_from_what_was_started_twice(void **state)
{
    struct world *w = make_world(3);
    struct tune_book b = {.w = &w->work};
    struct tune_trial x;

    (void)state;
    memset(&x, 0, sizeof(x));
    candidate_init(&x.c);
    assert_true(book_spread(&b, 0) == BOOK_SPREAD_UNKNOWN);
    for (x.nth = 0; x.nth < 40; x.nth++) {
        struct error e;
        assert_int_equal(measure(w, &x.c, x.nth, &x, &e), MEASURED);
        assert_non_null(book_add(&b, &x));
    }
    assert_true(book_spread(&b, 0) > 0.007 && book_spread(&b, 0) < 0.015);
    book_free(&b);
    free(w);
}

/* ---- what is found ----------------------------------------------------------------------------
 */

static void a_rule_for_each_size_and_a_good_setting_are_found(void **state)
{
    struct world *w = make_world(1);
    struct tune_search *t;

    (void)state;
    set_setting(w, 0, 0, 0.7, 0.7, 0.8);
    set_rule(w, ALGO_TREE, PROTO_LL, 0.8, 3.0);
    set_rule(w, ALGO_RING, PROTO_SIMPLE, 2.0, 0.9);
    t = search(w);
    assert_int_equal(t->best.value[0], 0);
    assert_int_equal(t->best.value[1], -1);
    assert_int_equal(t->best.value[2], -1);
    assert_true(t->best.rule[0].algo == ALGO_TREE && t->best.rule[0].proto == PROTO_LL);
    assert_true(t->best.rule[1].algo == ALGO_RING && t->best.rule[1].proto == PROTO_SIMPLE);
    done(t, w);
}

static void classes_are_tried_side_by_side(void **state)
{
    struct world *w = make_world(1);
    struct tune_search *t = search(w);

    (void)state;
    /* 3 + 4 values + 5 rules + channels twice, and confirmations: not that times two classes */
    assert_true(w->runs < 90);
    done(t, w);
}

/* All candidates of the space, settings and rules. */
static double best_of_all(const struct world *w)
{
    double best = 1;

    for (int s = 0; s < 2 * 2 * 3; s++) {
        struct candidate c;
        double sum = 0, class[2] = {9, 9};
        candidate_init(&c);
        c.value[0] = (int8_t)(s % 2 - 1);
        c.value[1] = (int8_t)(s / 2 % 2 - 1);
        c.value[2] = (int8_t)(s / 4 - 1);
        for (int k = 0; k < 2; k++)
            for (int r = 0; r < 5 * 3; r++) {
                double here = 0;
                c.rule[k] = (struct tune_choice)TUNE_NO_RULE;
                if (r / 3) {
                    c.rule[k].algo = (r / 3 - 1) / 2 ? ALGO_TREE : ALGO_RING;
                    c.rule[k].proto = (r / 3 - 1) % 2 ? PROTO_SIMPLE : PROTO_LL;
                }
                c.rule[k].channels = (int16_t)(r % 3 ? w->space.channels[r % 3 - 1] : 0);
                for (size_t i = 0; i < ROWS; i++) {
                    struct candidate none;
                    candidate_init(&none);
                    if (w->work.rows[i].class == k)
                        here += w->work.rows[i].share * truth(w, &c, i) / truth(w, &none, i);
                }
                class[k] = here < class[k] ? here : class[k];
            }
        sum = class[0] + class[1];
        best = sum < best ? sum : best;
    }
    return best;
}

/*
 * Settings help or harm each size by itself; a rule's algorithm and protocol and its channels each
 * have an effect, and one together. Captured and eager calls of one size are alike.
 */
static void make_rugged(struct world *w)
{
    double pair[8][4][2], channels[8][2];

    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < 2; k++) {
            channels[i][k] = i ? 0.85 + 0.5 * uniform(w) : 1;
            for (size_t p = 0; p < 4; p++)
                pair[i][p][k] = i + p ? 0.7 + 0.8 * uniform(w) : 1;
        }
    for (size_t s = 0; s < 4; s++)
        for (size_t v = 0; v < 4; v++) {
            double small = 0.8 + 0.3 * uniform(w);
            set_setting(w, s, v, small, small * (0.99 + 0.02 * uniform(w)), 0.8 + 0.3 * uniform(w));
        }
    for (size_t a = 0; a < 8; a++)
        for (size_t p = 0; p < 4; p++)
            for (size_t n = 0; n < 8; n++)
                for (size_t i = 0; i < ROWS; i++)
                    w->rule[a][p][n][i] =
                        pair[a][p][i / 2] * channels[n][i / 2] * (0.97 + 0.06 * uniform(w));
}

static void the_choice_is_within_two_percent_of_an_exhaustive_sweep(void **state)
{
    unsigned good = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        struct world *w = make_world(seed);
        struct tune_search *t;
        w->between = 0.004;
        make_rugged(w);
        t = search(w);
        good += cost(w, &t->best) <= best_of_all(w) * 1.02;
        done(t, w);
    }
    assert_int_equal(good, 25);
}

static void where_nothing_is_better_the_default_stays(void **state)
{
    unsigned stayed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct world *w = make_world(seed);
        struct tune_search *t = search(w);
        stayed += is_default(&t->best);
        done(t, w);
    }
    assert_true(stayed >= 27);
}

/* ---- what must not be chosen ------------------------------------------------------------------
 */

static void a_setting_that_hangs_is_never_chosen_and_run_once(void **state)
{
    struct world *w = make_world(2);
    struct tune_search *t;
    unsigned hung = 0;

    (void)state;
    set_setting(w, 0, 0, 0.5, 0.5, 0.5);
    w->hang_setting = 0;
    t = search(w);
    assert_int_equal(t->best.value[0], -1);
    for (size_t i = 0; i < t->book.count; i++)
        hung += t->book.trials[i]->end == TUNE_HUNG;
    assert_int_equal(hung, 1);
    done(t, w);
}

static void a_rule_with_wrong_sums_is_never_chosen(void **state)
{
    struct world *w = make_world(2);
    struct tune_search *t;

    (void)state;
    set_rule(w, ALGO_RING, PROTO_LL, 0.5, 0.5);
    set_rule(w, ALGO_TREE, PROTO_LL, 0.5, 0.5);
    set_rule(w, ALGO_RING, PROTO_SIMPLE, 0.9, 0.9);
    w->wrong_proto = PROTO_LL;
    t = search(w);
    for (size_t k = 0; k < 2; k++)
        assert_true(t->best.rule[k].proto != PROTO_LL && t->best.rule[k].algo == ALGO_RING);
    done(t, w);
}

static void what_helps_one_size_at_the_cost_of_another_is_kept_out(void **state)
{
    struct world *w = make_world(4);
    struct tune_search *t;

    (void)state;
    set_setting(w, 1, 0, 0.6, 0.6, 1.2);
    t = search(w);
    assert_int_equal(t->best.value[1], -1);
    done(t, w);
}

static void unless_a_rule_makes_good_for_it(void **state)
{
    struct world *w = make_world(4);
    struct tune_search *t;

    (void)state;
    set_setting(w, 1, 0, 0.6, 0.6, 1.2);
    set_rule(w, ALGO_RING, PROTO_SIMPLE, 1.5, 0.8);
    t = search(w);
    assert_int_equal(t->best.value[1], 0);
    assert_int_equal(t->best.rule[1].proto, PROTO_SIMPLE);
    done(t, w);
}

/* ---- budget, going on -------------------------------------------------------------------------
 */

static void when_the_time_is_over_what_is_known_counts(void **state)
{
    (void)state;
    for (unsigned limit = 1; limit < 40; limit += 5) {
        struct world *w = make_world(1);
        struct tune_search *t;
        set_setting(w, 0, 0, 0.7, 0.7, 0.8);
        set_rule(w, ALGO_TREE, PROTO_LL, 0.8, 3.0);
        w->limit = limit;
        t = search(w);
        assert_true(t->out_of_time && w->runs == limit);
        assert_true(cost(w, &t->best) < 1.01);
        if (limit > 25) /* settings and protocols come before what is fine */
            assert_true(t->best.value[0] == 0 && t->best.rule[0].algo == ALGO_TREE);
        done(t, w);
    }
}

struct replay {
    struct tune_book *known;
    struct world *w;
};

static int measure_again(void *user, const struct candidate *c, unsigned nth,
                         struct tune_trial *out, struct error *e)
{
    struct replay *r = user;
    const struct tune_trial *x = book_find(r->known, TUNE_SEARCH, c, nth);

    if (!x)
        return measure(r->w, c, nth, out, e);
    *out = *x;
    return MEASURED;
}

static void a_stopped_search_goes_on_to_the_same_end(void **state)
{
    struct world *whole = make_world(1), *w = make_world(1);
    struct tune_search *want,
        first = {.s = &w->space, .w = &w->work, .measure = measure, .user = w}, t;
    struct replay r = {&first.book, w};
    struct error e;

    (void)state;
    set_setting(whole, 0, 0, 0.7, 0.7, 0.8);
    set_setting(w, 0, 0, 0.7, 0.7, 0.8);
    want = search(whole);
    w->stop_at = 17;
    assert_int_equal(tune_search(&first, &e), -1);
    assert_int_equal(first.book.count, 17);
    w->stop_at = -1;
    memset(&t, 0, sizeof(t));
    t.s = &w->space;
    t.w = &w->work;
    t.measure = measure_again;
    t.user = &r;
    assert_int_equal(tune_search(&t, &e), 0);
    assert_int_equal(w->runs, whole->runs);
    assert_true(candidate_equal(&t.best, &want->best));
    tune_search_free(&t);
    tune_search_free(&first);
    free(w);
    done(want, whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_whose_interval_reaches_the_best_stay),
        cmocka_unit_test(nothing_known_keeps_nothing),
        cmocka_unit_test(the_spread_between_starts_is_learnt_from_what_was_started_twice),
        cmocka_unit_test(a_rule_for_each_size_and_a_good_setting_are_found),
        cmocka_unit_test(classes_are_tried_side_by_side),
        cmocka_unit_test(the_choice_is_within_two_percent_of_an_exhaustive_sweep),
        cmocka_unit_test(where_nothing_is_better_the_default_stays),
        cmocka_unit_test(a_setting_that_hangs_is_never_chosen_and_run_once),
        cmocka_unit_test(a_rule_with_wrong_sums_is_never_chosen),
        cmocka_unit_test(what_helps_one_size_at_the_cost_of_another_is_kept_out),
        cmocka_unit_test(unless_a_rule_makes_good_for_it),
        cmocka_unit_test(when_the_time_is_over_what_is_known_counts),
        cmocka_unit_test(a_stopped_search_goes_on_to_the_same_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
