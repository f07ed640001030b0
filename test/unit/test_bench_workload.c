/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads: from sizes, from a file and back, and who plays what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/prove/bench/workload.h"

static const char good[] = "workload 1\n"
                           "# a server of four ranks\n"
                           "ranks 4\n"
                           "comm tp all\n"
                           "comm ep 0,1 2,3   # two pairs\n"
                           "eager\n"
                           "step all_reduce bfloat16 count=2097152 comm=tp in_place=yes runs=32\n"
                           "graph 7 runs=100\n"
                           "step all_reduce bfloat16 count=21504 comm=tp in_place=yes times=3\n"
                           "step all_gather float16 count=100 comm=ep gap_ns=5000 group=1\n"
                           "step broadcast int8 count=9 comm=ep root=1 group=1\n"
                           "step reduce float32 count=9 redop=max\n";

static void a_file_is_read_as_it_stands(void **state)
{
    struct workload w;
    struct error e = {0};

    (void)state;
    assert_int_equal(workload_parse(&w, good, "f", &e), 0);
    assert_int_equal(w.ranks, 4);
    assert_int_equal(w.comm_count, 2);
    assert_string_equal(w.comms[1].name, "ep");
    assert_int_equal(w.comms[1].groups, 2);
    assert_int_equal(w.step_count, 7);
    assert_int_equal(w.steps[0].graph, 0);
    assert_int_equal(w.steps[0].runs, 32);
    assert_int_equal(w.steps[1].graph, 7);
    assert_int_equal(w.steps[3].runs, 100);
    assert_int_equal(w.steps[4].comm, 1);
    assert_int_equal(w.steps[4].gap_ns, 5000);
    assert_int_equal(w.steps[5].root, 1);
    assert_int_equal(w.steps[5].group, 1);
    assert_int_equal(w.steps[6].redop, REDOP_MAX);
    assert_true(w.sequence);
    workload_free(&w);
}

static void what_is_written_is_read_back_the_same(void **state)
{
    struct workload w, again;
    struct error e = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    assert_int_equal(workload_parse(&w, good, "f", &e), 0);
    assert_int_equal(workload_write(&w, out), 0);
    fclose(out);
    assert_int_equal(workload_parse(&again, text, "g", &e), 0);
    assert_true(workload_digest(&w) == workload_digest(&again));
    assert_int_equal(again.ranks, w.ranks);
    again.steps[2].gap_ns++;
    assert_true(workload_digest(&w) != workload_digest(&again));
    free(text);
    workload_free(&w);
    workload_free(&again);
}

static void every_fault_of_a_file_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text;
        int line;
        const char *word;
    } bad[] = {
        {"workload 2\n", 1, "workload 1"},
        {"\nworkload 1\n", 1, "first line"},
        {"workload 1\nstep all_reduce bfloat16 count=1\n", 2, "eager"},
        {"workload 1\neager\nstep all_reduce bfloat16\n", 3, "count"},
        {"workload 1\neager\nstep all_reduce bfloat16 count=0\n", 3, "count"},
        {"workload 1\neager\nstep all_reduce bfloat16 count=-1\n", 3, "count"},
        {"workload 1\neager\nstep all_reduce bfloat16 count=4x\n", 3, "count"},
        {"workload 1\neager\nstep all_redduce bfloat16 count=4\n", 3, "all_redduce"},
        {"workload 1\neager\nstep send bfloat16 count=4\n", 3, "send"},
        {"workload 1\neager\nstep all_reduce bf17 count=4\n", 3, "bf17"},
        {"workload 1\neager\nstep all_reduce int8 count=4 colour=red\n", 3, "colour"},
        {"workload 1\neager\nstep all_reduce int8 count=4 fast\n", 3, "fast"},
        {"workload 1\neager\nstep all_reduce int8 count=4 comm=tp\n", 3, "tp"},
        {"workload 1\neager\nstep all_to_all int8 count=4 in_place=yes\n", 3, "in place"},
        {"workload 1\ngraph 1 runs=2\nstep all_reduce int8 count=4 runs=3\n", 3, "runs"},
        {"workload 1\ngraph 1\nstep all_reduce int8 count=4\neager\ngraph 1\n", 5, "before"},
        {"workload 1\ngraph 0\n", 2, "graph"},
        {"workload 1\ncomm a 0,1 1,2\n", 2, "two groups"},
        {"workload 1\ncomm a all\ncomm a all\n", 3, "taken"},
        {"workload 1\ncomm a 0,99\n", 2, "63"},
        {"workload 1\nranks\n", 2, "ranks"},
        {"workload 1\nfoo bar\n", 2, "foo"},
        {"workload 1\neager\n", 0, "no step"},
        {"workload 1\nworkload 1\n", 2, "once"},
        {"", 1, "first line"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct workload w;
        struct error e = {0};

        assert_int_equal(workload_parse(&w, bad[i].text, "f", &e), -1);
        if (e.line != bad[i].line || !strstr(e.text, bad[i].word))
            fail_msg("%s -> line %d: %s", bad[i].text, e.line, e.text);
        assert_string_equal(e.file, "f");
        assert_null(w.steps);
    }
}

static struct workload_sizes sizes_of(const char *list)
{
    return (struct workload_sizes){.list = list,
                                   .op = OP_ALL_REDUCE,
                                   .dtype = DTYPE_BFLOAT16,
                                   .eager = true,
                                   .graph = true,
                                   .ranks = 2};
}

static void a_range_doubles_and_a_list_is_taken_as_it_is(void **state)
{
    struct workload_sizes s = sizes_of("8K-64K,42K");
    struct workload w;
    struct error e = {0};

    (void)state;
    assert_int_equal(workload_from_sizes(&w, &s, &e), 0);
    assert_int_equal(w.step_count, 10); /* 8K 16K 32K 64K 42K, each in a graph and eagerly */
    assert_int_equal(w.steps[0].count, 4096);
    assert_true(w.steps[0].graph && !w.steps[1].graph);
    assert_int_equal(w.steps[8].count, 21504);
    assert_false(w.sequence);
    workload_keep(&w, 0);
    assert_int_equal(w.step_count, 5);
    assert_int_equal(w.steps[4].graph, 0);
    workload_free(&w);
}

static void sizes_count_as_in_nccl_tests(void **state)
{
    static const struct {
        unsigned op;
        uint64_t count, sent, received;
    } want[] = {{OP_ALL_REDUCE, 1024, 4096, 4096},    {OP_ALL_GATHER, 256, 1024, 4096},
                {OP_REDUCE_SCATTER, 256, 4096, 1024}, {OP_ALL_TO_ALL, 256, 4096, 4096},
                {OP_BROADCAST, 1024, 4096, 4096},     {OP_REDUCE, 1024, 4096, 4096},
                {OP_GATHER, 256, 1024, 4096},         {OP_SCATTER, 256, 4096, 1024}};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct workload_sizes s = sizes_of("4K");
        struct workload w;
        struct error e = {0};

        s.op = (uint8_t)want[i].op;
        s.dtype = DTYPE_FLOAT32;
        s.ranks = 4;
        assert_int_equal(workload_from_sizes(&w, &s, &e), 0);
        assert_int_equal(w.steps[0].count, want[i].count);
        assert_int_equal(workload_send_bytes(&w.steps[0], 4), want[i].sent);
        assert_int_equal(workload_recv_bytes(&w.steps[0], 4), want[i].received);
        assert_int_equal(workload_bytes(&w.steps[0], 4), 4096);
        workload_free(&w);
    }
}

static void sizes_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {"",  ",",   "8K-", "-8K",    "64K-8K",
                                      "0", "8KB", "1",   "1-128G", "x"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct workload_sizes s = sizes_of(bad[i]);
        struct workload w;
        struct error e = {0};

        assert_int_equal(workload_from_sizes(&w, &s, &e), -1);
        assert_non_null(strstr(e.text, "--sizes"));
    }
}

static void a_rank_finds_its_place_in_its_group(void **state)
{
    struct workload w;
    struct error e = {0};
    int n;

    (void)state;
    assert_int_equal(
        workload_parse(&w, "workload 1\ncomm a 2,0 1,3\neager\nstep reduce int8 count=1 root=1\n",
                       "f", &e),
        0);
    assert_int_equal(workload_place(&w.comms[0], 5, 0, &n), 0);
    assert_int_equal(n, 2);
    assert_int_equal(workload_place(&w.comms[0], 5, 2, &n), 1);
    assert_int_equal(workload_place(&w.comms[0], 5, 3, &n), 1);
    assert_int_equal(workload_place(&w.comms[0], 5, 4, &n), -1);
    assert_int_equal(workload_comm_ranks(&w.comms[0], 5), 2);
    assert_int_equal(workload_check(&w, 5, &e), 0);
    assert_int_equal(workload_check(&w, 3, &e), -1);
    assert_non_null(strstr(e.text, "--ranks 4"));
    workload_free(&w);
}

static void a_root_that_a_communicator_does_not_have_is_refused(void **state)
{
    struct workload w;
    struct error e = {0};

    (void)state;
    assert_int_equal(
        workload_parse(&w, "workload 1\neager\nstep broadcast int8 count=1 root=2\n", "f", &e), 0);
    assert_int_equal(workload_check(&w, 3, &e), 0);
    assert_int_equal(workload_check(&w, 2, &e), -1);
    assert_non_null(strstr(e.text, "root 2"));
    assert_int_equal(workload_check(&w, 65, &e), -1);
    workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_as_it_stands),
        cmocka_unit_test(what_is_written_is_read_back_the_same),
        cmocka_unit_test(every_fault_of_a_file_is_refused_with_its_line),
        cmocka_unit_test(a_range_doubles_and_a_list_is_taken_as_it_is),
        cmocka_unit_test(sizes_count_as_in_nccl_tests),
        cmocka_unit_test(sizes_that_are_none_are_refused),
        cmocka_unit_test(a_rank_finds_its_place_in_its_group),
        cmocka_unit_test(a_root_that_a_communicator_does_not_have_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
