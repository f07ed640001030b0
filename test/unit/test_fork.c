/* SPDX-License-Identifier: Apache-2.0 */
/* What a forked child finds of its parent's call sites and captures: nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/preload/capture.h"
#include "shim/preload/site.h"

static struct comm comm;

static uint32_t eager(struct log_writer *log, uint64_t bytes)
{
    struct call_desc d = {.op = OP_ALL_REDUCE, .count = bytes, .bytes = bytes, .root = -1};
    struct site_ref ref = site_eager(log, &comm, &d, 0);

    return ref.site ? ref.number : UINT32_MAX;
}

/* Number 1 of the parent's call sites stands in the child's log under the same number by chance. */
static bool site_is_new(const struct ncclshim_site *parents)
{
    struct log_writer *log = shim_log();

    if (!log)
        return false;
    log->sites[1] = *parents;
    return eager(log, 2000) == 0 && log->head->sections[2].used == 1;
}

static bool capture_is_new(uint32_t parents)
{
    const struct capture *c = capture_of(7);

    return c->calls == 0 && c->number != parents;
}

static void no_call_site_and_no_capture_of_the_parent_is_gone_on_with(void **state)
{
    char folder[] = "/dev/shm/ncclshim-unit-XXXXXX", command[60];
    struct capture *c = capture_of(7);
    struct ncclshim_site site;
    struct log_writer *log;
    int status;
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("NCCLSHIM_LOG_DIR", folder, 1);
    shim.log_wanted = true;
    log = shim_log();
    assert_non_null(log);
    assert_int_equal(eager(log, 1000), 0);
    assert_int_equal(eager(log, 2000), 1);
    assert_int_equal(eager(log, 2000), 1);
    atomic_store(&c->calls, 3);
    assert_ptr_equal(capture_of(7), c);
    site = log->sites[1];
    pid = fork();
    if (pid == 0)
        _exit(!site_is_new(&site) + 2 * !capture_is_new(c->number));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_call_site_and_no_capture_of_the_parent_is_gone_on_with),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
