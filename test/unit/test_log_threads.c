/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads at one log, with a reader or a collector beside them. make test runs this under
 * ThreadSanitizer, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>

#include "shim/log/read/reader.h"
#include "shim/log/write/writer.h"
#include "shim/prove/run/collector.h"
#include "shim/prove/run/runfolder.h"
#include "test/unit/logfixture.h"

#define THREADS 8
#define NOTES 100 /* a thread; all of them fit */
#define ENTRIES 200
#define RECORDS 20000u /* a thread; all of them fit: on a GPU nobody is overtaken by a whole lap */

static char folder[] = "/dev/shm/ncclshim-unit-XXXXXX";
static struct log_writer w;
static struct error e;
static atomic_int running;

/* Run `body` on all threads, with `beside` on this one until they have ended, and once behind. */
static void on_threads(void *(*body)(void *), void (*beside)(void *), void *arg)
{
    pthread_t threads[THREADS];

    running = THREADS;
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, (void *)i), 0);
    while (beside && running > 0)
        beside(arg);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (beside)
        beside(arg);
}

static void begin(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    if (log_writer_open(&w, folder, 4096, &e) < 0)
        fail_msg("%s", e.text);
}

static void end(void)
{
    log_writer_close(&w);
    unlink(w.path);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- notes ----------------------------------------------------------------------------------- */

static size_t text_of(char *text, size_t size, unsigned thread, unsigned number)
{
    return (size_t)snprintf(text, size, "%u %u %.*s", thread, number, (int)(number % 40),
                            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
}

static void *write_notes(void *arg)
{
    unsigned thread = (unsigned)(intptr_t)arg;
    char text[100];

    for (unsigned i = 0; i < NOTES; i++) {
        size_t n = text_of(text, sizeof(text), thread, i);
        log_note(&w, NCCLSHIM_NOTE_WARNING, thread, i, thread * 1000ull + i, NULL, 0, text, n);
    }
    running--;
    return NULL;
}

/*
 * Every note that is published is whole, and a thread's come in its order. While they are written one may be
 * missing: published behind the copy's back, while a later one was still in front of it.
 */
static void read_notes(void *arg)
{
    struct log_file *f = arg;
    unsigned seen[THREADS] = {0};
    char text[100], expected[100];
    bool all = running == 0;

    if (log_refresh(f, &e) < 0)
        fail_msg("%s", e.text);
    for (const struct ncclshim_note *n = NULL; (n = log_note_next(f, n));) {
        assert_true(n->a < THREADS);
        assert_true(all ? n->b == seen[n->a] : n->b >= seen[n->a]);
        seen[n->a] = n->b + 1;
        assert_int_equal(n->value, n->a * 1000ull + n->b);
        log_note_text(n, 0, text, sizeof(text));
        text_of(expected, sizeof(expected), n->a, n->b);
        assert_string_equal(text, expected);
    }
    for (int i = 0; i < THREADS && all; i++)
        assert_int_equal(seen[i], NOTES);
}

static void notes_of_many_threads_are_whole_and_in_each_ones_order(void **state)
{
    struct log_file *f;

    (void)state;
    begin();
    if (log_open(w.path, &f, &e) < 0)
        fail_msg("%s", e.text);
    on_threads(write_notes, read_notes, f);
    assert_int_equal(w.head->notes_lost, 0);
    log_free(f);
    end();
}

/* ---- communicators, call sites, rings -------------------------------------------------------- */

static void *add_entries(void *arg)
{
    uint32_t thread = (uint32_t)(intptr_t)arg, number;
    struct ncclshim_ring *ring;
    struct error mine;

    for (uint32_t i = 0; i < ENTRIES; i++) {
        struct ncclshim_comm *c = log_comm_add(&w, &number);
        assert_true(c && c->state == NCCLSHIM_COMM_FREE && c->hash == 0);
        c->hash = thread + 1;
        struct ncclshim_site *s = log_site_add(&w, &number);
        assert_true(s && s->bytes == 0);
        s->bytes = thread + 1;
    }
    ring = log_ring_add(&w, 1024, (int)thread, &number, &mine);
    assert_non_null(ring);
    memset(ring + 1, (int)thread + 1, 1024 * sizeof(struct ncclshim_record));
    log_ring_publish(&w, number);
    running--;
    return NULL;
}

static void check_rings(const struct log_file *f)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        uint64_t first = f->rings[i].offset + sizeof(struct ncclshim_ring);
        uint8_t byte[2];
        int expected = f->rings[i].device + 1;
        assert_int_equal(pread(f->fd, &byte[0], 1, (off_t)first), 1);
        assert_int_equal(
            pread(f->fd, &byte[1], 1, (off_t)(first + 1024 * sizeof(struct ncclshim_record) - 1)), 1);
        assert_int_equal(byte[0], expected);
        assert_int_equal(byte[1], expected);
    }
}

static void what_one_thread_takes_is_no_other_threads(void **state)
{
    unsigned comms[THREADS + 1] = {0}, sites[THREADS + 1] = {0};
    uint64_t room;
    struct log_file *f;

    (void)state;
    begin();
    room = w.room;
    on_threads(add_entries, NULL, NULL);
    assert_true(room - w.room >= THREADS * 1024 * sizeof(struct ncclshim_record));
    for (uint32_t i = 0; i < THREADS * ENTRIES; i++) {
        comms[w.comms[i].hash]++;
        sites[w.sites[i].bytes]++;
    }
    for (int i = 1; i <= THREADS; i++) {
        assert_int_equal(comms[i], ENTRIES);
        assert_int_equal(sites[i], ENTRIES);
    }
    if (log_open(w.path, &f, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(f->ring_count, THREADS);
    check_rings(f);
    log_free(f);
    end();
}

/* ---- records --------------------------------------------------------------------------------- */

static struct fixture x;
static _Atomic uint64_t next_record;

/* As stamps of several streams do: each takes a number, then fills its place. */
static void *write_records(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < RECORDS; i++)
        fixture_put(&x, next_record++);
    running--;
    return NULL;
}

static void one_round(void *arg)
{
    collector_round(arg);
}

static void a_collector_loses_no_record_while_many_threads_write(void **state)
{
    char run[] = "/tmp/ncclshim-unit-XXXXXX", command[80];
    struct runfolder to = {.fd = -1};
    struct collector_options o = {.log_dir = folder, .run = &to, .remove = true};
    struct summary s = {0};
    struct collector *c;

    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_true(mkdtemp(folder) && mkdtemp(run) && runfolder_open(&to, run, &e) == 0);
    fixture_make(&x, folder, 1u << 18, 64);
    next_record = 0;
    o.log_fd = open(folder, O_RDONLY | O_DIRECTORY);
    c = collector_new(&o, &e);
    assert_non_null(c);
    on_threads(write_records, one_round, c);
    collector_finish(c);
    collector_summarize(c, &s);
    assert_int_equal(s.timed, THREADS * RECORDS);
    assert_int_equal(s.lost, 0);
    collector_free(c);
    fixture_drop(&x);
    close(o.log_fd);
    snprintf(command, sizeof(command), "rm -rf %s %s", folder, run);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_of_many_threads_are_whole_and_in_each_ones_order),
        cmocka_unit_test(what_one_thread_takes_is_no_other_threads),
        cmocka_unit_test(a_collector_loses_no_record_while_many_threads_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
