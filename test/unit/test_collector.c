/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of run and collect that need no process: names, LD_PRELOAD, copies, sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <zstd.h>

#include "shim/base/paths.h"
#include "shim/prove/run/collector.h"
#include "shim/prove/run/heirs.h"
#include "shim/prove/run/keep.h"
#include "shim/prove/run/launch.h"
#include "shim/prove/run/logcopy.h"
#include "shim/prove/run/runfolder.h"
#include "shim/prove/run/summary.h"
#include "test/unit/logfixture.h"

static struct error e;

/* ---- paths ----------------------------------------------------------------------------------- */

static void a_log_is_named_after_host_pid_and_start(void **state)
{
    char buf[128];

    (void)state;
    assert_int_equal(log_file_name(buf, sizeof(buf), "box", 42, 77, 0), 0);
    assert_string_equal(buf, "box-42-77.ncclshim");
    assert_int_equal(log_file_name(buf, sizeof(buf), "box", 42, 77, 3), 0);
    assert_string_equal(buf, "box-42-77-3.ncclshim");
    assert_true(is_log_file_name(buf));
    log_file_name(buf, sizeof(buf), "../e vil/\n", 1, 2, 0);
    assert_string_equal(buf, "_._e_vil__-1-2.ncclshim");
    log_file_name(buf, sizeof(buf), "", 1, 2, 0);
    assert_string_equal(buf, "_-1-2.ncclshim");
    assert_int_equal(log_file_name(buf, 10, "box", 42, 77, 0), -1);
    assert_false(is_log_file_name(".ncclshim"));
    assert_false(is_log_file_name("a/b.ncclshim"));
    assert_false(is_log_file_name("box.ncclshim.new"));
}

static void the_folder_for_logs_is_the_one_named_or_that_of_the_user(void **state)
{
    char buf[64], expected[64];

    (void)state;
    setenv("NCCLSHIM_LOG_DIR", "/some/where", 1);
    assert_int_equal(log_dir_default(buf, sizeof(buf)), 0);
    assert_string_equal(buf, "/some/where");
    assert_int_equal(log_dir_default(buf, 5), -1);
    setenv("NCCLSHIM_LOG_DIR", "", 1);
    log_dir_default(buf, sizeof(buf));
    snprintf(expected, sizeof(expected), "/dev/shm/ncclshim-%u", (unsigned)geteuid());
    assert_string_equal(buf, expected);
    unsetenv("NCCLSHIM_LOG_DIR");
}

static void a_folder_for_logs_that_others_could_use_is_refused(void **state)
{
    char dir[] = "/dev/shm/ncclshim-unit-XXXXXX", link[64];
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    fd = log_dir_open(dir, true, &e);
    assert_true(fd >= 0);
    close(fd);
    chmod(dir, 0770);
    assert_int_equal(log_dir_open(dir, true, &e), -1);
    assert_non_null(strstr(e.text, "chmod 700"));
    chmod(dir, 0700);
    snprintf(link, sizeof(link), "%s.link", dir);
    assert_int_equal(symlink(dir, link), 0);
    assert_int_equal(log_dir_open(link, true, &e), -1);
    strcat(link, "/");
    assert_int_equal(log_dir_open(link, true, &e), -1); /* nor with a slash behind it */
    link[strlen(link) - 1] = '\0';
    unlink(link);
    if (geteuid() == 0 && chown(dir, 12345, (gid_t)-1) == 0) {
        assert_int_equal(log_dir_open(dir, true, &e), -1);
        assert_non_null(strstr(e.text, "user 12345"));
        fd = log_dir_open(dir, false, &e); /* root may read, as a collector beside a server does */
        assert_true(fd >= 0);
        close(fd);
    }
    rmdir(dir);
}

/* ---- LD_PRELOAD ------------------------------------------------------------------------------ */

static void preloads(const char *list, const char *expected)
{
    char *got = preload_with(list, "/opt/libncclshim.so");

    assert_string_equal(got, expected);
    free(got);
}

static void the_shim_goes_first_and_the_others_stay_in_order(void **state)
{
    (void)state;
    preloads(NULL, "/opt/libncclshim.so");
    preloads("", "/opt/libncclshim.so");
    preloads("liba.so:/x/libb.so", "/opt/libncclshim.so:liba.so:/x/libb.so");
    preloads(" liba.so  libb.so ", "/opt/libncclshim.so:liba.so:libb.so");
}

static void a_sanitizer_goes_before_the_shim(void **state)
{
    (void)state;
    preloads("/usr/lib/libjemalloc.so.2:/usr/lib/libasan.so.8",
             "/usr/lib/libasan.so.8:/opt/libncclshim.so:/usr/lib/libjemalloc.so.2");
    preloads("libclang_rt.asan-x86_64.so", "libclang_rt.asan-x86_64.so:/opt/libncclshim.so");
}

static void a_shim_that_is_there_already_is_not_loaded_twice(void **state)
{
    (void)state;
    preloads("/opt/libncclshim.so", "/opt/libncclshim.so");
    preloads("/old/libncclshim.so:liba.so", "/opt/libncclshim.so:liba.so");
}

/* ---- names of runs --------------------------------------------------------------------------- */

static void names(const char *expected, ...)
{
    char *command[8], buf[40];
    va_list ap;
    int n = 0;

    va_start(ap, expected);
    while (n < 7 && (command[n] = va_arg(ap, char *)))
        n++;
    va_end(ap);
    command[n] = NULL;
    runfolder_name_of(command, buf, sizeof(buf));
    assert_string_equal(buf, expected);
}

static void a_run_is_named_after_module_script_or_program(void **state)
{
    (void)state;
    names("sglang", "python", "-m", "sglang.launch_server", "--tp", "8", NULL);
    names("serve", "/usr/bin/python3.11", "-u", "/a/b/serve.py", NULL);
    names("start", "bash", "start.sh", NULL);
    names("bash", "bash", "-c", "exec x", NULL);
    names("vllm", "/opt/bin/vllm", "serve", NULL);
    names("x_y", "./x y", NULL);
    names("run", ".hidden", NULL);
    names("abcdefghijklmnopqrstuvwxyzabcdef", "abcdefghijklmnopqrstuvwxyzabcdefghij", NULL);
}

/* ---- a copy of a log ------------------------------------------------------------------------- */

static void a_copy_is_a_log_and_takes_only_what_was_used(void **state)
{
    char dir[] = "/tmp/ncclshim-unit-XXXXXX", path[64];
    struct ncclshim_record r[64];
    struct log_file *f, *copy;
    struct fixture x;
    struct stat st;

    (void)state;
    fixture_make(&x, "/dev/shm", 1 << 16, 4);
    fixture_write(&x, 40);
    assert_int_equal(log_open(x.path, &f, &e), 0);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/copy.ncclshim", dir);
    for (int records = 0; records < 2; records++) {
        struct ring_cursor c = {0};
        int fd = open(dir, O_RDONLY | O_DIRECTORY);
        assert_int_equal(logcopy(f, fd, "copy.ncclshim", records, &e), 0);
        close(fd);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, x.bytes);
        assert_true(st.st_blocks * 512 < 64 * 1024);
        assert_int_equal(log_open(path, &copy, &e), 0);
        assert_int_equal(copy->site_count, 4);
        assert_int_equal(ring_read(copy, &copy->rings[0], &c, r, 64, true, &e), records ? 40 : 0);
        assert_int_equal(c.lost + c.torn, 0);
        log_free(copy);
    }
    unlink(path);
    rmdir(dir);
    log_free(f);
    fixture_drop(&x);
}

static void an_unfinished_copy_of_a_wrapped_ring_shows_no_loss(void **state)
{
    struct ring_cursor c = {0};
    struct ncclshim_record r[64];
    struct log_file *f, *copy;
    struct fixture x;
    int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY);

    (void)state;
    fixture_make(&x, "/dev/shm", 64, 4);
    fixture_write(&x, 1000);
    assert_int_equal(log_open(x.path, &f, &e), 0);
    assert_int_equal(logcopy(f, fd, "ncclshim-unit-copy", false, &e), 0);
    assert_int_equal(log_open("/dev/shm/ncclshim-unit-copy", &copy, &e), 0);
    assert_int_equal(ring_read(copy, &copy->rings[0], &c, r, 64, true, &e), 0);
    assert_int_equal(c.lost + c.torn, 0);
    log_free(copy);
    log_free(f);
    unlink("/dev/shm/ncclshim-unit-copy");
    close(fd);
    fixture_drop(&x);
}

/* ---- all records ----------------------------------------------------------------------------- */

static void kept_records_are_whole_after_a_collector_that_died(void **state)
{
    static struct ncclshim_record r[1000], back[2000];
    static char packed[65536];
    char dir[] = "/tmp/ncclshim-unit-XXXXXX", path[64];
    uint64_t bytes = 0, later;
    struct keep *k;
    int fd, file;
    ssize_t n;

    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        r[i] = (struct ncclshim_record){.start_ns = i * 977, .sequence = (uint32_t)i + 1};
    assert_non_null(mkdtemp(dir));
    fd = open(dir, O_RDONLY | O_DIRECTORY);
    k = keep_open(fd, "r.zst", 0, &e);
    keep_write(k, r, 600, &e);
    assert_int_equal(keep_checkpoint(k, &bytes, &e), 0);
    keep_write(k, r + 600, 400, &e);
    assert_int_equal(keep_checkpoint(k, &later, &e), 0); /* but the statistics were not written */
    keep_close(k);
    assert_true(later > bytes);
    k = keep_open(fd, "r.zst", bytes, &e); /* the next collector reads them again, fewer at first */
    keep_write(k, r + 600, 100, &e);
    assert_int_equal(keep_checkpoint(k, &bytes, &e), 0);
    keep_close(k);
    snprintf(path, sizeof(path), "%s/r.zst", dir);
    file = open(path, O_RDONLY);
    n = read(file, packed, sizeof(packed));
    close(file);
    assert_int_equal(n, bytes);
    assert_int_equal(ZSTD_decompress(back, sizeof(back), packed, (size_t)n), 700 * sizeof(r[0]));
    assert_memory_equal(back, r, 700 * sizeof(r[0]));
    unlink(path);
    close(fd);
    rmdir(dir);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void sums_to(struct process_summary *list, size_t count, const char *expected)
{
    const struct process_summary *p[8];
    struct summary s;
    char text[512];

    for (size_t i = 0; i < count; i++)
        p[i] = &list[i];
    assert_int_equal(summarize(&s, p, count), 0);
    summary_text(&s, text, sizeof(text));
    assert_string_equal(text, expected);
}

static void one_communicator_of_many_processes_is_counted_once(void **state)
{
    uint64_t keys[] = {7, 9};
    struct process_summary list[8];

    (void)state;
    for (int i = 0; i < 8; i++)
        list[i] = (struct process_summary){
            .ranks = 1, .timed = 1176580, .comms = keys, .comm_count = i ? 1 : 2};
    sums_to(list, 8,
            "8 ranks, 2 communicators, 9,412,640 collectives timed, 0 lost, 0 not intercepted");
    list[0] = (struct process_summary){.ranks = 1,
                                       .timed = 1,
                                       .lost = 1000,
                                       .torn = 2,
                                       .simulated = true,
                                       .without_site = 3,
                                       .not_intercepted = 12,
                                       .comms = keys,
                                       .comm_count = 1};
    sums_to(list, 1,
            "1 rank (simulated GPUs), 1 communicator, 1 collective timed, 1,000 lost, 2 torn, "
            "3 without a call site, 12 not intercepted");
    list[0] = (struct process_summary){.calls = 5, .missed = true};
    sums_to(list, 1,
            "0 ranks, 0 communicators, 0 collectives timed, 0 lost, 5 calls counted but not "
            "timed, 1 process in which NCCL bypassed the shim, 0 not intercepted");
}

static void ranks_that_are_threads_of_one_process_are_counted_each(void **state)
{
    struct process_summary p = {0};
    struct log_file *f;
    struct fixture x;

    (void)state;
    fixture_make(&x, "/dev/shm", 64, 4);
    for (int i = 0; i < 6; i++) /* four ranks of one, two splits that NCCL gave no hash */
        x.comm[i] = (struct ncclshim_comm){.state = NCCLSHIM_COMM_READY,
                                           .parent = i < 4 ? -1 : i - 4,
                                           .hash = i < 4 ? 77 : 0,
                                           .ranks = i < 4 ? 4 : 2,
                                           .flags = NCCLSHIM_COMM_COUNTED,
                                           .wrapped_calls = 10,
                                           .missed_calls = i == 2 ? 3 : 0};
    x.comm[6].state = NCCLSHIM_COMM_FAILED;
    x.head->sections[1].used = 7;
    assert_int_equal(log_open(x.path, &f, &e), 0);
    assert_int_equal(process_summarize(&p, f, NULL), 0);
    assert_int_equal(p.ranks, 4);
    assert_int_equal(p.comm_count, 2);
    assert_int_equal(p.calls, 60);
    assert_int_equal(p.not_intercepted, 3);
    process_summary_free(&p);
    log_free(f);
    fixture_drop(&x);
}

static void processes_left_behind_are_known_by_the_folder_in_their_environment(void **state)
{
    char dir[64];
    pid_t child;

    (void)state;
    snprintf(dir, sizeof(dir), "/dev/shm/unit-heirs-%d", (int)getpid());
    assert_int_equal(heirs_of(dir), 0);
    child = fork();
    if (child == 0) {
        setenv("NCCLSHIM_LOG_DIR", dir, 1);
        execlp("sleep", "sleep", "30", (char *)NULL);
        _exit(1);
    }
    for (int i = 0; i < 200 && heirs_of(dir) == 0; i++)
        usleep(10000);
    assert_int_equal(heirs_of(dir), 1);
    dir[strlen(dir) - 1] = '\0'; /* part of a name is another name */
    assert_int_equal(heirs_of(dir), 0);
    kill(child, 9);
}

/* ---- the collector --------------------------------------------------------------------------- */

static unsigned warnings;

static void count_warning(const struct error *w)
{
    (void)w;
    warnings++;
}

/* What a collector says of a log whose first page is filled behind its first look, or never. */
static uint64_t collected(bool filled, unsigned expected_warnings)
{
    char logs[] = "/dev/shm/ncclshim-unit-XXXXXX", run[] = "/tmp/ncclshim-unit-XXXXXX", command[80];
    struct runfolder to = {.fd = -1};
    struct collector_options o = {.log_dir = logs, .run = &to, .warn = count_warning};
    struct summary sum = {0};
    struct collector *c;
    struct fixture x;

    assert_true(mkdtemp(logs) && mkdtemp(run) && runfolder_open(&to, run, &e) == 0);
    fixture_make(&x, logs, 64, 4);
    memset(x.head->magic, 0, sizeof(x.head->magic));
    o.log_fd = open(logs, O_RDONLY | O_DIRECTORY);
    c = collector_new(&o, &e);
    assert_non_null(c);
    warnings = 0;
    collector_round(c);
    if (filled)
        memcpy(x.head->magic, NCCLSHIM_LOG_MAGIC, sizeof(x.head->magic));
    fixture_write(&x, 10);
    collector_round(c);
    collector_finish(c);
    collector_summarize(c, &sum);
    assert_int_equal(warnings, expected_warnings);
    collector_free(c);
    fixture_drop(&x);
    close(o.log_fd);
    snprintf(command, sizeof(command), "rm -rf %s %s", logs, run);
    assert_int_equal(system(command), 0);
    return sum.timed;
}

static void a_log_met_before_its_first_page_was_filled_is_read_and_not_called_left_out(void **state)
{
    (void)state;
    assert_int_equal(collected(true, 0), 10);
}

static void a_file_that_never_becomes_a_log_is_told_once(void **state)
{
    (void)state;
    assert_int_equal(collected(false, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_is_named_after_host_pid_and_start),
        cmocka_unit_test(the_folder_for_logs_is_the_one_named_or_that_of_the_user),
        cmocka_unit_test(a_folder_for_logs_that_others_could_use_is_refused),
        cmocka_unit_test(the_shim_goes_first_and_the_others_stay_in_order),
        cmocka_unit_test(a_sanitizer_goes_before_the_shim),
        cmocka_unit_test(a_shim_that_is_there_already_is_not_loaded_twice),
        cmocka_unit_test(a_run_is_named_after_module_script_or_program),
        cmocka_unit_test(a_copy_is_a_log_and_takes_only_what_was_used),
        cmocka_unit_test(an_unfinished_copy_of_a_wrapped_ring_shows_no_loss),
        cmocka_unit_test(kept_records_are_whole_after_a_collector_that_died),
        cmocka_unit_test(one_communicator_of_many_processes_is_counted_once),
        cmocka_unit_test(ranks_that_are_threads_of_one_process_are_counted_each),
        cmocka_unit_test(processes_left_behind_are_known_by_the_folder_in_their_environment),
        cmocka_unit_test(a_log_met_before_its_first_page_was_filled_is_read_and_not_called_left_out),
        cmocka_unit_test(a_file_that_never_becomes_a_log_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
