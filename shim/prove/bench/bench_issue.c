/* SPDX-License-Identifier: Apache-2.0 */
/* Putting calls into the stream, eagerly or into a captured graph. */
#include "shim/prove/bench/bench_rank.h"

/* ---- one call -------------------------------------------------------------------------------- */

void bench_buffers(const struct bench_rank *r, const struct bench_op *o, gpuapi_ptr *send,
                   gpuapi_ptr *recv)
{
    const struct workload_step *s = &r->w.steps[o->step];
    const struct bench_member *m = &r->members[s->comm];
    uint64_t mine = s->count * dtype_bytes(s->dtype) * (uint64_t)m->rank;

    *send = r->arena + o->send_at;
    *recv = r->arena + o->recv_at;
    if (!s->in_place)
        return;
    /* What "in place" means is NCCL's: the rank's own part of the whole. */
    if (s->op == OP_ALL_GATHER || (s->op == OP_GATHER && m->rank == s->root))
        *send += mine;
    if (s->op == OP_REDUCE_SCATTER || (s->op == OP_SCATTER && m->rank == s->root))
        *recv += mine;
}

/* Before 2.28 these three were built from sends and receives by everyone who needed them. */
static int by_messages(const struct bench_rank *r, const struct workload_step *s, const void *send,
                       void *recv)
{
    const struct bench_member *m = &r->members[s->comm];
    size_t part = s->count * dtype_bytes(s->dtype);
    bool sends_all = s->op == OP_ALL_TO_ALL || (s->op == OP_SCATTER && m->rank == s->root);
    bool receives_all = s->op == OP_ALL_TO_ALL || (s->op == OP_GATHER && m->rank == s->root);
    int rc = gpuapi_nc.group_start();

    for (int q = 0; q < m->ranks && !rc; q++) {
        if (sends_all || (s->op == OP_GATHER && q == s->root))
            rc = gpuapi_nc.send((const char *)send + (sends_all ? (size_t)q * part : 0), s->count,
                                s->dtype, q, m->comm, r->stream);
        if (!rc && (receives_all || (s->op == OP_SCATTER && q == s->root)))
            rc = gpuapi_nc.recv((char *)recv + (receives_all ? (size_t)q * part : 0), s->count,
                                s->dtype, q, m->comm, r->stream);
    }
    return rc ? rc : gpuapi_nc.group_end();
}

static int call_nccl(const struct bench_rank *r, const struct workload_step *s, const void *send,
                     void *recv)
{
    gpuapi_comm comm = r->members[s->comm].comm;

    switch (s->op) {
    case OP_ALL_REDUCE:
        return gpuapi_nc.all_reduce(send, recv, s->count, s->dtype, s->redop, comm, r->stream);
    case OP_ALL_GATHER:
        return gpuapi_nc.all_gather(send, recv, s->count, s->dtype, comm, r->stream);
    case OP_REDUCE_SCATTER:
        return gpuapi_nc.reduce_scatter(send, recv, s->count, s->dtype, s->redop, comm, r->stream);
    case OP_BROADCAST:
        return gpuapi_nc.broadcast(send, recv, s->count, s->dtype, s->root, comm, r->stream);
    case OP_REDUCE:
        return gpuapi_nc.reduce(send, recv, s->count, s->dtype, s->redop, s->root, comm, r->stream);
    case OP_ALL_TO_ALL:
        return gpuapi_nc.all_to_all
                   ? gpuapi_nc.all_to_all(send, recv, s->count, s->dtype, comm, r->stream)
                   : by_messages(r, s, send, recv);
    case OP_GATHER:
        return gpuapi_nc.gather
                   ? gpuapi_nc.gather(send, recv, s->count, s->dtype, s->root, comm, r->stream)
                   : by_messages(r, s, send, recv);
    default:
        return gpuapi_nc.scatter
                   ? gpuapi_nc.scatter(send, recv, s->count, s->dtype, s->root, comm, r->stream)
                   : by_messages(r, s, send, recv);
    }
}

int bench_spin(struct bench_rank *r, uint64_t ns)
{
    void *params[] = {&ns};

    GPUAPI_CU(r->e, launch(r->spin, 1, 1, 1, 1, 1, 1, 0, r->stream, params, NULL));
    return 0;
}

int bench_issue_op(struct bench_rank *r, const struct bench_op *o)
{
    const struct workload_step *s = &r->w.steps[o->step];
    bool mine = r->members[s->comm].comm != NULL;
    gpuapi_ptr send, recv;
    int rc;

    /* Inside an ncclGroup nothing of NCCL's starts before its end, so that the gap stands before.
     */
    if (mine && o->gap_ns && bench_spin(r, o->gap_ns) < 0)
        return -1;
    if (o->opens)
        GPUAPI_NC(r->e, group_start());
    if (mine) {
        bench_buffers(r, o, &send, &recv);
        rc = call_nccl(r, s, (const void *)(uintptr_t)send, (void *)(uintptr_t)recv);
        if (rc)
            return gpuapi_nccl_failed(r->e, op_name(s->op), rc);
    }
    if (o->closes)
        GPUAPI_NC(r->e, group_end());
    return 0;
}

/* ---- a unit ---------------------------------------------------------------------------------- */

int bench_issue_unit(struct bench_rank *r, const struct bench_unit *u)
{
    for (uint32_t i = 0; i < u->count; i++)
        if (bench_issue_op(r, &r->plan.ops[u->first + i]) < 0)
            return -1;
    return 0;
}

int bench_play_unit(struct bench_rank *r, uint32_t unit)
{
    const struct bench_unit *u = &r->plan.units[unit];

    if (!u->graph)
        return bench_issue_unit(r, u);
    GPUAPI_CU(r->e, graph_launch(r->execs[unit], r->stream));
    return 0;
}

int bench_sync(struct bench_rank *r)
{
    int later = 0;

    GPUAPI_CU(r->e, stream_sync(r->stream));
    for (uint32_t c = 0; c < r->w.comm_count; c++) {
        if (!r->members[c].comm)
            continue;
        GPUAPI_NC(r->e, comm_error(r->members[c].comm, &later));
        if (later && later != GPUAPI_NCCL_IN_PROGRESS)
            return gpuapi_nccl_failed(r->e, r->slot->where, later);
    }
    atomic_fetch_add(&r->slot->progress, 1);
    return 0;
}

/* ---- capture --------------------------------------------------------------------------------- */

/*
 * Relaxed: NCCL may allocate and connect at its first call of a kind, which the other modes would
 * forbid to every thread, or to this one.
 */
static int capture(struct bench_rank *r, uint32_t unit)
{
    gpuapi_graph graph = NULL;

    GPUAPI_CU(r->e, capture_begin(r->stream, GPUAPI_CAPTURE_RELAXED));
    if (bench_issue_unit(r, &r->plan.units[unit]) < 0)
        return -1;
    GPUAPI_CU(r->e, capture_end(r->stream, &graph));
    GPUAPI_CU(r->e, graph_instantiate(&r->execs[unit], graph, 0));
    /* Uploaded now, so that the first launch has nothing left to allocate. */
    GPUAPI_CU(r->e, graph_upload(r->execs[unit], r->stream));
    GPUAPI_CU(r->e, stream_sync(r->stream));
    GPUAPI_CU(r->e, graph_destroy(graph));
    return 0;
}

int bench_capture_all(struct bench_rank *r)
{
    for (uint32_t i = 0; i < r->plan.unit_count; i++) {
        if (!r->plan.units[i].graph)
            continue;
        bench_rank_at(r, "capturing graph %u of %u calls", i + 1, r->plan.units[i].calls);
        if (capture(r, i) < 0)
            return -1;
    }
    return 0;
}
