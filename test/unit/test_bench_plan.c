/* SPDX-License-Identifier: Apache-2.0 */
/* What a workload becomes when it is measured; bandwidths; intervals of medians. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cli/bench_show.h"
#include "shim/prove/bench/bench_rank.h"

static void parse(struct workload *w, const char *text)
{
    struct error e = {0};

    if (workload_parse(w, text, "f", &e) < 0)
        fail_msg("%s", e.text);
}

static void make(struct bench_plan *p, const struct workload *w, int ranks, uint32_t calls)
{
    struct bench_plan_options o = {.ranks = ranks, .calls = calls, .rows = true, .pass = true};
    struct error e = {0};

    if (bench_plan_make(p, w, &o, &e) < 0)
        fail_msg("%s", e.text);
}

static const char server[] =
    "workload 1\n"
    "eager\n"
    "step all_reduce bfloat16 count=2097152 in_place=yes runs=32\n"
    "step all_reduce bfloat16 count=21504 in_place=yes\n"
    "graph 1 runs=100\n"
    "step all_reduce bfloat16 count=21504 in_place=yes\n"
    "step all_reduce bfloat16 count=21504 in_place=yes gap_ns=5000 times=121\n";

static void one_row_for_each_kind_of_call(void **state)
{
    struct workload w;
    struct bench_plan p;

    (void)state;
    parse(&w, server);
    make(&p, &w, 2, 0);
    assert_int_equal(p.row_count, 3);
    assert_int_equal(p.rows[0].bytes, 4 << 20);
    assert_int_equal(p.rows[0].weight, 32);
    assert_false(p.rows[0].graph);
    assert_true(p.rows[2].graph);
    assert_int_equal(p.rows[2].weight, 12200);
    assert_int_equal(p.units[p.rows[2].unit].calls, 122);
    assert_int_equal(p.units[p.rows[0].unit].calls, 64); /* 256 MiB of 4 MiB */
    for (uint32_t i = 0; i < p.units[p.rows[2].unit].count; i++)
        assert_int_equal(p.ops[p.units[p.rows[2].unit].first + i].gap_ns, 0);
    bench_plan_free(&p);
    workload_free(&w);
}

static void a_pass_plays_blocks_by_their_frequency(void **state)
{
    struct workload w;
    struct bench_plan p;

    (void)state;
    parse(&w, server);
    make(&p, &w, 2, 0);
    assert_int_equal(p.turn_count, 2); /* the single eager call is too rare */
    assert_int_equal(p.turns[0].times, 1);
    assert_int_equal(p.turns[1].times, 4);
    assert_true(p.units[p.turns[1].unit].graph);
    assert_int_equal(p.pass_calls, 1 + 4 * 122);
    assert_int_equal(p.ops[p.units[p.turns[1].unit].first + 1].gap_ns, 5000);
    bench_plan_free(&p);
    workload_free(&w);
}

static void a_list_of_sizes_has_no_pass(void **state)
{
    struct workload w;
    struct bench_plan p;

    (void)state;
    parse(&w, "workload 1\npass no\neager\nstep all_reduce int8 count=8\n");
    make(&p, &w, 2, 5);
    assert_int_equal(p.turn_count, 0);
    assert_int_equal(p.units[0].calls, 5);
    bench_plan_free(&p);
    workload_free(&w);
}

static void a_group_is_one_call(void **state)
{
    struct workload w;
    struct bench_plan p;

    (void)state;
    parse(&w, "workload 1\ngraph 1\n"
              "step all_reduce int8 count=1000 group=1\nstep all_gather int8 count=500 group=1\n"
              "step all_reduce int8 count=1000 group=2\nstep all_gather int8 count=500 group=2\n"
              "step all_reduce int8 count=1000\n");
    make(&p, &w, 2, 3);
    assert_int_equal(p.row_count, 2);
    assert_int_equal(p.rows[0].steps, 2);
    assert_int_equal(p.rows[0].weight, 2);
    assert_int_equal(p.rows[0].bytes, 2000);
    assert_int_equal(p.units[p.rows[0].unit].calls, 3);
    assert_int_equal(p.units[p.rows[0].unit].count, 6);
    assert_true(p.ops[0].opens && !p.ops[0].closes && p.ops[1].closes && !p.ops[1].opens);
    assert_int_equal(p.pass_calls, 3 * BENCH_PASS_TIMES);
    bench_plan_free(&p);
    workload_free(&w);
}

static void check_places(const struct workload *w, const struct bench_plan *p,
                         const struct bench_unit *u, int n)
{
    for (uint32_t i = 0; i < u->count; i++) {
        const struct bench_op *a = &p->ops[u->first + i];
        const struct workload_step *s = &w->steps[a->step];
        uint64_t end = s->in_place ? a->send_at + workload_bytes(s, n)
                                   : a->recv_at + workload_recv_bytes(s, n);

        assert_true(end <= p->arena_bytes);
        assert_int_equal(a->send_at % 512, 0);
        assert_true(s->in_place ? a->send_at == a->recv_at
                                : a->recv_at >= a->send_at + workload_send_bytes(s, n));
        if (i + 1 < u->count)
            assert_true(a[1].send_at >= end);
    }
}

static void no_two_calls_of_a_unit_share_memory(void **state)
{
    struct workload w;
    struct bench_plan p;

    (void)state;
    parse(&w, "workload 1\ngraph 1\nstep all_gather int8 count=1001 times=4\nstep reduce_scatter "
              "int8 count=77 "
              "in_place=yes times=4\nstep all_to_all float64 count=3\n");
    make(&p, &w, 4, 7);
    for (uint32_t i = 0; i < p.unit_count; i++)
        check_places(&w, &p, &p.units[i], 4);
    bench_plan_free(&p);
    workload_free(&w);
}

/* NCCL's header: sendbuff == recvbuff + rank * count for gathers, the other way round for scatters.
 */
static void in_place_is_the_ranks_own_part_of_the_whole(void **state)
{
    static const struct {
        const char *op;
        int root_only;
        uint64_t send, recv;
    } want[] = {{"all_reduce", 0, 0, 0},      {"broadcast", 0, 0, 0}, {"reduce", 0, 0, 0},
                {"all_gather", 0, 200, 0},    {"gather", 1, 200, 0},
                {"reduce_scatter", 0, 0, 200}, {"scatter", 1, 0, 200}};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        for (int root = 1; root <= 2; root++) {
            struct bench_rank r = {.arena = 4096, .members[0] = {.rank = 2, .ranks = 4}};
            gpuapi_ptr send, recv;
            bool own = !want[i].root_only || root == 2;
            char text[160];

            snprintf(text, sizeof(text),
                     "workload 1\neager\nstep %s bfloat16 count=50 root=%d in_place=yes\n",
                     want[i].op, root);
            parse(&r.w, text);
            make(&r.plan, &r.w, 4, 1);
            bench_buffers(&r, &r.plan.ops[0], &send, &recv);
            assert_int_equal(send, 4096 + (own ? want[i].send : 0));
            assert_int_equal(recv, 4096 + (own ? want[i].recv : 0));
            bench_plan_free(&r.plan);
            workload_free(&r.w);
        }
}

static void bandwidths_are_those_of_nccl_tests(void **state)
{
    static const struct {
        const char *op;
        double factor;
    } want[] = {{"all_reduce", 1.5},  {"all_gather", 0.75}, {"reduce_scatter", 0.75},
                {"all_to_all", 0.75}, {"broadcast", 1},     {"reduce", 1},
                {"gather", 0.75},     {"scatter", 0.75}};
    struct bench_share share = {.set.ranks = 4};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct bench_result b = {.share = &share};
        char text[128];

        snprintf(text, sizeof(text), "workload 1\neager\nstep %s int8 count=1000\n", want[i].op);
        parse(&b.w, text);
        make(&b.plan, &b.w, 4, 1);
        assert_true(fabs(bench_algbw(&b, 0, 1000) - (double)b.plan.rows[0].bytes / 1000) < 1e-12);
        assert_true(fabs(bench_busbw(&b, 0, 1000) / bench_algbw(&b, 0, 1000) - want[i].factor) <
                    1e-12);
        assert_true(bench_busbw(&b, 0, 0) == 0);
        bench_plan_free(&b.plan);
        workload_free(&b.w);
    }
}

/* From tables of the sign test (Conover, 95 %). */
static void the_interval_of_a_median_is_that_of_the_tables(void **state)
{
    static const struct {
        size_t n, rank;
    } want[] = {{1, 0},  {5, 0},  {6, 0},  {8, 0},  {9, 1},   {12, 2},
                {15, 3}, {20, 5}, {25, 7}, {30, 9}, {50, 17}, {100, 39}};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        assert_int_equal(bench_ci_rank(want[i].n), want[i].rank);
}

static void the_interval_holds_the_median_and_is_made_of_samples(void **state)
{
    double v[20];
    struct bench_ci ci;

    (void)state;
    for (int i = 0; i < 20; i++)
        v[i] = (double)(i * 7 % 20);
    ci = bench_ci_of(v, 20);
    assert_true(ci.median == 9.5 && ci.low == 5 && ci.high == 14);
    assert_true(v[1] == 7); /* the samples keep their order in time */
    ci = bench_ci_of(v, 3);
    assert_true(ci.low == 0 && ci.high == 14 && ci.median == 7);
    ci = bench_ci_of(v, 0);
    assert_true(ci.median == 0);
}

/* 95 % intervals that held the true median in fewer than 93 of 100 trials would be none. */
static void the_interval_covers_as_often_as_it_says(void **state)
{
    int held = 0;

    (void)state;
    srand(1);
    for (int trial = 0; trial < 2000; trial++) {
        double v[20];
        struct bench_ci ci;

        for (int i = 0; i < 20; i++)
            v[i] = exp((double)rand() / RAND_MAX * 3); /* median e^1.5 */
        ci = bench_ci_of(v, 20);
        held += ci.low <= exp(1.5) && exp(1.5) <= ci.high;
    }
    assert_in_range(held, 1880, 1980);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_row_for_each_kind_of_call),
        cmocka_unit_test(a_pass_plays_blocks_by_their_frequency),
        cmocka_unit_test(a_list_of_sizes_has_no_pass),
        cmocka_unit_test(a_group_is_one_call),
        cmocka_unit_test(no_two_calls_of_a_unit_share_memory),
        cmocka_unit_test(in_place_is_the_ranks_own_part_of_the_whole),
        cmocka_unit_test(bandwidths_are_those_of_nccl_tests),
        cmocka_unit_test(the_interval_of_a_median_is_that_of_the_tables),
        cmocka_unit_test(the_interval_holds_the_median_and_is_made_of_samples),
        cmocka_unit_test(the_interval_covers_as_often_as_it_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
