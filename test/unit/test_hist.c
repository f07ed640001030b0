/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shim/stats/hist.h"

static uint64_t seed = 88172645463325252ull;

static uint64_t random64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static void every_value_lies_in_its_bucket_and_within_its_bound(void **state)
{
    (void)state;
    for (int i = 0; i < 1000000; i++) {
        uint64_t ns = random64() >> (17 + i % 47), low, high;
        unsigned bucket, octave = hist_octave_of(ns, &bucket);
        hist_bucket_range(octave, bucket, &low, &high);
        assert_true(ns >= low && ns < high);
        assert_true((double)(high - low) / 2 <= 0.008 * (double)ns || high - low == 1);
    }
}

static void buckets_follow_each_other_without_gap_or_overlap(void **state)
{
    uint64_t low, high, expected = 0;

    (void)state;
    for (unsigned o = 0; o < HIST_OCTAVES; o++)
        for (unsigned b = 0; b < HIST_BUCKETS; b++) {
            hist_bucket_range(o, b, &low, &high);
            assert_int_equal(low, expected);
            assert_true(high >= low);
            expected = high;
        }
    assert_true(expected == UINT64_MAX);
}

static void values_below_64_are_kept_exactly(void **state)
{
    (void)state;
    for (uint64_t v = 0; v < 64; v++) {
        struct hist h;
        hist_init(&h);
        hist_add(&h, v);
        hist_add(&h, v + 1000);
        hist_add(&h, v);
        assert_int_equal(hist_quantile(&h, 0.5), v);
        hist_free(&h);
    }
}

static void count_sum_min_and_max_are_exact(void **state)
{
    struct hist h;
    uint64_t sum = 0;

    (void)state;
    hist_init(&h);
    for (uint64_t i = 1; i <= 1000; i++) {
        hist_add(&h, i * 977);
        sum += i * 977;
    }
    assert_int_equal(h.count, 1000);
    assert_int_equal(h.sum, sum);
    assert_int_equal(h.min, 977);
    assert_int_equal(h.max, 977000);
    assert_true(fabs(hist_mean(&h) - (double)sum / 1000) < 1e-6);
    hist_free(&h);
}

static int order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void quantiles_agree_with_a_sorted_list_within_0_8_percent(void **state)
{
    enum { N = 100000 };
    uint64_t *v = malloc(N * sizeof(*v));
    struct hist h;

    (void)state;
    hist_init(&h);
    for (int i = 0; i < N; i++) {
        v[i] = 1000 + random64() % (1ull << (10 + i % 20));
        hist_add(&h, v[i]);
    }
    qsort(v, N, sizeof(*v), order);
    for (double q = 0.001; q < 1; q += 0.001) {
        double exact = (double)v[(int)ceil(q * N) - 1], got = (double)hist_quantile(&h, q);
        assert_true(fabs(got - exact) <= 0.008 * exact);
    }
    assert_int_equal(hist_quantile(&h, 0), v[0]);
    assert_int_equal(hist_quantile(&h, 1), v[N - 1]);
    hist_free(&h);
    free(v);
}

static void an_empty_histogram_answers_zero(void **state)
{
    struct hist h;

    (void)state;
    hist_init(&h);
    assert_int_equal(hist_quantile(&h, 0.5), 0);
    assert_true(hist_mean(&h) == 0);
    assert_true(h.min == UINT64_MAX);
    hist_free(&h);
}

static void merging_two_is_adding_all_values_to_one(void **state)
{
    struct hist a, b, both;

    (void)state;
    hist_init(&a);
    hist_init(&b);
    hist_init(&both);
    for (int i = 0; i < 10000; i++) {
        uint64_t v = random64() >> (20 + i % 40);
        hist_add(i % 3 ? &a : &b, v);
        hist_add(&both, v);
    }
    assert_true(hist_merge(&a, &b));
    assert_int_equal(a.count, both.count);
    assert_int_equal(a.sum, both.sum);
    assert_int_equal(a.min, both.min);
    assert_int_equal(a.max, both.max);
    for (double q = 0; q <= 1; q += 0.01)
        assert_int_equal(hist_quantile(&a, q), hist_quantile(&both, q));
    hist_free(&a);
    hist_free(&b);
    hist_free(&both);
}

static void a_value_beyond_three_days_is_counted_in_the_last_bucket(void **state)
{
    struct hist h;
    unsigned bucket;

    (void)state;
    assert_int_equal(hist_octave_of(UINT64_MAX, &bucket), HIST_OCTAVES - 1);
    assert_int_equal(bucket, HIST_BUCKETS - 1);
    hist_init(&h);
    hist_add(&h, UINT64_MAX / 2);
    assert_int_equal(h.octave[HIST_OCTAVES - 1][HIST_BUCKETS - 1], 1);
    assert_true(hist_quantile(&h, 0.5) == UINT64_MAX / 2);
    hist_free(&h);
}

static void a_full_bucket_halves_all_and_the_quantiles_stay(void **state)
{
    struct hist h;
    unsigned bucket, octave = hist_octave_of(200000, &bucket);

    (void)state;
    hist_init(&h);
    for (int i = 0; i < 90; i++)
        hist_add(&h, 200000);
    for (int i = 0; i < 10; i++)
        hist_add(&h, 900000);
    for (unsigned o = 0; o < HIST_OCTAVES; o++)
        for (unsigned b = 0; h.octave[o] && b < HIST_BUCKETS; b++)
            h.octave[o][b] *= UINT32_MAX / 90;
    h.octave[octave][bucket] = UINT32_MAX;
    h.count = UINT32_MAX;
    assert_true(hist_add(&h, 200000));
    assert_true(h.octave[octave][bucket] < UINT32_MAX / 2 + 10);
    assert_int_equal(h.count, (uint64_t)UINT32_MAX + 1);
    assert_true(hist_quantile(&h, 0.85) < 210000);
    assert_true(hist_quantile(&h, 0.95) > 800000);
    hist_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_lies_in_its_bucket_and_within_its_bound),
        cmocka_unit_test(buckets_follow_each_other_without_gap_or_overlap),
        cmocka_unit_test(values_below_64_are_kept_exactly),
        cmocka_unit_test(count_sum_min_and_max_are_exact),
        cmocka_unit_test(quantiles_agree_with_a_sorted_list_within_0_8_percent),
        cmocka_unit_test(an_empty_histogram_answers_zero),
        cmocka_unit_test(merging_two_is_adding_all_values_to_one),
        cmocka_unit_test(a_value_beyond_three_days_is_counted_in_the_last_bucket),
        cmocka_unit_test(a_full_bucket_halves_all_and_the_quantiles_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
