/* SPDX-License-Identifier: Apache-2.0 */
/* Finding profiles, inheritance, and what a profile does to a process's environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/base/names.h"
#include "shim/profile/apply.h"

static char folder[] = "/tmp/test_profile.XXXXXX";

static void file(const char *name, const char *text)
{
    char path[256];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s.ini", folder, name);
    out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static struct profile *load(const char *name)
{
    struct profile *p;
    struct error e;

    if (profile_load(name, &p, &e))
        fail_msg("%s:%d: %s", e.file, e.line, e.text);
    return p;
}

static void refused(const char *name, const char *part)
{
    struct profile *p;
    struct error e;

    assert_int_equal(profile_load(name, &p, &e), -1);
    if (!strstr(e.text, part))
        fail_msg("'%s' is not in: %s", part, e.text);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    return setenv("NCCLSHIM_PROFILE_PATH", folder, 1);
}

static int remove_folder(void **state)
{
    char command[256];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static const struct env_setting *setting(const struct profile *p, const char *name)
{
    for (size_t i = 0; i < p->env_count; i++)
        if (!strcmp(p->env[i].name, name))
            return &p->env[i];
    return NULL;
}

static void what_the_profile_says_itself_goes_before_what_it_inherits(void **state)
{
    (void)state;
    file("base",
         "[profile]\ndescription = base\nnccl = >=2.21\n[env]\nNCCL_DEBUG = INFO\nNCCL_PROTO = LL\n"
         "[comm]\nmax_ctas = 8\nmin_ctas = 2\n[comm tp]\nranks = 8\nmax_ctas = 4\n"
         "[log]\nsample = 10\ncapacity = 1M\n");
    file("child",
         "[profile]\ninherit = base\n[env override]\nNCCL_DEBUG = WARN\n[comm]\nmax_ctas = 6\n"
         "[comm tp]\nmin_ctas = 1\n[log]\nsample = 1\n");
    struct profile *p = load("child");

    assert_string_equal(p->description, "");
    assert_int_equal(p->nccl.least, 22100);
    assert_string_equal(setting(p, "NCCL_DEBUG")->value, "WARN");
    assert_true(setting(p, "NCCL_DEBUG")->override);
    assert_string_equal(setting(p, "NCCL_PROTO")->value, "LL");
    assert_non_null(strstr(setting(p, "NCCL_PROTO")->place.file, "base.ini"));
    assert_int_equal(setting(p, "NCCL_PROTO")->place.line, 6);
    assert_int_equal(p->comm_count, 2);
    assert_int_equal(p->comm[0].number[CONFIG_MAX_CTAS], 6);
    assert_int_equal(p->comm[0].number[CONFIG_MIN_CTAS], 2);
    assert_int_equal(p->comm[1].number[CONFIG_MAX_CTAS], 4);
    assert_int_equal(p->comm[1].number[CONFIG_MIN_CTAS], 1);
    assert_int_equal(p->comm[1].when.ranks_min, 8);
    assert_int_equal(p->log.sample, 1);
    assert_int_equal(p->log.capacity, 1 << 20);
    assert_int_equal(p->inherits_count, 1);
    assert_string_equal(p->inherits[0], "base");
    profile_free(p);
}

static void own_rules_come_before_inherited_ones_and_replace_what_they_cover(void **state)
{
    (void)state;
    file("rules", "[tune]\nallreduce 0-64K = ring ll\nallgather = ring\n");
    file("finer", "[profile]\ninherit = rules\n[tune]\nallreduce 0-1M = tree\n");
    struct profile *p = load("finer");

    assert_int_equal(p->tune_count, 2);
    assert_int_equal(p->tune[0].algo, ALGO_TREE);
    assert_int_equal(p->tune[1].op, OP_ALL_GATHER);
    profile_free(p);
}

static void circles_depth_and_missing_bases_are_refused(void **state)
{
    char name[16], text[64];

    (void)state;
    file("round", "[profile]\ninherit = about\n");
    file("about", "[profile]\ninherit = round\n");
    refused("round", "inherits from itself");
    file("orphan", "[profile]\ninherit = nobody\n");
    refused("orphan", "no profile is called 'nobody'");
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof(name), "deep%d", i);
        snprintf(text, sizeof(text), "[profile]\ninherit = deep%d\n", i + 1);
        file(name, text);
    }
    file("deep9", "[env]\nNCCL_DEBUG = WARN\n");
    refused("deep0", "more than 8");
    profile_free(load("deep1"));
}

static void consent_to_danger_is_not_inherited(void **state)
{
    (void)state;
    file("unsafe", "[profile]\nallow_unsafe = yes\n[env]\nNCCL_NTHREADS = 480\n");
    file("careful", "[profile]\ninherit = unsafe\n");
    profile_free(load("unsafe"));
    refused("careful", "allow_unsafe");
}

static void the_digest_changes_with_what_is_inherited(void **state)
{
    uint64_t first;
    struct profile *p;

    (void)state;
    file("ground", "[env]\nNCCL_DEBUG = WARN\n");
    file("above", "[profile]\ninherit = ground\n");
    p = load("above");
    first = p->digest;
    profile_free(p);
    file("ground", "[env]\nNCCL_DEBUG = INFO\n");
    p = load("above");
    assert_true(p->digest != first);
    profile_free(p);
}

static void a_missing_name_is_told_with_the_nearest_and_the_folders(void **state)
{
    (void)state;
    file("fewer-channels", "[env]\nNCCL_DEBUG = WARN\n");
    refused("fewer-chanels", "did you mean 'fewer-channels'?");
    refused("fewer-chanels", folder);
}

/* ---- the environment of a process ------------------------------------------------------------ */

static const struct env_plan_entry *entry(const struct env_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->count; i++)
        if (!strcmp(plan->entries[i].name, name))
            return &plan->entries[i];
    return NULL;
}

static struct profile *two_settings(void)
{
    file("two", "[env]\nNCCL_PROTO = LL\n[env override]\nNCCL_DEBUG = WARN\n");
    return load("two");
}

static void an_empty_environment_gets_all_settings(void **state)
{
    struct profile *p = two_settings();
    struct env_plan plan;

    (void)state;
    assert_int_equal(profile_env_plan(p, NULL, &plan), 0);
    assert_int_equal(plan.count, 2);
    assert_true(entry(&plan, "NCCL_PROTO")->set);
    assert_int_equal(entry(&plan, "NCCL_PROTO")->origin, NCCLSHIM_ORIGIN_PROFILE);
    assert_int_equal(entry(&plan, "NCCL_DEBUG")->origin, NCCLSHIM_ORIGIN_OVERRIDE);
    assert_non_null(plan.mark);
    env_plan_free(&plan);
    profile_free(p);
}

static void the_user_s_value_is_kept_and_an_override_replaces_it(void **state)
{
    char *env[] = {"NCCL_PROTO=Simple", "NCCL_DEBUG=INFO", "NCCL_PROTOX=1", NULL};
    struct profile *p = two_settings();
    struct env_plan plan;

    (void)state;
    assert_int_equal(profile_env_plan(p, env, &plan), 0);
    assert_int_equal(entry(&plan, "NCCL_PROTO")->action, ENV_KEEP);
    assert_int_equal(entry(&plan, "NCCL_PROTO")->origin, NCCLSHIM_ORIGIN_USER);
    assert_string_equal(entry(&plan, "NCCL_PROTO")->old, "Simple");
    assert_true(entry(&plan, "NCCL_DEBUG")->set);
    assert_string_equal(entry(&plan, "NCCL_DEBUG")->old, "INFO");
    env_plan_free(&plan);
    profile_free(p);
}

/* What a child sees of a parent that carried its plan out. */
static char *marked(const struct env_plan *plan)
{
    char *text;

    assert_true(asprintf(&text, PROFILE_MARK_VARIABLE "=%s", plan->mark) > 0);
    return text;
}

static void a_child_knows_what_its_parent_s_constructor_set(void **state)
{
    char *parent[] = {"NCCL_DEBUG=IN,FO=/%", NULL};
    char *child[] = {"NCCL_DEBUG=WARN", "NCCL_PROTO=LL", NULL, NULL};
    struct profile *p = two_settings();
    struct env_plan first, second;

    (void)state;
    assert_int_equal(profile_env_plan(p, parent, &first), 0);
    child[2] = marked(&first);
    assert_int_equal(profile_env_plan(p, child, &second), 0);
    assert_int_equal(entry(&second, "NCCL_PROTO")->origin, NCCLSHIM_ORIGIN_PROFILE);
    assert_null(entry(&second, "NCCL_PROTO")->old);
    assert_false(entry(&second, "NCCL_PROTO")->set);
    assert_string_equal(entry(&second, "NCCL_DEBUG")->old, "IN,FO=/%");
    assert_string_equal(second.mark, first.mark);
    env_plan_free(&second);
    env_plan_free(&first);
    free(child[2]);
    profile_free(p);
}

static void a_child_under_another_profile_gets_that_and_no_mixture(void **state)
{
    char *parent[] = {"NCCL_DEBUG=INFO", NULL};
    char *child[] = {"NCCL_DEBUG=WARN", "NCCL_PROTO=LL", NULL, NULL};
    struct profile *p = two_settings(), *none = load("none");
    struct env_plan first, second;

    (void)state;
    assert_int_equal(profile_env_plan(p, parent, &first), 0);
    child[2] = marked(&first);
    assert_int_equal(profile_env_plan(none, child, &second), 0);
    assert_int_equal(entry(&second, "NCCL_PROTO")->action, ENV_UNSET);
    assert_int_equal(entry(&second, "NCCL_DEBUG")->action, ENV_SET);
    assert_string_equal(entry(&second, "NCCL_DEBUG")->value, "INFO");
    assert_null(second.mark);
    env_plan_free(&second);
    env_plan_free(&first);
    free(child[2]);
    profile_free(none);
    profile_free(p);
}

static void what_the_program_changed_since_is_its_own(void **state)
{
    char *child[] = {"NCCL_PROTO=Simple", NULL, NULL};
    struct profile *p = two_settings();
    struct env_plan first, second;

    (void)state;
    assert_int_equal(profile_env_plan(p, NULL, &first), 0);
    child[1] = marked(&first);
    assert_int_equal(profile_env_plan(p, child, &second), 0);
    assert_int_equal(entry(&second, "NCCL_PROTO")->origin, NCCLSHIM_ORIGIN_USER);
    assert_int_equal(entry(&second, "NCCL_PROTO")->action, ENV_KEEP);
    env_plan_free(&second);
    env_plan_free(&first);
    free(child[1]);
    profile_free(p);
}

static void a_mark_that_somebody_spoilt_does_no_harm(void **state)
{
    static const char *const marks[] = {
        "", ",", "=", "NCCL_PROTO", "NCCL_PROTO=1", "NCCL_PROTO=zzzzzzzzzzzzzzzz/%4"};
    char *env[] = {"NCCL_PROTO=Simple", NULL, NULL};
    struct profile *p = two_settings();
    struct env_plan plan;

    (void)state;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        assert_true(asprintf(&env[1], PROFILE_MARK_VARIABLE "=%s", marks[i]) > 0);
        assert_int_equal(profile_env_plan(p, env, &plan), 0);
        assert_int_equal(entry(&plan, "NCCL_PROTO")->origin, NCCLSHIM_ORIGIN_USER);
        env_plan_free(&plan);
        free(env[1]);
    }
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_profile_says_itself_goes_before_what_it_inherits),
        cmocka_unit_test(own_rules_come_before_inherited_ones_and_replace_what_they_cover),
        cmocka_unit_test(circles_depth_and_missing_bases_are_refused),
        cmocka_unit_test(consent_to_danger_is_not_inherited),
        cmocka_unit_test(the_digest_changes_with_what_is_inherited),
        cmocka_unit_test(a_missing_name_is_told_with_the_nearest_and_the_folders),
        cmocka_unit_test(an_empty_environment_gets_all_settings),
        cmocka_unit_test(the_user_s_value_is_kept_and_an_override_replaces_it),
        cmocka_unit_test(a_child_knows_what_its_parent_s_constructor_set),
        cmocka_unit_test(a_child_under_another_profile_gets_that_and_no_mixture),
        cmocka_unit_test(what_the_program_changed_since_is_its_own),
        cmocka_unit_test(a_mark_that_somebody_spoilt_does_no_harm),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
