/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the simulated CUDA driver: its objects and what its files offer each other.
 *
 * Its rules were asked of a real driver (13, on an H200). It differs from that one on purpose in:
 * - it is stricter: without a current context nothing works, also what has its context from a handle
 *   (older drivers are so); loading a module is unsafe during a capture (so where it allocates);
 * - it is more lenient: loading and unloading a module wait for running kernels only when
 *   NCCLSHIM_FAKE_SYNC_LOAD asks for it (freeing and unregistering memory always wait);
 * - device memory is host memory, memory nodes in graphs and machine code (cubin) don't exist.
 *
 * Locks. One lock (sim_lock) guards all host-side state: contexts, handles, captures, graphs, which
 * event was last recorded where. Each stream has its own lock for its queue, taken inside sim_lock
 * or alone. Worker threads never take sim_lock while they run an operation, so a host call may hold
 * it while it looks at streams, but never while it waits for one. Callbacks of the user
 * (destructors of user objects, release functions) go through sim_later and run without any lock.
 */
#ifndef NCCLSHIM_TEST_FAKE_CUDA_SIM_H
#define NCCLSHIM_TEST_FAKE_CUDA_SIM_H

/* All versions of each function are declared under their own names. */
#define __CUDA_API_VERSION_INTERNAL
/* What these two headers declare is exported, the rest of this library is not. */
#pragma GCC visibility push(default)
#include <cuda.h>
#include "test/fake/fakecuda.h"
#pragma GCC visibility pop

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/fake/cuda_env.h"
#include "test/fake/cuda_table.h"

/* ---- costs, in virtual nanoseconds: invented for the simulation, of the size seen on an H100 ----
 */
enum {
    COST_LAUNCH_NS = 2000,       /* host call to start on an idle stream */
    COST_GRAPH_LAUNCH_NS = 3000, /* the same for a graph */
    COST_GAP_NS = 600,           /* between two dependent kernels */
    COST_GAP_PDL_NS = 250,       /* the same over a programmatic edge */
    COST_KERNEL_HEAD_NS = 350,   /* start of a kernel to its first instruction */
    COST_KERNEL_TAIL_NS = 350,   /* last instruction to the end */
    COST_CLOCK_READ_NS = 32,     /* one look at the clock */
    COST_COPY_NS = 1000,         /* fixed part of a copy; then bytes at COPY_BYTES_PER_NS */
    COPY_BYTES_PER_NS = 20,
    COST_RECORD_NS = 100, /* an event record */
};

enum fn {
#define ROW(base, symbol, since, variant) FN_##symbol,
    CUDA_TABLE(ROW)
#undef ROW
        FN_COUNT
};

/* ---- entry.c: how each call begins ---- */

/* Counts the call; an injected fault, a forked child, a missing cuInit, a call from a host
 * function. */
CUresult sim_enter(enum fn fn);
/* The last three alone. */
CUresult sim_ready(void);
/* Counts and faults alone: for what works before cuInit. */
CUresult sim_enter_early(enum fn fn);

#define ENTER(symbol)                                   \
    do {                                                \
        CUresult enter_result = sim_enter(FN_##symbol); \
        if (enter_result != CUDA_SUCCESS) {             \
            return enter_result;                        \
        }                                               \
    } while (0)

#define TRY(expression)                     \
    do {                                    \
        CUresult try_result = (expression); \
        if (try_result != CUDA_SUCCESS) {   \
            return try_result;              \
        }                                   \
    } while (0)

/* The two names of a function that takes a stream: NULL is the legacy or this thread's own stream.
 */
#define WITH_VARIANT(symbol, suffix, parameters, ...) \
    CUresult symbol parameters                        \
    {                                                 \
        ENTER(symbol);                                \
        return do_##symbol(__VA_ARGS__, false);       \
    }                                                 \
    CUresult symbol##suffix parameters                \
    {                                                 \
        ENTER(symbol);                                \
        return do_##symbol(__VA_ARGS__, true);        \
    }

/* ---- handles.c: the lock, valid handles, calls put off until no lock is held ---- */

enum kind {
    KIND_CONTEXT = 1,
    KIND_STREAM,
    KIND_EVENT,
    KIND_MODULE,
    KIND_FUNCTION,
    KIND_LIBRARY,
    KIND_GRAPH,
    KIND_NODE,
    KIND_EXEC,
    KIND_USER_OBJECT,
};

void sim_lock(void);
void sim_unlock(void); /* then runs what sim_later put off */
void sim_later(void (*fn)(void *), void *arg);
void handle_add(const void *handle, enum kind kind);
void handle_drop(const void *handle);
bool handle_is(const void *handle, enum kind kind);
void *sim_alloc(size_t bytes);                    /* zeroed; ends the process when there is none */
void *sim_grow(void *old, size_t n, size_t size); /* realloc, the same */

/* ---- time ---- */
uint64_t sim_now(void);             /* the host's clock, ns of Unix time */
void sim_pace(uint64_t time_ns);    /* sleep until then, unless pacing is off */
bool sim_is_past(uint64_t time_ns); /* true as well when pacing is off */

/* ---- per thread ---- */

struct later {
    void (*fn)(void *);
    void *arg;
};

struct thread {
    uint64_t id;
    int lock_depth;
    bool in_host_function;
    CUstreamCaptureMode capture_mode;
    CUcontext *stack; /* the current context is the last one */
    size_t depth;
    size_t room;
    struct later *later;
    size_t nlater;
    struct CUstream_st **own_streams; /* per-thread default streams, one a context */
    size_t nown;
};

struct thread *sim_thread(void);

/* ---- contexts: ctx.c ---- */

struct CUctx_st {
    uint64_t id;
    int device;
    unsigned flags;
    bool primary;
    unsigned retained; /* primary: number of retains */
    bool alive;
    atomic_int sticky; /* CUresult that every call returns from now on */
    struct CUstream_st *streams;
    struct CUstream_st *legacy;
    struct CUmod_st *modules;
    CUcontext next; /* of all */
};

extern CUcontext sim_contexts; /* all; in sim_lock */

/* The calling thread's context, alive and without a sticky error; in sim_lock or not. */
CUresult ctx_current(CUcontext *out);
CUresult ctx_check(CUcontext ctx); /* the same tests for a given one */
/* Wait until what runs on the device has ended, where NCCLSHIM_FAKE_SYNC_LOAD asks for it. */
void ctx_wait_for_device(int device);

/* ---- marks: a point in a stream, reached or not; what events and waits are made of ---- */

struct mark {
    atomic_int refs;
    atomic_int done; /* a futex */
    uint64_t time_ns;
};

struct mark *mark_new(void);
struct mark *mark_ref(struct mark *mark);
void mark_unref(struct mark *mark);
void mark_finish(struct mark *mark, uint64_t time_ns);
uint64_t mark_wait(struct mark *mark);
bool mark_is_done(struct mark *mark, uint64_t *time_ns);

/* ---- work: what a node or an eager call does. Never changed once made, shared by references ----
 */

enum work_kind {
    WORK_EMPTY,
    WORK_KERNEL,
    WORK_HOST_KERNEL, /* fakecuda_launch */
    WORK_COPY,
    WORK_SET,
    WORK_HOST,
    WORK_RECORD,
    WORK_WAIT,
    WORK_FREE,
};

struct work {
    atomic_int refs;
    enum work_kind kind;
    union {
        struct {
            CUfunction function;
            unsigned grid[3], block[3], shared;
            bool programmatic;
            size_t bytes;
            unsigned char *params;
            void **param_pointers; /* into params, for KernelNodeGetParams */
        } kernel;
        struct {
            CUfunction function; /* only its name */
            fakecuda_kernel_fn fn;
            void *arg;
            void (*release)(void *);
        } host_kernel;
        struct {
            CUdeviceptr to, from;
            size_t bytes;
            void *staged; /* owned copy of pageable memory, or NULL */
        } copy;
        CUDA_MEMSET_NODE_PARAMS set;
        struct {
            CUhostFn fn;
            CUstreamCallback callback; /* cuStreamAddCallback instead of fn */
            CUstream stream;
            void *data;
        } host;
        CUevent event;
        void *memory; /* WORK_FREE */
    } u;
};

struct work *work_new(enum work_kind kind);
struct work *work_ref(struct work *work);
void work_unref(struct work *work);
bool work_is_programmatic(const struct work *work);
bool work_is_kernel(const struct work *work);
/* Runs it on a worker; returns the virtual end. `mark` is for records and waits in graphs. */
uint64_t work_run(struct work *work, CUcontext ctx, uint64_t start_ns, struct mark *mark);

/* ---- streams: stream.c, queue.c ---- */

enum op_kind { OP_WORK, OP_MARK, OP_WAIT, OP_GRAPH };

struct op {
    struct op *next;
    enum op_kind kind;
    uint64_t host_ns; /* the host's clock when it was put in */
    uint64_t not_before_ns;
    struct work *work; /* OP_WORK */
    struct mark *mark; /* OP_MARK, OP_WAIT; OP_GRAPH: finished at the end */
    struct program *program;
    struct CUgraphExec_st *exec; /* kept alive by this launch */
    struct mark **marks;         /* OP_GRAPH: of its event nodes */
};

struct CUstream_st {
    CUcontext ctx;
    atomic_int refs;
    uint64_t id;
    unsigned flags;
    int priority;
    bool legacy;
    bool alive;
    CUstream next; /* in ctx->streams */

    pthread_mutex_t mutex; /* guards the queue, down to `closing` */
    pthread_cond_t more, less;
    struct op *first, *last;
    uint64_t put, finished; /* numbers of operations */
    uint64_t now_ns;        /* virtual end of the last finished one */
    int waiters;
    bool has_worker, closing, runs_kernel;

    uint64_t legacy_seen; /* guarded by sim_lock: `put` of the legacy stream that we waited for */
    struct capture *capture;
    CUgraphNode *deps; /* the frontier while capturing */
    CUgraphEdgeData *edges;
    size_t ndeps;
};

/* Handles 0, 1 and 2 included. In sim_lock. Checks the stream's context too. */
CUresult stream_get(CUstream handle, bool per_thread, CUstream *out);
CUstream stream_new(CUcontext ctx, unsigned flags, int priority);
void stream_destroy(CUstream stream); /* in sim_lock; what is queued still runs */
void stream_unref(CUstream stream);
/* Put an operation in, behind what default-stream rules demand. In sim_lock. */
CUresult stream_put(CUstream stream, struct op *op);
CUresult stream_put_work(CUstream stream, struct work *work); /* eats the reference */
/* Make `stream` wait for `mark`. Eats the reference. In sim_lock. */
CUresult stream_put_wait(CUstream stream, struct mark *mark);
/* A mark behind all that is in the stream now (already finished if it is idle). In sim_lock. */
CUresult stream_mark(CUstream stream, struct mark **out);
struct op *op_new(enum op_kind kind);
void op_free(struct op *op);
uint64_t stream_run_op(CUstream stream, struct op *op, uint64_t now_ns);
bool stream_is_idle(CUstream stream);
/* Wait for all that is in it now; not in sim_lock. Returns the virtual time. */
uint64_t stream_wait(CUstream stream);
/* Wait until that many operations have finished, as far as the worker still lives. */
void stream_wait_until(CUstream stream, uint64_t number);
/* Does a kernel or graph run in it now? *number: `finished` once it has ended. */
bool stream_runs_kernel(CUstream stream, uint64_t *number);
/* All streams of a context; in sim_lock: collect marks, wait outside. */
CUresult ctx_marks(CUcontext ctx, struct mark ***out, size_t *n);

/* ---- events: event.c ---- */

struct CUevent_st {
    CUcontext ctx;
    atomic_int refs;
    unsigned flags;
    bool alive;
    struct mark *last;       /* NULL: never recorded */
    struct capture *capture; /* last recorded inside this capture */
    CUgraphNode *deps;
    CUgraphEdgeData *edges;
    size_t ndeps;
};

void event_unref(CUevent event);
void event_forget_capture(CUevent event);
/* Give the event a fresh mark and return it (a reference for the caller). In sim_lock. */
struct mark *event_renew(CUevent event);

/* ---- capture: capture.c. All in sim_lock ---- */

struct capture {
    atomic_int refs;
    uint64_t id;
    CUstreamCaptureMode mode;
    uint64_t thread;
    CUstream origin;
    CUgraph graph;
    bool own_graph; /* false: capture into the user's graph */
    bool invalid;
    bool over;
    struct capture *next; /* of those under way */
};

void capture_unref(struct capture *capture);
/* For a call that is unsafe during a capture: refuses it and spoils the captures that forbid it. */
CUresult capture_check_unsafe(void);
/* For a use of the legacy stream of `ctx`. */
CUresult capture_check_legacy(CUcontext ctx);
/* For asking whether it captures: refused alike, but no capture is spoilt (says cuda.h). */
CUresult capture_ask_legacy(CUcontext ctx);
/* For waiting for, or asking about, the whole context. */
CUresult capture_check_context(CUcontext ctx);
/* Of a stream about to get work: *capturing says whether it goes into a graph. */
CUresult capture_state(CUstream stream, bool *capturing);
void capture_spoil(struct capture *capture);
/* Add `work` (eaten) as a node behind the stream's frontier. */
CUresult capture_add(CUstream stream, CUgraphNodeType type, struct work *work, CUgraphNode *out);
void capture_set_frontier(CUstream stream, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                          size_t n);
void capture_join_frontier(CUstream stream, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                           size_t n);
void capture_leave(CUstream stream);
void capture_abandon(CUstream stream); /* the stream is being destroyed */
/* Eager: put in; capturing: add a node. Eats `work`. */
CUresult submit(CUstream stream, CUgraphNodeType type, struct work *work);

/* ---- memory: memory.c ---- */

enum region_kind { REGION_DEVICE, REGION_HOST, REGION_REGISTERED, REGION_MODULE };

struct region {
    uint64_t base, end;
    enum region_kind kind;
    CUcontext ctx;
    unsigned flags;
    uint64_t id;
};

/* What a worker remembers, so that most accesses need no look-up. */
struct region_cache {
    uint64_t generation;
    uint64_t base[4], end[4];
    unsigned next;
};

extern atomic_uint_fast64_t region_generation;
bool region_lookup(struct region_cache *cache, uint64_t address, size_t bytes);
static inline bool region_allows(struct region_cache *cache, uint64_t address, size_t bytes)
{
    if (cache->generation == atomic_load_explicit(&region_generation, memory_order_relaxed)) {
        for (int i = 0; i < 4; i++) {
            if (address >= cache->base[i] && address + bytes <= cache->end[i]) {
                return true;
            }
        }
    }
    return region_lookup(cache, address, bytes);
}
bool region_find(uint64_t address, struct region *out);
bool region_overlaps(uint64_t base, uint64_t end, struct region *out);
bool region_covers(uint64_t address, size_t bytes); /* wholly inside one region */
void region_add(const struct region *region);
bool region_drop(uint64_t base, enum region_kind kind, struct region *out);
void regions_drop_context(CUcontext ctx);
/* May this address range be registered? hostreg.c */
CUresult hostreg_check(uint64_t base, uint64_t end, bool read_only);

/* ---- modules: module.c ---- */

struct CUfunc_st {
    char *name;
    CUmodule module; /* NULL: only a name, for kernels that are host code */
    const struct ptx_kernel *kernel;
    int max_dynamic_shared;
    bool loaded;
    CUfunction next;
};

CUfunction function_named(const char *name); /* for fakecuda_launch; in sim_lock */
/* A module lives as long as work that runs its kernels, also when it was unloaded. */
void module_ref(CUmodule module);
void module_unref(CUmodule module);
size_t function_params_bytes(CUfunction function);
CUcontext function_context(CUfunction function);
void modules_drop_context(CUcontext ctx);

/* ---- launches: launch.c ---- */

#define MAX_DOMAINS 4u /* memory synchronization domains */
unsigned sim_domains(void);
void sim_count_domain(unsigned domain); /* one more launch there: for write_counts */
void sim_count_kernel(const char *name); /* in sim_lock; the first few names */

struct launch {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    bool programmatic;
    bool remote;                /* CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN */
    unsigned char domains[2];   /* ..._MAP: of default and remote */
    void **params, **extra;
};

/* Checks and copies; in sim_lock. */
CUresult launch_prepare(const struct launch *launch, struct work **out);

void sim_early_release(void); /* a kernel let its dependents start early */

#endif
