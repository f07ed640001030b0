/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators as NCCL's profiler interface tells of them. */
#include "shim/plugin/profiler.h"

static struct profiler_context pool[COMM_LIVE_MAX];
static _Atomic uint32_t pool_hint;

static __thread struct {
    uint64_t hash;
    int ranks;
    struct comm *comm;
} here __attribute__((tls_model("initial-exec")));

static struct profiler_context *take_context(void)
{
    uint32_t from = atomic_load_explicit(&pool_hint, memory_order_relaxed);

    for (uint32_t n = 0; n < COMM_LIVE_MAX; n++) {
        struct profiler_context *c = &pool[(from + n) % COMM_LIVE_MAX];
        int free = 0;
        if (!atomic_compare_exchange_strong(&c->taken, &free, 1))
            continue;
        atomic_store_explicit(&pool_hint, from + n + 1, memory_order_relaxed);
        c->comm = NULL;
        c->entry = NULL;
        c->behind = NULL;
        c->behind_context = NULL;
        return c;
    }
    return NULL;
}

/* May a communicator of ours be the one that is in its init on a thread we do not know? */
static bool any_on_its_way(void)
{
    struct log_writer *log = shim_log_if_open();

    for (uint32_t i = 0; log && i < log->comm_cap; i++) {
        struct ncclshim_comm *e = &log->comms[i];
        uint32_t state =
            atomic_load_explicit((_Atomic uint32_t *)&log->comms[i].state, memory_order_acquire);
        uint32_t flags = atomic_load_explicit((_Atomic uint32_t *)&e->flags, memory_order_relaxed);
        if (state == NCCLSHIM_COMM_STARTING ||
            (state == NCCLSHIM_COMM_READY && (flags & NCCLSHIM_COMM_NONBLOCKING) &&
             !atomic_load_explicit((_Atomic uint64_t *)&e->hash, memory_order_relaxed)))
            return true;
    }
    return false;
}

/*
 * v1 to v3 do not say which communicator it is: it is the one being born on this thread. Without
 * one, and with none on its way elsewhere, its birth did not come through us.
 */
static struct comm *comm_unnamed(void)
{
    if (birth_current)
        return birth_current->comm;
    return any_on_its_way() ? NULL : comm_for_plugin(0, NULL, -1, -1, -1);
}

static void learn_comm(struct profiler_context *c, int version, const struct profiler_facts *f)
{
    c->comm = version >= 4 ? comm_for_plugin(f->hash, f->name, f->nodes, f->ranks, f->rank)
                           : comm_unnamed();
    c->entry = c->comm ? c->comm->entry : NULL;
    here.hash = f->hash;
    here.ranks = f->ranks;
    here.comm = c->comm;
    /* From v5 on NCCL tells of every call at the call; before, only of the launch. There a call
     * that no wrapper saw is known for one only where no wrapper saw the birth (see
     * profiler_events.c). */
    if (c->entry && (version >= 5 || (c->entry->flags & NCCLSHIM_COMM_ADOPTED)))
        atomic_fetch_or_explicit((_Atomic uint32_t *)&c->entry->flags, NCCLSHIM_COMM_COUNTED,
                                 memory_order_relaxed);
}

struct comm *profiler_comm_here(uint64_t hash, int ranks)
{
    if (!here.comm || (hash && here.hash != hash) || (here.ranks > 0 && here.ranks != ranks))
        return NULL;
    return here.comm;
}

ncclResult_t profiler_init(int version, void **context, int *mask, const struct profiler_facts *f)
{
    int ours = version >= 5 ? PROFILER_OUR_MASK_V5 : PROFILER_OUR_MASK_V1;
    struct profiler_context *c = take_context();

    *context = c;
    if (!c)
        return ncclSuccess; /* more communicators than we follow: passed through unseen */
    c->mask = mask;
    learn_comm(c, version, f);
    c->behind = profiler_behind_bind(version);
    if (c->behind && !profiler_behind_init(c->behind, &c->behind_context, f))
        c->behind = NULL; /* NCCL would go on without it as well */
    if (c->behind)
        ours |= profiler_behind_mask(c->behind);
    if (mask) /* one for all communicators: add, never take away */
        __atomic_fetch_or(mask, ours, __ATOMIC_RELAXED);
    return ncclSuccess;
}

ncclResult_t profiler_finalize(struct profiler_context *c)
{
    ncclResult_t r = ncclSuccess;

    if (!c)
        return r;
    /* NCCL leaves a NULL context out from 2.28 on. */
    if (c->behind && (c->behind_context || c->behind->for_version < 5))
        r = c->behind->table->finalize(c->behind_context);
    atomic_store_explicit(&c->taken, 0, memory_order_release);
    return r;
}
