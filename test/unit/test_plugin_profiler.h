/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's side of the profiler interface: events of every version as NCCL fills them. */
#ifndef TEST_PLUGIN_PROFILER_H
#define TEST_PLUGIN_PROFILER_H

#include "test/unit/test_plugin_help.h"

#include "shim/base/names.h"
#include "shim/plugin/plugin.h"
#include "shim/plugin/profiler.h"

#define HASH 0x1234abcdul
#define FIRST 1
#define LAST 6

static const struct profiler_table *table_of(int version)
{
    static const struct profiler_table *const tables[] = {&ncclProfiler_v1, &ncclProfiler_v2,
                                                          &ncclProfiler_v3, &ncclProfiler_v4,
                                                          &ncclProfiler_v5, &ncclProfiler_v6};

    return tables[version - FIRST];
}

static inline void *begin(int version, int *mask, int rank)
{
    const struct profiler_table *t = table_of(version);
    void *context = NULL;
    ncclResult_t r;

    if (version < 4)
        r = t->init.v1(&context, mask);
    else if (version == 4)
        r = t->init.v4(&context, mask, "tp", HASH, 1, 2, rank, NULL);
    else
        r = t->init.v5(&context, HASH, mask, "tp", 1, 2, rank, NULL);
    CHECK_INT(r, ncclSuccess);
    return context;
}

/* ---- events as NCCL fills them -----------------------------------------------------------------
 */

union event {
    struct profiler_head head;
    struct profiler_event_v1 v1;
    struct profiler_event_v2 v2;
    struct profiler_event_v3 v3;
    struct profiler_event_v4 v4;
    struct profiler_event_v5 v5;
};

static inline union event event_of(int version, uint64_t type)
{
    union event e;

    memset(&e, 0xee, sizeof(e)); /* what is not set must not be read */
    e.head.parent = NULL;
    if (version >= 5)
        e.head.type_v5 = type;
    else
        e.head.type_v1 = (uint8_t)type;
    return e;
}

/* An all-reduce by COLLNET_DIRECT with LL128, in 7 channels of 20 warps. */
static inline union event coll(int version)
{
    union event e = event_of(version, PROFILER_COLL);

    if (version == 1)
        e.v1.coll = (struct profiler_coll_v1){.comm_hash = HASH,
                                              .func = NCCL_FUNC_ALL_REDUCE,
                                              .channels = 7,
                                              .warps = 20,
                                              .algo = 2,
                                              .proto = 1};
    else if (version == 2)
        e.v2.coll = (struct profiler_coll_v2){.comm_hash = HASH,
                                              .func = "AllReduce",
                                              .channels = 7,
                                              .warps = 20,
                                              .algo = "COLLNET_DIRECT",
                                              .proto = "LL128"};
    else if (version == 3)
        e.v3.coll = (struct profiler_coll_v3){.comm_hash = HASH,
                                              .func = "AllReduce",
                                              .channels = 7,
                                              .warps = 20,
                                              .algo = "COLLNET_DIRECT",
                                              .proto = "LL128"};
    else
        e.v4.coll = (struct profiler_coll_v4){.func = "AllReduce",
                                              .channels = 7,
                                              .warps = 20,
                                              .algo = "COLLNET_DIRECT",
                                              .proto = "LL128"};
    return e;
}

static inline void *start(int version, void *context, union event *e)
{
    void *handle = &version; /* NCCL does not clear it */

    CHECK_INT(table_of(version)->start(context, &handle, e), ncclSuccess);
    return handle;
}

static inline void stop(int version, void *handle)
{
    CHECK_INT(table_of(version)->stop(handle), ncclSuccess);
    CHECK_INT(table_of(version)->record(handle, 0, NULL), ncclSuccess);
}

#endif
