/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks of one communicator share: a file in /dev/shm (or TMPDIR) that carries the name of
 * the communicator's id until the last rank has arrived, and no name after that, so that a killed
 * rank leaves nothing behind. In it: a host rendezvous for init and split, a device rendezvous for
 * collectives, and (nccl_msg.c) one channel for each pair of ranks.
 *
 * A rendezvous counts arrivals in one word: round r is complete when n * r have arrived. A rank
 * can't arrive twice in one round, since it waits for the end of the round. Places for heads and
 * data are doubled by the round's parity: who writes for round r + 2 has seen the end of round r +
 * 1, where everyone arrived after having read round r.
 */
#include "test/fake/nccl_shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/pause.h"

#define MAGIC 0x4e43434c53484d31ull
#define WAIT_SLICE_NS 50000000 /* how often a sleeper looks for an abort */

uint64_t fake_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

uint64_t fake_timeout_ns(void)
{
    return (uint64_t)fake_knob("NCCLSHIM_FAKE_TIMEOUT", 60) * 1000000000ull;
}

void fake_futex_wait(atomic_uint *word, unsigned seen)
{
    struct timespec t = {0, WAIT_SLICE_NS};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

void fake_futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- rendezvous ---- */

/* How often to look before sleeping: a core that spins is a core that a late rank may need. */
static int spins(int nranks)
{
    static atomic_int cores;
    int n = atomic_load(&cores);
    if (!n)
        atomic_store(&cores, n = (int)sysconf(_SC_NPROCESSORS_ONLN));
    return nranks <= n ? 200 : 20;
}

static bool wait_for(struct fake_shm *s, struct meeting *m, uint64_t round)
{
    int budget = spins(s->map->nranks);
    for (int i = 0; i < budget; i++) {
        if (atomic_load_explicit(&m->done, memory_order_acquire) >= round)
            return true;
        pause_once();
    }
    for (int i = 0; i < 50; i++) {
        if (atomic_load_explicit(&m->done, memory_order_acquire) >= round)
            return true;
        sched_yield();
    }
    uint64_t deadline = fake_now_ns() + fake_timeout_ns();
    while (atomic_load_explicit(&m->done, memory_order_acquire) < round) {
        if (atomic_load(s->abort_flag) || atomic_load(&s->map->failed))
            return false;
        if (fake_now_ns() > deadline) {
            s->timed_out = true;
            return false;
        }
        unsigned seen = atomic_load(&m->futex);
        atomic_fetch_add(&m->sleepers, 1);
        if (atomic_load(&m->done) < round)
            fake_futex_wait(&m->futex, seen);
        atomic_fetch_sub(&m->sleepers, 1);
    }
    return true;
}

static bool meet(struct fake_shm *s, struct meeting *m, uint64_t *round)
{
    uint64_t r = ++*round, n = (uint64_t)s->map->nranks;
    if (atomic_fetch_add(&m->arrived, 1) + 1 == n * r) {
        atomic_store(&m->done, r);
        if (atomic_load(&m->sleepers)) {
            atomic_fetch_add(&m->futex, 1);
            fake_futex_wake(&m->futex);
        }
        return true;
    }
    return wait_for(s, m, r);
}

bool fake_shm_meet(struct fake_shm *s)
{
    return meet(s, &s->map->device, &s->device_round);
}

static size_t index_of(const struct fake_shm *s, uint64_t round, int rank)
{
    return (size_t)(round & 1) * (size_t)s->map->nranks + (size_t)rank;
}

struct fake_head *fake_shm_head(struct fake_shm *s, int rank)
{
    return &s->heads[index_of(s, s->device_round + 1, rank)];
}

char *fake_shm_stage(struct fake_shm *s, int rank)
{
    return s->stage + index_of(s, s->device_round + 1, rank) * s->map->stage_bytes;
}

char *fake_shm_result(struct fake_shm *s)
{
    return s->result + ((s->device_round + 1) & 1) * s->map->stage_bytes;
}

const struct fake_head *fake_shm_met_head(struct fake_shm *s, int rank)
{
    return &s->heads[index_of(s, s->device_round, rank)];
}

const char *fake_shm_met_stage(struct fake_shm *s, int rank)
{
    return s->stage + index_of(s, s->device_round, rank) * s->map->stage_bytes;
}

const char *fake_shm_met_result(struct fake_shm *s)
{
    return s->result + (s->device_round & 1) * s->map->stage_bytes;
}

size_t fake_shm_stage_bytes(const struct fake_shm *s)
{
    return s->map->stage_bytes;
}

ncclResult_t fake_shm_allgather(struct fake_shm *s, const void *mine, size_t size, void *all)
{
    size_t n = (size_t)s->map->nranks, base = (size_t)((s->host_round + 1) & 1) * n;
    memcpy(s->host_data[base + (size_t)s->rank], mine, size);
    if (!meet(s, &s->map->host, &s->host_round)) {
        if (s->timed_out)
            WARN("rendezvous of %zu ranks: rank %d waited %d s in vain", n, s->rank,
                 (int)(fake_timeout_ns() / 1000000000ull));
        return s->timed_out ? ncclSystemError : ncclRemoteError;
    }
    for (size_t r = 0; r < n; r++)
        memcpy((char *)all + r * size, s->host_data[base + r], size);
    return ncclSuccess;
}

/* ---- the file ---- */

static size_t align_up(size_t v)
{
    return (v + 4095) & ~(size_t)4095;
}

struct layout {
    size_t heads, host, channels, messages, stage, result, total, stage_bytes, message_bytes;
};

static struct layout lay_out(int nranks)
{
    size_t n = (size_t)nranks;
    struct layout l;
    l.stage_bytes = n <= 32 ? 256 << 10 : align_up((8u << 20) / n);
    l.message_bytes = n <= 8 ? 64 << 10 : n <= 32 ? 8192 : 4096;
    l.heads = align_up(sizeof(struct map));
    l.host = align_up(l.heads + 2 * n * sizeof(struct fake_head));
    l.channels = align_up(l.host + 2 * n * HOST_BYTES);
    l.messages = align_up(l.channels + n * n * sizeof(struct channel));
    l.stage = align_up(l.messages + n * n * 2 * l.message_bytes);
    l.result = l.stage + 2 * n * l.stage_bytes;
    l.total = l.result + 2 * l.stage_bytes;
    return l;
}

static void name_for(const char id[NCCL_UNIQUE_ID_BYTES], int nranks, bool second_place, char *path,
                     size_t size)
{
    const char *dir = getenv("TMPDIR");
    snprintf(path, size, "%s/ncclshim-fake-nccl-%016llx-%d",
             !second_place ? "/dev/shm"
             : dir && *dir ? dir
                           : "/tmp",
             (unsigned long long)fake_hash(id, NCCL_UNIQUE_ID_BYTES, 7), nranks);
}

/* Every rank comes here with the same name; who is first makes the file, the others wait for its
 * size. */
static int open_or_make(const char *path, size_t total, bool *made)
{
    for (int attempt = 0; attempt < 1000; attempt++) {
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        *made = fd >= 0;
        if (fd >= 0) {
            if (!ftruncate(fd, (off_t)total))
                return fd;
            close(fd);
            unlink(path);
            return -1;
        }
        if (errno != EEXIST)
            return -1;
        fd = open(path, O_RDWR | O_CLOEXEC);
        struct stat st;
        if (fd >= 0 && !fstat(fd, &st) && (size_t)st.st_size == total)
            return fd;
        if (fd >= 0)
            close(fd);
        usleep(1000);
    }
    return -1;
}

static struct fake_shm *map_file(const char *path, int nranks, bool *made)
{
    struct layout l = lay_out(nranks);
    int fd = open_or_make(path, l.total, made);
    if (fd < 0)
        return NULL;
    char *base = mmap(NULL, l.total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (base == MAP_FAILED)
        return NULL;
    struct fake_shm *s = calloc(1, sizeof(*s));
    s->map = (struct map *)base;
    s->total = l.total;
    s->heads = (struct fake_head *)(base + l.heads);
    s->host_data = (char(*)[HOST_BYTES])(base + l.host);
    s->channels = (struct channel *)(base + l.channels);
    s->messages = base + l.messages;
    s->message_bytes = l.message_bytes;
    s->stage = base + l.stage;
    s->result = base + l.result;
    return s;
}

ncclResult_t fake_shm_join(const char id[NCCL_UNIQUE_ID_BYTES], int nranks, int rank,
                           atomic_int *abort_flag, struct fake_shm **out)
{
    char path[4096];
    bool made = false;
    name_for(id, nranks, false, path, sizeof(path));
    struct fake_shm *s = map_file(path, nranks, &made);
    if (!s) {
        name_for(id, nranks, true, path, sizeof(path));
        s = map_file(path, nranks, &made);
    }
    if (!s) {
        WARN("can't make or open %s: %s", path, strerror(errno));
        return ncclSystemError;
    }
    s->rank = rank;
    s->abort_flag = abort_flag;
    if (made) {
        s->map->nranks = nranks;
        s->map->stage_bytes = lay_out(nranks).stage_bytes;
        atomic_store(&s->map->magic, MAGIC);
    }
    uint64_t deadline = fake_now_ns() + fake_timeout_ns();
    while (atomic_load(&s->map->magic) != MAGIC && fake_now_ns() < deadline)
        usleep(200);
    if (nranks <= 64 && atomic_fetch_or(&s->map->present, 1ull << rank) & 1ull << rank) {
        WARN("rank %d of %d has joined already: two ranks with one number, or an id used twice",
             rank, nranks);
        fake_shm_leave(s);
        return ncclInvalidUsage;
    }
    /* The last to arrive takes the name away, before anyone is let through. */
    if (atomic_fetch_add(&s->map->joined, 1) + 1 == nranks)
        unlink(path);
    char hello = 1, *all = malloc((size_t)nranks);
    ncclResult_t res = fake_shm_allgather(s, &hello, 1, all);
    free(all);
    if (res != ncclSuccess) {
        unlink(path);
        fake_shm_leave(s);
        return res;
    }
    *out = s;
    return ncclSuccess;
}

void fake_shm_leave(struct fake_shm *s)
{
    if (!s)
        return;
    munmap(s->map, s->total);
    free(s);
}

void fake_shm_wake(struct fake_shm *s)
{
    struct meeting *m[] = {&s->map->host, &s->map->device, &s->map->message};
    for (int i = 0; i < 3; i++) {
        atomic_fetch_add(&m[i]->futex, 1);
        fake_futex_wake(&m[i]->futex);
    }
}

void fake_shm_fail(struct fake_shm *s)
{
    atomic_store(&s->map->failed, 1);
    fake_shm_wake(s);
}
