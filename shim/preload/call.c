/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/call.h"

#include <stdlib.h>


static void count_call(struct comm *c, bool failed)
{
    if (!c->entry)
        return;
    atomic_fetch_add_explicit((_Atomic uint64_t *)&c->entry->wrapped_calls, 1, memory_order_relaxed);
    if (failed)
        atomic_fetch_add_explicit((_Atomic uint64_t *)&c->entry->failed_calls, 1,
                                  memory_order_relaxed);
}

void call_note_use(struct log_writer *log, struct comm *c, int how)
{
    int before = atomic_load_explicit(&c->used, memory_order_relaxed);
    const char *mixing;

    if (before & how)
        return;
    before = atomic_fetch_or_explicit(&c->used, how, memory_order_relaxed);
    if ((before | how) != 3 || before == 3 || !c->entry)
        return;
    atomic_fetch_or_explicit((_Atomic uint32_t *)&c->entry->flags, NCCLSHIM_COMM_MIXED_USE,
                             memory_order_relaxed);
    mixing = getenv("NCCL_GRAPH_MIXING_SUPPORT");
    if (mixing && atoi(mixing) == 0)
        log_warn(log, (int)c->number,
                 "this communicator is called eagerly and inside CUDA graphs while "
                 "NCCL_GRAPH_MIXING_SUPPORT=0: NCCL forbids an eager call while a graph that uses "
                 "the communicator is still running");
}

static bool wanted(const struct log_options *o, const struct call_desc *d, bool captured)
{
    return (captured ? o->captured : o->eager) && (o->ops >> d->op & 1) && d->bytes >= o->min_bytes;
}

/* The start slot of this communicator's eager calls on a stream: those run one after the other. */
static CUdeviceptr stream_start(struct comm *c, cudaStream_t stream)
{
    for (int i = 0; i < COMM_STREAMS; i++) {
        int state = atomic_load_explicit(&c->streams[i].state, memory_order_acquire);
        if (state == 2 &&
            atomic_load_explicit(&c->streams[i].stream, memory_order_relaxed) == stream)
            return c->streams[i].start;
        if (state == 0 && atomic_compare_exchange_strong(&c->streams[i].state, &state, 1)) {
            atomic_store_explicit(&c->streams[i].stream, stream, memory_order_relaxed);
            c->streams[i].start = gpu_start_slot(c->gpu);
            atomic_store_explicit(&c->streams[i].state, 2, memory_order_release);
            return c->streams[i].start;
        }
    }
    return 0;
}

static void begin_captured(struct call *k, const struct call_desc *d, uint8_t flags,
                           const struct capture_info *info, bool can_stamp)
{
    const struct log_options *o = &shim.log_options;
    struct gpu *g = k->comm->gpu;
    uint32_t index;

    k->capture = capture_of(info->id);
    index = atomic_fetch_add_explicit(&k->capture->calls, 1, memory_order_relaxed);
    k->site = site_captured(k->log, k->comm, d, flags, k->capture->number, index);
    if (!k->site.site || !g || !can_stamp)
        return;
    if (!wanted(o, d, true)) {
        site_add_flags(k->site.site, NCCLSHIM_SITE_FILTERED);
        return;
    }
    if (index % o->sample)
        return;
    if (info->frontier_count == 1 && k->capture->last_gpu == g &&
        info->frontier[0] == atomic_load(&k->capture->last_node)) {
        k->start = k->capture->last_end;
        k->stamped = true;
        site_add_flags(k->site.site, NCCLSHIM_SITE_CHAINED);
        return;
    }
    k->start = gpu_cell(g, k->site.number);
    k->stamped = stamp_before(g, d->stream, k->start);
}

static void begin_eager(struct call *k, const struct call_desc *d, uint8_t flags, bool can_stamp)
{
    const struct log_options *o = &shim.log_options;
    struct gpu *g = k->comm->gpu;
    uint32_t nth = atomic_fetch_add_explicit(&k->comm->eager_calls, 1, memory_order_relaxed);

    k->site = site_eager(k->log, k->comm, d, flags);
    if (!k->site.site || !g || !can_stamp)
        return;
    if (!wanted(o, d, false)) {
        site_add_flags(k->site.site, NCCLSHIM_SITE_FILTERED);
        return;
    }
    if (nth % o->sample)
        return;
    k->start = stream_start(k->comm, d->stream);
    if (!k->start)
        k->start = gpu_cell(g, k->site.number);
    k->stamped = stamp_before(g, d->stream, k->start);
}

void call_begin(struct call *k, struct log_writer *log, struct comm *c, const struct call_desc *d,
                uint8_t site_flags)
{
    struct capture_info info = {.active = false};
    bool pushed = false, entered = false, can_stamp;

    *k = (struct call){.comm = c, .log = log};
    c->choice = (struct choice){NCCLSHIM_NO_CHOICE, NCCLSHIM_NO_CHOICE, 0, 0};
    if (c->gpu && (entered = gpu_enter(c->gpu, &pushed)))
        driver_capture_info(driver_get(), d->stream, &info);
    else if (driver_get())
        driver_capture_info(driver_get(), d->stream, &info);
    call_note_use(log, c, info.active ? 2 : 1);
    /* A non-blocking communicator's kernel is launched by another thread, after our return. */
    can_stamp = entered && !info.refused && !c->nonblocking;
    if (info.active)
        begin_captured(k, d, site_flags, &info, can_stamp);
    else
        begin_eager(k, d, site_flags, can_stamp);
    gpu_leave(pushed);
}

/* Remember the stamp just put into a capture, for the call that may follow it directly. */
static void remember_end(struct call *k, const struct call_desc *d)
{
    struct capture_info info;

    driver_capture_info(driver_get(), d->stream, &info);
    if (!info.active || info.frontier_count != 1) {
        atomic_store(&k->capture->last_node, NULL);
        return;
    }
    k->capture->last_end = gpu_cell(k->comm->gpu, k->site.number) + 8;
    k->capture->last_gpu = k->comm->gpu;
    atomic_store(&k->capture->last_node, info.frontier[0]);
}

void call_end(struct call *k, const struct call_desc *d, ncclResult_t result)
{
    bool good = result == ncclSuccess || result == ncclInProgress;
    bool pushed = false, timed = false;

    count_call(k->comm, !good);
    if (!k->site.site)
        return;
    if (k->stamped && result == ncclSuccess && gpu_enter(k->comm->gpu, &pushed)) {
        timed = stamp_after(k->comm->gpu, d->stream, k->start, k->site.number, k->comm->symmetric);
        if (timed && k->capture)
            remember_end(k, d);
        gpu_leave(pushed);
    }
    if (timed)
        site_add_flags(k->site.site, NCCLSHIM_SITE_TIMED);
    if (good)
        site_count(k->site.site, timed);
    site_choice(k->site.site, &k->comm->choice);
}
