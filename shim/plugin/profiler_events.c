/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL's events say: its choice for a call, and that there was a call.
 *
 * NCCL and the wrappers do not count the same things: NCCL splits an all-to-all into sends and
 * receives, drops calls without elements, tells nothing of one-rank communicators. So the two sums
 * are not compared. Instead each of NCCL's API events is looked at where it happens, which is
 * inside the program's call on the program's own thread (also in groups and for non-blocking
 * communicators): with a wrapper around it, the wrapper counts the call; without one, nobody does,
 * and it counts as missed.
 *
 * Before v5 there are no API events. Coll and P2p come at the launch, which may be on another
 * thread (non-blocking) or in a driver's callback at each replay (a graph with network traffic):
 * that no wrapper is around them proves nothing. There they count only for communicators whose
 * birth did not come through us either.
 */
#include "shim/plugin/profiler.h"

#include <string.h>

#include "shim/preload/group.h"

struct seen {
    int op; /* NCCLSHIM_OPS number; -1 = none of them */
    struct choice choice;
};

static const int op_of_func[] = {OP_BROADCAST,  OP_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER,
                                 OP_ALL_REDUCE, -1,        OP_SEND,       OP_RECV};

static uint8_t small(int number)
{
    return number < 0 ? NCCLSHIM_NO_CHOICE : (uint8_t)number;
}

/*
 * NCCL's names are literals (ncclFuncToString and its like): as long as the same three pointers come,
 * on this thread, they mean what they meant last time.
 */
static struct seen by_name(const char *func, const char *algo, const char *proto, uint8_t channels,
                           uint8_t warps)
{
    static __thread struct {
        const char *func, *algo, *proto;
        struct seen seen;
    } last __attribute__((tls_model("initial-exec")));

    if (last.func != func || last.algo != algo || last.proto != proto || !func) {
        last.func = func;
        last.algo = algo;
        last.proto = proto;
        last.seen.op = func ? op_parse(func) : -1;
        last.seen.choice.algo = small(algo ? algo_parse(algo) : -1);
        last.seen.choice.proto = small(proto ? proto_parse(proto) : -1);
    }
    last.seen.choice.channels = channels;
    last.seen.choice.warps = warps;
    return last.seen;
}

static struct seen by_number(const struct profiler_coll_v1 *e)
{
    bool known = e->func < sizeof(op_of_func) / sizeof(op_of_func[0]);

    return (struct seen){known ? op_of_func[e->func] : -1,
                         {e->algo < ALGO_COUNT ? e->algo : NCCLSHIM_NO_CHOICE,
                          e->proto < PROTO_COUNT ? e->proto : NCCLSHIM_NO_CHOICE, e->channels,
                          e->warps}};
}

static struct seen see(int version, const void *event)
{
    const struct profiler_event_v2 *e2 = event;
    const struct profiler_event_v3 *e3 = event;
    const struct profiler_event_v4 *e4 = event; /* v5 and v6 have it at the same place */

    switch (version) {
    case 1:
        return by_number(&((const struct profiler_event_v1 *)event)->coll);
    case 2:
        return by_name(e2->coll.func, e2->coll.algo, e2->coll.proto, e2->coll.channels,
                       e2->coll.warps);
    case 3:
        return by_name(e3->coll.func, e3->coll.algo, e3->coll.proto, e3->coll.channels,
                       e3->coll.warps);
    default:
        return by_name(e4->coll.func, e4->coll.algo, e4->coll.proto, e4->coll.channels,
                       e4->coll.warps);
    }
}

static uint64_t bytes_by_name(size_t count, const char *datatype)
{
    int type = datatype && !strncmp(datatype, "nccl", 4) ? dtype_parse(datatype + 4) : -1;

    return type < 0 ? 0 : count * dtype_bytes((unsigned)type);
}

/* Of a Coll event; 0 = not known. NCCL makes some calls ones of bytes, so the type is its own. */
static uint64_t bytes_of(int version, const void *event)
{
    const struct profiler_coll_v1 *e1 = &((const struct profiler_event_v1 *)event)->coll;
    const struct profiler_coll_v2 *e2 = &((const struct profiler_event_v2 *)event)->coll;
    const struct profiler_coll_v3 *e3 = &((const struct profiler_event_v3 *)event)->coll;
    const struct profiler_coll_v4 *e4 = &((const struct profiler_event_v4 *)event)->coll;

    switch (version) {
    case 1:
        return e1->count * dtype_bytes(e1->datatype);
    case 2:
        return bytes_by_name(e2->count, e2->datatype);
    case 3:
        return bytes_by_name(e3->count, e3->datatype);
    default:
        return bytes_by_name(e4->count, e4->datatype);
    }
}

/* The entry, unless the place of its communicator went to another one or a fork cut the log off. */
static struct ncclshim_comm *entry_of(const struct profiler_context *c)
{
    return c->comm && c->comm->entry == c->entry ? c->entry : NULL;
}

static void most_channels(struct ncclshim_comm *e, int32_t channels)
{
    _Atomic int32_t *most = (_Atomic int32_t *)&e->channels;
    int32_t have = atomic_load_explicit(most, memory_order_relaxed);

    while (have < channels && !atomic_compare_exchange_weak(most, &have, channels))
        ;
}

static void note_choice(int version, struct profiler_context *c, struct ncclshim_comm *e,
                        const void *event)
{
    struct seen seen = see(version, event), *s = &seen;

    if (s->choice.channels)
        most_channels(e, s->choice.channels);
    /* Elsewhere it is not about the call under way on this thread: a replay, or NCCL's own thread.
     */
    if (!shim_inside)
        return;
    c->comm->choice = s->choice;
    if (s->op >= 0 && group_is_of(c->comm))
        group_note_choice(c->comm, s->op, bytes_of(version, event), &s->choice);
}

static void count_missed(int version, struct ncclshim_comm *e)
{
    if (shim_inside || (version < 5 && !(e->flags & NCCLSHIM_COMM_ADOPTED)))
        return;
    atomic_fetch_add_explicit((_Atomic uint64_t *)&e->missed_calls, 1, memory_order_relaxed);
}

void profiler_observe(int version, struct profiler_context *c, uint64_t type, const void *event)
{
    const uint64_t calls =
        version >= 5 ? PROFILER_COLL_API | PROFILER_P2P_API : PROFILER_COLL | PROFILER_P2P;
    struct ncclshim_comm *e;

    if (!(type & (calls | PROFILER_COLL)) || !(e = entry_of(c)))
        return;
    if (type & calls)
        count_missed(version, e);
    if (type == PROFILER_COLL)
        note_choice(version, c, e, event);
    if (version < 4 && (type & calls) && !e->hash) /* v1 to v3 tell it here, at offset 32 */
        e->hash = ((const struct profiler_event_v3 *)event)->coll.comm_hash;
}
