/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's profiler plugin: what NCCL chose for each call, and calls that no wrapper saw.
 *
 * Only Coll, CollApi and P2pApi events are asked for (before v5, which has no API events, Coll and
 * P2p). They are host calls and nothing else: no event on the GPU, no proxy operation, no host node
 * in a captured graph. In all of NCCL 2.23 to 2.30.7 it is the KernelCh bit alone that adds a proxy
 * operation per channel, and with it a host node to each captured plan, and that makes kernels
 * write times (addProfilerProxyOpIfNeeded, ncclProfilerNeedsProxy, devWork.profilerEnabled; before
 * 2.26 nothing did). The shim never sets that bit; a plugin behind ours may.
 */
#ifndef NCCLSHIM_PLUGIN_PROFILER_H
#define NCCLSHIM_PLUGIN_PROFILER_H

#include "shim/plugin/abi_profiler.h"
#include "shim/preload/comm.h"

#define PROFILER_VERSIONS 6
#define PROFILER_OUR_MASK_V5 (PROFILER_COLL | PROFILER_COLL_API | PROFILER_P2P_API)
#define PROFILER_OUR_MASK_V1 (PROFILER_COLL | PROFILER_P2P)

/* The user's profiler behind ours, as NCCL of one interface version would have loaded it. */
struct profiler_behind {
    int version;     /* of its table; 0 = none */
    int for_version; /* of the table that NCCL uses with us */
    const struct profiler_table *table;
    _Atomic int mask; /* what it asked for; it may keep the pointer and change it at any time */
};

/* One communicator, from NCCL's init to its finalize. From a fixed pool: late events do no harm. */
struct profiler_context {
    _Atomic int taken;
    struct comm *comm;              /* NULL: NCCL did not say which it is */
    struct ncclshim_comm *entry;    /* comm's entry when it was learnt */
    int *mask;                      /* NCCL's, one for the process */
    struct profiler_behind *behind; /* NULL: nothing to hand on */
    void *behind_context;
};

/* What NCCL says at init; v1 to v3 say nothing (ranks = -1). */
struct profiler_facts {
    uint64_t hash;
    const char *name;
    int nodes, ranks, rank;
    nccl_logger_fn log;
};

/* profiler.c: births and deaths. */
ncclResult_t profiler_init(int version, void **context, int *mask, const struct profiler_facts *f);
ncclResult_t profiler_finalize(struct profiler_context *c);

/* profiler_tables.c */
ncclResult_t profiler_start(int version, struct profiler_context *c, void **handle, void *event);

/* profiler_events.c: what an event says to us. */
void profiler_observe(int version, struct profiler_context *c, uint64_t type, const void *event);
/* The communicator of this thread's latest init: for the tuner, whose init follows on it. */
struct comm *profiler_comm_here(uint64_t hash, int ranks);

/* profiler_behind.c. bind: NULL = no plugin behind; said once in the log if it is too old. */
struct profiler_behind *profiler_behind_bind(int version);
bool profiler_behind_init(struct profiler_behind *b, void **context,
                          const struct profiler_facts *f);
/* The bits that it has asked for and can be given. */
int profiler_behind_mask(const struct profiler_behind *b);
/* Hand an event on, converted; *handle is NULL when it was not taken. */
void profiler_behind_start(struct profiler_context *c, void **handle, uint64_t type, void *event);
ncclResult_t profiler_behind_stop(int version, void *handle);
ncclResult_t profiler_behind_record(int version, void *handle, int state, void *args);

/* Handed out for Group events that nobody else took (see profiler_start). */
extern char profiler_group_token;

#endif
