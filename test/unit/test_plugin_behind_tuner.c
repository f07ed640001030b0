/* SPDX-License-Identifier: Apache-2.0 */
/* The user's own tuner and env plugin behind ours. */
#include "shim/plugin/plugin.h"
#include "test/unit/test_plugin_behind.h"

/* ---- tuner -------------------------------------------------------------------------------------
 */

static void tune(int version, const struct tuner_table *t, const char *plugin, int theirs)
{
    float table[7][3];
    void *context = NULL;
    int channels = 0;

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
        CHECK_INT(t->info.v4(context, 4, 1000, 1, (float **)table, 7, 3, 1, &channels),
                  ncclSuccess);
    CHECK(seen->ask == 1 && seen->asked_version == theirs);
    CHECK(table[1][0] == 0 && channels == 5);
    if (theirs >= 4 && version >= 4)
        CHECK_INT(seen->registered, 1);
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

/* ---- env ---------------------------------------------------------------------------------------
 */

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
        cmocka_unit_test(a_tuner_of_any_version_is_asked_in_its_own_form),
        cmocka_unit_test(the_oldest_tuners_work_together),
        cmocka_unit_test(a_rule_goes_before_the_users_tuner_and_nothing_else_does),
        cmocka_unit_test(an_error_of_the_users_tuner_is_nccls_to_see),
        cmocka_unit_test(the_users_env_plugin_answers_through_us),
        cmocka_unit_test(a_profiler_that_the_env_plugin_names_is_loaded_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
