/* SPDX-License-Identifier: Apache-2.0 */
/* The log's room on its mount, with a stand-in for the system call that reserves it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "shim/log/write/space.h"

static unsigned interruptions, calls;
static int otherwise;

int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    assert_true(fd == 7 && offset == 4096 && bytes == 8192);
    return calls++ < interruptions ? EINTR : otherwise;
}

static int reserve(unsigned interrupted, int then, struct error *e)
{
    calls = 0;
    interruptions = interrupted;
    otherwise = then;
    return space_reserve(7, 4096, 8192, "log", e);
}

static void a_reservation_that_signals_interrupt_is_tried_again(void **state)
{
    struct error e;

    (void)state;
    assert_int_equal(reserve(5, 0, &e), 0);
    assert_int_equal(calls, 6);
}

static void one_that_is_interrupted_each_time_is_given_up(void **state)
{
    struct error e;

    (void)state;
    assert_int_equal(reserve(1000, 0, &e), -1);
    assert_true(calls < 1000);
    assert_string_equal(e.file, "log");
    assert_non_null(strstr(e.text, "no room for 8 KiB of log"));
}

static void a_full_mount_is_not_asked_again(void **state)
{
    struct error e;

    (void)state;
    assert_int_equal(reserve(2, ENOSPC, &e), -1);
    assert_int_equal(calls, 3);
    assert_non_null(strstr(e.text, strerror(ENOSPC)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reservation_that_signals_interrupt_is_tried_again),
        cmocka_unit_test(one_that_is_interrupted_each_time_is_given_up),
        cmocka_unit_test(a_full_mount_is_not_asked_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
