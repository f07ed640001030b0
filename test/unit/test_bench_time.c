/* SPDX-License-Identifier: Apache-2.0 */
/* What bench makes of the times of several ranks; stand-ins for the driver invent them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/prove/bench/bench_rank.h"

#define RANKS 3
#define REPEATS 4
#define CALLS 5

/* Milliseconds between a pair of events, by rank; each rank's go round. */
static float took[RANKS][REPEATS];
static _Thread_local unsigned pairs;
static _Thread_local char did[64]; /* g: a graph, e: an event */

static void note(const char *what)
{
    if (strlen(did) + 1 < sizeof(did))
        strcat(did, what);
}

static int record(gpuapi_event event, gpuapi_stream stream)
{
    (void)event, (void)stream;
    note("e");
    return 0;
}

static int elapsed(float *ms, gpuapi_event from, gpuapi_event to)
{
    (void)to;
    *ms = took[(uintptr_t)from - 1][pairs++ % REPEATS];
    return 0;
}

static int launch(gpuapi_exec exec, gpuapi_stream stream)
{
    (void)exec, (void)stream;
    note("g");
    return 0;
}

static int finish(gpuapi_stream stream)
{
    (void)stream;
    return 0;
}

/* One row: a graph of CALLS calls, or eager calls that this rank takes no part in. */
struct party {
    struct bench_rank r;
    struct bench_slot slot;
    struct error e;
    struct bench_op op;
    struct bench_unit unit;
    struct bench_row row;
    struct workload_step step;
    gpuapi_exec exec;
    gpuapi_event events[2];
    double samples[REPEATS], gpu_ns[2];
    uint32_t batch;
    char did[64];
    int rc;
    pthread_t thread;
    int (*work)(struct bench_rank *);
};

static struct bench_share share;
static struct bench_settings set = {.repeats = REPEATS, .warmup = 1, .batch_ns = 10000000};
static struct party parties[RANKS];

static void *play(void *arg)
{
    struct party *p = arg;

    pairs = 0;
    did[0] = '\0';
    p->rc = p->work(&p->r);
    strcpy(p->did, did);
    return NULL;
}

static void on_ranks(int (*work)(struct bench_rank *), bool graph, uint32_t batch)
{
    memset(&share.shm, 0, sizeof(share.shm));
    memset(parties, 0, sizeof(parties));
    for (int i = 0; i < RANKS; i++) {
        struct party *p = &parties[i];
        gpuapi_event mine = (gpuapi_event)(uintptr_t)(i + 1);
        p->batch = batch;
        p->unit = (struct bench_unit){.graph = graph, .count = 1, .calls = CALLS};
        p->row = (struct bench_row){.steps = 1, .graph = graph};
        p->events[0] = p->events[1] = mine;
        p->r = (struct bench_rank){
            .share = &share, .set = &set, .slot = &p->slot, .e = &p->e, .rank = i,
            .w = {.steps = &p->step, .step_count = 1},
            .plan = {.ops = &p->op, .op_count = 1, .units = &p->unit, .unit_count = 1,
                     .rows = &p->row, .row_count = 1},
            .meet = {.rank = i, .ranks = RANKS, .shm = &share.shm},
            .execs = &p->exec, .events = p->events, .span = {mine, mine}, .event_count = 2,
            .samples = p->samples, .gpu_ns = p->gpu_ns, .batch = &p->batch};
        p->work = work;
        assert_int_equal(pthread_create(&p->thread, NULL, play, p), 0);
    }
    for (int i = 0; i < RANKS; i++) {
        pthread_join(parties[i].thread, NULL);
        assert_int_equal(parties[i].rc, 0);
    }
}

static void all_have(const int us[REPEATS])
{
    for (int i = 0; i < RANKS; i++)
        for (int k = 0; k < REPEATS; k++)
            assert_int_equal(parties[i].samples[k] / 1000 + 0.5, us[k]);
}

static void a_samples_time_is_the_slowest_ranks(void **state)
{
    static const int a_call[] = {400, 500, 900, 800}; /* of two plays of five */

    (void)state;
    on_ranks(bench_time_all, true, 2);
    all_have(a_call);
}

static void the_gpu_is_at_work_when_the_first_event_comes_by(void **state)
{
    (void)state;
    on_ranks(bench_time_all, true, 2);
    assert_string_equal(parties[1].did, "geggegeggegeggegegge");
}

static void every_rank_plays_as_often_as_the_slowest_one_needs_for_a_sample(void **state)
{
    (void)state;
    on_ranks(bench_warm_up, true, 0);
    for (int i = 0; i < RANKS; i++) /* 10 ms by 4 ms */
        assert_int_equal(parties[i].batch, 3);
}

static void single_calls_too_are_those_of_the_slowest_rank(void **state)
{
    (void)state;
    on_ranks(bench_time_events, false, 1);
    for (int i = 0; i < RANKS; i++)
        for (int k = 0; k < 2; k++)
            assert_int_equal(parties[i].gpu_ns[k] + 0.5, 4000000);
}

static int set_up(void **state)
{
    static const float ms[RANKS][REPEATS] = {{3, 2, 9, 8}, {2, 5, 3, 7}, {4, 4, 4, 7.5f}};

    (void)state;
    memcpy(took, ms, sizeof(took));
    gpuapi_cu.event_record = record;
    gpuapi_cu.event_elapsed = elapsed;
    gpuapi_cu.graph_launch = launch;
    gpuapi_cu.stream_sync = finish;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_samples_time_is_the_slowest_ranks),
        cmocka_unit_test(the_gpu_is_at_work_when_the_first_event_comes_by),
        cmocka_unit_test(every_rank_plays_as_often_as_the_slowest_one_needs_for_a_sample),
        cmocka_unit_test(single_calls_too_are_those_of_the_slowest_rank),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
