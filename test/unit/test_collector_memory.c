/* SPDX-License-Identifier: Apache-2.0 */
/* What a collector still holds of logs that are over: it may see thousands of servers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <jansson.h>
#include <malloc.h>

#include "shim/prove/run/collector.h"
#include "test/unit/logfixture.h"

#define NO_PID 0x7fffffffu /* beyond the kernel's largest */

struct place {
    char logs[40], run[40];
    struct runfolder folder;
    struct collector_options o;
    struct collector *c;
    struct error e;
};

static unsigned warned;

static void count_warning(const struct error *e)
{
    (void)e;
    warned++;
}

static void make(struct place *p)
{
    memset(p, 0, sizeof(*p));
    warned = 0;
    strcpy(p->logs, "/dev/shm/ncclshim-unit-XXXXXX");
    strcpy(p->run, "/tmp/ncclshim-unit-XXXXXX");
    assert_non_null(mkdtemp(p->logs));
    assert_non_null(mkdtemp(p->run));
    assert_int_equal(runfolder_open(&p->folder, p->run, &p->e), 0);
    p->o = (struct collector_options){.log_dir = p->logs,
                                      .log_fd = open(p->logs, O_RDONLY | O_DIRECTORY),
                                      .run = &p->folder,
                                      .remove = true,
                                      .warn = count_warning};
    p->c = collector_new(&p->o, &p->e);
    assert_non_null(p->c);
}

static void drop(struct place *p)
{
    char command[120];

    collector_free(p->c);
    close(p->folder.fd);
    close(p->o.log_fd);
    snprintf(command, sizeof(command), "rm -rf %s %s", p->logs, p->run);
    assert_int_equal(system(command), 0);
}

static unsigned descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* `count` processes that came, made some records, and ended. */
static void see(struct place *p, unsigned from, unsigned count)
{
    struct fixture x;
    char name[100];

    fixture_make(&x, p->logs, 64, 4);
    fixture_write(&x, 40);
    x.head->pid = NO_PID;
    for (unsigned i = from; i < from + count; i++) {
        snprintf(name, sizeof(name), "%s/a-host-with-a-name-4194304-%u.ncclshim", p->logs, i);
        assert_int_equal(link(x.path, name), 0);
    }
    fixture_drop(&x);
    collector_round(p->c);
    assert_int_equal(collector_living(p->c, true), 0);
}

static void of_a_process_that_ended_some_hundred_bytes_stay(void **state)
{
    struct summary s = {0};
    struct place p;
    size_t before;

    (void)state;
    make(&p);
    see(&p, 0, 256);
    before = mallinfo2().uordblks;
    see(&p, 256, 256);
    assert_in_range((mallinfo2().uordblks - before) / 256, 0, 500);
    assert_int_equal(collector_summarize(p.c, &s), 0);
    assert_int_equal(s.processes, 512);
    assert_int_equal(s.timed, 512 * 40);
    drop(&p);
}

static void a_log_that_somebody_cut_is_closed(void **state)
{
    struct summary s = {0};
    struct fixture x;
    struct place p;
    unsigned before;

    (void)state;
    make(&p);
    before = descriptors();
    fixture_make(&x, p.logs, 64, 4);
    fixture_write(&x, 40);
    collector_round(p.c);
    assert_int_equal(descriptors(), before + 1);
    assert_int_equal(truncate(x.path, 5000), 0);
    for (int i = 0; i < 100 && collector_living(p.c, false); i++) {
        usleep(10000);
        collector_round(p.c);
    }
    assert_int_equal(warned, 1);
    assert_int_equal(descriptors(), before);
    assert_int_equal(collector_summarize(p.c, &s), 0);
    assert_int_equal(s.timed, 40);
    munmap(x.m, x.bytes);
    drop(&p);
}

/* Both say that this process writes them; the later one was made `after_ns` behind the other. */
static size_t living_of_two(int after_ns, uid_t owner)
{
    struct fixture x, y;
    struct place p;
    size_t living;

    make(&p);
    fixture_make(&x, p.logs, 64, 4);
    fixture_write(&x, 40);
    fixture_make(&y, p.logs, 64, 4);
    x.head->created_ns = 1000;
    y.head->created_ns = (uint64_t)(1000 + after_ns);
    assert_int_equal(chown(y.path, owner, (gid_t)-1), 0);
    collector_round(p.c);
    living = collector_living(p.c, true);
    assert_int_equal(access(x.path, F_OK), living == 2 ? 0 : -1);
    assert_int_equal(access(y.path, F_OK), 0);
    fixture_drop(&x);
    fixture_drop(&y);
    drop(&p);
    return living;
}

static void the_log_of_a_program_that_was_replaced_by_exec_is_over(void **state)
{
    (void)state;
    assert_int_equal(living_of_two(1, geteuid()), 1);
    assert_int_equal(living_of_two(0, geteuid()), 2);
    if (geteuid() == 0) /* a stranger's word does not end the collecting of a log */
        assert_int_equal(living_of_two(1, 12345), 2);
}

static void a_log_that_was_seen_before_it_was_made_is_not_complained_about(void **state)
{
    struct summary s = {0};
    struct fixture x;
    struct place p;
    char path[100];

    (void)state;
    make(&p);
    snprintf(path, sizeof(path), "%s/unit-1-1.ncclshim", p.logs);
    close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
    collector_round(p.c);
    fixture_make(&x, "/dev/shm", 64, 4);
    fixture_write(&x, 40);
    assert_int_equal(rename(x.path, path), 0);
    collector_round(p.c);
    collector_finish(p.c);
    assert_int_equal(warned, 0);
    assert_int_equal(collector_summarize(p.c, &s), 0);
    assert_int_equal(s.timed, 40);
    munmap(x.m, x.bytes);
    drop(&p);
}

/* By a later collector into the same run folder: all of its records are there. */
static void a_log_that_was_read_to_its_end_is_not_read_again(void **state)
{
    struct summary s;
    struct fixture x;
    struct place p;

    (void)state;
    make(&p);
    fixture_make(&x, p.logs, 64, 4);
    x.head->pid = NO_PID;
    for (int i = 0; i < 3; i++) {
        collector_free(p.c);
        p.o.remove = i == 2;
        p.c = collector_new(&p.o, &p.e);
        assert_non_null(p.c);
        fixture_write(&x, 40); /* the first time its own; then whoever's: the process is gone */
        collector_round(p.c);
        assert_int_equal(collector_living(p.c, false), 0);
        assert_int_equal(collector_summarize(p.c, &s), 0);
        assert_int_equal(s.timed + s.lost, 40);
        assert_int_equal(access(x.path, F_OK), i < 2 ? 0 : -1);
    }
    munmap(x.m, x.bytes);
    drop(&p);
}

static void each_process_stands_once_in_run_json_whatever_its_name(void **state)
{
    char *names[] = {"vm-1-1", "v\xff-1-1", "vm-1-2"}; /* a name of a file is any bytes */
    struct run_facts f = {.processes = names, .exit_code = -1};
    struct place p;
    json_t *j;
    int fd;

    (void)state;
    make(&p);
    for (f.process_count = 1; f.process_count <= 3; f.process_count++)
        assert_int_equal(runfolder_describe(&p.folder, &f, &p.e), 0);
    fd = openat(p.folder.fd, "run.json", O_RDONLY);
    j = json_loadfd(fd, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(j, "processes")), 3);
    json_decref(j);
    close(fd);
    drop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_process_that_ended_some_hundred_bytes_stay),
        cmocka_unit_test(a_log_that_somebody_cut_is_closed),
        cmocka_unit_test(the_log_of_a_program_that_was_replaced_by_exec_is_over),
        cmocka_unit_test(a_log_that_was_seen_before_it_was_made_is_not_complained_about),
        cmocka_unit_test(a_log_that_was_read_to_its_end_is_not_read_again),
        cmocka_unit_test(each_process_stands_once_in_run_json_whatever_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
