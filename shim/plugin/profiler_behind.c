/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's own profiler, which NCCL would have loaded without us. It gets what it asked for and
 * no more, in the layout of its own version, by the same conversions as NCCL's own
 * (src/plugin/profiler).
 */
#include <pthread.h>

#include "shim/plugin/behind.h"
#include "shim/plugin/plugin.h"
#include "shim/plugin/profiler.h"

static struct profiler_behind bound[PROFILER_VERSIONS + 1];
static pthread_mutex_t binding = PTHREAD_MUTEX_INITIALIZER; /* in NCCL's init alone */

/* Layouts convert from v5 and v6 down to v4; what is older is used by NCCL of its own time only. */
static int oldest_for(int version)
{
    return version >= 4 ? 4 : version;
}

static void look(struct profiler_behind *b, int version)
{
    int found = 0;

    b->table = behind_table(BEHIND_PROFILER, "ncclProfiler", version, oldest_for(version), &found);
    b->version = b->table ? found : 0;
    b->for_version = version;
    if (!b->table && shim_log() &&
        behind_table(BEHIND_PROFILER, "ncclProfiler", version, 1, &found))
        log_warn(shim_log(), -1,
                 "your profiler plugin is not used: its interface is version %d, this NCCL has %d, "
                 "and the shim translates to version %d at the lowest; NCCLSHIM_LOG=off leaves the "
                 "profiler to your plugin alone",
                 found, version, oldest_for(version));
}

struct profiler_behind *profiler_behind_bind(int version)
{
    struct profiler_behind *b = &bound[version];

    pthread_mutex_lock(&binding);
    if (!b->for_version)
        look(b, version);
    pthread_mutex_unlock(&binding);
    return b->table ? b : NULL;
}

bool profiler_behind_init(struct profiler_behind *b, void **context, const struct profiler_facts *f)
{
    int *mask = (int *)&b->mask;
    ncclResult_t r;

    if (b->version >= 5)
        r = b->table->init.v5(context, f->hash, mask, f->name, f->nodes, f->ranks, f->rank, f->log);
    else if (b->version == 4)
        r = b->table->init.v4(context, mask, f->name, f->hash, f->nodes, f->ranks, f->rank, f->log);
    else
        r = b->table->init.v1(context, mask);
    return r == ncclSuccess;
}

/* What this version of the interface has events for. */
static int has_events(int version)
{
    return version >= 6   ? PROFILER_V6_EVENTS
           : version == 5 ? PROFILER_V5_EVENTS
                          : PROFILER_V4_EVENTS;
}

int profiler_behind_mask(const struct profiler_behind *b)
{
    return atomic_load_explicit(&b->mask, memory_order_relaxed) & has_events(b->version);
}

/* The bits that make NCCL send events of a kind: a child's bit asks for its parents as well. */
static int bits_that_ask_for(uint64_t type)
{
    const int below = PROFILER_PROXY_OP | PROFILER_PROXY_STEP | PROFILER_NET_PLUGIN;
    const int work = below | PROFILER_KERNEL_CH;
    const int ce = PROFILER_CE_COLL | PROFILER_CE_SYNC | PROFILER_CE_BATCH;

    switch (type) {
    case PROFILER_GROUP:
        return work | PROFILER_GROUP | PROFILER_COLL | PROFILER_P2P;
    case PROFILER_COLL:
        return work | PROFILER_COLL;
    case PROFILER_P2P:
        return work | PROFILER_P2P;
    case PROFILER_PROXY_OP:
        return below;
    case PROFILER_PROXY_STEP:
        return PROFILER_PROXY_STEP | PROFILER_NET_PLUGIN;
    case PROFILER_GROUP_API:
        return PROFILER_V6_EVENTS & ~PROFILER_PROXY_CTRL;
    case PROFILER_COLL_API:
        return work | ce | PROFILER_COLL | PROFILER_COLL_API;
    case PROFILER_P2P_API:
        return work | PROFILER_P2P | PROFILER_P2P_API;
    case PROFILER_CE_COLL:
        return ce;
    default:
        return (int)type;
    }
}

static ncclResult_t start_as_v4(const struct profiler_table *t, void *context, void **handle,
                                uint64_t type, const struct profiler_event_v5 *e)
{
    struct profiler_event_v4 old = {
        .head = {.type_v1 = (uint8_t)type, .parent = e->head.parent, .rank = e->head.rank}};

    if (type == PROFILER_COLL) {
        old.coll = e->coll.v4;
        old.head.parent = e->coll.parent_group;
    } else if (type == PROFILER_P2P) {
        old.p2p = (struct profiler_p2p_v4){e->p2p.func,  e->p2p.buff, e->p2p.datatype,
                                           e->p2p.count, e->p2p.peer, e->p2p.channels};
        old.head.parent = e->p2p.parent_group;
    } else {
        __builtin_memcpy(old.rest, e->rest, sizeof(old.rest)); /* the same in both */
    }
    return t->start(context, handle, &old);
}

/* Its handles have gone through the process's NCCL; what is not its own must not reach it. */
static bool from_us(int version, const void *event)
{
    return version < 5 && ((const struct profiler_head *)event)->parent == &profiler_group_token;
}

void profiler_behind_start(struct profiler_context *c, void **handle, uint64_t type, void *event)
{
    const struct profiler_behind *b = c->behind;

    *handle = NULL;
    if (!(type & (uint64_t)has_events(b->version)) ||
        !(profiler_behind_mask(b) & bits_that_ask_for(type)) || from_us(b->for_version, event))
        return;
    if (b->version == 4 && b->for_version > 4)
        (void)start_as_v4(b->table, c->behind_context, handle, type, event);
    else
        (void)b->table->start(c->behind_context, handle, event);
}

ncclResult_t profiler_behind_stop(int version, void *handle)
{
    const struct profiler_behind *b = &bound[version];

    return b->table ? b->table->stop(handle) : ncclSuccess;
}

ncclResult_t profiler_behind_record(int version, void *handle, int state, void *args)
{
    const struct profiler_behind *b = &bound[version];
    int end = b->version >= 6   ? state + 1
              : b->version == 5 ? PROFILER_STATE_FIRST_CE
                                : PROFILER_STATE_FIRST_API;

    if (!b->table || state >= end)
        return ncclSuccess;
    return b->table->record(handle, state, args);
}
