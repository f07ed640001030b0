/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks meeting beside NCCL: in shared memory, over TCP, and finding each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/prove/bench/bench_meet.h"

#define RANKS 4
#define ROUNDS 200
#define LARGE (3 * BENCH_STAGE + 11)

struct party {
    struct bench_meet m;
    pthread_t thread;
    struct error e;
    int bad;
    int rc;
};

/* Everyone sends what only it can know, and looks at what the others sent. */
static void *exchange(void *arg)
{
    struct party *p = arg;
    unsigned char *mine = malloc(LARGE), *all = malloc((size_t)LARGE * RANKS);

    for (int round = 0; round < ROUNDS && !p->rc; round++) {
        size_t size = round % 10 ? 8 : LARGE;

        memset(mine, p->m.rank * 16 + round % 16, size);
        p->rc = bench_meet_exchange(&p->m, mine, size, all, &p->e);
        for (size_t i = 0; i < size * (size_t)p->m.ranks && !p->rc; i++)
            p->bad += all[i] != (int)(i / size) * 16 + round % 16;
    }
    if (!p->rc)
        p->rc = bench_meet_align(&p->m, &p->e);
    free(mine);
    free(all);
    return NULL;
}

static void run_all(struct party *p, void *(*fn)(void *))
{
    for (int r = 0; r < RANKS; r++)
        pthread_create(&p[r].thread, NULL, fn, &p[r]);
    for (int r = 0; r < RANKS; r++)
        pthread_join(p[r].thread, NULL);
}

static struct party *parties(struct bench_shm *shm)
{
    struct party *p = calloc(RANKS, sizeof(*p));

    for (int r = 0; r < RANKS; r++) {
        p[r].m = (struct bench_meet){.rank = r, .ranks = RANKS, .shm = shm};
        memset(p[r].m.fds, 0xff, sizeof(p[r].m.fds));
    }
    for (int r = 1; r < RANKS && !shm; r++) {
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        p[0].m.fds[r] = pair[0];
        p[r].m.fds[0] = pair[1];
    }
    return p;
}

static void everyone_gets_what_everyone_gave(void **state)
{
    (void)state;
    for (int tcp = 0; tcp < 2; tcp++) {
        struct bench_shm *shm = calloc(1, sizeof(*shm));
        struct party *p = parties(tcp ? NULL : shm);

        run_all(p, exchange);
        for (int r = 0; r < RANKS; r++) {
            assert_int_equal(p[r].rc, 0);
            assert_int_equal(p[r].bad, 0);
            bench_meet_close(&p[r].m);
        }
        free(p);
        free(shm);
    }
}

static void *fail_or_wait(void *arg)
{
    struct party *p = arg;

    if (p->m.rank == 1)
        bench_meet_fail(&p->m);
    else
        p->rc = bench_meet_barrier(&p->m, &p->e);
    if (p->rc) /* as a rank does that can't go on */
        bench_meet_fail(&p->m);
    return NULL;
}

static void a_rank_that_fails_frees_the_others_without_a_word_of_theirs(void **state)
{
    (void)state;
    for (int tcp = 0; tcp < 2; tcp++) {
        struct bench_shm *shm = calloc(1, sizeof(*shm));
        struct party *p = parties(tcp ? NULL : shm);

        run_all(p, fail_or_wait);
        for (int r = 0; r < RANKS; r++) {
            assert_int_equal(p[r].rc, r == 1 ? 0 : -1);
            assert_string_equal(p[r].e.text, "");
            bench_meet_close(&p[r].m);
        }
        free(p);
        free(shm);
    }
}

/* ---- finding each other ---------------------------------------------------------------------- */

static struct bench_settings settings;
static uint64_t job_of[RANKS];

static void *connect_and_exchange(void *arg)
{
    struct party *p = arg;

    p->rc = bench_meet_connect(&p->m, &settings, job_of[p->m.rank], &p->e);
    return p->rc ? NULL : exchange(p);
}

static int set_up(void **state)
{
    memset(&settings, 0, sizeof(settings));
    settings.timeout_s = 5;
    settings.phase = 1;
    for (int r = 0; r < RANKS; r++)
        job_of[r] = 7;
    snprintf(settings.launcher.file, sizeof(settings.launcher.file), "/tmp/ncclshim-meet-%d",
             (int)getpid());
    settings.launcher.one_host = 1;
    (void)state;
    return 0;
}

static void ranks_find_each_other_by_a_file_and_then_share_memory(void **state)
{
    struct party *p = parties(NULL);
    char path[700];

    (void)state;
    for (int r = 1; r < RANKS; r++) {
        close(p[0].m.fds[r]);
        close(p[r].m.fds[0]);
    }
    run_all(p, connect_and_exchange);
    for (int r = 0; r < RANKS; r++) {
        if (p[r].rc)
            fail_msg("rank %d: %s", r, p[r].e.text);
        assert_int_equal(p[r].bad, 0);
        assert_non_null(p[r].m.shm);
        bench_meet_close(&p[r].m);
    }
    snprintf(path, sizeof(path), "%s.1", settings.launcher.file);
    assert_int_equal(access(path, F_OK), -1);
    free(p);
}

/* A stale address, somebody else's words, a rank of another phase: none of them counts. */
static void strangers_count_as_nobody(void **state)
{
    struct party *p = parties(NULL);
    char path[700];
    FILE *f;

    (void)state;
    snprintf(path, sizeof(path), "%s.1", settings.launcher.file);
    f = fopen(path, "w");
    fputs("127.0.0.1 1\n", f); /* nobody listens there */
    fclose(f);
    run_all(p, connect_and_exchange);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(p[r].rc, 0);
        bench_meet_close(&p[r].m);
    }
    free(p);
}

static void a_rank_with_other_work_is_refused_on_both_sides(void **state)
{
    struct party *p = parties(NULL);

    (void)state;
    settings.timeout_s = 2;
    job_of[2] = 8;
    run_all(p, connect_and_exchange);
    assert_int_equal(p[0].rc, -1);
    assert_non_null(strstr(p[0].e.text, "rank 2 was started with other options"));
    assert_int_equal(p[2].rc, -1);
    assert_non_null(strstr(p[2].e.text, "other options"));
    for (int r = 0; r < RANKS; r++)
        bench_meet_close(&p[r].m);
    free(p);
}

static void who_never_comes_is_waited_for_no_longer_than_told(void **state)
{
    struct party *p = parties(NULL);

    (void)state;
    settings.timeout_s = 1;
    p[0].rc = bench_meet_connect(&p[0].m, &settings, 7, &p[0].e);
    assert_int_equal(p[0].rc, -1);
    assert_non_null(strstr(p[0].e.text, "3 of 4 ranks did not come within 1 s"));
    p[1].rc = bench_meet_connect(&p[1].m, &settings, 7, &p[1].e);
    assert_int_equal(p[1].rc, -1);
    assert_non_null(strstr(p[1].e.text, "rank 0 was not found within 1 s"));
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everyone_gets_what_everyone_gave),
        cmocka_unit_test(a_rank_that_fails_frees_the_others_without_a_word_of_theirs),
        cmocka_unit_test_setup(ranks_find_each_other_by_a_file_and_then_share_memory, set_up),
        cmocka_unit_test_setup(strangers_count_as_nobody, set_up),
        cmocka_unit_test_setup(a_rank_with_other_work_is_refused_on_both_sides, set_up),
        cmocka_unit_test_setup(who_never_comes_is_waited_for_no_longer_than_told, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
