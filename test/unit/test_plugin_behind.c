/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's own profiler behind ours: it is found as NCCL would find it, gets what it would get
 * without us, in its own version's form, and nothing of ours.
 */
#include "shim/plugin/plugin.h"
#include "test/unit/test_plugin_behind.h"

static void same_version(void)
{
    const struct profiler_table *t = &ncclProfiler_v6;
    int mask = 0;
    void *context, *handle;

    put_behind("NCCLSHIM_BEHIND_PROFILER", "p6t6e2");
    setenv("BEHIND_MASK", "0x1041", 1); /* Group, KernelCh, CeColl */
    context = profile_begin(t, 6, &mask);
    CHECK_INT(mask, 0x1041 | PROFILER_OUR_MASK_V5);
    CHECK(seen->init == 1 && seen->hash == 0x99 && seen->nodes == 3 && seen->ranks == 8 &&
          seen->rank == 5);
    handle = send(t, context, PROFILER_KERNEL_CH);
    CHECK(handle && seen->start == 1 && seen->parent == &path[1]);
    CHECK_INT(t->record(handle, 22, NULL), ncclSuccess);
    CHECK_INT(t->stop(handle), ncclSuccess);
    CHECK(seen->record == 1 && seen->state == 22 && seen->stop == 1);
    CHECK(send(t, context, PROFILER_CE_COLL));
    CHECK(send(t, context, PROFILER_COLL)); /* KernelCh asks for its parents */
    CHECK(send(t, context, PROFILER_COLL_API));
    CHECK_INT(seen->start, 4);
    CHECK(!send(t, context, PROFILER_PROXY_STEP) && !send(t, context, PROFILER_KERNEL_LAUNCH));
    CHECK_INT(seen->start, 4);
    CHECK_INT(t->finalize(context), ncclSuccess);
    CHECK_INT(seen->finalize, 1);
}
static void a_profiler_of_the_same_version_gets_just_what_it_asked_for(void **state)
{
    (void)state;
    in_child(same_version);
}

static void nothing_for_us(void)
{
    int mask = 0;
    void *context;

    put_behind("NCCLSHIM_BEHIND_PROFILER", "p6t6e2");
    setenv("BEHIND_MASK", "0", 1);
    context = profile_begin(&ncclProfiler_v6, 6, &mask);
    for (uint64_t type = 1; type <= PROFILER_CE_BATCH; type <<= 1)
        CHECK(!send(&ncclProfiler_v6, context, type));
    CHECK_INT(seen->start, 0);
    *seen->mask = PROFILER_KERNEL_LAUNCH; /* it may switch itself on at run time */
    send(&ncclProfiler_v6, context, PROFILER_COLL_API);
    CHECK_INT(mask, PROFILER_OUR_MASK_V5 | PROFILER_KERNEL_LAUNCH);
    CHECK(send(&ncclProfiler_v6, context, PROFILER_KERNEL_LAUNCH));
    *seen->mask = 0; /* and off: ours stay */
    send(&ncclProfiler_v6, context, PROFILER_COLL_API);
    CHECK_INT(mask, PROFILER_OUR_MASK_V5);
}
static void events_that_we_alone_asked_for_do_not_reach_it(void **state)
{
    (void)state;
    in_child(nothing_for_us);
}

static void one_older(void)
{
    const struct profiler_table *t = &ncclProfiler_v6;
    int mask = 0;
    void *context, *handle;

    put_behind("NCCLSHIM_BEHIND_PROFILER", "p5t5e1");
    setenv("BEHIND_MASK", "0x7fff", 1);
    context = profile_begin(t, 6, &mask);
    CHECK_INT(seen->init_version, 5);
    CHECK_INT(mask, 0xfff);
    CHECK(!send(t, context, PROFILER_CE_COLL) && !send(t, context, PROFILER_CE_BATCH));
    handle = send(t, context, PROFILER_COLL);
    CHECK(handle && seen->channels == 3 && !strcmp(seen->algo, "RING"));
    t->record(handle, 24, NULL);
    CHECK(seen->record == 1);
    t->record(handle, 25, NULL); /* of copy engines: unknown to it */
    CHECK(seen->record == 1);
}
static void v6_is_translated_to_v5(void **state)
{
    (void)state;
    in_child(one_older);
}

static void v4(int version, const struct profiler_table *t)
{
    int mask = 0;
    void *context, *handle;

    put_behind("NCCLSHIM_BEHIND_PROFILER", "p4t4e0");
    setenv("BEHIND_MASK", "0xffff", 1);
    context = profile_begin(t, version, &mask);
    CHECK(seen->init_version == 4 && seen->hash == 0x99 && seen->ranks == 8 && seen->rank == 5);
    CHECK_INT(mask, 0xff | PROFILER_OUR_MASK_V5);
    CHECK(!send(t, context, PROFILER_COLL_API) && !send(t, context, PROFILER_GROUP_API));
    handle = send(t, context, PROFILER_COLL);
    CHECK(handle && seen->types == PROFILER_COLL && seen->parent == &path[2]); /* the group */
    CHECK(seen->channels == 3 && !strcmp(seen->func, "AllReduce") && !strcmp(seen->algo, "RING"));
    t->record(handle, 22, NULL);
    t->record(handle, 23, NULL); /* of API events */
    CHECK(seen->record == 1);
    CHECK(send(t, context, PROFILER_PROXY_OP) && seen->parent == &path[1]);
}
static void v6_and_4(void)
{
    v4(6, &ncclProfiler_v6);
}
static void v5_and_4(void)
{
    v4(5, &ncclProfiler_v5);
}
static void v5_and_v6_are_translated_to_v4(void **state)
{
    (void)state;
    in_child(v6_and_4);
    in_child(v5_and_4);
}

static void old_together(void)
{
    int mask = 0;
    void *context, *group, *coll;
    struct profiler_event_v3 e;

    put_behind("NCCLSHIM_BEHIND_PROFILER", "p3t3e0");
    setenv("BEHIND_MASK", "0x20", 1); /* ProxyCtrl alone: no group of its own */
    context = profile_begin(&ncclProfiler_v3, 3, &mask);
    CHECK_INT(seen->init_version, 3);
    CHECK_INT(mask, 0x20 | PROFILER_OUR_MASK_V1);
    memset(&e, 0, sizeof(e));
    e.head.type_v1 = PROFILER_GROUP;
    ncclProfiler_v3.start(context, &group, &e);
    CHECK(group && seen->start == 0);
    e.head.type_v1 = PROFILER_COLL;
    e.head.parent = group;
    *seen->mask = 0xff; /* from here on it wants all; but this group it does not have */
    ncclProfiler_v3.start(context, &coll, &e);
    CHECK(!coll && seen->start == 0);
    ncclProfiler_v3.stop(group); /* ours: it must not see it (it would abort) */
    ncclProfiler_v3.stop(NULL);
    e.head.type_v1 = PROFILER_GROUP;
    e.head.parent = NULL;
    ncclProfiler_v3.start(context, &group, &e);
    e.head.type_v1 = PROFILER_COLL;
    e.head.parent = group;
    ncclProfiler_v3.start(context, &coll, &e);
    CHECK(group && coll && seen->start == 2 && seen->parent == group);
    ncclProfiler_v3.stop(coll);
    ncclProfiler_v3.stop(group);
    CHECK_INT(seen->stop, 2);
}
static void an_old_profiler_with_an_old_nccl_works_and_never_sees_our_group(void **state)
{
    (void)state;
    in_child(old_together);
}

static void too_old(void)
{
    struct log_writer *log = open_log();
    int mask = 0;
    void *context;

    put_behind("NCCLSHIM_BEHIND_PROFILER", "p3t3e0");
    context = profile_begin(&ncclProfiler_v6, 6, &mask);
    CHECK(seen->init == 0 && mask == PROFILER_OUR_MASK_V5);
    CHECK(!send(&ncclProfiler_v6, context, PROFILER_COLL));
    CHECK_INT(note_count(log, NCCLSHIM_NOTE_WARNING), 1);
    CHECK(strstr((const char *)(note(log, NCCLSHIM_NOTE_WARNING, 0) + 1), "version 3"));
    close_log(log);
}
static void one_that_is_too_old_is_not_used_and_that_is_said(void **state)
{
    (void)state;
    in_child(too_old);
}

static void failing(void)
{
    int mask = 0;
    void *context;

    put_behind("NCCLSHIM_BEHIND_PROFILER", "p6t6e2");
    setenv("BEHIND_FAIL", "profiler", 1);
    setenv("BEHIND_MASK", "0xff", 1);
    context = profile_begin(&ncclProfiler_v6, 6, &mask);
    CHECK_INT(mask, PROFILER_OUR_MASK_V5);
    CHECK(!send(&ncclProfiler_v6, context, PROFILER_COLL));
    ncclProfiler_v6.finalize(context);
    CHECK(seen->init == 1 && seen->start == 0 && seen->finalize == 0);
}
static void a_profiler_whose_init_fails_is_left_out(void **state)
{
    (void)state;
    in_child(failing);
}

static void none(void)
{
    int mask = 0;

    setenv("NCCLSHIM_BEHIND_PROFILER", "NONE", 1);
    profile_begin(&ncclProfiler_v6, 6, &mask);
    CHECK_INT(mask, PROFILER_OUR_MASK_V5);
}
static void missing(void)
{
    int mask = 0;

    setenv("NCCLSHIM_BEHIND_PROFILER", "no-such-plugin", 1);
    profile_begin(&ncclProfiler_v6, 6, &mask);
    CHECK_INT(mask, PROFILER_OUR_MASK_V5);
}
static void itself(void)
{
    int mask = 0;

    setenv("NCCLSHIM_BEHIND_PROFILER", "static", 1); /* the program: here that is us */
    profile_begin(&ncclProfiler_v6, 6, &mask);
    CHECK_INT(mask, PROFILER_OUR_MASK_V5);
}
static void nothing_behind_is_nothing_behind(void **state)
{
    (void)state;
    in_child(none);
    in_child(missing);
    in_child(itself);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profiler_of_the_same_version_gets_just_what_it_asked_for),
        cmocka_unit_test(events_that_we_alone_asked_for_do_not_reach_it),
        cmocka_unit_test(v6_is_translated_to_v5),
        cmocka_unit_test(v5_and_v6_are_translated_to_v4),
        cmocka_unit_test(an_old_profiler_with_an_old_nccl_works_and_never_sees_our_group),
        cmocka_unit_test(one_that_is_too_old_is_not_used_and_that_is_said),
        cmocka_unit_test(a_profiler_whose_init_fails_is_left_out),
        cmocka_unit_test(nothing_behind_is_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
