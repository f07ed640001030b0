/* SPDX-License-Identifier: Apache-2.0 */
/* What tune writes down of the machine: clocks, temperatures, and who else is on the GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/prove/tune/tune_machine.h"

static void say_pid(pid_t pid)
{
    char text[20];

    snprintf(text, sizeof(text), "%d", (int)pid);
    setenv("STUB_PID", text, 1);
}

static void clocks_and_temperatures_are_those_of_each_gpu_and_0_where_it_does_not_say(void **state)
{
    struct tune_machine m;
    struct machine_look l;

    (void)state;
    say_pid(getpid());
    machine_open(&m);
    assert_non_null(m.nvml);
    machine_look(&m, &l);
    machine_close(&m);
    assert_true(l.nvml && l.load >= 0);
    assert_int_equal(l.gpu_count, 2);
    assert_int_equal(l.gpus[0].sm_mhz, 1980);
    assert_int_equal(l.gpus[0].memory_mhz, 2619);
    assert_int_equal(l.gpus[0].celsius, 41);
    assert_int_equal(l.gpus[1].sm_mhz, 1980);
    assert_int_equal(l.gpus[1].memory_mhz, 0);
    assert_int_equal(l.gpus[1].celsius, 0);
}

/* A process of ours is one that we started; that of init is told once, though it is on both GPUs. */
static void other_processes_are_named_once_and_those_we_started_are_not(void **state)
{
    struct tune_machine m;
    struct machine_look l;
    char text[200];
    pid_t child = fork();

    (void)state;
    if (child == 0)
        for (;;)
            pause();
    say_pid(child);
    machine_open(&m);
    machine_look(&m, &l);
    machine_close(&m);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(l.other_count, 1);
    assert_int_equal(l.others[0], 1);
    machine_others(&l, text, sizeof(text));
    assert_memory_equal(text, "pid 1 (", 7);
    l.others[0] = child; /* gone by now */
    machine_others(&l, text, sizeof(text));
    assert_non_null(strstr(text, "(?)"));
}

static void a_driver_that_does_not_start_is_as_none(void **state)
{
    struct tune_machine m;
    struct machine_look l;

    (void)state;
    setenv("STUB_BROKEN", "1", 1);
    machine_open(&m);
    machine_look(&m, &l);
    machine_close(&m);
    unsetenv("STUB_BROKEN");
    assert_false(l.nvml);
    assert_int_equal(l.gpu_count, 0);
    assert_int_equal(l.other_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_and_temperatures_are_those_of_each_gpu_and_0_where_it_does_not_say),
        cmocka_unit_test(other_processes_are_named_once_and_those_we_started_are_not),
        cmocka_unit_test(a_driver_that_does_not_start_is_as_none),
    };

    if (!dlopen(NVML_STUB, RTLD_NOW)) {
        puts(dlerror());
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
