/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/bench/bench_meet.h"

#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/pause.h"

/* ---- in shared memory ------------------------------------------------------------------------ */

static void breathe(unsigned spins)
{
    struct timespec nap = {0, 50000};

    if (spins < 2000)
        pause_once();
    else if (spins < 4000)
        sched_yield(); /* more ranks than cores */
    else
        nanosleep(&nap, NULL); /* somebody is in a long NCCL init: leave it the core */
}

static int shm_barrier(struct bench_shm *s, int ranks, struct error *e)
{
    uint32_t generation = atomic_load(&s->generation);

    if (atomic_fetch_add(&s->arrived, 1) + 1 == (uint32_t)ranks) {
        atomic_store(&s->arrived, 0);
        atomic_store(&s->generation, generation + 1);
        return 0;
    }
    for (unsigned spins = 0; atomic_load(&s->generation) == generation; spins++) {
        if (atomic_load(&s->failed))
            return error_set(e, NULL, 0, "%s", "");
        breathe(spins);
    }
    return 0;
}

static int shm_exchange(struct bench_meet *m, const void *mine, size_t size, void *all,
                        struct error *e)
{
    for (size_t done = 0; done < size; done += BENCH_STAGE) {
        size_t n = size - done < BENCH_STAGE ? size - done : BENCH_STAGE;

        memcpy(m->shm->stage[m->rank], (const char *)mine + done, n);
        if (shm_barrier(m->shm, m->ranks, e) < 0)
            return -1;
        for (int r = 0; r < m->ranks; r++)
            memcpy((char *)all + (size_t)r * size + done, m->shm->stage[r], n);
        if (shm_barrier(m->shm, m->ranks, e) < 0) /* before anyone writes anew */
            return -1;
    }
    return 0;
}

/* ---- over TCP -------------------------------------------------------------------------------- */

static int tcp_exchange(struct bench_meet *m, const void *mine, size_t size, void *all,
                        struct error *e)
{
    if (m->rank > 0)
        return bench_tcp_send(m->fds[0], mine, size, e) < 0
                   ? -1
                   : bench_tcp_receive(m->fds[0], all, size * (size_t)m->ranks, e);
    memcpy(all, mine, size);
    for (int r = 1; r < m->ranks; r++)
        if (bench_tcp_receive(m->fds[r], (char *)all + (size_t)r * size, size, e) < 0)
            return -1;
    for (int r = 1; r < m->ranks; r++)
        if (bench_tcp_send(m->fds[r], all, size * (size_t)m->ranks, e) < 0)
            return -1;
    return 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

int bench_meet_exchange(struct bench_meet *m, const void *mine, size_t size, void *all,
                        struct error *e)
{
    if (m->ranks == 1) {
        memcpy(all, mine, size);
        return 0;
    }
    return m->shm ? shm_exchange(m, mine, size, all, e) : tcp_exchange(m, mine, size, all, e);
}

int bench_meet_barrier(struct bench_meet *m, struct error *e)
{
    char all[WORKLOAD_RANKS], mine = 0;

    if (m->ranks > 1 && m->shm)
        return shm_barrier(m->shm, m->ranks, e);
    return bench_meet_exchange(m, &mine, 1, all, e);
}

int bench_meet_align(struct bench_meet *m, struct error *e)
{
    /* Who slept in the first one is awake for the second. */
    return bench_meet_barrier(m, e) < 0 ? -1 : bench_meet_barrier(m, e);
}

void bench_meet_fail(struct bench_meet *m)
{
    if (m->shm)
        atomic_store(&m->shm->failed, 1);
    for (int r = 0; !m->shm && r < WORKLOAD_RANKS; r++)
        if (m->fds[r] >= 0) {
            close(m->fds[r]);
            m->fds[r] = -1;
        }
}
