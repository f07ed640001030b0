/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are the results right? Every unit is played once with values whose sums are exact, into poisoned
 * outputs, and every element of every call is looked at. On the side of the timing, never inside.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/size.h"
#include "shim/prove/bench/bench_rank.h"
#include "shim/prove/bench/bench_values.h"

#define CHUNK (1u << 20) /* bytes that are compared at once; a multiple of every element size */
#define POISON 0xff      /* NaN in every float type, -1 or the largest integer */

/* A stretch of a buffer: whose values stand there, from which element of theirs on. */
struct stretch {
    int rank; /* -1: the reduced ones */
    uint64_t at, count;
};

static unsigned check_redop(const struct workload_step *s)
{
    /* Where nothing is reduced each rank can have all of a type's values. */
    return workload_op_reduces(s->op) ? s->redop : REDOP_MAX;
}

/* ---- before ---------------------------------------------------------------------------------- */

static int poison(struct bench_rank *r, gpuapi_ptr at, uint64_t bytes)
{
    GPUAPI_CU(r->e, fill(at, POISON, bytes, r->stream));
    return 0;
}

static int write_values(struct bench_rank *r, const struct bench_op *o, gpuapi_ptr to,
                        uint64_t count)
{
    const struct workload_step *s = &r->w.steps[o->step];
    const struct bench_member *m = &r->members[s->comm];
    uint64_t size = dtype_bytes(s->dtype), most = CHUNK / size;

    for (uint64_t done = 0; done < count; done += most) {
        uint64_t n = count - done < most ? count - done : most;

        bench_fill(r->want, s->dtype, check_redop(s), m->ranks, m->rank, o->call, done, n, r->tile);
        GPUAPI_CU(r->e, copy_in(to + done * size, r->want, n * size, r->stream));
        GPUAPI_CU(r->e, stream_sync(r->stream)); /* before the host buffer is used again */
        atomic_fetch_add(&r->slot->progress, 1);
    }
    return 0;
}

static int prepare_op(struct bench_rank *r, const struct bench_op *o)
{
    const struct workload_step *s = &r->w.steps[o->step];
    const struct bench_member *m = &r->members[s->comm];
    uint64_t size = dtype_bytes(s->dtype);
    bool gives = (s->op != OP_BROADCAST && s->op != OP_SCATTER) || m->rank == s->root;
    gpuapi_ptr send, recv;

    if (!m->comm)
        return 0;
    bench_buffers(r, o, &send, &recv);
    if (s->in_place ? poison(r, r->arena + o->send_at, workload_bytes(s, m->ranks)) < 0
                    : poison(r, recv, workload_recv_bytes(s, m->ranks)) < 0)
        return -1;
    return gives ? write_values(r, o, send, workload_send_bytes(s, m->ranks) / size) : 0;
}

/* ---- after ----------------------------------------------------------------------------------- */

static void tell_first(struct bench_rank *r, const struct bench_unit *u, const struct bench_op *o,
                       uint64_t element, const unsigned char *got, const unsigned char *want)
{
    const struct workload_step *s = &r->w.steps[o->step];
    const struct bench_member *m = &r->members[s->comm];
    char size[SIZE_TEXT_MAX];

    error_set(r->e, NULL, 0,
              "wrong result: %s %s %s %s on %s, %s, call %u of %u, rank %d of %d: element %" PRIu64
              " is %g, not %g",
              op_name(s->op), size_text(workload_bytes(s, m->ranks), size, sizeof(size)),
              dtype_name(s->dtype), workload_op_reduces(s->op) ? redop_name(s->redop) : "",
              r->w.comms[s->comm].name, u->graph ? "graph" : "eager", o->call + 1, u->count,
              m->rank, m->ranks, element, bench_decode(s->dtype, got),
              bench_decode(s->dtype, want));
}

static bool is_wrong(const struct workload_step *s, int ranks, const unsigned char *got,
                     const unsigned char *want)
{
    double expected, tolerance;

    if (!memcmp(got, want, dtype_bytes(s->dtype)))
        return false;
    expected = bench_decode(s->dtype, want);
    tolerance =
        workload_op_reduces(s->op) ? bench_value_tolerance(s->dtype, s->redop, ranks, expected) : 0;
    return !(fabs(bench_decode(s->dtype, got) - expected) <= tolerance); /* a NaN is wrong */
}

static uint64_t count_wrong(struct bench_rank *r, const struct bench_unit *u,
                            const struct bench_op *o, uint64_t first, uint64_t n)
{
    const struct workload_step *s = &r->w.steps[o->step];
    size_t size = dtype_bytes(s->dtype);
    uint64_t wrong = 0;

    if (!memcmp(r->got, r->want, n * size))
        return 0;
    for (uint64_t i = 0; i < n; i++) {
        if (!is_wrong(s, r->members[s->comm].ranks, r->got + i * size, r->want + i * size))
            continue;
        if (!wrong++ && !r->e->text[0])
            tell_first(r, u, o, first + i, r->got + i * size, r->want + i * size);
    }
    return wrong;
}

/* Compare one stretch that begins at element `first` of the receive buffer. */
static int check_stretch(struct bench_rank *r, const struct bench_unit *u, const struct bench_op *o,
                         gpuapi_ptr recv, uint64_t first, const struct stretch *x, uint64_t *wrong)
{
    const struct workload_step *s = &r->w.steps[o->step];
    const struct bench_member *m = &r->members[s->comm];
    uint64_t size = dtype_bytes(s->dtype), most = CHUNK / size;

    for (uint64_t done = 0; done < x->count; done += most) {
        uint64_t n = x->count - done < most ? x->count - done : most;

        GPUAPI_CU(r->e, copy_out(r->got, recv + (first + done) * size, n * size, r->stream));
        GPUAPI_CU(r->e, stream_sync(r->stream));
        bench_fill(r->want, s->dtype, check_redop(s), m->ranks, x->rank, o->call, x->at + done, n,
                   r->tile);
        *wrong += count_wrong(r, u, o, first + done, n);
        atomic_fetch_add(&r->slot->progress, 1);
    }
    r->checked += x->count;
    return 0;
}

/* What stretch number q of the receive buffer must hold; false when there is none. */
static bool stretch_of(const struct workload_step *s, const struct bench_member *m, int q,
                       struct stretch *x)
{
    uint64_t mine = s->count * (uint64_t)m->rank;

    *x = (struct stretch){.rank = -1, .count = s->count};
    switch (s->op) {
    case OP_ALL_REDUCE:
        return q == 0;
    case OP_REDUCE:
        return q == 0 && m->rank == s->root;
    case OP_REDUCE_SCATTER:
        x->at = mine;
        return q == 0;
    case OP_BROADCAST:
        x->rank = s->root;
        return q == 0;
    case OP_SCATTER:
        x->rank = s->root;
        x->at = mine;
        return q == 0;
    case OP_GATHER:
        x->rank = q;
        return q < m->ranks && m->rank == s->root;
    case OP_ALL_GATHER:
        x->rank = q;
        return q < m->ranks;
    default: /* all_to_all */
        x->rank = q;
        x->at = mine;
        return q < m->ranks;
    }
}

static int check_op(struct bench_rank *r, const struct bench_unit *u, const struct bench_op *o,
                    uint64_t *wrong)
{
    const struct workload_step *s = &r->w.steps[o->step];
    const struct bench_member *m = &r->members[s->comm];
    gpuapi_ptr send, recv;
    struct stretch x;

    if (!m->comm)
        return 0;
    bench_buffers(r, o, &send, &recv);
    for (int q = 0; stretch_of(s, m, q, &x); q++)
        if (check_stretch(r, u, o, recv, s->count * (uint64_t)q, &x, wrong) < 0)
            return -1;
    return 0;
}

/* ---- a unit ---------------------------------------------------------------------------------- */

static int check_unit(struct bench_rank *r, uint32_t unit, uint64_t *wrong)
{
    const struct bench_unit *u = &r->plan.units[unit];

    bench_rank_at(r, "checking the results of %s of %u calls (%s)",
                  u->graph ? "a graph" : "a stretch", u->calls,
                  op_name(r->w.steps[r->plan.ops[u->first].step].op));
    for (uint32_t i = 0; i < u->count; i++)
        if (prepare_op(r, &r->plan.ops[u->first + i]) < 0)
            return -1;
    if (bench_sync(r) < 0 || bench_meet_barrier(&r->meet, r->e) < 0)
        return -1;
    if (bench_play_unit(r, unit) < 0 || bench_sync(r) < 0)
        return -1;
    for (uint32_t i = 0; i < u->count; i++)
        if (check_op(r, u, &r->plan.ops[u->first + i], wrong) < 0)
            return -1;
    return bench_meet_barrier(&r->meet, r->e);
}

int bench_check_all(struct bench_rank *r)
{
    for (uint32_t i = 0; i < r->plan.row_count; i++)
        if (check_unit(r, r->plan.rows[i].unit, &r->wrong[i]) < 0)
            return -1;
    for (uint32_t i = 0; i < r->plan.turn_count; i++)
        if (check_unit(r, r->plan.turns[i].unit, &r->wrong[r->plan.row_count]) < 0)
            return -1;
    return 0;
}
