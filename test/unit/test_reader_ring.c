/* SPDX-License-Identifier: Apache-2.0 */
/* Taking records out of a ring: wrapped, half written, killed writers, and while it is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>

#include "shim/log/read/reader.h"
#include "test/unit/logfixture.h"

static struct fixture x;
static struct error e;
static struct log_file *f;

static void begin(uint32_t capacity, uint32_t sites)
{
    fixture_make(&x, "/dev/shm", capacity, sites);
    if (log_open(x.path, &f, &e) < 0)
        fail_msg("%s", e.text);
}

static void end(void)
{
    log_free(f);
    fixture_drop(&x);
}

#define BATCH 4096
static struct ncclshim_record out[BATCH];

/* Read all there is; every record must be the one its number says. Returns how many. */
static uint64_t read_all(struct ring_cursor *c, bool final)
{
    uint64_t all = 0, number = c->next;
    long n;

    while ((n = ring_read(f, &f->rings[0], c, out, BATCH, final, &e)) > 0)
        for (long i = 0; i < n; i++, all++) {
            number += (uint32_t)(out[i].sequence - 1 - (uint32_t)number);
            if (!fixture_is(&x, &out[i], number++))
                fail_msg("record %llu is not what was written", (unsigned long long)number - 1);
        }
    if (n < 0)
        fail_msg("%s", e.text);
    return all;
}

static uint64_t total(void)
{
    uint64_t t;

    if (ring_total(f, &f->rings[0], &t, &e) < 0)
        fail_msg("%s", e.text);
    return t;
}

static void an_empty_ring_has_no_records(void **state)
{
    struct ring_cursor c = {0};

    (void)state;
    begin(64, 4);
    assert_int_equal(read_all(&c, false), 0);
    assert_int_equal(read_all(&c, true), 0);
    assert_int_equal(total(), 0);
    end();
}

static void every_count_of_records_up_to_three_laps_is_read_exactly(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 3 * 16 + 1; n++) {
        struct ring_cursor c = {0};
        begin(16, 4);
        fixture_write(&x, n);
        assert_int_equal(total(), n);
        assert_int_equal(read_all(&c, n & 1), n < 16 ? n : 16);
        assert_int_equal(c.lost, n < 16 ? 0 : n - 16);
        assert_int_equal(c.torn, 0);
        assert_int_equal(c.next, n);
        end();
    }
}

static void a_reader_that_keeps_up_gets_every_record_once(void **state)
{
    struct ring_cursor c = {0};
    uint64_t all = 0;

    (void)state;
    begin(64, 4);
    for (int i = 0; i < 1000; i++) {
        fixture_write(&x, (uint64_t)(i * 7 % 64));
        all += read_all(&c, false);
        assert_int_equal(all, x.next);
    }
    assert_int_equal(c.lost, 0);
    end();
}

static void a_ring_that_wrapped_a_thousand_times_tells_the_exact_loss(void **state)
{
    struct ring_cursor c = {0};

    (void)state;
    begin(1024, 4);
    fixture_write(&x, 1000 * 1024 + 77);
    assert_int_equal(total(), 1000 * 1024 + 77);
    assert_int_equal(read_all(&c, false), 1024);
    assert_int_equal(c.lost, 1000 * 1024 + 77 - 1024);
    end();
}

static void numbers_go_on_past_32_bits(void **state)
{
    struct ring_cursor c = {0};
    uint64_t far = (1ull << 32) - 40;

    (void)state;
    begin(64, 4);
    x.next = (far & ~63ull) - 64; /* a whole lap before, as there would be */
    fixture_write(&x, far - x.next);
    assert_int_equal(total(), far);
    fixture_write(&x, 100);
    assert_int_equal(total(), far + 100);
    assert_int_equal(read_all(&c, false), 64);
    assert_int_equal(c.next, far + 100);
    assert_int_equal(c.lost, far + 36);
    end();
}

static void a_cursor_exactly_2_to_the_32_behind_is_not_fooled(void **state)
{
    struct ring_cursor c = {0};

    (void)state;
    begin(64, 4);
    x.next = (1ull << 32) - 64;
    fixture_write(&x, 64 + 10); /* slot 0 now carries the sequence of record 0 */
    read_all(&c, false);
    assert_int_equal(c.next, (1ull << 32) + 10);
    assert_true(c.lost >= (1ull << 32) - 64);
    end();
}

static void a_half_written_record_is_waited_for_while_its_writer_lives(void **state)
{
    struct ring_cursor c = {0};

    (void)state;
    begin(64, 4);
    fixture_write(&x, 10);
    fixture_half(&x, 10, 0, fixture_start_ns(10), 10 % 4);
    assert_int_equal(read_all(&c, false), 10);
    assert_int_equal(read_all(&c, false), 0);
    fixture_put(&x, 10);
    assert_int_equal(read_all(&c, false), 1);
    assert_int_equal(c.torn, 0);
    end();
}

static void a_half_written_record_of_a_dead_writer_is_torn(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++) {
        struct ring_cursor c = {0};
        begin(64, 4);
        fixture_write(&x, 70);
        fixture_half(&x, 70, half, half ? fixture_end_ns(70) : fixture_start_ns(70), half ? 17 : 2);
        assert_int_equal(total(), 71);
        /* It tore the record of the lap before, too, which is lost in any case. */
        assert_int_equal(read_all(&c, true), 63);
        assert_int_equal(c.torn, 1);
        assert_int_equal(c.lost, 7);
        assert_int_equal(c.next, 71);
        end();
    }
}

static void a_slot_taken_but_never_filled_does_not_hide_those_behind_it(void **state)
{
    struct ring_cursor c = {0};

    (void)state;
    begin(64, 4);
    fixture_write(&x, 10);
    for (uint64_t n = 12; n < 20; n++)
        fixture_put(&x, n);
    assert_int_equal(total(), 20);
    assert_int_equal(read_all(&c, false), 10); /* 10 and 11 may still come */
    assert_int_equal(read_all(&c, true), 8);
    assert_int_equal(c.torn, 2);
    assert_int_equal(c.next, 20);
    end();
}

static void a_hole_where_the_search_looks_does_not_shorten_the_count(void **state)
{
    (void)state;
    for (uint64_t hole = 0; hole < 40; hole++) {
        struct ring_cursor c = {0};
        begin(64, 4);
        for (uint64_t n = 0; n < 41; n++)
            if (n != hole)
                fixture_put(&x, n);
        assert_int_equal(total(), 41);
        assert_int_equal(read_all(&c, true), 40);
        assert_int_equal(c.torn, 1);
        end();
    }
}

static void a_record_half_overwritten_by_a_dead_writer_is_lost_not_torn(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++) {
        struct ring_cursor c = {0};
        begin(64, 4);
        fixture_write(&x, 64);
        assert_int_equal(ring_read(f, &f->rings[0], &c, out, 6, false, &e), 6);
        fixture_write(&x, 6);
        fixture_half(&x, 70, half, half ? fixture_end_ns(70) : fixture_start_ns(70), half ? 17 : 2);
        assert_int_equal(read_all(&c, true), 63);
        assert_int_equal(c.lost, 1);
        assert_int_equal(c.torn, 1);
        end();
    }
}

static void a_record_that_never_comes_does_not_stop_a_live_reader_for_ever(void **state)
{
    struct ring_cursor c = {0};

    (void)state;
    begin(64, 4);
    for (uint64_t n = 1; n < 40; n++)
        fixture_put(&x, n);
    assert_int_equal(read_all(&c, false), 39);
    assert_int_equal(c.torn, 1);
    assert_int_equal(c.lost, 0);
    end();
}

static void a_cursor_of_another_log_is_an_error(void **state)
{
    struct ring_cursor c = {.next = 1000};

    (void)state;
    begin(64, 4);
    fixture_write(&x, 10);
    assert_int_equal(ring_read(f, &f->rings[0], &c, out, BATCH, false, &e), -1);
    assert_non_null(strstr(e.text, "another log"));
    end();
}

static void a_head_that_lies_about_its_lap_is_an_error(void **state)
{
    struct ring_cursor c = {0};
    uint64_t t;

    (void)state;
    begin(64, 4);
    x.ring->lap = 63;
    assert_int_equal(ring_total(f, &f->rings[0], &t, &e), -1);
    assert_int_equal(ring_read(f, &f->rings[0], &c, out, BATCH, false, &e), -1);
    end();
}

/* ---- a writer at full speed, and its end ----------------------------------------------------- */

static pid_t write_for_ever(void)
{
    pid_t child = fork();

    if (child == 0) {
        fixture_sign(&x);
        for (;;)
            fixture_write(&x, 1);
    }
    return child;
}

/* The child has signed the log and is writing. */
static void wait_for_first_record(void)
{
    volatile uint32_t *last_word = &x.records[0].sequence2;

    while (*last_word == 0)
        usleep(50);
}

static void a_reader_beside_a_writer_at_full_speed_never_sees_a_wrong_record(void **state)
{
    struct ring_cursor c = {0};
    uint64_t all = 0, rounds = 0;
    pid_t child;

    (void)state;
    begin(4096, 122);
    child = write_for_ever();
    while (all < 3000000 && rounds++ < 20000)
        all += read_all(&c, false);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    all += read_all(&c, true);
    assert_int_equal(all + c.lost + c.torn, c.next);
    assert_int_equal(c.next, total());
    assert_true(c.torn <= 1);
    assert_true(all > 100000);
    end();
}

/*
 * What the ring of a dead writer must give: the last lap, whole, but for the one record it died in.
 */
static void check_remains(void)
{
    struct ring_cursor c = {0};
    uint64_t t = total(), n = read_all(&c, true);

    assert_int_equal(c.next, t);
    assert_int_equal(n + c.lost + c.torn, t);
    assert_true(c.torn <= 1);
    if (t > x.capacity)
        assert_in_range(n, x.capacity - 1, x.capacity);
    else
        assert_in_range(n, t - 1, t);
}

static void killed_a_hundred_times_every_finished_record_is_there(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        pid_t child;
        begin(1024, 122);
        child = write_for_ever();
        wait_for_first_record();
        usleep((useconds_t)(i * 37 % 3000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        assert_int_equal(log_refresh(f, &e), 0);
        assert_false(log_writer_lives(f));
        check_remains();
        end();
    }
}

static void alarmed_abort(int number)
{
    (void)number;
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void alarmed_exit(int number)
{
    (void)number;
    _exit(3);
}

static void alarmed_exec(int number)
{
    (void)number;
    execl("/bin/true", "true", (char *)NULL);
    _exit(4);
}

/* The end comes from a timer signal, at any instruction of the writing loop. */
static void end_by(void (*how)(int), int rounds)
{
    for (int i = 0; i < rounds; i++) {
        pid_t child;
        int status;
        begin(1024, 122);
        child = fork();
        if (child == 0) {
            signal(SIGALRM, how);
            fixture_sign(&x);
            fixture_write(&x, 1);
            ualarm((useconds_t)(300 + i * 53 % 2000), 0);
            for (;;)
                fixture_write(&x, 1);
        }
        waitpid(child, &status, 0);
        check_remains();
        assert_int_equal(x.head->state, NCCLSHIM_LOG_OPEN); /* "not closed", no damage */
        end();
    }
}

static void aborted_a_hundred_times_every_finished_record_is_there(void **state)
{
    (void)state;
    end_by(alarmed_abort, 100);
}

static void ended_by_immediate_exit_every_finished_record_is_there(void **state)
{
    (void)state;
    end_by(alarmed_exit, 100);
}

static void replaced_by_exec_every_finished_record_is_there(void **state)
{
    (void)state;
    end_by(alarmed_exec, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_ring_has_no_records),
        cmocka_unit_test(every_count_of_records_up_to_three_laps_is_read_exactly),
        cmocka_unit_test(a_reader_that_keeps_up_gets_every_record_once),
        cmocka_unit_test(a_ring_that_wrapped_a_thousand_times_tells_the_exact_loss),
        cmocka_unit_test(numbers_go_on_past_32_bits),
        cmocka_unit_test(a_cursor_exactly_2_to_the_32_behind_is_not_fooled),
        cmocka_unit_test(a_half_written_record_is_waited_for_while_its_writer_lives),
        cmocka_unit_test(a_half_written_record_of_a_dead_writer_is_torn),
        cmocka_unit_test(a_slot_taken_but_never_filled_does_not_hide_those_behind_it),
        cmocka_unit_test(a_hole_where_the_search_looks_does_not_shorten_the_count),
        cmocka_unit_test(a_record_half_overwritten_by_a_dead_writer_is_lost_not_torn),
        cmocka_unit_test(a_record_that_never_comes_does_not_stop_a_live_reader_for_ever),
        cmocka_unit_test(a_cursor_of_another_log_is_an_error),
        cmocka_unit_test(a_head_that_lies_about_its_lap_is_an_error),
        cmocka_unit_test(a_reader_beside_a_writer_at_full_speed_never_sees_a_wrong_record),
        cmocka_unit_test(killed_a_hundred_times_every_finished_record_is_there),
        cmocka_unit_test(aborted_a_hundred_times_every_finished_record_is_there),
        cmocka_unit_test(ended_by_immediate_exit_every_finished_record_is_there),
        cmocka_unit_test(replaced_by_exec_every_finished_record_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
