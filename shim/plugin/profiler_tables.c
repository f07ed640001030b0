/* SPDX-License-Identifier: Apache-2.0 */
/* The six tables. Beside init they differ in the layout of events alone. */
#include "shim/plugin/plugin.h"
#include "shim/plugin/profiler.h"

char profiler_group_token;

/* The user's plugin may have changed its mask since: our bits stay, its own follow. */
static void follow_mask(const struct profiler_context *c, int version)
{
    int ours = version >= 5 ? PROFILER_OUR_MASK_V5 : PROFILER_OUR_MASK_V1;
    int wanted = ours | profiler_behind_mask(c->behind);

    if (c->mask && __atomic_load_n(c->mask, __ATOMIC_RELAXED) != wanted)
        __atomic_store_n(c->mask, wanted, __ATOMIC_RELAXED);
}

ncclResult_t profiler_start(int version, struct profiler_context *c, void **handle, void *event)
{
    const struct profiler_head *head = event;
    uint64_t type = version >= 5 ? head->type_v5 : head->type_v1;

    *handle = NULL;
    if (c) {
        profiler_observe(version, c, type, event);
        if (c->behind) {
            follow_mask(c, version);
            profiler_behind_start(c, handle, type, event);
        }
    }
    /* Until 2.27 NCCL tells of no collective in a group whose own event got no handle. */
    if (version < 5 && type == PROFILER_GROUP && !*handle)
        *handle = &profiler_group_token;
    return ncclSuccess;
}

/* NCCL before 2.26 hands back NULL handles too; a plugin that gave one expects none. */
static bool is_theirs(const void *handle)
{
    return handle && handle != &profiler_group_token;
}

#define EVENTS(V)                                                                                \
    static ncclResult_t start_v##V(void *context, void **handle, void *event)                    \
    {                                                                                            \
        return profiler_start(V, context, handle, event);                                        \
    }                                                                                            \
    static ncclResult_t stop_v##V(void *handle)                                                  \
    {                                                                                            \
        return is_theirs(handle) ? profiler_behind_stop(V, handle) : ncclSuccess;                \
    }                                                                                            \
    static ncclResult_t record_v##V(void *handle, int state, void *args)                         \
    {                                                                                            \
        return is_theirs(handle) ? profiler_behind_record(V, handle, state, args) : ncclSuccess; \
    }

#define INIT_V1(V)                                                                            \
    static ncclResult_t init_v##V(void **context, int *mask)                                  \
    {                                                                                         \
        return profiler_init(V, context, mask,                                                \
                             &(struct profiler_facts){.nodes = -1, .ranks = -1, .rank = -1}); \
    }

#define INIT_V5(V)                                                                            \
    static ncclResult_t init_v##V(void **context, uint64_t hash, int *mask, const char *name, \
                                  int nodes, int ranks, int rank, nccl_logger_fn log)         \
    {                                                                                         \
        return profiler_init(V, context, mask,                                                \
                             &(struct profiler_facts){hash, name, nodes, ranks, rank, log});  \
    }

static ncclResult_t init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
                            int ranks, int rank, nccl_logger_fn log)
{
    return profiler_init(4, context, mask,
                         &(struct profiler_facts){hash, name, nodes, ranks, rank, log});
}

static ncclResult_t finalize(void *context)
{
    return profiler_finalize(context);
}

#define TABLE(V, INIT)                                              \
    PLUGIN_EXPORT const struct profiler_table ncclProfiler_v##V = { \
        "ncclshim", {.INIT = init_v##V}, start_v##V, stop_v##V, record_v##V, finalize};

EVENTS(1)
EVENTS(2)
EVENTS(3)
EVENTS(4)
EVENTS(5)
EVENTS(6)
INIT_V1(1)
INIT_V1(2)
INIT_V1(3)
INIT_V5(5)
INIT_V5(6)
TABLE(1, v1)
TABLE(2, v1)
TABLE(3, v1)
TABLE(4, v4)
TABLE(5, v5)
TABLE(6, v5)
