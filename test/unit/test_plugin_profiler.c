/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL is asked to tell, and what is learnt of its choices; profiler v1 to v6. */
#include "shim/plugin/plugin.h"
#include "test/unit/test_plugin_profiler.h"

static void masks(void)
{
    for (int v = FIRST; v <= LAST; v++) {
        int mask = 0;
        void *context = begin(v, &mask, 0);
        /* KernelCh adds a host node to every captured plan; the others cost proxy work. */
        CHECK(!(mask & (PROFILER_KERNEL_CH | PROFILER_PROXY_OP | PROFILER_PROXY_STEP |
                        PROFILER_PROXY_CTRL | PROFILER_NET_PLUGIN | PROFILER_KERNEL_LAUNCH |
                        PROFILER_CE_COLL | PROFILER_CE_SYNC | PROFILER_CE_BATCH)));
        CHECK_INT(mask, v < 5 ? 0x6 : 0x602);
        table_of(v)->finalize(context);
        mask = PROFILER_KERNEL_CH; /* somebody else's */
        table_of(v)->finalize(begin(v, &mask, 0));
        CHECK(mask & PROFILER_KERNEL_CH);
    }
}
static void only_events_without_cost_are_asked_for(void **state)
{
    (void)state;
    in_child(masks);
}

static void choices(void)
{
    struct log_writer *log = open_log();

    for (int v = FIRST; v <= LAST; v++) {
        struct birth b;
        struct comm c;
        int mask = 0;
        void *context;
        union event e = coll(v);
        begin_birth(&b, &c, log);
        context = begin(v, &mask, 0);
        end_birth();
        shim_inside = 1; /* as in the wrapper */
        c.choice = (struct choice){NCCLSHIM_NO_CHOICE, NCCLSHIM_NO_CHOICE, 0, 0};
        CHECK(start(v, context, &e) == NULL);
        stop(v, NULL);
        shim_inside = 0;
        CHECK_INT(c.choice.algo, ALGO_COLLNET_DIRECT);
        CHECK_INT(c.choice.proto, PROTO_LL128);
        CHECK_INT(c.choice.channels, 7);
        CHECK_INT(c.choice.warps, 20);
        CHECK_INT(c.entry->channels, 7);
        CHECK(c.entry->hash == HASH);
        table_of(v)->finalize(context);
    }
    close_log(log);
}
static void the_choice_of_a_call_is_learnt_from_every_version(void **state)
{
    (void)state;
    in_child(choices);
}

static void elsewhere(void)
{
    struct log_writer *log = open_log();
    union event e = coll(6);
    struct birth b;
    struct comm c;
    int mask = 0;
    void *context;

    begin_birth(&b, &c, log);
    context = begin(6, &mask, 0);
    end_birth();
    c.choice.algo = 77;
    start(6, context, &e); /* a replay's, or of a thread of NCCL's own */
    CHECK_INT(c.choice.algo, 77);
    CHECK_INT(c.entry->channels, 7);
    close_log(log);
}
static void a_choice_told_outside_of_a_call_is_not_taken_for_that_of_a_call(void **state)
{
    (void)state;
    in_child(elsewhere);
}

static void spelled(void)
{
    static const char *const algos[] = {"TREE",          "RING",    "COLLNET_DIRECT",
                                        "COLLNET_CHAIN", "NVLS",    "NVLS_TREE",
                                        "PAT",           "Unknown", NULL};
    static const char *const protos[] = {"LL", "LL128", "SIMPLE", "Unknown", NULL};
    struct log_writer *log = open_log();
    struct birth b;
    struct comm c;
    int mask = 0;
    void *context;

    begin_birth(&b, &c, log);
    context = begin(6, &mask, 0);
    end_birth();
    shim_inside = 1;
    for (int i = 0; i <= 8; i++)
        for (int p = 0; p <= 4; p++) {
            union event e = coll(6);
            e.v5.coll.v4.algo = algos[i];
            e.v5.coll.v4.proto = protos[p];
            start(6, context, &e);
            CHECK_INT(c.choice.algo, i < 7 ? i : NCCLSHIM_NO_CHOICE);
            CHECK_INT(c.choice.proto, p < 3 ? p : NCCLSHIM_NO_CHOICE);
        }
    shim_inside = 0;
    close_log(log);
}
static void the_spelling_by_nccl_of_algorithms_and_protocols_is_read(void **state)
{
    (void)state;
    in_child(spelled);
}

static void group_handles(void)
{
    int mask = 0;

    for (int v = FIRST; v <= LAST; v++) {
        void *context = begin(v, &mask, 0);
        union event e = event_of(v, PROFILER_GROUP);
        void *handle = start(v, context, &e);
        /* Without a handle for the group NCCL 2.23 to 2.27 tells of no collective in it. */
        CHECK(v < 5 ? handle != NULL : handle == NULL);
        stop(v, handle);
        table_of(v)->finalize(context);
    }
}
static void a_group_gets_a_handle_where_nccl_would_be_silent_without(void **state)
{
    (void)state;
    in_child(group_handles);
}

static void stale(void)
{
    struct log_writer *log = open_log();
    union event api = event_of(6, PROFILER_COLL_API), e = coll(6);
    struct birth b;
    struct comm c;
    struct ncclshim_comm *old;
    int mask = 0;
    void *context;

    begin_birth(&b, &c, log);
    context = begin(6, &mask, 0);
    end_birth();
    old = c.entry;
    c.entry = log_comm_add(log, &c.number); /* its place went to another communicator */
    start(6, context, &api);
    start(6, context, &e);
    CHECK(old->missed_calls == 0 && c.entry->missed_calls == 0);
    c.entry = NULL; /* a forked child */
    start(6, context, &api);
    start(6, NULL, &api);
    table_of(6)->finalize(context);
    table_of(6)->finalize(NULL);
    close_log(log);
}
static void a_late_event_is_not_written_to_another_communicator(void **state)
{
    (void)state;
    in_child(stale);
}

static void many(void)
{
    void *contexts[COMM_LIVE_MAX + 10];
    union event e = coll(6);
    int mask = 0;

    for (int i = 0; i < COMM_LIVE_MAX + 10; i++)
        contexts[i] = begin(6, &mask, 0);
    CHECK(contexts[COMM_LIVE_MAX - 1] && !contexts[COMM_LIVE_MAX]);
    CHECK(start(6, contexts[COMM_LIVE_MAX], &e) == NULL);
    for (int i = 0; i < COMM_LIVE_MAX + 10; i++)
        CHECK_INT(table_of(6)->finalize(contexts[i]), ncclSuccess);
    CHECK(begin(6, &mask, 0));
}
static void more_communicators_than_places_pass_through(void **state)
{
    (void)state;
    in_child(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_events_without_cost_are_asked_for),
        cmocka_unit_test(the_choice_of_a_call_is_learnt_from_every_version),
        cmocka_unit_test(a_choice_told_outside_of_a_call_is_not_taken_for_that_of_a_call),
        cmocka_unit_test(the_spelling_by_nccl_of_algorithms_and_protocols_is_read),
        cmocka_unit_test(a_group_gets_a_handle_where_nccl_would_be_silent_without),
        cmocka_unit_test(a_late_event_is_not_written_to_another_communicator),
        cmocka_unit_test(more_communicators_than_places_pass_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
