/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives. Each pair of ranks has a channel of its own, so that ranks which take no part
 * in a message need not be there. A rank moves all messages of a launch together, a piece at a
 * time, since NCCL promises progress for everything inside one group; messages between the same two
 * ranks go one after the other.
 */
#include "test/fake/nccl_shm.h"

#include <sched.h>
#include <string.h>

enum { WAITING, MOVING, DONE };

/* What this rank has announced so far on a channel is what the channel says: only it announces
 * there. */
static bool announce(struct channel *c, struct fake_msg *m, uint64_t *number)
{
    uint64_t mine = m->is_send ? atomic_load(&c->sends) : atomic_load(&c->recvs);
    uint64_t n = mine + 1;
    if (m->is_send) {
        c->send_arrival[n & 1] = m->arrival_ns;
        c->send_bytes[n & 1] = m->bytes;
        atomic_store(&c->sends, n);
    } else {
        c->recv_arrival[n & 1] = m->arrival_ns;
        c->recv_bytes[n & 1] = m->bytes;
        atomic_store(&c->recvs, n);
    }
    *number = n;
    return true;
}

static bool met(struct channel *c, struct fake_msg *m, uint64_t n)
{
    if ((m->is_send ? atomic_load(&c->recvs) : atomic_load(&c->sends)) < n)
        return false;
    m->peer_arrival_ns = m->is_send ? c->recv_arrival[n & 1] : c->send_arrival[n & 1];
    m->mismatch = c->send_bytes[n & 1] != c->recv_bytes[n & 1];
    return true;
}

/* One piece; true when something moved. Two pieces fit into a channel at a time. */
static bool move(struct fake_shm *s, struct channel *c, size_t index, struct fake_msg *m)
{
    uint64_t written = atomic_load(&c->written), read = atomic_load(&c->read);
    if (m->is_send ? written - read >= 2 : written == read)
        return false;
    size_t n = m->bytes - m->done < s->message_bytes ? m->bytes - m->done : s->message_bytes;
    uint64_t piece = m->is_send ? written : read;
    char *place = s->messages + (index * 2 + (piece & 1)) * s->message_bytes;
    if (m->is_send) {
        memcpy(place, m->buff + m->done, n);
        atomic_store(&c->written, written + 1);
    } else {
        memcpy(m->buff + m->done, place, n);
        atomic_store(&c->read, read + 1);
    }
    m->done += n;
    return true;
}

static bool step(struct fake_shm *s, int rank, struct fake_msg *m, uint64_t *number, bool skip_data)
{
    size_t n = (size_t)s->map->nranks;
    size_t index =
        m->is_send ? (size_t)rank * n + (size_t)m->peer : (size_t)m->peer * n + (size_t)rank;
    struct channel *c = &s->channels[index];
    bool moved = false;
    if (!*number)
        moved = announce(c, m, number);
    if (m->state == WAITING && met(c, m, *number)) {
        m->state = m->mismatch || skip_data ? DONE : MOVING;
        moved = true;
    }
    if (m->state == MOVING) {
        while (m->done < m->bytes && move(s, c, index, m))
            moved = true;
        if (m->done == m->bytes)
            m->state = DONE;
    }
    return moved;
}

/* The first message of each pair and direction that is not done holds up those behind it. */
static bool held_up(const struct fake_msg *msgs, int i)
{
    for (int j = 0; j < i; j++)
        if (msgs[j].state != DONE && msgs[j].peer == msgs[i].peer &&
            msgs[j].is_send == msgs[i].is_send)
            return true;
    return false;
}

bool fake_shm_messages(struct fake_shm *s, int rank, struct fake_msg *msgs, int n, bool skip_data)
{
    struct meeting *bell = &s->map->message;
    uint64_t deadline = 0;
    for (int idle = 0;;) {
        unsigned seen = atomic_load(&bell->futex);
        bool moved = false, all = true;
        for (int i = 0; i < n; i++) {
            if (msgs[i].state == DONE || held_up(msgs, i)) {
                all = all && msgs[i].state == DONE;
                continue;
            }
            moved |= step(s, rank, &msgs[i], &msgs[i].number, skip_data);
            all = all && msgs[i].state == DONE;
        }
        if (moved) {
            atomic_fetch_add(&bell->futex, 1);
            if (atomic_load(&bell->sleepers))
                fake_futex_wake(&bell->futex);
            idle = 0;
        }
        if (all)
            return true;
        if (moved || ++idle < 20) {
            sched_yield();
            continue;
        }
        if (atomic_load(s->abort_flag) || atomic_load(&s->map->failed))
            return false;
        if (!deadline)
            deadline = fake_now_ns() + fake_timeout_ns();
        if (fake_now_ns() > deadline) {
            s->timed_out = true;
            return false;
        }
        atomic_fetch_add(&bell->sleepers, 1);
        fake_futex_wait(&bell->futex, seen);
        atomic_fetch_sub(&bell->sleepers, 1);
    }
}
