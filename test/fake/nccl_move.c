/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of collectives, through the shared file, a piece at a time. Each rank stages its input,
 * all meet, and each takes what it needs; of a larger all-reduce each rank sums one part for all.
 */
#include "test/fake/nccl_exec.h"

#include <string.h>

/* Up to here every rank sums everything itself: one meeting less. */
#define SMALL_BYTES (16 << 10)
#define MAX_RANKS 1024

/* PreMulSum's factor is each rank's own and belongs to its own input. */
static void stage(char *to, const char *from, size_t bytes, const struct plan_op *op)
{
    if (!op->op.premul) {
        memcpy(to, from, bytes);
        return;
    }
    const void *src[] = {from};
    fake_reduce(to, src, 1, bytes / fake_type_size(op->type), op->type, &op->op);
}

static void sum(ncclComm_t comm, char *to, size_t offset, size_t bytes, const struct plan_op *op)
{
    const void *src[MAX_RANKS];
    struct fake_redop plain = op->op;
    plain.premul = false;
    for (int r = 0; r < comm->nranks; r++)
        src[r] = fake_shm_met_stage(comm->shm, r) + offset;
    fake_reduce(to, src, comm->nranks, bytes / fake_type_size(op->type), op->type, &plain);
}

/* After the first meeting: has everyone come for the same thing? */
static enum moved compare(ncclComm_t comm, uint64_t *latest)
{
    const struct fake_head *first = fake_shm_met_head(comm->shm, 0);
    enum moved verdict = MOVED;
    for (int r = 0; r < comm->nranks; r++) {
        const struct fake_head *h = fake_shm_met_head(comm->shm, r);
        if (h->arrival_ns > *latest)
            *latest = h->arrival_ns;
        if (h->key != first->key || h->count != first->count)
            verdict = MISMATCH;
        else if (h->choice != first->choice && verdict == MOVED)
            verdict = OTHER_CHOICE;
    }
    return verdict;
}

static void complain(ncclComm_t comm, const struct plan_op *op, enum moved verdict)
{
    const struct fake_head *h = fake_shm_met_head(comm->shm, 0);
    if (verdict == MISMATCH)
        fake_complain("rank %d: %s of %zu elements, number %llu of its communicator, meets another "
                      "call on another "
                      "rank (rank 0: %llu elements)",
                      comm->rank, fake_func_name(op->func), op->count,
                      (unsigned long long)comm->exec_seq, (unsigned long long)h->count);
    else
        fake_complain("rank %d: %s number %llu uses %s/%s with %d channels, rank 0 %s/%s with %d; "
                      "NCCL would hang or "
                      "give wrong data",
                      comm->rank, fake_func_name(op->func), (unsigned long long)comm->exec_seq,
                      fake_algo_name((int)(op->choice & 255)),
                      fake_proto_name((int)(op->choice >> 8 & 255)), (int)(op->choice >> 16),
                      fake_algo_name((int)(h->choice & 255)),
                      fake_proto_name((int)(h->choice >> 8 & 255)), (int)(h->choice >> 16));
}

/* What this rank puts down of the piece [at, at + n) of a part. */
static void put_down(ncclComm_t comm, const struct plan_op *op, size_t at, size_t n, size_t room)
{
    char *to = fake_shm_stage(comm->shm, comm->rank);
    const char *from = op->send;
    if (op->func == ncclFuncReduceScatter) {
        for (int r = 0; r < comm->nranks; r++)
            stage(to + (size_t)r * room, from + (size_t)r * op->bytes + at, n, op);
    } else if (op->func != ncclFuncBroadcast || comm->rank == op->root) {
        stage(to, from + at, n, op);
    }
}

/* What it takes after the meeting. */
static bool take(ncclComm_t comm, const struct plan_op *op, size_t at, size_t n, size_t room)
{
    char *to = (char *)op->recv + at;
    size_t es = fake_type_size(op->type);
    switch (op->func) {
    case ncclFuncAllReduce:
        if (n * (size_t)comm->nranks <= SMALL_BYTES || comm->nranks == 2) {
            sum(comm, to, 0, n, op);
        } else {
            size_t per = (n / es + (size_t)comm->nranks - 1) / (size_t)comm->nranks * es;
            size_t lo = per * (size_t)comm->rank < n ? per * (size_t)comm->rank : n,
                   hi = lo + per < n ? lo + per : n;
            if (hi > lo)
                sum(comm, fake_shm_result(comm->shm) + lo, lo, hi - lo, op);
            if (!fake_shm_meet(comm->shm))
                return false;
            memcpy(to, fake_shm_met_result(comm->shm), n);
        }
        break;
    case ncclFuncReduce:
        if (comm->rank == op->root)
            sum(comm, to, 0, n, op);
        break;
    case ncclFuncReduceScatter:
        sum(comm, to, (size_t)comm->rank * room, n, op);
        break;
    case ncclFuncBroadcast:
        memcpy(to, fake_shm_met_stage(comm->shm, op->root), n);
        break;
    default: /* all-gather */
        for (int r = 0; r < comm->nranks; r++)
            memcpy(to + (size_t)r * op->bytes, fake_shm_met_stage(comm->shm, r), n);
    }
    return true;
}

enum moved fake_move_coll(ncclComm_t comm, const struct plan_op *op, uint64_t arrival_ns,
                          bool skip_data, uint64_t *latest)
{
    size_t room = fake_shm_stage_bytes(comm->shm);
    if (op->func == ncclFuncReduceScatter)
        room = room / (size_t)comm->nranks & ~(size_t)63;
    *fake_shm_head(comm->shm, comm->rank) = (struct fake_head){
        .arrival_ns = arrival_ns, .count = op->count, .key = op->key, .choice = op->choice};
    for (size_t at = 0; at < op->bytes; at += room) {
        size_t n = op->bytes - at < room ? op->bytes - at : room;
        if (!skip_data)
            put_down(comm, op, at, n, room);
        if (!fake_shm_meet(comm->shm))
            return BROKEN;
        if (at == 0) {
            enum moved verdict = compare(comm, latest);
            if (verdict != MOVED) {
                complain(comm, op, verdict);
                return verdict;
            }
        }
        if (skip_data)
            break;
        if (!take(comm, op, at, n, room))
            return BROKEN;
    }
    if (op->wrong && !skip_data && (op->func != ncclFuncReduce || comm->rank == op->root))
        *(unsigned char *)op->recv ^= 0x11; /* a small error, such as a lost bit would make */
    return MOVED;
}

void fake_move_alone(const struct plan_op *op)
{
    const void *src[] = {op->send};
    if (op->op.premul)
        fake_reduce(op->recv, src, 1, op->count, op->type, &op->op);
    else if (op->recv != op->send)
        memmove(op->recv, op->send, op->bytes);
}
