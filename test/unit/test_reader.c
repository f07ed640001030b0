/* SPDX-License-Identifier: Apache-2.0 */
/* The log reader: what is a log, what stands in its tables, whether its writer lives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/wait.h>

#include "shim/log/read/reader.h"
#include "test/unit/logfixture.h"

static struct fixture x;
static struct error e;

static int setup(void **state)
{
    (void)state;
    fixture_make(&x, "/dev/shm", 64, 4);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_drop(&x);
    return 0;
}

static struct log_file *opened(void)
{
    struct log_file *f = NULL;

    if (log_open(x.path, &f, &e) < 0)
        fail_msg("%s", e.text);
    return f;
}

static void refused(const char *part)
{
    struct log_file *f;

    assert_int_equal(log_open(x.path, &f, &e), -1);
    assert_null(f);
    assert_non_null(strstr(e.text, part));
    assert_string_equal(e.file, x.path);
}

static void a_log_is_opened_with_all_its_tables(void **state)
{
    struct log_file *f = opened();

    (void)state;
    assert_int_equal(f->comm_count, 1);
    assert_int_equal(f->comms[0].hash, 0x1234);
    assert_int_equal(f->site_count, 4);
    assert_int_equal(f->sites[3].index, 3);
    assert_int_equal(f->ring_count, 1);
    assert_int_equal(f->rings[0].capacity, 64);
    log_free(f);
}

static void another_file_is_no_log(void **state)
{
    (void)state;
    x.head->magic[0] = 'X';
    refused("not a log");
}

static void a_log_of_another_version_says_so(void **state)
{
    (void)state;
    x.head->version = 2;
    refused("version 2");
}

static void a_log_of_the_other_byte_order_says_so(void **state)
{
    (void)state;
    x.head->byte_order = 0x04030201;
    refused("byte order");
}

static void a_log_that_was_cut_is_refused(void **state)
{
    (void)state;
    assert_int_equal(truncate(x.path, (off_t)x.bytes - 4096), 0);
    refused("cut");
}

static void a_file_shorter_than_a_header_is_refused(void **state)
{
    (void)state;
    assert_int_equal(truncate(x.path, 100), 0);
    refused("not a log");
}

static void a_log_cut_while_it_is_read_is_an_error_not_a_crash(void **state)
{
    struct ncclshim_record r[64];
    struct ring_cursor c = {0};
    struct log_file *f;

    (void)state;
    fixture_write(&x, 10);
    f = opened();
    assert_int_equal(truncate(x.path, 4096), 0);
    assert_int_equal(ring_read(f, &f->rings[0], &c, r, 64, false, &e), -1);
    assert_int_equal(log_refresh(f, &e), -1);
    assert_int_equal(f->site_count, 4); /* what was read stays */
    log_free(f);
}

static void a_section_outside_the_file_is_refused(void **state)
{
    (void)state;
    x.head->sections[2].offset = x.bytes;
    refused("section 2");
    x.head->sections[2].offset = UINT64_MAX - 4095;
    refused("section 2");
}

static void sections_that_overlap_are_refused(void **state)
{
    (void)state;
    x.head->sections[2].offset = x.head->sections[1].offset;
    refused("overlaps");
}

static void a_ring_whose_capacity_is_no_power_of_two_is_refused(void **state)
{
    (void)state;
    x.ring->capacity = 63;
    refused("power of two");
    x.ring->capacity = 128; /* more than there is room for */
    refused("power of two");
}

static void a_table_that_ran_past_its_room_ends_at_its_room(void **state)
{
    struct log_file *f;

    (void)state;
    x.head->sections[2].used = 1000000;
    f = opened();
    assert_int_equal(f->site_count, 4);
    log_free(f);
}

static void an_entry_not_yet_published_has_state_zero(void **state)
{
    struct log_file *f;

    (void)state;
    x.site[2].state = 0;
    f = opened();
    assert_int_equal(f->sites[2].state, 0);
    assert_int_equal(f->sites[3].state, 1);
    log_free(f);
}

static void notes_are_walked_in_order_and_pending_ones_left_out(void **state)
{
    const struct ncclshim_note *n;
    struct log_file *f;
    char text[64];

    (void)state;
    fixture_note(&x, NCCLSHIM_NOTE_COMMAND, "a\0bc\0", 5);
    fixture_note(&x, NCCLSHIM_NOTE_PENDING, "half", 4);
    x.head->sections[0].used += 128; /* taken by a process that died before it wrote a word */
    fixture_note(&x, NCCLSHIM_NOTE_WARNING, "not ended by a zero", 19);
    f = opened();
    n = log_note_next(f, NULL);
    assert_int_equal(n->type, NCCLSHIM_NOTE_COMMAND);
    assert_int_equal(log_note_text(n, 0, text, sizeof(text)), 5);
    assert_memory_equal(text, "a\0bc\0", 6);
    n = log_note_next(f, n);
    assert_int_equal(n->type, NCCLSHIM_NOTE_WARNING);
    assert_int_equal(log_note_text(n, 0, text, sizeof(text)), 19);
    assert_string_equal(text, "not ended by a zero");
    assert_int_equal(log_note_text(n, 0, text, 4), 3);
    assert_string_equal(text, "not");
    assert_int_equal(log_note_text(n, 1000, text, sizeof(text)), 0);
    assert_null(log_note_next(f, n));
    log_free(f);
}

static void a_note_longer_than_its_section_is_refused(void **state)
{
    uint64_t at = fixture_note(&x, NCCLSHIM_NOTE_WARNING, "x", 1);

    (void)state;
    ((struct ncclshim_note *)(x.notes + at))->bytes = FIXTURE_NOTES_BYTES + 64;
    refused("note at byte");
    for (uint32_t bytes = UINT32_MAX - 130; bytes >= UINT32_MAX - 130; bytes++) {
        ((struct ncclshim_note *)(x.notes + at))->bytes = bytes; /* rounded up, it must not wrap */
        refused("note at byte");
    }
}

static void call_sites_are_numbered_across_sections(void **state)
{
    struct log_file *f;

    (void)state;
    /* Two sections of two sites each where there was one of four. */
    x.head->sections[4] = x.head->sections[2];
    x.head->sections[2].bytes = x.head->sections[2].used = 0;
    x.head->sections[2].type = 0;
    f = opened();
    assert_int_equal(f->site_count, 4);
    assert_int_equal(f->sites[1].index, 1);
    log_free(f);
}

static void a_link_in_a_shared_folder_is_not_followed(void **state)
{
    struct log_file *f;
    int dir = open("/dev/shm", O_RDONLY | O_DIRECTORY);

    (void)state;
    unlink("/dev/shm/unit-link.ncclshim");
    assert_int_equal(symlink(x.path, "/dev/shm/unit-link.ncclshim"), 0);
    assert_int_equal(log_open_at(dir, "unit-link.ncclshim", "L", &f, &e), -1);
    assert_non_null(strstr(e.text, "symbolic link"));
    unlink("/dev/shm/unit-link.ncclshim");
    close(dir);
}

static void this_very_process_lives(void **state)
{
    struct log_file *f = opened();
    int pid = 0;

    (void)state;
    assert_true(log_writer_lives(f));
    assert_int_equal(log_writer_find(f, &pid), LOG_WRITER_LIVES);
    assert_int_equal(pid, getpid());
    log_free(f);
}

static void a_pid_that_was_given_out_again_is_not_the_writer(void **state)
{
    struct log_file *f;

    (void)state;
    x.head->start_ticks -= 1;
    f = opened();
    assert_int_equal(log_writer_find(f, NULL), LOG_WRITER_GONE);
    log_free(f);
}

static void a_writer_before_the_last_boot_is_gone(void **state)
{
    struct log_file *f;

    (void)state;
    x.head->boot_id[0] ^= 1;
    f = opened();
    assert_int_equal(log_writer_find(f, NULL), LOG_WRITER_GONE);
    log_free(f);
}

static void a_zombie_is_gone(void **state)
{
    struct log_file *f;
    siginfo_t info;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        fixture_sign(&x);
        _exit(0);
    }
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    f = opened();
    assert_int_equal(f->head.pid, child);
    assert_false(log_writer_lives(f));
    waitpid(child, NULL, 0);
    log_free(f);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_log_is_opened_with_all_its_tables),
        T(another_file_is_no_log),
        T(a_log_of_another_version_says_so),
        T(a_log_of_the_other_byte_order_says_so),
        T(a_log_that_was_cut_is_refused),
        T(a_file_shorter_than_a_header_is_refused),
        T(a_log_cut_while_it_is_read_is_an_error_not_a_crash),
        T(a_section_outside_the_file_is_refused),
        T(sections_that_overlap_are_refused),
        T(a_ring_whose_capacity_is_no_power_of_two_is_refused),
        T(a_table_that_ran_past_its_room_ends_at_its_room),
        T(an_entry_not_yet_published_has_state_zero),
        T(notes_are_walked_in_order_and_pending_ones_left_out),
        T(a_note_longer_than_its_section_is_refused),
        T(call_sites_are_numbered_across_sections),
        T(a_link_in_a_shared_folder_is_not_followed),
        T(this_very_process_lives),
        T(a_pid_that_was_given_out_again_is_not_the_writer),
        T(a_writer_before_the_last_boot_is_gone),
        T(a_zombie_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
