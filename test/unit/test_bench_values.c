/* SPDX-License-Identifier: Apache-2.0 */
/* The values that bench reduces: exact in every type, for every operation and number of ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/prove/bench/bench_values.h"

/* What one more operand makes of it, in the way NCCL does it: in the type itself. */
static double combine(unsigned redop, double a, double b)
{
    switch (redop) {
    case REDOP_PROD:
        return a * b;
    case REDOP_MAX:
        return fmax(a, b);
    case REDOP_MIN:
        return fmin(a, b);
    default:
        return a + b;
    }
}

/* Ring, tree: NCCL starts anywhere and goes in either direction; every step must be exact. */
static void check_order(unsigned dtype, unsigned redop, int ranks, uint32_t call, uint64_t at,
                        int first, int step)
{
    double sum = 0;

    for (int k = 0; k < ranks; k++) {
        int rank = ((first + k * step) % ranks + ranks) % ranks;
        double v = bench_value(dtype, redop, ranks, rank, call, at);

        assert_true(v >= 0 && bench_exact(dtype, v));
        sum = k ? combine(redop, sum, v) : v;
        assert_true(bench_exact(dtype, sum));
    }
    if (redop == REDOP_AVG)
        sum = dtype <= DTYPE_UINT64 ? floor(sum / ranks) : sum / ranks;
    assert_true(sum == bench_value_reduced(dtype, redop, ranks, call, at));
}

static void every_step_of_every_reduction_is_exact(void **state)
{
    (void)state;
    for (unsigned dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (unsigned redop = 0; redop < REDOP_COUNT; redop++)
            for (int ranks = 1; ranks <= 16; ranks++)
                for (uint64_t at = 0; at < BENCH_PERIOD; at += 61)
                    for (int first = 0; first < ranks; first += 5) {
                        check_order(dtype, redop, ranks, 3, at, first, 1);
                        check_order(dtype, redop, ranks, 0, at, first, -1);
                    }
}

static void the_expected_value_is_one_that_the_type_holds(void **state)
{
    (void)state;
    for (unsigned dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (unsigned redop = 0; redop < REDOP_COUNT; redop++)
            for (int ranks = 1; ranks <= 64; ranks++)
                for (uint64_t at = 0; at < 200; at++) {
                    double want = bench_value_reduced(dtype, redop, ranks, 1, at);

                    if (bench_value_tolerance(dtype, redop, ranks, want) == 0 &&
                        !(redop == REDOP_AVG && want == 0))
                        assert_true(bench_exact(dtype, want));
                }
}

static void only_the_average_over_an_odd_number_may_be_off(void **state)
{
    (void)state;
    for (unsigned dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (unsigned redop = 0; redop < REDOP_COUNT; redop++)
            for (int ranks = 1; ranks <= 16; ranks++) {
                bool may = redop == REDOP_AVG && dtype >= DTYPE_FLOAT16 && (ranks & (ranks - 1));

                assert_int_equal(bench_value_tolerance(dtype, redop, ranks, 4) > 0, may);
            }
}

/* Left out, or added twice: somewhere in a buffer each of them must show. */
static void a_missing_or_doubled_rank_shows(void **state)
{
    (void)state;
    for (unsigned dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int ranks = 2; ranks <= 16; ranks++)
            for (int rank = 0; rank < ranks; rank++) {
                bool shows = false;

                for (uint64_t at = 0; at < BENCH_PERIOD && !shows; at++)
                    shows = bench_value(dtype, REDOP_SUM, ranks, rank, 0, at) > 0;
                assert_true(shows);
            }
}

static void values_differ_between_calls_ranks_and_shifted_places(void **state)
{
    int same_call = 0, same_rank = 0, same_place = 0;

    (void)state;
    for (uint64_t at = 0; at < 1000; at++) {
        double v = bench_value(DTYPE_BFLOAT16, REDOP_SUM, 2, 0, 0, at);

        same_call += v == bench_value(DTYPE_BFLOAT16, REDOP_SUM, 2, 0, 1, at);
        same_rank += v == bench_value(DTYPE_BFLOAT16, REDOP_SUM, 2, 1, 0, at);
        same_place += v == bench_value(DTYPE_BFLOAT16, REDOP_SUM, 2, 0, 0, at + 4096);
    }
    assert_true(same_call < 100 && same_rank < 100 && same_place < 100);
}

static void known_bit_patterns_are_met(void **state)
{
    static const struct {
        unsigned dtype;
        double value;
        uint32_t bits;
    } known[] = {
        {DTYPE_BFLOAT16, 1, 0x3f80},  {DTYPE_BFLOAT16, 255, 0x437f}, {DTYPE_FLOAT16, 1, 0x3c00},
        {DTYPE_FLOAT16, 2048, 0x6800}, {DTYPE_FLOAT16, 65504, 0x7bff}, {DTYPE_FLOAT8E4M3, 1, 0x38},
        {DTYPE_FLOAT8E4M3, 448, 0x7e}, {DTYPE_FLOAT8E4M3, 16, 0x58},  {DTYPE_FLOAT8E5M2, 1, 0x3c},
        {DTYPE_FLOAT8E5M2, 57344, 0x7b}, {DTYPE_FLOAT32, 3, 0x40400000}, {DTYPE_INT8, 127, 0x7f},
        {DTYPE_UINT32, 65536, 0x10000}, {DTYPE_BFLOAT16, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint64_t bits = 0;

        bench_encode(known[i].dtype, known[i].value, &bits);
        assert_int_equal(bits, known[i].bits);
        assert_true(bench_decode(known[i].dtype, &bits) == known[i].value);
    }
}

static void poison_is_no_number_in_every_float_type(void **state)
{
    unsigned char poison[8];

    (void)state;
    memset(poison, 0xff, sizeof(poison));
    for (unsigned dtype = DTYPE_FLOAT16; dtype < DTYPE_COUNT; dtype++)
        assert_true(isnan(bench_decode(dtype, poison)));
}

static void what_a_type_can_not_hold_is_not_called_exact(void **state)
{
    (void)state;
    assert_false(bench_exact(DTYPE_BFLOAT16, 257));
    assert_false(bench_exact(DTYPE_FLOAT8E4M3, 17));
    assert_false(bench_exact(DTYPE_FLOAT8E5M2, 9));
    assert_false(bench_exact(DTYPE_INT8, 128));
    assert_true(bench_exact(DTYPE_FLOAT8E5M2, 10));
}

/* A buffer filled in pieces is the buffer filled at once, wherever the pieces begin. */
static void filling_in_pieces_gives_the_same(void **state)
{
    enum { COUNT = 3 * BENCH_PERIOD + 17 };
    void *tile = malloc(BENCH_PERIOD * 8);
    float *whole = malloc(COUNT * sizeof(float)), *pieces = malloc(COUNT * sizeof(float));

    (void)state;
    bench_fill(whole, DTYPE_FLOAT32, REDOP_SUM, 4, -1, 2, 5, COUNT, tile);
    for (uint64_t at = 0; at < COUNT; at += 1000)
        bench_fill(pieces + at, DTYPE_FLOAT32, REDOP_SUM, 4, -1, 2, 5 + at,
                   COUNT - at < 1000 ? COUNT - at : 1000, tile);
    assert_memory_equal(whole, pieces, COUNT * sizeof(float));
    for (uint64_t at = 0; at < COUNT; at++)
        assert_true((double)whole[at] ==
                    bench_value_reduced(DTYPE_FLOAT32, REDOP_SUM, 4, 2, 5 + at));
    free(tile);
    free(whole);
    free(pieces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_of_every_reduction_is_exact),
        cmocka_unit_test(the_expected_value_is_one_that_the_type_holds),
        cmocka_unit_test(only_the_average_over_an_odd_number_may_be_off),
        cmocka_unit_test(a_missing_or_doubled_rank_shows),
        cmocka_unit_test(values_differ_between_calls_ranks_and_shifted_places),
        cmocka_unit_test(known_bit_patterns_are_met),
        cmocka_unit_test(poison_is_no_number_in_every_float_type),
        cmocka_unit_test(what_a_type_can_not_hold_is_not_called_exact),
        cmocka_unit_test(filling_in_pieces_gives_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
