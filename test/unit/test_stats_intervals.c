/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/stats/intervals.h"

#define N 4000

static uint64_t state;

static double uniform(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static struct estimate estimate(const uint64_t *times, size_t n, double q)
{
    static uint64_t sorted[N];

    memcpy(sorted, times, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_size);
    return estimate_quantile(times, sorted, n, q);
}

static void near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance))
        fail_msg("%.6f is not within %g of %.6f", a, tolerance, b);
}

static void students_t_agrees_with_the_tables(void **unused)
{
    (void)unused;
    near(student_quantile(0.975, 1), 12.7062, 1e-3);
    near(student_quantile(0.975, 7), 2.36462, 1e-4);
    near(student_quantile(0.975, 31), 2.03951, 1e-4);
    near(student_quantile(0.995, 15), 2.94671, 1e-4);
    near(student_cdf(0, 5), 0.5, 1e-12);
    near(student_cdf(-2.0, 10), 0.036694, 1e-6);
    near(student_cdf(student_quantile(0.9, 3.7), 3.7), 0.9, 1e-9);
}

static void holm_steps_down_and_stops_at_the_first_that_fails(void **unused)
{
    double p[] = {0.04, 0.001, 0.03, 0.012};
    bool yes[4];

    (void)unused;
    assert_int_equal(holm(p, 4, 0.05, yes), 0);
    assert_true(yes[1] && yes[3]);  /* 0.001 <= 0.05/4, 0.012 <= 0.05/3 */
    assert_false(yes[2] || yes[0]); /* 0.03 > 0.05/2; 0.04 is not looked at any more */
}

static void
the_interval_of_independent_calls_holds_the_truth_nineteen_times_in_twenty(void **unused)
{
    static uint64_t times[N];
    int held = 0, runs = 400;
    double t;

    (void)unused;
    state = 7;
    for (int r = 0; r < runs; r++) {
        struct estimate e;
        for (size_t i = 0; i < N; i++)
            times[i] = (uint64_t)(50000 * exp(0.1 * normal()));
        e = estimate(times, N, 0.5);
        assert_true(e.known);
        t = student_quantile(0.975, e.df);
        held += fabs(e.log_ns - log(50000)) <= t * e.se + 1e-5;
    }
    assert_true(held >= runs * 94 / 100);
}

static void neighbours_that_are_alike_widen_the_interval(void **unused)
{
    static uint64_t alone[N], alike[N];
    struct estimate a, b;
    double x = 0;

    (void)unused;
    state = 3;
    for (size_t i = 0; i < N; i++) {
        x = 0.98 * x + sqrt(1 - 0.98 * 0.98) * normal();
        alike[i] = (uint64_t)(50000 * exp(0.1 * x));
        alone[i] = (uint64_t)(50000 * exp(0.1 * normal()));
    }
    a = estimate(alone, N, 0.5);
    b = estimate(alike, N, 0.5);
    assert_true(a.known && b.known);
    assert_true(b.se > 4 * a.se); /* independent calls: 1; these: sqrt(1.98 / 0.02) = 10 */
}

static void a_drift_longer_than_any_block_widens_the_interval(void **unused)
{
    static uint64_t steady[N], drifting[N];
    struct estimate a, b;

    (void)unused;
    state = 5;
    for (size_t i = 0; i < N; i++) {
        double x = 0.02 * normal();
        steady[i] = (uint64_t)(50000 * exp(x));
        drifting[i] = (uint64_t)(50000 * exp(x + 0.04 * ((double)i / N - 0.5)));
    }
    a = estimate(steady, N, 0.5);
    b = estimate(drifting, N, 0.5);
    assert_true(a.known && b.known);
    /* Blocks alone would give 0.04 / sqrt(12 * 16) = 0.3 %; that neighbours are alike makes it
     * more. */
    assert_true(b.se > 0.006 && b.se < 0.03);
    assert_true(b.df < 8);
    assert_true(a.se < 0.001);
}

static void few_calls_are_no_estimate(void **unused)
{
    static uint64_t times[N];

    (void)unused;
    for (size_t i = 0; i < N; i++)
        times[i] = 1000 + i % 17;
    assert_false(estimate(times, 63, 0.5).known);
    assert_true(estimate(times, 64, 0.5).known);
    assert_false(estimate(times, 1500, 0.99).known); /* 15 calls above */
}

static void calls_that_are_all_alike_are_known_exactly(void **unused)
{
    static uint64_t times[N];
    struct estimate e, f;
    struct difference d;

    (void)unused;
    for (size_t i = 0; i < N; i++)
        times[i] = 1000;
    e = estimate(times, N, 0.5);
    for (size_t i = 0; i < N; i++)
        times[i] = 1100;
    f = estimate(times, N, 0.5);
    d = difference_of(&e, &f, 0.01);
    assert_true(d.known);
    near(d.change, 0.1, 1e-9);
    near(d.p, 0, 1e-12);
    near(difference_of(&e, &e, 0.01).p, 1, 1e-12);
}

static void a_change_within_the_margin_is_never_significant(void **unused)
{
    struct estimate a = {true, log(1000), 1e-6, 30, 1000}, b = {true, log(1009), 1e-6, 30, 1000};

    (void)unused;
    near(difference_of(&a, &b, 0.01).p, 1, 0);
    near(difference_of(&a, &b, 0).p, 0, 1e-9);
}

static void runs_that_differ_more_than_they_should_are_the_units(void **unused)
{
    struct estimate runs[4];
    struct estimate e;

    (void)unused;
    for (int i = 0; i < 4; i++)
        runs[i] = (struct estimate){true, 10 + 0.02 * i, 0.001, 30, 100};
    e = estimate_of_runs(runs, 4);
    near(e.log_ns, 10.03, 1e-12);
    near(e.df, 3, 0);
    near(e.se, 0.02 * sqrt(5.0 / 3) / 2, 1e-9);
}

static void a_histograms_quantile_lies_inside_its_bucket(void **unused)
{
    struct hist h;

    (void)unused;
    hist_init(&h);
    for (int i = 0; i < 10000; i++)
        assert_true(hist_add(&h, 50000 + (uint64_t)i));
    near(hist_quantile_fine(&h, 0.5), 55000, 60);
    near(hist_quantile_fine(&h, 0.99), 59900, 60);
    hist_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(students_t_agrees_with_the_tables),
        cmocka_unit_test(holm_steps_down_and_stops_at_the_first_that_fails),
        cmocka_unit_test(
            the_interval_of_independent_calls_holds_the_truth_nineteen_times_in_twenty),
        cmocka_unit_test(neighbours_that_are_alike_widen_the_interval),
        cmocka_unit_test(a_drift_longer_than_any_block_widens_the_interval),
        cmocka_unit_test(few_calls_are_no_estimate),
        cmocka_unit_test(calls_that_are_all_alike_are_known_exactly),
        cmocka_unit_test(a_change_within_the_margin_is_never_significant),
        cmocka_unit_test(runs_that_differ_more_than_they_should_are_the_units),
        cmocka_unit_test(a_histograms_quantile_lies_inside_its_bucket),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
