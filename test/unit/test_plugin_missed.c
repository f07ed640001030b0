/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the calls that NCCL tells of count as not intercepted; profiler v1 to v6. */
#include <dlfcn.h>

#include "shim/plugin/plugin.h"
#include "test/unit/test_plugin_profiler.h"

static void missed(void)
{
    struct log_writer *log = open_log();

    for (int v = 5; v <= LAST; v++) {
        union event api = event_of(v, PROFILER_COLL_API), p2p = event_of(v, PROFILER_P2P_API);
        union event launch = coll(v), group = event_of(v, PROFILER_GROUP_API);
        struct birth b;
        struct comm c;
        int mask = 0;
        void *context;
        begin_birth(&b, &c, log);
        context = begin(v, &mask, 0);
        end_birth();
        CHECK(c.entry->flags & NCCLSHIM_COMM_COUNTED);
        CHECK(!(c.entry->flags & NCCLSHIM_COMM_ADOPTED));
        shim_inside = 1;
        CHECK(start(v, context, &api) == NULL && start(v, context, &p2p) == NULL);
        CHECK(start(v, context, &group) == NULL);
        shim_inside = 0;
        start(v, context, &launch); /* its launch, on another thread: a non-blocking communicator */
        CHECK_INT(c.entry->missed_calls, 0);
        start(v, context, &api);
        start(v, context, &p2p);
        start(v, context, &group);
        CHECK_INT(c.entry->missed_calls, 2);
    }
    close_log(log);
}
static void a_call_without_a_wrapper_around_it_counts_as_missed(void **state)
{
    (void)state;
    in_child(missed);
}

static void old_versions(void)
{
    struct log_writer *log = open_log();

    for (int v = FIRST; v < 5; v++) {
        union event e = coll(v);
        struct birth b;
        struct comm c;
        int mask = 0;
        void *context;
        begin_birth(&b, &c, log);
        context = begin(v, &mask, 0);
        end_birth();
        CHECK(!(c.entry->flags & NCCLSHIM_COMM_COUNTED));
        start(v, context, &e); /* a replay of a graph with network traffic looks just like this */
        CHECK_INT(c.entry->missed_calls, 0);
        table_of(v)->finalize(context);
    }
    close_log(log);
}
static void launches_outside_of_wrappers_are_not_missed_calls(void **state)
{
    (void)state;
    in_child(old_versions);
}

static void bypassed(void)
{
    struct log_writer *log = open_log();

    for (int v = FIRST; v <= LAST; v++) {
        union event e = v < 5 ? coll(v) : event_of(v, PROFILER_COLL_API);
        struct ncclshim_comm *entry = &log->comms[v - FIRST];
        int mask = 0;
        void *context = begin(v, &mask, 0); /* no wrapper has seen a birth */
        CHECK_INT(entry->state, NCCLSHIM_COMM_READY);
        CHECK_INT(entry->flags, NCCLSHIM_COMM_ADOPTED | NCCLSHIM_COMM_COUNTED);
        for (int i = 0; i < 10; i++)
            start(v, context, &e);
        CHECK_INT(entry->missed_calls, 10);
        CHECK_INT(entry->wrapped_calls, 0);
        CHECK(entry->hash == HASH);
        table_of(v)->finalize(context);
    }
    close_log(log);
}
static void a_communicator_that_bypassed_us_is_adopted_and_its_calls_are_missed(void **state)
{
    (void)state;
    if (!dlopen("libnccl.so.2", RTLD_NOW)) {
        print_message("the simulated NCCL is not built\n");
        skip();
    }
    in_child(bypassed);
}

static void on_its_way(void)
{
    struct log_writer *log = open_log();
    union event e = coll(3);
    struct birth b;
    struct comm c;
    int mask = 0;
    void *context;

    begin_birth(&b, &c, log);
    birth_current = NULL; /* made in a group: its init runs on a thread of NCCL's */
    context = begin(3, &mask, 0);
    start(3, context, &e);
    CHECK(log->comms[1].state == 0 && c.entry->missed_calls == 0);
    CHECK_INT(table_of(3)->finalize(context), ncclSuccess);
    close_log(log);
}
static void an_old_version_does_not_take_a_grouped_birth_for_a_bypass(void **state)
{
    (void)state;
    in_child(on_its_way);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_without_a_wrapper_around_it_counts_as_missed),
        cmocka_unit_test(launches_outside_of_wrappers_are_not_missed_calls),
        cmocka_unit_test(a_communicator_that_bypassed_us_is_adopted_and_its_calls_are_missed),
        cmocka_unit_test(an_old_version_does_not_take_a_grouped_birth_for_a_bypass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
