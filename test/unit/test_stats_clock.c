/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shim/base/names.h"
#include "shim/stats/clock.h"
#include "shim/stats/run.h"

#define S 1000000000ull

static void without_an_anchor_the_gpus_own_time_is_told(void **unused)
{
    struct clock c = {0};

    (void)unused;
    assert_int_equal(clock_host(&c, 123), 123);
    assert_true(clock_error(&c) == UINT64_MAX);
}

static void one_anchor_moves_all_times_by_the_same(void **unused)
{
    struct clock c = {0};

    (void)unused;
    clock_add(&c, &(struct ncclshim_anchor){
                      .gpu_ns = 10 * S, .host_before_ns = 15 * S, .host_after_ns = 15 * S + 20});
    assert_int_equal(clock_host(&c, 10 * S), 15 * S + 10);
    assert_int_equal(clock_host(&c, 3 * S), 8 * S + 10);
    assert_int_equal(clock_error(&c), 10);
}

static void between_two_anchors_the_drift_is_a_straight_line(void **unused)
{
    struct clock c = {0};

    (void)unused;
    clock_add(&c, &(struct ncclshim_anchor){.gpu_ns = 110 * S,
                                            .host_before_ns = 110 * S + 900,
                                            .host_after_ns = 110 * S + 1100});
    clock_add(&c, &(struct ncclshim_anchor){
                      .gpu_ns = 10 * S, .host_before_ns = 10 * S, .host_after_ns = 10 * S});
    assert_int_equal(clock_host(&c, 10 * S), 10 * S);
    assert_int_equal(clock_host(&c, 60 * S), 60 * S + 500);
    assert_int_equal(clock_host(&c, 110 * S), 110 * S + 1000);
    assert_int_equal(clock_host(&c, 500 * S), 500 * S + 1000); /* not carried on beyond */
    assert_int_equal(clock_error(&c), 100);
}

static void the_tighter_of_two_anchors_at_one_time_wins(void **unused)
{
    struct clock c = {0};

    (void)unused;
    clock_add(&c, &(struct ncclshim_anchor){
                      .gpu_ns = 10 * S, .host_before_ns = 10 * S, .host_after_ns = 10 * S + 5000});
    clock_add(&c, &(struct ncclshim_anchor){.gpu_ns = 10 * S + 7,
                                            .host_before_ns = 10 * S + 7,
                                            .host_after_ns = 10 * S + 11});
    assert_int_equal(clock_error(&c), 2);
    clock_add(&c, &(struct ncclshim_anchor){.gpu_ns = 10 * S + 9,
                                            .host_before_ns = 10 * S,
                                            .host_after_ns = 10 * S + 9000});
    assert_int_equal(clock_error(&c), 2);
}

static void an_anchor_that_runs_backwards_is_left_out(void **unused)
{
    struct clock c = {0};

    (void)unused;
    clock_add(&c, &(struct ncclshim_anchor){.gpu_ns = 5, .host_before_ns = 10, .host_after_ns = 9});
    assert_false(c.known);
}

static void bus_bandwidth_has_the_factors_of_nccl_tests(void **unused)
{
    (void)unused;
    assert_true(bus_factor(OP_ALL_REDUCE, 8) == 2 * 7.0 / 8);
    assert_true(bus_factor(OP_ALL_GATHER, 4) == 3.0 / 4);
    assert_true(bus_factor(OP_REDUCE_SCATTER, 4) == 3.0 / 4);
    assert_true(bus_factor(OP_ALL_TO_ALL, 4) == 3.0 / 4);
    assert_true(bus_factor(OP_BROADCAST, 4) == 1);
    assert_true(bus_factor(OP_SEND, 2) == 1);
    assert_true(bus_factor(OP_GROUP, 4) == 0);
    assert_true(bus_factor(OP_ALL_REDUCE, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_an_anchor_the_gpus_own_time_is_told),
        cmocka_unit_test(one_anchor_moves_all_times_by_the_same),
        cmocka_unit_test(between_two_anchors_the_drift_is_a_straight_line),
        cmocka_unit_test(the_tighter_of_two_anchors_at_one_time_wins),
        cmocka_unit_test(an_anchor_that_runs_backwards_is_left_out),
        cmocka_unit_test(bus_bandwidth_has_the_factors_of_nccl_tests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
