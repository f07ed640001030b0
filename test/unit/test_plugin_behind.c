/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's own plugin behind ours: it is found as NCCL would find it, gets what it would get
 * without us, in its own version's form, and nothing of ours.
 */
#include "test/unit/test_plugin_help.h"

#include <dlfcn.h>

#include "shim/base/names.h"
#include "shim/plugin/plugin.h"
#include "shim/plugin/profiler.h"
#include "test/unit/plugin_behind.h"

static char path[512];
static struct behind_seen *seen;

static void put_behind(const char *variable, const char *plugin)
{
    void *handle;

    snprintf(path, sizeof(path), "%s/%s.so", BEHIND_DIR, plugin);
    handle = dlopen(path, RTLD_NOW);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(1);
    }
    seen = real_dlsym(handle, "behind_seen");
    CHECK(seen);
    setenv(variable, path, 1);
}

static void *profile_begin(const struct profiler_table *t, int version, int *mask)
{
    void *context = NULL;
    ncclResult_t r = version >= 5   ? t->init.v5(&context, 0x99, mask, "tp", 3, 8, 5, NULL)
                     : version == 4 ? t->init.v4(&context, mask, "tp", 0x99, 3, 8, 5, NULL)
                                    : t->init.v1(&context, mask);
    CHECK_INT(r, ncclSuccess);
    CHECK(context);
    return context;
}

static struct profiler_event_v5 event(uint64_t type)
{
    struct profiler_event_v5 e;

    memset(&e, 0, sizeof(e));
    e.head.type_v5 = type;
    e.head.parent = &path[1];
    if (type == PROFILER_COLL)
        e.coll = (struct profiler_coll_v5){
            {.func = "AllReduce", .algo = "RING", .proto = "LL", .channels = 3}, &path[2]};
    return e;
}

static void *send(const struct profiler_table *t, void *context, uint64_t type)
{
    struct profiler_event_v5 e = event(type);
    void *handle = &e;

    CHECK_INT(t->start(context, &handle, &e), ncclSuccess);
    return handle;
}

/* ---- profiler ---------------------------------------------------------------------------------- */

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

/* ---- tuner ------------------------------------------------------------------------------------- */

static void tune(int version, const struct tuner_table *t, const char *plugin, int theirs)
{
    float table[7][3];
    void *context = NULL;
    int channels = 0, expect = 1;

    put_behind("NCCLSHIM_BEHIND_TUNER", plugin);
    for (int i = 0; i < 21; i++)
        table[i / 3][i % 3] = i / 3 < 2 ? 10.0f : -1.0f;
    CHECK_INT(version >= 5 ? t->init.v5(&context, 1, 8, 1, NULL, NULL, NULL)
                           : t->init.v2(8, 1, NULL, &context),
              ncclSuccess);
    CHECK_INT(seen->tuner_init, 1);
    if (version == 3)
        CHECK_INT(t->info.v3(context, 4, 1000, 1, (float **)table, 7, 3, &channels), ncclSuccess);
    else
        CHECK_INT(t->info.v4(context, 4, 1000, 1, (float **)table, 7, 3, 1, &channels), ncclSuccess);
    CHECK(seen->ask == 1 && seen->asked_version == theirs);
    CHECK(table[1][0] == 0 && channels == 5);
    if (theirs >= 4 && version >= 4)
        CHECK_INT(seen->registered, expect);
    setenv("BEHIND_FAIL", "tuner", 1); /* NCCL would see that without us, and so it does with us */
    if (version > 3)
        CHECK_INT(t->info.v4(context, 4, 1, 1, (float **)table, 7, 3, 1, &channels),
                  ncclInternalError);
    CHECK_INT(t->finalize(context), ncclSuccess);
    CHECK_INT(seen->tuner_finalize, 1);
}
static void tune_6_6(void)
{
    tune(6, &ncclTunerPlugin_v6.v5, "p6t6e2", 6);
}
static void tune_6_5(void)
{
    tune(6, &ncclTunerPlugin_v6.v5, "p5t5e1", 5);
}
static void tune_5_4(void)
{
    tune(5, &ncclTunerPlugin_v5, "p4t4e0", 4);
}
static void tune_6_3(void)
{
    tune(6, &ncclTunerPlugin_v6.v5, "p3t3e0", 3);
}
static void tune_4_2(void)
{
    tune(4, &ncclTunerPlugin_v4, "p0t2e0", 2);
}
static void tune_3_2(void)
{
    tune(3, &ncclTunerPlugin_v3, "p0t2e0", 2);
}
static void a_tuner_of_any_version_is_asked_in_its_own_form(void **state)
{
    (void)state;
    in_child(tune_6_6);
    in_child(tune_6_5);
    in_child(tune_5_4);
    in_child(tune_6_3);
    in_child(tune_4_2);
    in_child(tune_3_2);
}

static void v2_pair(void)
{
    void *context = NULL;
    int algo = -1, proto = -1, channels = 0;

    put_behind("NCCLSHIM_BEHIND_TUNER", "p0t2e0");
    CHECK_INT(ncclTunerPlugin_v2.init.v2(8, 1, NULL, &context), ncclSuccess);
    CHECK_INT(ncclTunerPlugin_v2.info.v2(context, 4, 1000, 0, 0, 1, &algo, &proto, &channels),
              ncclSuccess);
    CHECK(algo == 1 && proto == 0 && channels == 5);
}
static void newer_than_nccl(void)
{
    void *context = NULL;

    put_behind("NCCLSHIM_BEHIND_TUNER", "p6t6e2"); /* NCCL 2.21 would not take it either */
    CHECK_INT(ncclTunerPlugin_v2.init.v2(8, 1, NULL, &context), ncclSuccess);
    CHECK_INT(seen->tuner_init, 0);
}
static void the_oldest_tuners_work_together(void **state)
{
    (void)state;
    in_child(v2_pair);
    in_child(newer_than_nccl);
}

static void ours_refines(void)
{
    const char text[] = "[tune]\nallreduce 0-1000 = tree ll channels=2\n";
    struct profile *p = NULL;
    float table[7][3];
    void *context = NULL;
    int channels = 0;
    size_t chunk = 1;

    CHECK_INT(profile_parse(text, strlen(text), "test.ini", &p, NULL), 0);
    shim.profile = p;
    put_behind("NCCLSHIM_BEHIND_TUNER", "p6t6e2");
    for (int i = 0; i < 21; i++)
        table[i / 3][i % 3] = i / 3 < 2 ? 10.0f : -1.0f;
    ncclTunerPlugin_v6.v5.init.v5(&context, 1, 8, 1, NULL, NULL, NULL);
    ncclTunerPlugin_v6.v5.info.v4(context, 4, 1000, 1, (float **)table, 7, 3, 0, &channels);
    CHECK(table[0][0] == 0 && table[1][0] > 0 && channels == 2);
    ncclTunerPlugin_v6.chunk(context, 4, 1000, 0, 0, 2, &chunk);
    CHECK_INT(chunk, 4321);
}
static void a_rule_goes_before_the_users_tuner_and_nothing_else_does(void **state)
{
    (void)state;
    in_child(ours_refines);
}

static void tuner_init_fails(void)
{
    void *context = NULL;

    put_behind("NCCLSHIM_BEHIND_TUNER", "p6t6e2");
    setenv("BEHIND_FAIL", "tuner_init", 1);
    CHECK_INT(ncclTunerPlugin_v6.v5.init.v5(&context, 1, 8, 1, NULL, NULL, NULL), ncclSystemError);
    CHECK_INT(ncclTunerPlugin_v6.v5.finalize(context), ncclSuccess);
}
static void an_error_of_the_users_tuner_is_nccls_to_see(void **state)
{
    (void)state;
    in_child(tuner_init_fails);
}

/* ---- env --------------------------------------------------------------------------------------- */

static void env(void)
{
    put_behind("NCCLSHIM_BEHIND_ENV", "p6t6e2");
    CHECK_INT(ncclEnvPlugin_v2.init.v2(2, 30, 7, "", NULL), ncclSuccess);
    CHECK_INT(seen->env_init, 1);
    CHECK(!strcmp(ncclEnvPlugin_v2.get("NCCL_FROM_BEHIND"), "yes"));
    ncclEnvPlugin_v2.finalize();
    CHECK_INT(seen->env_finalize, 1);
    CHECK(ncclEnvPlugin_v2.get("NCCL_FROM_BEHIND") == NULL);
}
static void env_old(void)
{
    put_behind("NCCLSHIM_BEHIND_ENV", "p5t5e1");
    CHECK_INT(ncclEnvPlugin_v2.init.v2(2, 30, 7, "", NULL), ncclSuccess);
    CHECK_INT(seen->env_init, 1);
    CHECK(!strcmp(ncclEnvPlugin_v2.get("NCCL_FROM_BEHIND"), "yes"));
}
static void env_fails(void)
{
    put_behind("NCCLSHIM_BEHIND_ENV", "p6t6e2");
    setenv("BEHIND_FAIL", "env", 1);
    CHECK_INT(ncclEnvPlugin_v2.init.v2(2, 30, 7, "", NULL), ncclSystemError);
}
static void the_users_env_plugin_answers_through_us(void **state)
{
    (void)state;
    in_child(env);
    in_child(env_old);
    in_child(env_fails);
}

static void door(void)
{
    int mask = 0;

    put_behind("NCCLSHIM_BEHIND_ENV", "p6t6e2");
    CHECK_INT(ncclEnvPlugin_v2.init.v2(2, 30, 7, "", NULL), ncclSuccess);
    setenv("NCCL_PROFILER_PLUGIN", "libncclshim.so", 1); /* the constructor's doing */
    setenv("BEHIND_PROFILER", path, 1);
    setenv("BEHIND_MASK", "0x40", 1);
    CHECK(!strcmp(ncclEnvPlugin_v2.get("NCCL_PROFILER_PLUGIN"), "libncclshim.so"));
    profile_begin(&ncclProfiler_v6, 6, &mask);
    CHECK(seen->init == 1 && (mask & 0x40));
}
static void a_profiler_that_the_env_plugin_names_is_loaded_behind(void **state)
{
    (void)state;
    in_child(door);
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
        cmocka_unit_test(a_tuner_of_any_version_is_asked_in_its_own_form),
        cmocka_unit_test(the_oldest_tuners_work_together),
        cmocka_unit_test(a_rule_goes_before_the_users_tuner_and_nothing_else_does),
        cmocka_unit_test(an_error_of_the_users_tuner_is_nccls_to_see),
        cmocka_unit_test(the_users_env_plugin_answers_through_us),
        cmocka_unit_test(a_profiler_that_the_env_plugin_names_is_loaded_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
