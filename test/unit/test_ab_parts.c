/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `ab`: whose turn it is, the metric and what rounds of it tell, waiting for a line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/prove/ab/metric.h"
#include "shim/prove/ab/ready.h"
#include "shim/prove/ab/turns.h"

/* ---- turns ------------------------------------------------------------------------------------
 */

static void two_sides_go_abba(void **state)
{
    static const size_t want[] = {0, 1, 1, 0, 0, 1, 1, 0};

    (void)state;
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(turns_abba(i, 2), want[i]);
}

static void a_straight_drift_falls_on_all_sides_alike(void **state)
{
    (void)state;
    for (size_t sides = 2; sides <= 5; sides++) {
        size_t at[5] = {0};
        for (size_t i = 0; i < sides * 4; i++)
            at[turns_abba(i, sides)] += i;
        for (size_t s = 1; s < sides; s++)
            assert_int_equal(at[s], at[0]);
    }
}

static void each_shuffled_round_has_every_side_once(void **state)
{
    size_t order[3 * 50], again[3 * 50], first[3] = {0};

    (void)state;
    turns_shuffled(7, 3, 50, order);
    turns_shuffled(7, 3, 50, again);
    assert_memory_equal(order, again, sizeof(order));
    for (size_t r = 0; r < 50; r++) {
        assert_int_equal(1u << order[3 * r] | 1u << order[3 * r + 1] | 1u << order[3 * r + 2], 7);
        first[order[3 * r]]++;
    }
    for (size_t s = 0; s < 3; s++)
        assert_true(first[s] > 5);
}

/* ---- the expression ---------------------------------------------------------------------------
 */

static double value_in(const char *regex, const char *line)
{
    struct metric m;
    struct metric_value v = {-1, 0};
    struct error e;

    assert_int_equal(metric_init(&m, regex, false, &e), 0);
    metric_in_line(&m, line, &v);
    metric_free(&m);
    return v.value;
}

static void the_last_match_of_a_line_counts(void **state)
{
    (void)state;
    assert_float_equal(value_in("([0-9.]+) tok/s", "1.5 tok/s then 82.25 tok/s"), 82.25, 1e-12);
    assert_float_equal(value_in("= ([0-9.]+)", "a = 3, b = 4"), 4, 1e-12);
}

static void numbers_with_commas_and_exponents_are_read(void **state)
{
    (void)state;
    assert_float_equal(value_in("([0-9.,]+) tok/s", "12,345.5 tok/s"), 12345.5, 1e-9);
    assert_float_equal(value_in("([0-9.,]+) tok/s", "1,234,567 tok/s"), 1234567, 1e-9);
    assert_float_equal(value_in("([0-9.e+]+) tok/s", "1.5e+3 tok/s"), 1500, 1e-9);
}

static void what_is_no_positive_number_does_not_count(void **state)
{
    static const char *const lines[] = {"0 tok/s", "1,23 tok/s", "... tok/s", "1.2.3 tok/s",
                                        "nothing"};

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_true(value_in("([0-9.,]+) tok/s", lines[i]) == -1);
}

static void the_label_comes_from_the_expression(void **state)
{
    static const char *const pairs[][2] = {{"([0-9.]+) tok/s", "tok/s"},
                                           {"throughput: ([0-9.]+)", "throughput"},
                                           {"([0-9.]+)", "metric"}};
    struct metric m;
    struct error e;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(metric_init(&m, pairs[i][0], false, &e), 0);
        assert_string_equal(m.label, pairs[i][1]);
        metric_free(&m);
    }
}

/* ---- rounds -----------------------------------------------------------------------------------
 */

#define ROUNDS(name, ...) static const struct metric_value name[] = {__VA_ARGS__}
#define V(x)   \
    {          \
        x, 0.1 \
    }

static enum verdict judged(const struct metric_value *a, const struct metric_value *b, size_t n,
                           bool lower, struct metric_test *t)
{
    metric_compare(a, b, n, 0.0075, t);
    assert_int_equal(metric_judge(t, 1, lower), 0);
    return t->verdict;
}

static void two_rounds_are_not_enough_for_a_small_difference(void **state)
{
    ROUNDS(a, V(100), V(102));
    ROUNDS(b, V(96), V(99));
    struct metric_test t;

    (void)state;
    assert_int_equal(judged(a, b, 2, false, &t), VERDICT_NONE);
    assert_true(t.difference.low < -0.03 && t.difference.high > 0);
}

static void what_changes_from_round_to_round_falls_out(void **state)
{
    /* 30 % from round to round, but always 5 % between the sides */
    ROUNDS(a, V(100), V(130), V(80), V(110));
    ROUNDS(b, V(95.1), V(123.4), V(76), V(104.6));
    struct metric_test t;

    (void)state;
    assert_int_equal(judged(a, b, 4, false, &t), VERDICT_SLOWER);
    assert_int_equal(judged(a, b, 4, true, &t), VERDICT_FASTER);
    assert_true(t.difference.low < -0.049 && t.difference.high > -0.051);
}

static void numbers_with_few_digits_are_no_proof(void **state)
{
    static const struct metric_value a[] = {{3, 1}, {3, 1}, {3, 1}}, b[] = {{4, 1}, {4, 1}, {4, 1}};
    struct metric_test t;

    (void)state;
    assert_int_equal(judged(a, b, 3, false, &t), VERDICT_NONE);
}

static void equal_sides_get_a_verdict_in_at_most_one_of_twenty(void **state)
{
    struct metric_value a[4], b[4];
    struct metric_test t;
    unsigned false_ones = 0;

    (void)state;
    srand(5);
    for (int i = 0; i < 2000; i++) {
        for (size_t k = 0; k < 4; k++) {
            double x = 0, y = 0;
            for (int g = 0; g < 12; g++) {
                x += (double)rand() / RAND_MAX - 0.5;
                y += (double)rand() / RAND_MAX - 0.5;
            }
            a[k] = (struct metric_value){100 * exp(0.02 * x), 0.01};
            b[k] = (struct metric_value){100 * exp(0.02 * y), 0.01};
        }
        false_ones += judged(a, b, 4, false, &t) != VERDICT_NONE;
    }
    assert_true(false_ones <= 100);
}

/* ---- ready ------------------------------------------------------------------------------------
 */

static void a_line_is_found_as_it_grows_and_before_it_ends(void **state)
{
    char path[] = "/tmp/test-ready-XXXXXX";
    int fd = mkstemp(path);
    struct ready r;
    struct error e;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ready_init(&r, "ready to r[a-z]+", &e), 0);
    ready_watch(&r, path);
    assert_false(ready_look(&r));
    assert_int_equal(write(fd, "not yet\nrea", 11), 11);
    assert_false(ready_look(&r));
    assert_int_equal(write(fd, "dy to ro", 8), 8);
    assert_true(ready_look(&r));
    ready_free(&r);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_sides_go_abba),
        cmocka_unit_test(a_straight_drift_falls_on_all_sides_alike),
        cmocka_unit_test(each_shuffled_round_has_every_side_once),
        cmocka_unit_test(the_last_match_of_a_line_counts),
        cmocka_unit_test(numbers_with_commas_and_exponents_are_read),
        cmocka_unit_test(what_is_no_positive_number_does_not_count),
        cmocka_unit_test(the_label_comes_from_the_expression),
        cmocka_unit_test(two_rounds_are_not_enough_for_a_small_difference),
        cmocka_unit_test(what_changes_from_round_to_round_falls_out),
        cmocka_unit_test(numbers_with_few_digits_are_no_proof),
        cmocka_unit_test(equal_sides_get_a_verdict_in_at_most_one_of_twenty),
        cmocka_unit_test(a_line_is_found_as_it_grows_and_before_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
