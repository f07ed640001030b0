/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every interface of tuner and profiler plugins: each version of NCCL takes the newest that it
 * knows and that the plugin has. This program is that plugin, with all of them; the layouts are
 * written down here a second time, so that a slip in the stand-in's own does not go unnoticed.
 */
#include "test/unit/fake_nccl.h"

static int tuner_version, profiler_version; /* which one was asked */
static char seen_coll[128];

#define EXPORT(type, name, ...)    \
    extern const struct type name; \
    __attribute__((visibility("default"))) const struct type name = {"all", __VA_ARGS__}

/* ---- tuner: all-reduce of 64 KiB goes to tree and Simple with three channels ---- */

static ncclResult_t by_number(int version, ncclFunc_t func, size_t bytes, int *algo, int *proto,
                              int *nc)
{
    tuner_version = version;
    if (func == ncclFuncAllReduce && bytes == 65536)
        *algo = ALGO_TREE, *proto = PROTO_SIMPLE, *nc = 3;
    return *algo == -1 || bytes == 65536 ? ncclSuccess : ncclInternalError;
}
static ncclResult_t by_table(int version, ncclFunc_t func, size_t bytes, float **flat, int na,
                             int np, int *nc)
{
    tuner_version = version;
    if (na != 7 || np != 3)
        return ncclInternalError;
    if (func == ncclFuncAllReduce && bytes == 65536) {
        ((float(*)[3])(void *)flat)[ALGO_TREE][PROTO_SIMPLE] = 0.0f;
        *nc = 3;
    }
    return ncclSuccess;
}

struct tuner1 {
    const char *name;
    ncclResult_t (*init)(size_t, size_t, ncclDebugLogger_t);
    ncclResult_t (*get)(ncclFunc_t, size_t, int, int, int, int *, int *, int *);
    ncclResult_t (*destroy)(void);
};
static ncclResult_t init1(size_t nranks, size_t nodes, ncclDebugLogger_t log)
{
    return nranks == 2 && nodes == 1 && log ? ncclSuccess : ncclInternalError;
}
static ncclResult_t get1(ncclFunc_t f, size_t b, int cn, int nvls, int ops, int *a, int *p, int *nc)
{
    return cn || nvls || ops < 1 ? ncclInternalError : by_number(1, f, b, a, p, nc);
}
static ncclResult_t destroy1(void)
{
    return ncclSuccess;
}
EXPORT(tuner1, ncclTunerPlugin_v1, init1, get1, destroy1);

static ncclResult_t init2(size_t nranks, size_t nodes, ncclDebugLogger_t log, void **ctx)
{
    *ctx = &tuner_version;
    return init1(nranks, nodes, log);
}
static ncclResult_t destroy2(void *ctx)
{
    return ctx == &tuner_version ? ncclSuccess : ncclInternalError;
}
struct tuner2 {
    const char *name;
    ncclResult_t (*init)(size_t, size_t, ncclDebugLogger_t, void **);
    ncclResult_t (*get)(void *, ncclFunc_t, size_t, int, int, int, int *, int *, int *);
    ncclResult_t (*destroy)(void *);
};
static ncclResult_t get2(void *ctx, ncclFunc_t f, size_t b, int cn, int nvls, int ops, int *a,
                         int *p, int *nc)
{
    return destroy2(ctx) || cn || nvls || ops < 1 ? ncclInternalError
                                                  : by_number(2, f, b, a, p, nc);
}
EXPORT(tuner2, ncclTunerPlugin_v2, init2, get2, destroy2);

struct tuner3 {
    const char *name;
    ncclResult_t (*init)(size_t, size_t, ncclDebugLogger_t, void **);
    ncclResult_t (*get)(void *, ncclFunc_t, size_t, int, float **, int, int, int *);
    ncclResult_t (*destroy)(void *);
};
static ncclResult_t get3(void *ctx, ncclFunc_t f, size_t b, int ops, float **t, int na, int np,
                         int *nc)
{
    return destroy2(ctx) || ops < 1 ? ncclInternalError : by_table(3, f, b, t, na, np, nc);
}
EXPORT(tuner3, ncclTunerPlugin_v3, init2, get3, destroy2);

struct tuner4 {
    const char *name;
    ncclResult_t (*init)(size_t, size_t, ncclDebugLogger_t, void **);
    ncclResult_t (*get)(void *, ncclFunc_t, size_t, int, float **, int, int, int, int *);
    ncclResult_t (*destroy)(void *);
};
static ncclResult_t get4(void *ctx, ncclFunc_t f, size_t b, int ops, float **t, int na, int np,
                         int reg, int *nc)
{
    return destroy2(ctx) || ops < 1 || reg ? ncclInternalError : by_table(4, f, b, t, na, np, nc);
}
EXPORT(tuner4, ncclTunerPlugin_v4, init2, get4, destroy2);

struct domain {
    int n, min, max;
};
static ncclResult_t init5(void **ctx, uint64_t id, size_t nranks, size_t nodes,
                          ncclDebugLogger_t log, struct domain *d, double *constants)
{
    return id && d->n > 0 && d->max > 0 && constants ? init2(nranks, nodes, log, ctx)
                                                     : ncclInternalError;
}
struct tuner5 {
    const char *name;
    ncclResult_t (*init)(void **, uint64_t, size_t, size_t, ncclDebugLogger_t, struct domain *,
                         double *);
    ncclResult_t (*get)(void *, ncclFunc_t, size_t, int, float **, int, int, int, int *);
    ncclResult_t (*finalize)(void *);
    ncclResult_t (*chunk)(void *, ncclFunc_t, size_t, int, int, int, size_t *);
};
static ncclResult_t get5(void *ctx, ncclFunc_t f, size_t b, int ops, float **t, int na, int np,
                         int reg, int *nc)
{
    return destroy2(ctx) || ops < 1 || reg ? ncclInternalError : by_table(5, f, b, t, na, np, nc);
}
EXPORT(tuner5, ncclTunerPlugin_v5, init5, get5, destroy2, NULL);
static int chunk_asked;
static ncclResult_t get6(void *ctx, ncclFunc_t f, size_t b, int ops, float **t, int na, int np,
                         int reg, int *nc)
{
    ncclResult_t res = get5(ctx, f, b, ops, t, na, np, reg, nc);
    tuner_version = 6;
    return res;
}
static ncclResult_t chunk6(void *ctx, ncclFunc_t f, size_t b, int algo, int proto, int nc,
                           size_t *chunk)
{
    chunk_asked += f == ncclFuncAllReduce && b == 65536 && algo == ALGO_TREE &&
                   proto == PROTO_SIMPLE && nc == 3;
    return destroy2(ctx) || *chunk == 0 ? ncclInternalError : ncclSuccess;
}
EXPORT(tuner5, ncclTunerPlugin_v6, init5, get6, destroy2, chunk6);

/* ---- profiler: Coll, and what else the interface has ---- */

static ncclResult_t init_p1(void **ctx, int *mask)
{
    *ctx = &profiler_version;
    *mask = 0xfff;
    return ncclSuccess;
}
static ncclResult_t init_p4(void **ctx, int *mask, const char *name, uint64_t hash, int nodes,
                            int nranks, int rank, ncclDebugLogger_t log)
{
    return !name && hash && nodes == 1 && nranks == 2 && rank < 2 && log ? init_p1(ctx, mask)
                                                                         : ncclInternalError;
}
static ncclResult_t init_p5(void **ctx, uint64_t hash, int *mask, const char *name, int nodes,
                            int nranks, int rank, ncclDebugLogger_t log)
{
    return init_p4(ctx, mask, name, hash, nodes, nranks, rank, log);
}

static void saw(int version, const char *func, size_t count, const char *type, int nc,
                const char *algo, const char *proto)
{
    profiler_version = version;
    snprintf(seen_coll, sizeof(seen_coll), "%s %zu %s %d %s %s", func, count, type, nc, algo,
             proto);
}

struct coll1 {
    uint8_t type;
    void *parent;
    int rank;
    const char *name;
    uint64_t hash, seq;
    uint8_t func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    uint8_t datatype;
    uint32_t op;
    size_t traffic;
    uint8_t nc, nw, algo, proto;
};
struct coll2 {
    uint8_t type;
    void *parent;
    int rank;
    const char *name;
    uint64_t hash, seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    size_t traffic;
    uint8_t nc, nw;
    const char *algo, *proto;
};
struct coll3 {
    uint8_t type;
    void *parent;
    int rank;
    const char *name;
    uint64_t hash, seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    uint8_t nc, nw;
    const char *algo, *proto;
};
struct coll4 {
    uint8_t type;
    void *parent;
    int rank;
    uint64_t seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    uint8_t nc, nw;
    const char *algo, *proto;
};
struct coll5 {
    uint64_t type;
    void *parent;
    int rank;
    uint64_t seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    uint8_t nc, nw;
    const char *algo, *proto;
    void *group;
};
#define COLL 2
#define START(n)                                                              \
    static ncclResult_t start##n(void *ctx, void **event, struct coll##n *d)  \
    {                                                                         \
        *event = seen_coll;                                                   \
        if (ctx == &profiler_version && d->type == COLL)                      \
            saw(n, d->func, d->count, d->datatype, d->nc, d->algo, d->proto); \
        return ncclSuccess;                                                   \
    }
START(2)
START(3)
START(4)
START(5)
static ncclResult_t start1(void *ctx, void **event, struct coll1 *d)
{
    *event = seen_coll;
    if (ctx == &profiler_version && d->type == COLL && d->func == ncclFuncAllReduce &&
        d->datatype == ncclFloat32 && d->algo == ALGO_TREE && d->proto == PROTO_SIMPLE)
        saw(1, "AllReduce", d->count, "ncclFloat32", d->nc, "TREE", "SIMPLE");
    return ncclSuccess;
}
static ncclResult_t start6(void *ctx, void **event, struct coll5 *d)
{
    start5(ctx, event, d);
    profiler_version = 6;
    return ncclSuccess;
}
static ncclResult_t stop_event(void *event)
{
    return event == seen_coll ? ncclSuccess : ncclInternalError;
}
static ncclResult_t record_state(void *event, int what, void *args)
{
    return event == seen_coll && what && !args ? ncclSuccess : ncclInternalError;
}
static ncclResult_t fini(void *ctx)
{
    return ctx == &profiler_version ? ncclSuccess : ncclInternalError;
}
#define PROFILER(n, init_fn)                                                              \
    struct profiler##n {                                                                  \
        const char *name;                                                                 \
        void *init, *start;                                                               \
        ncclResult_t (*stop)(void *);                                                     \
        ncclResult_t (*record)(void *, int, void *);                                      \
        ncclResult_t (*finalize)(void *);                                                 \
    };                                                                                    \
    EXPORT(profiler##n, ncclProfiler_v##n, (void *)init_fn, (void *)start##n, stop_event, \
           record_state, fini)
PROFILER(1, init_p1);
PROFILER(2, init_p1);
PROFILER(3, init_p1);
PROFILER(4, init_p4);
PROFILER(5, init_p5);
PROFILER(6, init_p5);

/* ---- the test ---- */

static void one_call(struct rank *r)
{
    OK(r->init);
    char *p = device_memory(65536);
    OK(ncclAllReduce(p, p, 16384, ncclFloat32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    OK(ncclCommDestroy(r->comm));
}

static int want_tuner, want_profiler;
static const char *library;
static void run_version(void)
{
    load(library);
    ranks(2, one_call);
    if (tuner_version != want_tuner || profiler_version != want_profiler)
        fprintf(stderr, "%s: tuner v%d, profiler v%d\n", library, tuner_version, profiler_version);
    CHECK(tuner_version == want_tuner);
    CHECK(profiler_version == want_profiler);
    if (want_profiler)
        CHECK(!strcmp(seen_coll, "AllReduce 16384 ncclFloat32 3 TREE SIMPLE"));
    CHECK(chunk_asked == (want_tuner == 6 ? 2 : 0));
}

static void each_version_takes_the_newest_interface_it_knows(void **state)
{
    static const struct {
        const char *library;
        int tuner, profiler;
    } v[] = {
        {"nccl-21403/libnccl.so.2", 0, 0}, {"nccl-21903/libnccl.so.2", 1, 0},
        {"nccl-22105/libnccl.so.2", 2, 0}, {"nccl-22304/libnccl.so.2", 3, 1},
        {"nccl-22403/libnccl.so.2", 4, 2}, {"nccl-22602/libnccl.so.2", 4, 3},
        {"nccl-22703/libnccl.so.2", 4, 4}, {"libnccl.so.2", 5, 5},
        {"nccl-23007/libnccl.so.2", 6, 6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        library = v[i].library;
        want_tuner = v[i].tuner;
        want_profiler = v[i].profiler;
        assert_int_equal(in_child(run_version, "NCCL_TUNER_PLUGIN=STATIC_PLUGIN",
                                  "NCCL_PROFILER_PLUGIN=STATIC_PLUGIN", NULL),
                         0);
    }
}

int main(void)
{
    find_stand_ins();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_version_takes_the_newest_interface_it_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
