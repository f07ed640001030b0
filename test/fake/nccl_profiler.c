/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiler plugins: loading, and the events of the host path. There is no proxy and no kernel
 * channel here, so what a plugin sees is what NCCL shows for a captured collective inside one host:
 * API events, then Coll and P2p at the launch, once, at capture, and nothing on replay.
 */
#include "test/fake/nccl_fake.h"
#include "test/fake/nccl_profiler_abi.h"

#include <string.h>
#include <strings.h>

#define NEWEST               \
    (FAKE_VER >= 22902   ? 6 \
     : FAKE_VER >= 22803 ? 5 \
     : FAKE_VER >= 22703 ? 4 \
     : FAKE_VER >= 22602 ? 3 \
     : FAKE_VER >= 22403 ? 2 \
     : FAKE_VER >= 22304 ? 1 \
                         : 0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum { READY, LOADED, FAILED } state;
static void *lib;
static const profiler_table *table;
static int version, users;
static atomic_int
    event_mask; /* ONE for the process; a plugin may keep its address and change it later */

/* The thread's group, as far as the profiler is concerned. */
static __thread struct {
    int depth; /* 0: no GroupApi event open */
    int mask;
    void *event;
    enum { NOTHING, STARTED, STOPPED } phase;
} group;

#define BELOW_COLL_API                                                                   \
    (EVENT_COLL_API | EVENT_COLL | EVENT_PROXY_OP | EVENT_PROXY_STEP | EVENT_KERNEL_CH | \
     EVENT_NET_PLUGIN | EVENT_CE_ALL)
#define BELOW_P2P_API                                                                  \
    (EVENT_P2P_API | EVENT_P2P | EVENT_PROXY_OP | EVENT_PROXY_STEP | EVENT_KERNEL_CH | \
     EVENT_NET_PLUGIN)
#define BELOW_GROUP_API \
    (EVENT_GROUP_API | EVENT_KERNEL_LAUNCH | EVENT_GROUP | BELOW_COLL_API | BELOW_P2P_API)
#define BELOW_GROUP                                                                               \
    (EVENT_GROUP | EVENT_COLL | EVENT_P2P | EVENT_PROXY_OP | EVENT_PROXY_STEP | EVENT_KERNEL_CH | \
     EVENT_NET_PLUGIN)

static void load(void)
{
    static const char *const names[] = {"",
                                        "ncclProfiler_v1",
                                        "ncclProfiler_v2",
                                        "ncclProfiler_v3",
                                        "ncclProfiler_v4",
                                        "ncclProfiler_v5",
                                        "ncclProfiler_v6"};
    state = FAILED;
    const char *value = fake_string(VAR_NCCL_PROFILER_PLUGIN);
    if (value) {
        INFO(NCCL_ENV, "NCCL_PROFILER_PLUGIN set by environment to %s", value);
        if (!strcasecmp(value, "none"))
            return;
    }
    lib = fake_plugin_open(PLUGIN_PROFILER, value);
    if (!lib)
        return;
    for (version = NEWEST; version >= 1; version--)
        if ((table = fake_plugin_symbol(lib, names[version])))
            break;
    if (!table) {
        INFO(NCCL_INIT, "External profiler plugin %s is unsupported",
             fake_plugin_path(PLUGIN_PROFILER));
        fake_plugin_close(PLUGIN_PROFILER, lib);
        return;
    }
    INFO(NCCL_INIT, "PROFILER/Plugin: Loaded %s (v%d)", table->name, version);
    INFO(NCCL_INIT, "Successfully loaded external profiler plugin %s",
         fake_plugin_path(PLUGIN_PROFILER));
    state = LOADED;
}

void fake_profiler_init(ncclComm_t comm)
{
    if (!NEWEST)
        return;
    pthread_mutex_lock(&lock);
    if (state == READY)
        load();
    bool there = state == LOADED;
    users += there;
    pthread_mutex_unlock(&lock);
    if (!there)
        return;
    int *mask = (int *)&event_mask, res;
    if (version >= 5)
        res = ((profiler_init_v5)table->init)(&comm->profiler_ctx, comm->comm_hash, mask,
                                              comm->config.commName, comm->nnodes, comm->nranks,
                                              comm->rank, fake_log);
    else if (version == 4)
        res = ((profiler_init_v4)table->init)(&comm->profiler_ctx, mask, comm->config.commName,
                                              comm->comm_hash, comm->nnodes, comm->nranks,
                                              comm->rank, fake_log);
    else
        res = ((profiler_init_v1)table->init)(&comm->profiler_ctx, mask);
    if (version == 5)
        atomic_fetch_and(&event_mask, ~EVENT_CE_ALL);
    if (res)
        INFO(NCCL_INIT, "Profiler init failed with error '%d'. Continue without profiler.", res);
    comm->has_profiler = !res;
    if (atomic_load(&event_mask))
        INFO(NCCL_INIT, "Profiler event mask: 0x%x (%d)", atomic_load(&event_mask),
             atomic_load(&event_mask));
}

void fake_profiler_fini(ncclComm_t comm)
{
    if (!comm->has_profiler)
        return;
    comm->has_profiler = false;
    if (comm->profiler_ctx)
        table->finalize(comm->profiler_ctx);
    pthread_mutex_lock(&lock);
    if (--users == 0 && state == LOADED) { /* the next communicator asks for the variable again */
        INFO(NCCL_INIT, "PROFILER/Plugin: Closing profiler plugin %s", table->name);
        fake_plugin_close(PLUGIN_PROFILER, lib);
        table = NULL;
        state = READY;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- one event, in the plugin's interface ---- */

static void coll_or_p2p_v4(const descr_v6 *d, descr_v4 *out)
{
    out->type = (uint8_t)d->type;
    out->rank = d->rank;
    if (d->type == EVENT_COLL) {
        out->parentObj = d->coll.parentGroup;
        memcpy(&out->coll, &d->coll, sizeof(out->coll)); /* v5 only appended */
    } else if (d->type == EVENT_P2P) {
        out->parentObj = d->p2p.parentGroup;
        memcpy(&out->p2p, &d->p2p, sizeof(out->p2p));
    }
}

#define COLL_OLD(out, text)                                                           \
    do {                                                                              \
        out.coll.seqNumber = d->coll.seqNumber, out.coll.sendBuff = d->coll.sendBuff; \
        out.coll.recvBuff = d->coll.recvBuff, out.coll.count = d->coll.count;         \
        out.coll.root = d->coll.root, out.coll.nMaxChannels = d->coll.nChannels;      \
        out.coll.nWarps = d->coll.nWarps;                                             \
        out.parentObj = d->coll.parentGroup;                                          \
        text                                                                          \
    } while (0)
#define P2P_OLD(out)                                                                       \
    (out.p2p.buff = d->p2p.buff, out.p2p.count = d->p2p.count, out.p2p.peer = d->p2p.peer, \
     out.parentObj = d->p2p.parentGroup)
#define OLD(type_, func_, datatype_, p2p_func, p2p_type, algo_, proto_)                        \
    {                                                                                          \
        type_ o = {.type = (uint8_t)d->type, .parentObj = d->parentObj, .rank = d->rank};      \
        if (d->type == EVENT_COLL)                                                             \
            COLL_OLD(o, o.coll.func = func_; o.coll.datatype = datatype_; o.coll.algo = algo_; \
                     o.coll.proto = proto_;);                                                  \
        else if (d->type == EVENT_P2P)                                                         \
            P2P_OLD(o), o.p2p.func = p2p_func, o.p2p.datatype = p2p_type;                      \
        table->startEvent(ctx, event, &o);                                                     \
        return;                                                                                \
    }

/* `task` for v1, which takes numbers where later interfaces take words. */
static void start(void *ctx, void **event, descr_v6 *d, const struct fake_task *task)
{
    *event = NULL;
    if (version >= 5) {
        table->startEvent(ctx, event, d);
        return;
    }
    if (d->type > EVENT_NET_PLUGIN) /* API events came with v5 */
        return;
    if (version == 4) {
        descr_v4 o = {.parentObj = d->parentObj};
        coll_or_p2p_v4(d, &o);
        table->startEvent(ctx, event, &o);
        return;
    }
    if (version == 3)
        OLD(descr_v3, d->coll.func, d->coll.datatype, d->p2p.func, d->p2p.datatype, d->coll.algo,
            d->coll.proto)
    if (version == 2)
        OLD(descr_v2, d->coll.func, d->coll.datatype, d->p2p.func, d->p2p.datatype, d->coll.algo,
            d->coll.proto)
    OLD(descr_v1, task ? (uint8_t)task->func : 0, task ? (uint8_t)task->type : 0,
        task ? (uint8_t)task->func : 0, task ? (uint8_t)task->type : 0,
        task ? (uint8_t)task->choice.algo : 0, task ? (uint8_t)task->choice.proto : 0)
}

static void stop(void **event)
{
    if (*event)
        table->stopEvent(*event);
    *event = NULL;
}

/* ---- events of the API ---- */

static bool is_p2p(const struct fake_task *t)
{
    return t->func == ncclFuncSend || t->func == ncclFuncRecv;
}

void fake_profiler_call_start(struct fake_task *t, int group_depth)
{
    if (!t->comm->has_profiler || !table)
        return;
    group.mask = atomic_load_explicit(&event_mask, memory_order_relaxed);
    if ((group.mask & BELOW_GROUP_API) && group.depth == 0) {
        descr_v6 d = {.type = EVENT_GROUP_API};
        d.groupApi.graphCaptured = t->captured;
        d.groupApi.groupDepth = group_depth;
        start(t->comm->profiler_ctx, &group.event, &d, NULL);
        group.depth = group_depth;
        group.phase = STARTED;
    }
    if (group.event && group.phase == STARTED && version >= 5)
        table->recordEventState(group.event, STATE_GROUP_START_API_STOP, NULL);
    if (group.phase == STARTED)
        group.phase = STOPPED;
    t->event_mask = group.mask;
    t->group_event = group.event;
    if (!(group.mask & (is_p2p(t) ? BELOW_P2P_API : BELOW_COLL_API)))
        return;
    descr_v6 d = {.type = is_p2p(t) ? EVENT_P2P_API : EVENT_COLL_API, .parentObj = group.event};
    if (is_p2p(t)) {
        d.p2pApi.func = fake_func_name(t->func);
        d.p2pApi.count = t->count;
        d.p2pApi.datatype = fake_type_name(t->type);
        d.p2pApi.stream = t->stream;
        d.p2pApi.graphCaptured = t->captured;
    } else {
        d.collApi.func = fake_func_name(t->func);
        d.collApi.count = t->count;
        d.collApi.datatype = fake_type_name(t->type);
        d.collApi.root = t->root;
        d.collApi.stream = t->stream;
        d.collApi.graphCaptured = t->captured;
    }
    start(t->comm->profiler_ctx, &t->api_event, &d, t);
}

void fake_profiler_call_stop(struct fake_task *t)
{
    if (t->api_event &&
        table) /* the handle stays in the task: it is the parent of the Coll event */
        table->stopEvent(t->api_event);
}

void fake_profiler_call_nested(int change)
{
    if (group.depth > 0)
        group.depth += change;
}

void fake_profiler_group_end(int depth_left)
{
    (void)depth_left;
    if (group.depth > 0)
        group.depth--;
    if (group.depth == 0 && group.phase == STOPPED) {
        group.phase = NOTHING;
        if (group.event && table && version >= 5)
            table->recordEventState(group.event, STATE_GROUP_END_API_START, NULL);
    }
}

void fake_profiler_group_done(void)
{
    if (group.event && group.depth == 0 && table)
        stop(&group.event);
}

/* ---- events of a launch ---- */

static void start_task(ncclComm_t comm, struct fake_task *t, void *plan_group)
{
    bool p2p = is_p2p(t);
    /* NCCL moves these two as bytes, and shows them so. */
    bool as_bytes = t->func == ncclFuncAllGather || t->func == ncclFuncBroadcast;
    if (!(t->event_mask & (p2p ? BELOW_P2P_API & ~EVENT_P2P_API
                               : BELOW_COLL_API & ~EVENT_COLL_API & ~EVENT_CE_ALL)))
        return;
    descr_v6 d = {
        .type = p2p ? EVENT_P2P : EVENT_COLL, .parentObj = t->api_event, .rank = comm->rank};
    if (p2p) {
        d.p2p.func = fake_func_name(t->func);
        d.p2p.buff = t->func == ncclFuncSend ? (void *)(uintptr_t)t->send : t->recv;
        d.p2p.datatype = fake_type_name(t->type);
        d.p2p.count = t->count;
        d.p2p.peer = t->root;
        d.p2p.nChannels = 1;
        d.p2p.parentGroup = plan_group;
    } else {
        d.coll.seqNumber = comm->seq_number[t->func];
        d.coll.func = fake_func_name(t->func);
        d.coll.sendBuff = t->send;
        d.coll.recvBuff = t->recv;
        d.coll.count = t->count * (as_bytes ? fake_type_size(t->type) : 1);
        d.coll.root = t->root;
        d.coll.datatype = fake_type_name(as_bytes ? ncclInt8 : t->type);
        d.coll.nChannels = (uint8_t)t->choice.nchannels;
        d.coll.nWarps = (uint8_t)t->choice.nwarps;
        d.coll.algo = fake_algo_name(t->choice.algo);
        d.coll.proto = fake_proto_name(t->choice.proto);
        d.coll.parentGroup = plan_group;
    }
    start(comm->profiler_ctx, &t->event, &d, t);
}

void fake_profiler_launch(ncclComm_t comm, struct fake_task *tasks, CUstream stream, bool begin,
                          bool captured)
{
    static __thread void *plan_group, *kernel;
    int mask = 0;
    void *parent = NULL;
    bool on = comm->has_profiler && table;
    for (struct fake_task *t = tasks; t && !mask; t = t->next) {
        mask = t->event_mask;
        parent = t->group_event;
    }
    if (begin) {
        if (on && (mask & EVENT_KERNEL_LAUNCH)) {
            descr_v6 d = {.type = EVENT_KERNEL_LAUNCH, .parentObj = parent};
            d.kernelLaunch.stream = stream;
            start(comm->profiler_ctx, &kernel, &d, NULL);
        }
        return;
    }
    if (on)
        stop(&kernel);
    if (on && (mask & BELOW_GROUP)) {
        descr_v6 d = {.type = EVENT_GROUP};
        start(comm->profiler_ctx, &plan_group, &d, NULL);
    }
    for (struct fake_task *t = tasks; t; t = t->next) {
        if (on)
            start_task(comm, t, plan_group);
        /* A captured collective does not count: NCCL's numbers are those of eager calls. */
        if (t->func <= ncclFuncAllReduce && !captured)
            comm->seq_number[t->func]++;
    }
    for (struct fake_task *t = tasks; on && t; t = t->next)
        stop(&t->event);
    if (on)
        stop(&plan_group);
}
