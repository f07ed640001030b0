/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/gpu.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "shim/preload/floor.h"
#include "shim/preload/say.h"
#include "shim/preload/shim.h"
#include "shim/preload/stamp.h"
#include "shim/preload/stamp_ptx.h"

static struct gpu gpus[GPU_MAX];

#define TRY(e) if ((r = (e)) != CUDA_SUCCESS) { *what = #e; return r; }

/*
 * A stamp writes to host memory. In the server's memory synchronization domain every later kernel of
 * a graph would then be 0.1 us longer, since its end waits for more (measured on H200, docs/cost.md):
 * stamps take the last domain, which is neither the server's (0) nor the one that NCCL's kernels take
 * (1). What they hand to each other stays within it; the host's view is not ordered by domains.
 */
static void set_attributes(const struct driver *d, struct gpu *g, CUdevice dev)
{
    int domains = 0;

    g->attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    g->attributes[0].value.number = 1;
    g->attribute_count = 1;
    if (d->device_get_attribute(&domains, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, dev) !=
            CUDA_SUCCESS ||
        domains < 3)
        return;
    g->attributes[1].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
    g->attributes[1].value.domains.default_ = (unsigned char)(domains - 1);
    g->attributes[1].value.domains.remote = (unsigned char)(domains - 1);
    g->attribute_count = 2;
}

/* The dependent form where GPU and driver have it, else the plain one. */
static CUresult load_kernels(const struct driver *d, struct gpu *g, const char **what)
{
    CUresult r;

    g->dependent = g->sm >= 90 && d->launch_ex &&
                   d->module_load(&g->module, stamp_ptx_dependent) == CUDA_SUCCESS;
    if (!g->dependent)
        TRY(d->module_load(&g->module, stamp_ptx_plain));
    TRY(d->module_get_function(&g->before, g->module, "ncclshim_before"));
    TRY(d->module_get_function(&g->after, g->module, "ncclshim_after"));
    TRY(d->module_get_function(&g->after_late, g->module, "ncclshim_after_late"));
    return CUDA_SUCCESS;
}

static CUresult make_memory(const struct driver *d, struct gpu *g, uint32_t site_cap,
                            CUstream stream, const char **what)
{
    uint64_t cells = (uint64_t)site_cap * CELL_BYTES;
    uint64_t total = cells + START_SLOTS * 8 + 64;
    CUdeviceptr ring;
    CUresult r;

    r = d->mem_alloc(&g->cells, total);
    if (r != CUDA_SUCCESS) {
        g->cells = 0;
        *what = "cuMemAlloc of the cells";
        return r;
    }
    g->starts = g->cells + cells;
    g->cursor = g->starts + START_SLOTS * 8;
    TRY(d->memset_d8_async(g->cells, 0, total, stream));
    r = d->host_register(g->ring,
                         sizeof(*g->ring) + (size_t)g->ring->capacity * sizeof(struct ncclshim_record),
                         CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (r != CUDA_SUCCESS) {
        *what = "cuMemHostRegister of the ring, which must lie on tmpfs,";
        return r;
    }
    g->registered = true;
    TRY(d->host_device_pointer(&ring, g->ring, 0));
    g->records = ring + sizeof(*g->ring);
    g->lap = ring + offsetof(struct ncclshim_ring, lap);
    g->mask = g->ring->capacity - 1;
    TRY(d->stream_sync(stream));
    return CUDA_SUCCESS;
}

/* What was made so far is given back: a GPU that can't be stamped holds nothing of ours. */
static void unmake(const struct driver *d, struct gpu *g)
{
    if (g->registered)
        d->host_unregister(g->ring);
    if (g->cells)
        d->mem_free(g->cells);
    if (g->module)
        d->module_unload(g->module);
}

static void note_gpu(const struct driver *d, const struct gpu *g, struct log_writer *log,
                     const struct floor_result *floor, CUdevice dev)
{
    struct ncclshim_gpu body = {
        .device = (uint32_t)g->device,
        .sm = (uint32_t)g->sm,
        .stamp = g->dependent ? NCCLSHIM_STAMP_DEPENDENT : NCCLSHIM_STAMP_PLAIN,
        .clock_step_ns = floor->clock_step_ns,
        .floor_ns = floor->floor_ns,
        .floor_max_ns = floor->floor_max_ns,
    };
    char name[128] = "", pci[32] = "";
    CUuuid uuid;
    size_t bytes = 0;

    d->device_get_name(name, sizeof(name) - 1, dev);
    if (d->device_get_pci && d->device_get_pci(pci, sizeof(pci) - 1, dev) == CUDA_SUCCESS)
        memcpy(body.pci_bus_id, pci, sizeof(body.pci_bus_id));
    if (d->device_get_uuid && d->device_get_uuid(&uuid, dev) == CUDA_SUCCESS)
        memcpy(body.uuid, uuid.bytes, sizeof(body.uuid));
    if (d->device_total_mem && d->device_total_mem(&bytes, dev) == CUDA_SUCCESS)
        body.memory_bytes = bytes;
    log_note(log, NCCLSHIM_NOTE_GPU, g->ring_number, 0, 0, &body, sizeof(body), name,
             strlen(name) + 1);
}

static CUresult make_ready(const struct driver *d, struct gpu *g, struct log_writer *log,
                           const char **what, struct error *e)
{
    struct floor_result floor;
    int major = 0, minor = 0;
    CUstream stream = NULL;
    CUdevice dev;
    CUresult r;

    TRY(d->ctx_get_device(&dev));
    g->device = dev;
    d->device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev);
    d->device_get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
    g->sm = major * 10 + minor;
    g->ring = log_ring_add(log, (uint32_t)shim.log_options.capacity, g->device, &g->ring_number, e);
    if (!g->ring)
        return -1;
    TRY(d->stream_create(&stream, CU_STREAM_NON_BLOCKING));
    set_attributes(d, g, dev);
    r = load_kernels(d, g, what);
    if (r == CUDA_SUCCESS)
        r = make_memory(d, g, log->site_cap, stream, what);
    if (r == CUDA_SUCCESS)
        r = floor_measure(g, log, stream, &floor, what);
    if (r != CUDA_SUCCESS) {
        d->stream_sync(stream); /* a stamp may be under way */
        unmake(d, g);
    }
    d->stream_destroy(stream);
    if (r == CUDA_SUCCESS) {
        note_gpu(d, g, log, &floor, dev);
        log_ring_publish(log, g->ring_number);
    }
    return r;
}

/*
 * Slot of a context; made = it was just claimed for us to fill. The slot of a context that was
 * destroyed is never used again: what it holds died with the context.
 */
static struct gpu *slot_of(CUcontext ctx, unsigned long long id, bool *made)
{
    *made = false;
    for (int i = 0; i < GPU_MAX; i++) {
        int state = atomic_load_explicit(&gpus[i].state, memory_order_acquire);
        if (state == 0 && atomic_compare_exchange_strong(&gpus[i].state, &state, 1)) {
            /* Not what a forked child inherited. */
            memset(&gpus[i].ctx, 0, sizeof(gpus[i]) - offsetof(struct gpu, ctx));
            gpus[i].ctx = ctx;
            gpus[i].ctx_id = id;
            *made = true;
            return &gpus[i];
        }
        while (state == 1) { /* another thread's init of another context, or of ours */
            sched_yield();
            state = atomic_load_explicit(&gpus[i].state, memory_order_acquire);
        }
        if (gpus[i].ctx == ctx && gpus[i].ctx_id == id)
            return &gpus[i];
    }
    return NULL;
}

struct gpu *gpu_prepare(void)
{
    struct log_writer *log = shim_log();
    const struct driver *d = log ? driver_get() : NULL;
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    struct error e = {.text = ""};
    const char *what = "";
    unsigned long long id = 0;
    CUcontext ctx = NULL;
    struct gpu *g;
    bool made, relaxed;
    CUresult r;

    if (!d || d->ctx_get_current(&ctx) != CUDA_SUCCESS || !ctx)
        return NULL;
    if (d->ctx_get_id && d->ctx_get_id(ctx, &id) != CUDA_SUCCESS)
        id = 0;
    g = slot_of(ctx, id, &made);
    if (!g)
        return NULL;
    if (made) {
        /* Relaxed, as NCCL does: allocating must not invalidate a capture of another thread. */
        relaxed = d->exchange_capture_mode(&mode) == CUDA_SUCCESS;
        r = make_ready(d, g, log, &what, &e);
        if (relaxed)
            d->exchange_capture_mode(&mode);
        if (r != CUDA_SUCCESS) {
            say_once(SAY_NO_STAMP, "calls on GPU %d are counted, not timed: %s%s failed (%d)",
                     g->device, e.text, what, r);
            log_warn(log, -1, "calls on GPU %d are counted, not timed: %s%s failed (%d)", g->device,
                     e.text, what, r);
        }
        atomic_store_explicit(&g->state, r == CUDA_SUCCESS ? 2 : 3, memory_order_release);
    } else if (atomic_load(&g->state) == 2) {
        floor_anchor(g, log);
    }
    return atomic_load_explicit(&g->state, memory_order_acquire) == 2 ? g : NULL;
}

void gpu_forget(void)
{
    for (int i = 0; i < GPU_MAX; i++)
        atomic_store(&gpus[i].state, 0);
}

CUdeviceptr gpu_start_slot(struct gpu *g)
{
    uint32_t i = atomic_fetch_add_explicit(&g->starts_used, 1, memory_order_relaxed);

    return i < START_SLOTS - 1 ? g->starts + (CUdeviceptr)i * 8 : 0;
}
