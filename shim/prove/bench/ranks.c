/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/bench/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/prove/bench/bench_rank.h"
#include "shim/prove/bench/gpu_api.h"

#define LOOK_MS 100
#define GRACE_MS 500 /* for the others to say why they failed, before all are killed */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- in the started process ------------------------------------------------------------------ */

struct rank_thread {
    pthread_t id;
    struct bench_share *share;
    int rank;
};

static void *be_thread(void *arg)
{
    struct rank_thread *t = arg;

    /* The other threads may be waiting inside NCCL for ever: no orderly end for them. */
    if (bench_rank_run(t->share, t->rank) < 0)
        _exit(1);
    return NULL;
}

static int be_threads(struct bench_share *share)
{
    struct rank_thread threads[WORKLOAD_RANKS];
    int n = share->set.local_ranks;

    for (int i = 0; i < n; i++) {
        threads[i] = (struct rank_thread){.share = share, .rank = i};
        if (pthread_create(&threads[i].id, NULL, be_thread, &threads[i]) != 0) {
            error_set(&share->slots[i].error, NULL, 0, "can't start a thread for rank %d", i);
            atomic_store(&share->slots[i].state, BENCH_FAILED);
            _exit(1);
        }
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i].id, NULL);
    return 0;
}

static int open_libraries(struct bench_share *share, struct error *e)
{
    if (gpuapi_load(share->set.nccl, e) < 0)
        return -1;
    GPUAPI_CU(e, init(0));
    return 0;
}

int ranks_be_one(const char *word)
{
    struct bench_share *share;
    struct error e = {0};
    int fd, rank;
    char buf[1400];

    if (sscanf(word, "%d:%d", &fd, &rank) != 2 || rank < 0 || rank >= WORKLOAD_RANKS ||
        !(share = bench_share_map(fd, &e))) {
        fprintf(stderr, "ncclshim: %s\n",
                e.text[0] ? error_str(&e, buf, sizeof(buf))
                          : "--rank-of is for `ncclshim bench` itself");
        return 2;
    }
    close(fd);
    if (open_libraries(share, &share->slots[rank].error) < 0) {
        atomic_store(&share->slots[rank].state, BENCH_FAILED);
        return 1;
    }
    if (share->set.one_process)
        return be_threads(share) < 0;
    return bench_rank_run(share, rank) < 0;
}

/* ---- starting -------------------------------------------------------------------------------- */

struct crew {
    struct bench_share *share;
    int fd;
    const struct ranks_env *env;
    pid_t pids[WORKLOAD_RANKS]; /* 0: none, or gone */
    int count;                  /* processes started */
    pid_t group;
    sigset_t before;
};

static void set_environment(const struct crew *c)
{
    const struct ranks_env *env = c->env;

    if (c->share->set.one_gpu)
        setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    if (!env->preload)
        return;
    setenv("LD_PRELOAD", env->preload, 1);
    setenv("NCCLSHIM_PROFILE", env->profile, 1);
    setenv("NCCLSHIM_STRICT", "1", 1); /* a bench without its profile would prove nothing */
    setenv("NCCLSHIM_LOG", env->log_dir ? "on" : "off", 1);
    if (env->log_dir)
        setenv("NCCLSHIM_LOG_DIR", env->log_dir, 1);
}

static _Noreturn void become_rank(const struct crew *c, int rank, pid_t parent)
{
    char word[32];
    char *args[] = {(char[]){"ncclshim"}, (char[]){"bench"}, (char[]){"--rank-of"}, word, NULL};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died between fork and here */
        _exit(1);
    setpgid(0, c->group);
    signal(SIGTTOU, SIG_IGN); /* a group in the background may still write to the terminal */
    sigprocmask(SIG_SETMASK, &c->before, NULL);
    fcntl(c->fd, F_SETFD, 0);
    snprintf(word, sizeof(word), "%d:%d", c->fd, rank);
    set_environment(c);
    execv("/proc/self/exe", args);
    error_set(&c->share->slots[rank].error, NULL, 0, "can't start itself: %s", strerror(errno));
    atomic_store(&c->share->slots[rank].state, BENCH_FAILED);
    _exit(127);
}

static int start_all(struct crew *c, struct error *e)
{
    const struct bench_settings *set = &c->share->set;
    int count = set->one_process ? 1 : set->local_ranks;
    pid_t parent = getpid(), pid;

    fflush(NULL);
    for (c->count = 0; c->count < count; c->count++) {
        pid = fork();
        if (pid == 0)
            become_rank(c, set->first_rank + c->count, parent);
        if (pid < 0)
            return error_set(e, NULL, 0, "can't start rank %d: %s", set->first_rank + c->count,
                             strerror(errno));
        if (!c->group)
            c->group = pid;
        setpgid(pid, c->group); /* here and in the child: whoever comes first */
        c->pids[c->count] = pid;
    }
    return 0;
}

static void kill_all(struct crew *c)
{
    if (c->group)
        kill(-c->group, SIGKILL);
    for (int i = 0; i < c->count; i++) {
        if (!c->pids[i])
            continue;
        kill(c->pids[i], SIGKILL);
        while (waitpid(c->pids[i], NULL, 0) < 0 && errno == EINTR)
            ;
        c->pids[i] = 0;
    }
}

/* ---- watching -------------------------------------------------------------------------------- */

static uint64_t progress_of(const struct crew *c)
{
    uint64_t sum = 0;

    for (int i = 0; i < WORKLOAD_RANKS; i++)
        sum += atomic_load(&c->share->slots[i].progress);
    return sum;
}

/* Where each of our ranks stands, the like put together. */
static void tell_places(const struct crew *c, char *buf, size_t size)
{
    const struct bench_settings *set = &c->share->set;
    size_t at = 0;

    buf[0] = '\0';
    for (int i = 0; i < set->local_ranks && at + 240 < size; i++) {
        int rank = set->first_rank + i;
        const struct bench_slot *s = &c->share->slots[rank];

        if (atomic_load(&s->state) == BENCH_RUNNING)
            at += (size_t)snprintf(buf + at, size - at, "%srank %d: %.180s", at ? "; " : "", rank,
                                   s->where[0] ? s->where : "starting");
    }
}

/* The first rank that told why; an empty text means that another failed first. */
static const struct error *first_word(const struct crew *c, enum bench_state state, int *rank)
{
    for (int i = 0; i < WORKLOAD_RANKS; i++) {
        const struct bench_slot *s = &c->share->slots[i];

        if (atomic_load(&s->state) == (uint32_t)state && s->error.text[0]) {
            *rank = i;
            return &s->error;
        }
    }
    return NULL;
}

static void conclude_failure(const struct crew *c, struct ranks_result *r, int rank, int status)
{
    int teller = rank;
    const struct error *word = first_word(c, BENCH_FAILED, &teller);

    r->end = RANKS_FAILED;
    if (word)
        error_set(&r->error, word->file, word->line, "rank %d, %s: %s", teller,
                  c->share->slots[teller].where[0] ? c->share->slots[teller].where : "starting",
                  word->text);
    else if (WIFSIGNALED(status))
        error_set(&r->error, NULL, 0, "rank %d was ended by signal %d (%s), %s", rank,
                  WTERMSIG(status), strsignal(WTERMSIG(status)), c->share->slots[rank].where);
    else
        error_set(&r->error, NULL, 0, "rank %d ended with exit code %d, %s", rank,
                  WEXITSTATUS(status), c->share->slots[rank].where);
}

/* Which of ours ended; -1: none. */
static int reap_one(struct crew *c, int *status)
{
    for (int i = 0; i < c->count; i++)
        if (c->pids[i] && waitpid(c->pids[i], status, WNOHANG) == c->pids[i]) {
            c->pids[i] = 0;
            return i;
        }
    return -1;
}

static void conclude_good(const struct crew *c, struct ranks_result *r)
{
    int rank = 0;
    const struct error *word = first_word(c, BENCH_WRONG, &rank);
    bool wrong = false;

    for (int i = 0; i < WORKLOAD_RANKS; i++)
        wrong = wrong || atomic_load(&c->share->slots[i].state) == BENCH_WRONG;
    r->end = wrong ? RANKS_WRONG : RANKS_GOOD;
    if (word)
        r->error = *word;
    else if (wrong)
        error_set(&r->error, NULL, 0, "wrong results on another host's ranks");
}

static void conclude_hang(const struct crew *c, struct ranks_result *r)
{
    char places[600];

    tell_places(c, places, sizeof(places));
    r->end = RANKS_HUNG;
    error_set(&r->error, NULL, 0, "no progress for %u s (--timeout), all ranks were ended; %s",
              c->share->set.timeout_s, places);
}

/* Until all ended, one failed, nothing moved for too long, or a signal came. */
static void watch_all(struct crew *c, const sigset_t *wait, struct ranks_result *r)
{
    struct timespec look = {0, LOOK_MS * 1000000l};
    uint64_t seen = progress_of(c), now;
    int64_t moved = now_ms();
    int left = c->count, status = 0, i, got;

    while (left > 0) {
        got = sigtimedwait(wait, NULL, &look);
        if (got > 0 && got != SIGCHLD) {
            r->end = RANKS_STOPPED;
            r->signal = got;
            error_set(&r->error, NULL, 0, "stopped by signal %d", got);
            return;
        }
        while ((i = reap_one(c, &status)) >= 0) {
            left--;
            if (status == 0)
                continue;
            usleep(GRACE_MS * 1000);
            conclude_failure(c, r, c->share->set.first_rank + i, status);
            return;
        }
        now = progress_of(c);
        if (now != seen)
            moved = now_ms();
        seen = now;
        if (left > 0 && now_ms() - moved > (int64_t)c->share->set.timeout_s * 1000) {
            conclude_hang(c, r);
            return;
        }
    }
    conclude_good(c, r);
}

int ranks_run(struct bench_share *share, int fd, const struct ranks_env *env,
              struct ranks_result *r, struct error *e)
{
    struct crew c = {.share = share, .fd = fd, .env = env};
    sigset_t wait;
    int rc;

    memset(r, 0, sizeof(*r));
    sigemptyset(&wait);
    sigaddset(&wait, SIGCHLD);
    sigaddset(&wait, SIGINT);
    sigaddset(&wait, SIGTERM);
    sigaddset(&wait, SIGHUP);
    sigprocmask(SIG_BLOCK, &wait, &c.before);
    rc = start_all(&c, e);
    if (rc == 0)
        watch_all(&c, &wait, r);
    kill_all(&c);
    bench_meet_forget(&share->set);
    sigprocmask(SIG_SETMASK, &c.before, NULL);
    return rc;
}
