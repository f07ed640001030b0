/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's environment interface, v1 and v2 called directly. */
#include "test/unit/test_plugin_help.h"

#include <pthread.h>

#include "shim/plugin/asked.h"
#include "shim/plugin/plugin.h"
#include "shim/preload/commenv.h"
#include "shim/profile/profile.h"

static const struct env_table *const tables[] = {&ncclEnvPlugin_v1, &ncclEnvPlugin_v2};

static void init_both(void)
{
    CHECK_INT(ncclEnvPlugin_v1.init.v1(2, 28, 9, ""), ncclSuccess);
    CHECK_INT(ncclEnvPlugin_v2.init.v2(2, 30, 7, "", NULL), ncclSuccess);
}

static bool has(struct log_writer *log, const char *name, const char *value, uint32_t a)
{
    const struct ncclshim_note *n;

    for (int i = 0; (n = note(log, NCCLSHIM_NOTE_ASKED, i)); i++) {
        const char *text = (const char *)(n + 1);
        if (!strcmp(text, name) && n->b == (value != NULL) && n->a == a &&
            !strcmp(text + strlen(text) + 1, value ? value : ""))
            return true;
    }
    return false;
}

static void same(void)
{
    init_both();
    setenv("NCCL_ALGO", "Ring", 1);
    setenv("NCCL_PROTO", "", 1);
    unsetenv("NCCL_DEBUG");
    for (int i = 0; i < 2; i++) {
        CHECK(tables[i]->get("NCCL_ALGO") == getenv("NCCL_ALGO"));
        CHECK(tables[i]->get("NCCL_PROTO") == getenv("NCCL_PROTO"));
        CHECK(tables[i]->get("NCCL_DEBUG") == NULL);
        CHECK(tables[i]->get("PATH") == getenv("PATH"));
        CHECK_INT(tables[i]->finalize(), ncclSuccess);
        CHECK(tables[i]->get("NCCL_ALGO") == getenv("NCCL_ALGO"));
    }
}
static void the_answer_is_that_of_getenv(void **state)
{
    (void)state;
    in_child(same);
}

static void told(void)
{
    struct log_writer *log;

    setenv("NCCL_ALGO", "Ring", 1);
    unsetenv("NCCL_DEBUG");
    for (int i = 0; i < 3; i++)
        tables[i % 2]->get("NCCL_ALGO"); /* before there is a log: ncclGetUniqueId asks already */
    log = open_log();
    for (int i = 0; i < 3; i++) {
        tables[i % 2]->get("NCCL_ALGO");
        tables[i % 2]->get("NCCL_DEBUG");
    }
    CHECK(has(log, "NCCL_ALGO", "Ring", 0));
    CHECK(has(log, "NCCL_DEBUG", NULL, 0));
    CHECK_INT(note_count(log, NCCLSHIM_NOTE_ASKED), 2);
    setenv("NCCL_ALGO", "Tree", 1); /* the program's doing */
    tables[0]->get("NCCL_ALGO");
    CHECK(has(log, "NCCL_ALGO", "Tree", 0));
    CHECK_INT(note_count(log, NCCLSHIM_NOTE_ASKED), 3);
    close_log(log);
}
static void each_answer_is_told_once_also_from_before_the_log(void **state)
{
    (void)state;
    in_child(told);
}

static void for_one_comm(void)
{
    const char text[] = "[comm slow]\nranks = 2\nNCCL_PROTO = LL\n";
    struct log_writer *log = open_log();
    struct profile *p = NULL;
    struct birth b;
    struct comm c;

    CHECK_INT(profile_parse(text, strlen(text), "test.ini", &p, NULL), 0);
    shim.profile = p;
    setenv("NCCL_PROTO", "Simple", 1);
    begin_birth(&b, &c, log);
    b.section = &p->comm[p->comm_count - 1];
    c.lib->version = 23007;
    comm_env_begin(&b, false);
    CHECK(!strcmp(ncclEnvPlugin_v2.get("NCCL_PROTO"), "LL"));
    comm_env_end();
    end_birth();
    CHECK(!strcmp(ncclEnvPlugin_v2.get("NCCL_PROTO"), "Simple"));
    CHECK(has(log, "NCCL_PROTO", "LL", NCCLSHIM_ORIGIN_COMM));
    CHECK(has(log, "NCCL_PROTO", "Simple", 0));
    close_log(log);
}
static void a_communicators_own_value_is_given_to_it_alone(void **state)
{
    (void)state;
    in_child(for_one_comm);
}

static void *asking(void *arg)
{
    char name[64];

    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "NCCL_VARIABLE_%d", (i * 7 + *(int *)arg) % 300);
        CHECK(ncclEnvPlugin_v1.get(name) == NULL);
    }
    return NULL;
}

static void threads(void)
{
    struct log_writer *log;
    pthread_t thread[4];
    int seed[4] = {0, 11, 22, 33}, count;

    for (int i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&thread[i], NULL, asking, &seed[i]), 0);
    log = open_log(); /* while they ask */
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    count = note_count(log, NCCLSHIM_NOTE_ASKED);
    CHECK(count >= 300 && count <= 320); /* a pair asked for by two threads at once may be twice */
    close_log(log);
}
static void any_thread_may_ask_at_any_time(void **state)
{
    (void)state;
    in_child(threads);
}

static void full(void)
{
    struct log_writer *log = open_log();
    char name[64], value[4096];

    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    setenv("NCCL_LONG", value, 1);
    CHECK(ncclEnvPlugin_v1.get("NCCL_LONG") == getenv("NCCL_LONG"));
    CHECK(ncclEnvPlugin_v1.get("NCCL_LONG") == getenv("NCCL_LONG"));
    CHECK_INT(note_count(log, NCCLSHIM_NOTE_ASKED), 1);
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "NCCL_NAME_THAT_NOBODY_HAS_EVER_HEARD_OF_%d", i);
        CHECK(ncclEnvPlugin_v1.get(name) == NULL);
    }
    CHECK(ncclEnvPlugin_v1.get("PATH") == getenv("PATH"));
    close_log(log);
}
static void what_does_not_fit_is_answered_all_the_same(void **state)
{
    (void)state;
    in_child(full);
}

static void forked_body(void)
{
    struct log_writer *log = open_log(); /* of the child's own */

    CHECK(has(log, "NCCL_ALGO", "Ring", 0)); /* its NCCL asked before the fork */
    close_log(log);
}

static void forked(void)
{
    struct log_writer *log = open_log();
    pid_t pid;
    int status;

    setenv("NCCL_ALGO", "Ring", 1);
    ncclEnvPlugin_v1.get("NCCL_ALGO");
    CHECK(has(log, "NCCL_ALGO", "Ring", 0));
    pid = fork();
    if (pid == 0) {
        forked_body();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    CHECK_INT(status, 0);
    close_log(log);
}
static void a_forked_childs_log_has_the_answers_too(void **state)
{
    (void)state;
    in_child(forked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_is_that_of_getenv),
        cmocka_unit_test(each_answer_is_told_once_also_from_before_the_log),
        cmocka_unit_test(a_communicators_own_value_is_given_to_it_alone),
        cmocka_unit_test(any_thread_may_ask_at_any_time),
        cmocka_unit_test(what_does_not_fit_is_answered_all_the_same),
        cmocka_unit_test(a_forked_childs_log_has_the_answers_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
