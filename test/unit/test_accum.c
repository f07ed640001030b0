/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of all records: sites, gaps, forward passes; and its file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/stats/accum.h"
#include "shim/stats/histfile.h"

#define CALLS 10
static struct ncclshim_site sites[CALLS + 2]; /* a graph of ten calls, two eager ones */
static struct accum a;

static int setup(void **state)
{
    (void)state;
    memset(sites, 0, sizeof(sites));
    for (unsigned i = 0; i < CALLS + 2; i++)
        sites[i] = (struct ncclshim_site){.state = 1, .flags = NCCLSHIM_SITE_TIMED};
    for (unsigned i = 0; i < CALLS; i++) {
        sites[i].flags |= NCCLSHIM_SITE_CAPTURED;
        sites[i].capture = 7;
        sites[i].index = i;
    }
    return accum_init(&a);
}

static int teardown(void **state)
{
    (void)state;
    accum_free(&a);
    return 0;
}

static uint32_t number;

static int feed(uint32_t site, uint32_t run, uint64_t start, uint64_t end)
{
    struct ncclshim_record r = {start, site, 0, end, run, 0};

    r.sequence = r.sequence2 = ++number;
    return accum_feed(&a, 0, &r, 1, sites, CALLS + 2);
}

/* One replay: calls of 100 ns, 50 ns apart. */
static void replay(uint32_t run, uint64_t start)
{
    for (uint32_t i = 0; i < CALLS; i++)
        feed(i, run, start + i * 150, start + i * 150 + 100);
}

static void each_site_has_its_own_times(void **state)
{
    (void)state;
    feed(10, 0, 1000, 1500);
    feed(10, 1, 2000, 2300);
    feed(11, 0, 5000, 5001);
    assert_int_equal(a.records, 3);
    assert_int_equal(a.sites[10].ns.count, 2);
    assert_int_equal(a.sites[10].ns.sum, 800);
    assert_int_equal(a.sites[11].ns.sum, 1);
    assert_int_equal(a.sites[10].first_start_ns, 1000);
    assert_int_equal(a.sites[10].last_end_ns, 2300);
    assert_int_equal(a.sites[10].runs_max, 2);
}

static void gaps_are_to_the_record_before_on_the_same_communicator(void **state)
{
    (void)state;
    sites[11].comm = 1;
    feed(10, 0, 1000, 1500);
    feed(11, 0, 1600, 1700); /* another communicator: no gap before its first */
    feed(10, 1, 1900, 2000);
    assert_int_equal(a.sites[10].gap_ns.count, 1);
    assert_int_equal(a.sites[10].gap_ns.sum, 400);
    assert_int_equal(a.sites[11].gap_ns.count, 0);
    feed(10, 2, 1950, 2100); /* began before the last one ended */
    assert_int_equal(a.sites[10].gap_ns.min, 0);
}

static void rings_do_not_share_their_gaps(void **state)
{
    struct ncclshim_record r = {5000, 10, 9, 5100, 1, 9};

    (void)state;
    feed(10, 0, 1000, 1500);
    accum_feed(&a, 1, &r, 1, sites, CALLS + 2);
    assert_int_equal(a.sites[10].gap_ns.count, 0);
}

static void a_replay_is_a_pass_from_its_first_start_to_its_last_end(void **state)
{
    (void)state;
    replay(0, 10000);
    assert_int_equal(a.pass_count, 1);
    assert_int_equal(a.passes[0].capture, 7);
    assert_int_equal(a.passes[0].calls, CALLS);
    assert_int_equal(a.passes[0].pass_ns.count, 1); /* at its last call, not at the next replay */
    assert_int_equal(a.passes[0].pass_ns.sum, 9 * 150 + 100);
    assert_int_equal(a.passes[0].comm_ns.sum, CALLS * 100);
    assert_int_equal(a.passes[0].period_ns.count, 0);
    replay(1, 20000);
    assert_int_equal(a.passes[0].period_ns.count, 1);
    assert_int_equal(a.passes[0].period_ns.sum, 10000);
}

static void a_replay_that_is_not_whole_is_no_pass_and_makes_no_period(void **state)
{
    (void)state;
    replay(0, 10000);
    for (uint32_t i = 0; i < CALLS - 1; i++)
        feed(i, 1, 20000 + i * 150, 20000 + i * 150 + 100);
    replay(2, 30000);
    replay(3, 41000);
    accum_finish(&a);
    assert_int_equal(a.passes[0].pass_ns.count, 3);
    assert_int_equal(a.passes[0].incomplete, 1);
    assert_int_equal(a.passes[0].period_ns.count, 1);
    assert_int_equal(a.passes[0].period_ns.sum, 11000);
}

static void a_replay_missing_altogether_makes_no_period(void **state)
{
    (void)state;
    replay(0, 10000);
    replay(5, 50000);
    assert_int_equal(a.passes[0].period_ns.count, 0);
    assert_int_equal(a.passes[0].pass_ns.count, 2);
}

static void run_numbers_wrap_at_32_bits(void **state)
{
    (void)state;
    replay(UINT32_MAX - 1, 10000);
    replay(UINT32_MAX, 20000);
    replay(0, 30000);
    replay(1, 40000);
    assert_int_equal(a.sites[3].runs_max, (1ull << 32) + 2);
    assert_int_equal(a.passes[0].pass_ns.count, 4);
    assert_int_equal(a.passes[0].period_ns.count, 3);
}

static void runs_that_were_lost_count_in_runs_max(void **state)
{
    (void)state;
    feed(10, 41, 1000, 1500);
    feed(10, 99, 2000, 2500);
    feed(10, 98, 3000, 3500); /* two streams: out of order */
    assert_int_equal(a.sites[10].runs_max, 100);
}

static void a_break_ends_the_replay_and_the_gap(void **state)
{
    (void)state;
    replay(0, 10000);
    feed(0, 1, 20000, 20100);
    accum_break(&a, 0);
    for (uint32_t i = 1; i < CALLS; i++)
        feed(i, 1, 20000 + i * 150, 20000 + i * 150 + 100);
    assert_int_equal(a.sites[1].gap_ns.count, 1); /* of the first replay alone */
    accum_finish(&a);
    assert_int_equal(a.passes[0].pass_ns.count, 1);
}

static void a_record_of_no_site_or_that_ends_before_it_starts_is_bad(void **state)
{
    (void)state;
    feed(CALLS + 2, 0, 1, 2);
    feed(UINT32_MAX, 0, 1, 2);
    feed(10, 0, 2, 1);
    sites[11].state = 0;
    feed(11, 0, 1, 2);
    assert_int_equal(a.records, 4);
    assert_int_equal(a.bad, 4);
}

static void sites_captured_after_the_first_look_are_counted(void **state)
{
    struct ncclshim_record r = {1000, 0, 1, 1100, 0, 1};

    (void)state;
    /* The table was read in mid-capture: only four of the ten calls were there. */
    accum_feed(&a, 0, &r, 1, sites, 4);
    assert_int_equal(a.passes[0].calls, 4);
    for (uint32_t i = 1; i < CALLS; i++)
        feed(i, 0, 1000 + i * 150, 1100 + i * 150);
    assert_int_equal(a.passes[0].calls, CALLS);
    assert_int_equal(a.passes[0].pass_ns.count, 1);
}

static void calls_left_out_of_timing_are_not_waited_for(void **state)
{
    (void)state;
    sites[4].flags = NCCLSHIM_SITE_CAPTURED | NCCLSHIM_SITE_FILTERED;
    for (uint32_t i = 0; i < CALLS; i++)
        if (i != 4)
            feed(i, 0, 1000 + i * 150, 1100 + i * 150);
    assert_int_equal(a.passes[0].calls, CALLS - 1);
    assert_int_equal(a.passes[0].pass_ns.count, 1);
}

/* ---- the file -------------------------------------------------------------------------------- */

static struct histfile saved(void)
{
    static struct histfile_ring ring = {3, {1000, 20, 1}};
    struct histfile h = {.pid = 42,
                         .start_ticks = 77,
                         .pid_ns = 5,
                         .created_ns = 6,
                         .boot_id = "boot",
                         .kept_bytes = 99,
                         .rings = &ring,
                         .ring_count = 1};
    struct error e;

    if (histfile_save(AT_FDCWD, "accum.hist", &a, &h, &e) < 0)
        fail_msg("%s", e.text);
    return h;
}

static void what_is_saved_is_loaded_again_and_goes_on(void **state)
{
    struct histfile h;
    struct error e;

    (void)state;
    replay(0, 10000);
    replay(1, 20000);
    for (uint32_t i = 0; i < 5; i++) /* half a replay, then the collector is killed */
        feed(i, 2, 30000 + i * 150, 30100 + i * 150);
    feed(10, 0, 40000, 40500);
    a.lost = 20;
    a.torn = 1;
    saved();
    accum_free(&a);
    if (histfile_load("accum.hist", &a, &h, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(h.pid, 42);
    assert_int_equal(h.kept_bytes, 99);
    assert_int_equal(h.ring_count, 1);
    assert_int_equal(h.rings[0].cursor.next, 1000);
    assert_int_equal(h.rings[0].cursor.torn, 1);
    assert_true(h.written_ns > 0);
    assert_int_equal(a.records, 26);
    assert_int_equal(a.lost, 20);
    assert_int_equal(a.sites[0].ns.count, 3);
    assert_int_equal(hist_quantile(&a.sites[0].ns, 0.5), 100);
    for (uint32_t i = 5; i < CALLS; i++)
        feed(i, 2, 30000 + i * 150, 30100 + i * 150);
    assert_int_equal(a.passes[0].pass_ns.count, 3);
    assert_int_equal(a.passes[0].period_ns.count, 2);
    assert_int_equal(a.sites[5].gap_ns.count, 3); /* 0 after the eager call, which came later */
    histfile_free(&h);
    unlink("accum.hist");
}

static void load_refuses(const char *part)
{
    struct error e;

    accum_free(&a);
    assert_int_equal(histfile_load("accum.hist", &a, NULL, &e), -1);
    assert_non_null(strstr(e.text, part));
    assert_null(a.sites);
}

/* Cut anywhere, or with any byte another: an error, or a file like any other; never a crash (make test runs this
 * under AddressSanitizer, too). */
static void a_file_cut_or_scribbled_on_anywhere_is_refused_or_read(void **state)
{
    static uint8_t whole[1 << 20];
    struct error e;
    long bytes;
    int fd;

    (void)state;
    replay(0, 10000);
    replay(1, 20000);
    saved();
    fd = open("accum.hist", O_RDWR);
    bytes = read(fd, whole, sizeof(whole));
    assert_true(bytes > 1000 && bytes < (long)sizeof(whole));
    for (long n = 0; n < bytes; n += n < 600 ? 1 : 7) {
        accum_free(&a);
        assert_int_equal(ftruncate(fd, n), 0);
        assert_int_equal(histfile_load("accum.hist", &a, NULL, &e), -1);
        assert_null(a.sites);
        assert_int_equal(pwrite(fd, whole, (size_t)bytes, 0), bytes);
    }
    for (long at = 0; at < bytes; at += at < 600 ? 1 : 7) {
        uint8_t other = (uint8_t)~whole[at];
        struct histfile h = {0};
        accum_free(&a);
        assert_int_equal(pwrite(fd, &other, 1, at), 1);
        if (histfile_load("accum.hist", &a, &h, &e) == 0)
            histfile_free(&h);
        else
            assert_true(!a.sites && strlen(e.text) > 10);
        assert_int_equal(pwrite(fd, &whole[at], 1, at), 1);
    }
    accum_free(&a);
    assert_int_equal(histfile_load("accum.hist", &a, NULL, &e), 0);
    close(fd);
    unlink("accum.hist");
}

static void a_damaged_file_is_refused(void **state)
{
    int fd;

    (void)state;
    replay(0, 10000);
    saved();
    fd = open("accum.hist", O_RDWR);
    assert_int_equal(pwrite(fd, "x", 1, 300), 1);
    load_refuses("damaged");
    assert_int_equal(ftruncate(fd, 200), 0);
    load_refuses("damaged");
    assert_int_equal(pwrite(fd, "x", 1, 0), 1);
    load_refuses("no statistics");
    close(fd);
    unlink("accum.hist");
    load_refuses("can't open");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(each_site_has_its_own_times),
        T(gaps_are_to_the_record_before_on_the_same_communicator),
        T(rings_do_not_share_their_gaps),
        T(a_replay_is_a_pass_from_its_first_start_to_its_last_end),
        T(a_replay_that_is_not_whole_is_no_pass_and_makes_no_period),
        T(a_replay_missing_altogether_makes_no_period),
        T(run_numbers_wrap_at_32_bits),
        T(runs_that_were_lost_count_in_runs_max),
        T(a_break_ends_the_replay_and_the_gap),
        T(a_record_of_no_site_or_that_ends_before_it_starts_is_bad),
        T(sites_captured_after_the_first_look_are_counted),
        T(calls_left_out_of_timing_are_not_waited_for),
        T(what_is_saved_is_loaded_again_and_goes_on),
        T(a_file_cut_or_scribbled_on_anywhere_is_refused_or_read),
        T(a_damaged_file_is_refused),
    };
    char folder[] = "/tmp/ncclshim-accum-XXXXXX";
    int rc;

    if (!mkdtemp(folder) || chdir(folder) < 0)
        return 2;
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    return chdir("/") < 0 || rmdir(folder) < 0 ? 2 : rc;
}
