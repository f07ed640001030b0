/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated NCCL against what is known of the real one. Each test runs in a child process of its
 * own, since NCCL reads most of its environment once. Ranks are threads, or processes where it matters.
 */
#include "test/fake/nccl_decl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the libraries, by dlopen ----------------------------------------------------------------------- */

#define N(ret, name, ...) static ret (*name)(__VA_ARGS__);
#define NCCL_FUNCTIONS(F)                                                                          \
    F(ncclResult_t, ncclGetVersion, int *)                                                         \
    F(ncclResult_t, ncclGetUniqueId, ncclUniqueId *)                                               \
    F(const char *, ncclGetErrorString, ncclResult_t)                                              \
    F(const char *, ncclGetLastError, ncclComm_t)                                                  \
    F(ncclResult_t, ncclCommInitRank, ncclComm_t *, int, ncclUniqueId, int)                        \
    F(ncclResult_t, ncclCommInitAll, ncclComm_t *, int, const int *)                               \
    F(ncclResult_t, ncclCommInitRankConfig, ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *)  \
    F(ncclResult_t, ncclCommSplit, ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *)             \
    F(ncclResult_t, ncclCommShrink, ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int)     \
    F(ncclResult_t, ncclCommGrow, ncclComm_t, int, const ncclUniqueId *, int, ncclComm_t *, ncclConfig_t *) \
    F(ncclResult_t, ncclCommGetUniqueId, ncclComm_t, ncclUniqueId *)                               \
    F(ncclResult_t, ncclCommDestroy, ncclComm_t)                                                   \
    F(ncclResult_t, ncclCommAbort, ncclComm_t)                                                     \
    F(ncclResult_t, ncclCommFinalize, ncclComm_t)                                                  \
    F(ncclResult_t, ncclCommGetAsyncError, ncclComm_t, ncclResult_t *)                             \
    F(ncclResult_t, ncclCommCount, ncclComm_t, int *)                                              \
    F(ncclResult_t, ncclCommUserRank, ncclComm_t, int *)                                           \
    F(ncclResult_t, ncclAllReduce, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, CUstream) \
    F(ncclResult_t, ncclReduce, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, CUstream) \
    F(ncclResult_t, ncclBroadcast, const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream) \
    F(ncclResult_t, ncclAllGather, const void *, void *, size_t, ncclDataType_t, ncclComm_t, CUstream) \
    F(ncclResult_t, ncclReduceScatter, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, CUstream) \
    F(ncclResult_t, ncclAlltoAll, const void *, void *, size_t, ncclDataType_t, ncclComm_t, CUstream) \
    F(ncclResult_t, ncclSend, const void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream)     \
    F(ncclResult_t, ncclRecv, void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream)           \
    F(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t *, void *, ncclDataType_t, ncclScalarResidence_t, ncclComm_t) \
    F(ncclResult_t, ncclGroupStart, void)                                                          \
    F(ncclResult_t, ncclGroupEnd, void)
NCCL_FUNCTIONS(N)
#define MEMBER(ret, name, ...) ret (*name)(__VA_ARGS__);
#define CUDA_FUNCTIONS(F)                                                                          \
    F(CUresult, cuInit, unsigned)                                                                  \
    F(CUresult, cuDeviceGet, CUdevice *, int)                                                      \
    F(CUresult, cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)                                   \
    F(CUresult, cuCtxSetCurrent, CUcontext)                                                        \
    F(CUresult, cuMemAlloc_v2, CUdeviceptr *, size_t)                                              \
    F(CUresult, cuMemcpyHtoD_v2, CUdeviceptr, const void *, size_t)                                \
    F(CUresult, cuMemcpyDtoH_v2, void *, CUdeviceptr, size_t)                                      \
    F(CUresult, cuStreamCreate, CUstream *, unsigned)                                              \
    F(CUresult, cuStreamSynchronize, CUstream)                                                     \
    F(CUresult, cuStreamBeginCapture_v2, CUstream, CUstreamCaptureMode)                            \
    F(CUresult, cuStreamEndCapture, CUstream, CUgraph *)                                           \
    F(CUresult, cuGraphGetNodes, CUgraph, CUgraphNode *, size_t *)                                 \
    F(CUresult, cuGraphNodeGetType, CUgraphNode, CUgraphNodeType *)                                \
    F(CUresult, cuGraphInstantiateWithFlags, CUgraphExec *, CUgraph, unsigned long long)           \
    F(CUresult, cuGraphLaunch, CUgraphExec, CUstream)                                              \
    F(CUresult, cuGraphExecDestroy, CUgraphExec)                                                   \
    F(CUresult, cuGraphDestroy, CUgraph)                                                           \
    F(CUresult, cuEventCreate, CUevent *, unsigned)                                                \
    F(CUresult, cuEventRecord, CUevent, CUstream)                                                  \
    F(CUresult, cuEventElapsedTime, float *, CUevent, CUevent)
static struct {
    CUDA_FUNCTIONS(MEMBER)
} cu;

static char dir[4096];

static void *open_lib(const char *name)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        fprintf(stderr, "%s\n", dlerror());
    return lib;
}

/* Functions that a version lacks stay NULL. */
static void load(const char *nccl)
{
    void *n = open_lib(nccl ? nccl : "libnccl.so.2"), *c = open_lib("libcuda.so.1");
    if (!n || !c)
        _exit(90);
#define FIND_N(ret, name, ...) *(void **)&name = dlsym(n, #name);
#define FIND_C(ret, name, ...) *(void **)&cu.name = dlsym(c, #name);
    NCCL_FUNCTIONS(FIND_N)
    CUDA_FUNCTIONS(FIND_C)
}

/* ---- children and ranks -------------------------------------------------------------------------------- */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s (NCCL says: %s)\n", __func__, __LINE__, #condition, \
                    ncclGetLastError ? ncclGetLastError(NULL) : "");                               \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define OK(call) CHECK((call) == 0)

/* Runs fn in a child with NAME=VALUE ... NULL; the child's exit code. */
static int in_child(void (*fn)(void), ...)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        va_list ap;
        va_start(ap, fn);
        alarm(60);
        setenv("NCCLSHIM_FAKE_PACE", "0", 1);
        for (char *s; (s = va_arg(ap, char *));)
            putenv(s);
        va_end(ap);
        fn();
        fflush(NULL);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
#define TEST(name, ...)                                                                            \
    static void run_##name(void);                                                                  \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        assert_int_equal(in_child(run_##name, ##__VA_ARGS__, NULL), 0);                            \
    }                                                                                              \
    static void run_##name(void)

struct rank {
    int rank, n;
    ncclUniqueId id;
    ncclComm_t comm;
    CUstream stream;
    ncclResult_t init;
    void (*body)(struct rank *);
};
static pthread_barrier_t barrier;

static void use_device(int device)
{
    CUdevice d;
    CUcontext ctx;
    OK(cu.cuInit(0));
    OK(cu.cuDeviceGet(&d, device));
    OK(cu.cuDevicePrimaryCtxRetain(&ctx, d));
    OK(cu.cuCtxSetCurrent(ctx));
}

static void *rank_main(void *arg)
{
    struct rank *r = arg;
    use_device(r->rank);
    OK(cu.cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING));
    r->init = ncclCommInitRank(&r->comm, r->n, r->id, r->rank);
    r->body(r);
    return NULL;
}

/* n ranks as threads, each with a communicator, a stream and a device of its own. */
static void ranks(int n, void (*body)(struct rank *))
{
    struct rank r[16] = {{0}};
    pthread_t t[16];
    ncclUniqueId id;
    OK(ncclGetUniqueId(&id));
    pthread_barrier_init(&barrier, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        r[i] = (struct rank){.rank = i, .n = n, .id = id, .body = body};
        pthread_create(&t[i], NULL, rank_main, &r[i]);
    }
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
}

static void *device_memory(size_t bytes)
{
    CUdeviceptr p;
    OK(cu.cuMemAlloc_v2(&p, bytes));
    return (void *)(uintptr_t)p;
}

static void put(void *to, const void *from, size_t bytes)
{
    OK(cu.cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)to, from, bytes));
}

static void get(void *to, const void *from, size_t bytes)
{
    OK(cu.cuMemcpyDtoH_v2(to, (CUdeviceptr)(uintptr_t)from, bytes));
}

static ncclResult_t async_error(ncclComm_t comm)
{
    ncclResult_t res;
    OK(ncclCommGetAsyncError(comm, &res));
    return res;
}

/* ---- without a driver ------------------------------------------------------------------------------------ */

static void run_no_driver(void)
{
    int version = 0;
    ncclUniqueId a, b;
    void *n = open_lib("libnccl.so.2");
    NCCL_FUNCTIONS(FIND_N)
    OK(ncclGetVersion(&version));
    CHECK(version == 22809);
    OK(ncclGetUniqueId(&a));
    OK(ncclGetUniqueId(&b));
    CHECK(memcmp(&a, &b, sizeof(a)));
    OK(ncclGroupStart());
    OK(ncclGroupEnd());
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    CHECK(!strcmp(ncclGetErrorString(ncclInProgress), "NCCL operation in progress"));
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    ncclComm_t comm;
    if (!driver || !dlsym(driver, "fakecuda_launch"))
        CHECK(ncclCommInitRank(&comm, 1, a, 0) == ncclUnhandledCudaError);
}
static void version_id_and_groups_work_without_a_driver(void **state)
{
    (void)state;
    assert_int_equal(in_child(run_no_driver, NULL), 0);
}

TEST(each_version_exports_what_it_had_and_no_more)
{
    static const struct {
        const char *lib;
        int code;
        const char *newest, *not_yet;
    } v[] = {
        {"nccl-2803/libnccl.so.2", 2803, "ncclRecv", "ncclRedOpCreatePreMulSum"},
        {"nccl-21403/libnccl.so.2", 21403, "ncclCommFinalize", "ncclCommSplit"},
        {"nccl-21903/libnccl.so.2", 21903, "ncclMemAlloc", "ncclGroupSimulateEnd"},
        {"nccl-22304/libnccl.so.2", 22304, "ncclCommInitRankScalable", "ncclCommShrink"},
        {"libnccl.so.2", 22809, "ncclCommRevoke", "ncclCommGrow"},
        {"nccl-23007/libnccl.so.2", 23007, "ncclParamBind", "ncclNoSuchThing"},
    };
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        char p[64];
        int code = 0;
        void *lib = open_lib(v[i].lib);
        CHECK(lib);
        snprintf(p, sizeof(p), "p%s", v[i].newest);
        CHECK(dlsym(lib, v[i].newest) && dlsym(lib, p) && !dlsym(lib, v[i].not_yet));
        OK(((ncclResult_t(*)(int *))dlsym(lib, "ncclGetVersion"))(&code));
        CHECK(code == v[i].code);
        CHECK(!dlsym(lib, "fake_comm_new"));
    }
}

/* ---- data ------------------------------------------------------------------------------------------------- */

#define COUNT 1000
static float widen(ncclDataType_t type, const void *p, size_t i)
{
    uint32_t u;
    float f;
    switch (type) {
    case ncclInt8: return ((const int8_t *)p)[i];
    case ncclUint8: return ((const uint8_t *)p)[i];
    case ncclInt32: return (float)((const int32_t *)p)[i];
    case ncclUint32: return (float)((const uint32_t *)p)[i];
    case ncclInt64: return (float)((const int64_t *)p)[i];
    case ncclUint64: return (float)((const uint64_t *)p)[i];
    case ncclFloat32: return ((const float *)p)[i];
    case ncclFloat64: return (float)((const double *)p)[i];
    case ncclBfloat16:
        u = (uint32_t)((const uint16_t *)p)[i] << 16;
        memcpy(&f, &u, 4);
        return f;
    case ncclFloat16: return (float)((const _Float16 *)p)[i];
    default: { /* fp8, by the definition */
        unsigned v = ((const uint8_t *)p)[i], man = type == ncclFloat8e4m3 ? 3 : 2;
        int bias = type == ncclFloat8e4m3 ? 7 : 15, e = (int)((v & 127) >> man), m = (int)(v & ((1u << man) - 1));
        f = (float)(e ? m + (1 << man) : m);
        for (int s = (e ? e : 1) - bias - (int)man; s != 0; s += s < 0 ? 1 : -1)
            f = s < 0 ? f / 2 : f * 2;
        return v & 128 ? -f : f;
    }
    }
}

/* Small whole numbers: exact in every type. */
static void narrow(ncclDataType_t type, void *p, size_t i, int v)
{
    static const uint8_t e4m3[] = {0, 0x38, 0x40, 0x44, 0x48}, e5m2[] = {0, 0x3c, 0x40, 0x42, 0x44};
    float f = (float)v;
    uint32_t u;
    switch (type) {
    case ncclInt8: case ncclUint8: ((uint8_t *)p)[i] = (uint8_t)v; break;
    case ncclInt32: case ncclUint32: ((int32_t *)p)[i] = v; break;
    case ncclInt64: case ncclUint64: ((int64_t *)p)[i] = v; break;
    case ncclFloat32: ((float *)p)[i] = f; break;
    case ncclFloat64: ((double *)p)[i] = v; break;
    case ncclFloat16: ((_Float16 *)p)[i] = (_Float16)f; break;
    case ncclBfloat16:
        memcpy(&u, &f, 4);
        ((uint16_t *)p)[i] = (uint16_t)(u >> 16);
        break;
    case ncclFloat8e4m3: ((uint8_t *)p)[i] = e4m3[v]; break;
    case ncclFloat8e5m2: ((uint8_t *)p)[i] = e5m2[v]; break;
    }
}

static void reduce_all_types(struct rank *r)
{
    OK(r->init);
    char *host = malloc(COUNT * 8);
    void *in = device_memory(COUNT * 8), *out = device_memory(COUNT * 8);
    for (ncclDataType_t type = 0; type <= ncclFloat8e5m2; type++)
        for (ncclRedOp_t op = ncclSum; op <= ncclAvg; op++) {
            for (size_t i = 0; i < COUNT; i++)
                narrow(type, host, i, (int)(i + (size_t)r->rank) % 3 + (r->n == 2) * 0);
            put(in, host, COUNT * 8);
            OK(ncclAllReduce(in, op % 2 ? in : out, COUNT, type, op, r->comm, r->stream));
            OK(cu.cuStreamSynchronize(r->stream));
            get(host, op % 2 ? in : out, COUNT * 8);
            for (size_t i = 0; i < COUNT; i++) {
                int want = 0, a = (int)i % 3, b = (int)(i + 1) % 3;
                want = op == ncclSum ? a + b : op == ncclProd ? a * b : op == ncclMax ? (a > b ? a : b) : op == ncclMin ? (a < b ? a : b) : 0;
                float got = widen(type, host, i);
                float average = type <= ncclUint64 ? (float)((a + b) / 2) : (float)(a + b) / 2;
                CHECK(got == (op == ncclAvg ? average : (float)want));
            }
        }
    OK(ncclCommDestroy(r->comm));
}
TEST(every_type_and_operator_gives_the_right_sum)
{
    load(NULL);
    ranks(2, reduce_all_types);
}

static void all_collectives(struct rank *r)
{
    OK(r->init);
    enum { M = 50000 };
    int n = r->n, *host = malloc((size_t)n * M * 4), *in = device_memory((size_t)n * M * 4), *out = device_memory((size_t)n * M * 4);
    for (int i = 0; i < n * M; i++)
        host[i] = r->rank * 1000003 + i;
    put(in, host, (size_t)n * M * 4);
#define SEE(call, bytes)                                                                           \
    OK(call);                                                                                      \
    OK(cu.cuStreamSynchronize(r->stream));                                                            \
    get(host, out, bytes)
    SEE(ncclAllReduce(in, out, M, ncclInt32, ncclSum, r->comm, r->stream), M * 4);
    for (int i = 0; i < M; i++)
        CHECK(host[i] == n * i + n * (n - 1) / 2 * 1000003);
    SEE(ncclReduce(in, out, M, ncclInt32, ncclMax, 1, r->comm, r->stream), M * 4);
    for (int i = 0; i < M && r->rank == 1; i++)
        CHECK(host[i] == (n - 1) * 1000003 + i);
    SEE(ncclBroadcast(in, out, M, ncclInt32, 2, r->comm, r->stream), M * 4);
    for (int i = 0; i < M; i++)
        CHECK(host[i] == 2 * 1000003 + i);
    SEE(ncclAllGather(in, out, M, ncclInt32, r->comm, r->stream), (size_t)n * M * 4);
    for (int i = 0; i < n * M; i++)
        CHECK(host[i] == i / M * 1000003 + i % M);
    SEE(ncclReduceScatter(in, out, M, ncclInt32, ncclSum, r->comm, r->stream), M * 4);
    for (int i = 0; i < M; i++)
        CHECK(host[i] == n * (r->rank * M + i) + n * (n - 1) / 2 * 1000003);
    SEE(ncclAlltoAll(in, out, M, ncclInt32, r->comm, r->stream), (size_t)n * M * 4);
    for (int i = 0; i < n * M; i++)
        CHECK(host[i] == i / M * 1000003 + r->rank * M + i % M);
    /* Two ranks talk, the others do not come. */
    if (r->rank == 0)
        OK(ncclSend(in, M, ncclInt32, 3, r->comm, r->stream));
    if (r->rank == 3) {
        SEE(ncclRecv(out, M, ncclInt32, 0, r->comm, r->stream), M * 4);
        CHECK(host[M - 1] == M - 1);
    }
    /* Each multiplies by its own factor before the sum. */
    int factor = r->rank + 1;
    ncclRedOp_t op;
    OK(ncclRedOpCreatePreMulSum(&op, &factor, ncclInt32, ncclScalarHostImmediate, r->comm));
    SEE(ncclAllReduce(in, out, 3, ncclInt32, op, r->comm, r->stream), 12);
    int want = 0;
    for (int q = 0; q < n; q++)
        want += (q + 1) * (q * 1000003 + 2);
    CHECK(host[2] == want);
    OK(async_error(r->comm));
    OK(ncclCommDestroy(r->comm));
}
TEST(every_collective_moves_the_right_data)
{
    load(NULL);
    ranks(4, all_collectives);
}

static void big_sum(struct rank *r)
{
    OK(r->init);
    size_t m = 800001;
    float *host = malloc(m * 4), *p = device_memory(m * 4);
    for (size_t i = 0; i < m; i++)
        host[i] = (float)(r->rank + (int)(i % 100));
    put(p, host, m * 4);
    OK(ncclAllReduce(p, p, m, ncclFloat32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    get(host, p, m * 4);
    for (size_t i = 0; i < m; i++)
        CHECK(host[i] == (float)(r->n * (r->n - 1) / 2 + r->n * (int)(i % 100)));
    OK(ncclCommDestroy(r->comm));
}

/* Four processes, of which `victim` kills itself before its collective. */
static int processes(int n, int victim, void (*body)(struct rank *), int worst)
{
    ncclUniqueId id;
    OK(ncclGetUniqueId(&id));
    pid_t pids[16];
    for (int i = 0; i < n; i++)
        if (!(pids[i] = fork())) {
            struct rank r = {.rank = i, .n = n, .id = id, .body = body};
            alarm(50);
            use_device(i);
            OK(cu.cuStreamCreate(&r.stream, CU_STREAM_NON_BLOCKING));
            r.init = ncclCommInitRank(&r.comm, n, id, i);
            if (i == victim)
                kill(getpid(), SIGKILL);
            body(&r);
            _exit(0);
        }
    for (int i = 0; i < n; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        if (i != victim && status)
            worst = status;
    }
    return worst;
}

TEST(ranks_in_several_processes_share_one_communicator)
{
    load(NULL);
    CHECK(processes(4, -1, big_sum, 0) == 0);
}

static void lost_peer(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64);
    OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    CHECK(async_error(r->comm) == ncclRemoteError);
    OK(ncclCommAbort(r->comm));
}
TEST(a_killed_rank_ends_in_a_remote_error_on_the_others, "NCCLSHIM_FAKE_TIMEOUT=2")
{
    load(NULL);
    CHECK(processes(3, 1, lost_peer, 0) == 0);
}

TEST(init_gives_up_when_a_rank_does_not_come, "NCCLSHIM_FAKE_TIMEOUT=1")
{
    ncclUniqueId id;
    ncclComm_t comm;
    load(NULL);
    use_device(0);
    OK(ncclGetUniqueId(&id));
    CHECK(ncclCommInitRank(&comm, 2, id, 0) == ncclSystemError);
    CHECK(comm == NULL);
}

static void stuck_rank(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64);
    if (r->rank == 0) {
        OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream));
        usleep(100000);
    }
    OK(ncclCommAbort(r->comm));
}
TEST(abort_frees_a_stuck_collective)
{
    load(NULL);
    ranks(2, stuck_rank);
}

static void different_counts(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64);
    OK(ncclAllReduce(p, p, r->rank ? 4 : 8, ncclInt32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    CHECK(async_error(r->comm) == ncclInvalidArgument);
    OK(ncclCommAbort(r->comm));
}
TEST(different_sizes_are_an_asynchronous_error)
{
    load(NULL);
    ranks(2, different_counts);
}

static void in_the_child_of_a_fork(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64), status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(5);
        _exit(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream) == ncclUnhandledCudaError &&
                      ncclCommDestroy(r->comm) == ncclUnhandledCudaError
                  ? 0
                  : 1);
    }
    waitpid(pid, &status, 0);
    CHECK(status == 0);
    OK(ncclCommDestroy(r->comm));
}
TEST(a_forked_child_gets_an_error_and_does_not_hang)
{
    load(NULL);
    ranks(1, in_the_child_of_a_fork);
}

/* ---- arguments and groups ------------------------------------------------------------------------------------ */

static void bad_arguments(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64), other = 0;
    CHECK(ncclAllReduce(p, p, 1, ncclInt32, ncclSum, NULL, r->stream) == ncclInvalidArgument);
    CHECK(ncclBroadcast(p, p, 1, ncclInt32, 2, r->comm, r->stream) == ncclInvalidArgument);
    CHECK(ncclAllReduce(p, p, 1, (ncclDataType_t)12, ncclSum, r->comm, r->stream) == ncclInvalidArgument);
    CHECK(ncclAllReduce(p, p, 1, ncclInt32, (ncclRedOp_t)77, r->comm, r->stream) == ncclInvalidArgument);
    CHECK(ncclAllReduce(&other, p, 1, ncclInt32, ncclSum, r->comm, r->stream) == ncclInvalidArgument); /* CHECK_POINTERS */
    OK(ncclGroupStart());
    OK(ncclGroupStart());
    OK(ncclAllReduce(p, p, 1, ncclInt32, ncclSum, r->comm, r->stream));
    CHECK(ncclAllReduce(p, p, 1, (ncclDataType_t)99, ncclSum, r->comm, r->stream) == ncclInvalidArgument);
    OK(ncclGroupEnd()); /* the inner end launches nothing and fails nothing */
    CHECK(ncclGroupEnd() == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    OK(ncclAllReduce(p, p, 0, ncclInt32, ncclSum, r->comm, r->stream)); /* nothing: needs nobody */
    OK(cu.cuStreamSynchronize(r->stream));
    OK(ncclCommDestroy(r->comm));
}
TEST(wrong_arguments_are_refused_as_NCCL_refuses_them, "NCCL_CHECK_POINTERS=1")
{
    load(NULL);
    ranks(2, bad_arguments);
}

TEST(one_thread_drives_many_ranks_by_groups)
{
    enum { n = 4 };
    ncclComm_t c[n], sub[n];
    CUstream s[n];
    int *p[n], host[8];
    load(NULL);
    use_device(0);
    OK(ncclCommInitAll(c, n, NULL));
    for (int i = 0; i < n; i++) {
        use_device(i);
        OK(cu.cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
        p[i] = device_memory(64);
        for (int k = 0; k < 8; k++)
            host[k] = i + k;
        put(p[i], host, 32);
    }
    OK(ncclGroupStart());
    for (int i = 0; i < n; i++) { /* a ring of messages beside two sums of different sizes */
        OK(ncclAllReduce(p[i], p[i], 2, ncclInt32, ncclSum, c[i], s[i]));
        OK(ncclSend(p[i] + 4, 1, ncclInt32, (i + 1) % n, c[i], s[i]));
        OK(ncclRecv(p[i] + 8, 1, ncclInt32, (i + n - 1) % n, c[i], s[i]));
        OK(ncclAllReduce(p[i] + 2, p[i] + 2, 1, ncclInt32, ncclMax, c[i], s[i]));
    }
    OK(ncclGroupEnd());
    for (int i = 0; i < n; i++) {
        OK(cu.cuStreamSynchronize(s[i]));
        get(host, p[i], 32);
        CHECK(host[0] == 6 && host[1] == 10 && host[2] == 5);
        get(host, p[i] + 8, 4);
        CHECK(host[0] == (i + n - 1) % n + 4);
    }
    OK(ncclGroupStart());
    for (int i = 0; i < n; i++)
        OK(ncclCommSplit(c[i], i == 3 ? NCCL_SPLIT_NOCOLOR : i % 2, -i, &sub[i], NULL));
    OK(ncclGroupEnd());
    int count, rank;
    CHECK(sub[3] == NULL);
    OK(ncclCommCount(sub[0], &count));
    OK(ncclCommUserRank(sub[0], &rank));
    CHECK(count == 2 && rank == 1); /* rank 2 has the smaller key */
    for (int i = 0; i < n; i++)
        OK(ncclCommDestroy(c[i]));
}

/* ---- configuration and environment -------------------------------------------------------------------------------- */

static ncclConfig_t config(size_t size, unsigned version)
{
    ncclConfig_t c;
    for (size_t i = 0; i < sizeof(c) / 4; i++)
        ((int *)&c)[i] = NCCL_CONFIG_UNDEF_INT;
    c.netName = c.commName = NULL;
    c.size = size;
    c.magic = NCCL_API_MAGIC;
    c.version = version;
    return c;
}

static ncclResult_t init_one(const ncclConfig_t *c)
{
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    OK(ncclGetUniqueId(&id));
    ncclResult_t res = ncclCommInitRankConfig(&comm, 1, id, 0, (ncclConfig_t *)(uintptr_t)c);
    if (comm && res == ncclSuccess)
        OK(ncclCommDestroy(comm));
    return res;
}

TEST(an_old_callers_short_config_is_read_to_its_end_and_no_further)
{
    load(NULL);
    use_device(0);
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    ncclConfig_t c = config(24, 21403), *at = (ncclConfig_t *)(void *)(page + 4096 - 24);
    memcpy(at, &c, 24);
    OK(init_one(at));
    c = config(48, 21805);
    at = (ncclConfig_t *)(void *)(page + 4096 - 48);
    c.trafficClass = 12345; /* padding of that version */
    memcpy(at, &c, 48);
    OK(init_one(at));
    c = config(4096, 24000);
    memset(page, 0x55, 4096);
    memcpy(page, &c, 80);
    OK(init_one((ncclConfig_t *)(void *)page));
    c = config(80, 22809);
    c.magic = 1;
    CHECK(init_one(&c) == ncclInvalidArgument);
    c = config(80, 22809);
    c.minCTAs = 8; /* undefined is the smallest number: 8 is above it */
    CHECK(init_one(&c) == ncclInvalidArgument);
    c.maxCTAs = 8;
    OK(init_one(&c));
    c.blocking = 2;
    CHECK(init_one(&c) == ncclInvalidArgument);
    c = config(80, 21700);
    c.blocking = 1, c.nvlsCTAs = -7; /* newer than the version it claims: not looked at */
    OK(init_one(&c));
}

static char asked[400][64];
static int nasked;
static const char *plugin_getenv(const char *name)
{
    if (nasked < 400)
        snprintf(asked[nasked++], 64, "%s", name);
    return !strcmp(name, "NCCL_PROTO") ? "Simple" : getenv(name);
}
static ncclResult_t plugin_init(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix)
{
    return major == 2 && minor == 28 && patch == 9 && suffix ? ncclSuccess : ncclInternalError;
}
static ncclResult_t plugin_fini(void)
{
    return ncclSuccess;
}
struct env_plugin {
    const char *name;
    ncclResult_t (*init)(uint8_t, uint8_t, uint8_t, const char *);
    ncclResult_t (*finalize)(void);
    const char *(*getEnv)(const char *);
};
extern const struct env_plugin ncclEnvPlugin_v1;
__attribute__((visibility("default"))) const struct env_plugin ncclEnvPlugin_v1 = {"test", plugin_init, plugin_fini, plugin_getenv};

static int times_asked(const char *name)
{
    int n = 0;
    for (int i = 0; i < nasked; i++)
        n += !strcmp(asked[i], name);
    return n;
}

TEST(the_env_plugin_is_asked_and_obeyed, "NCCL_ENV_PLUGIN=STATIC_PLUGIN", "NCCL_BUFFSIZE=0x10")
{
    load(NULL);
    use_device(0);
    CHECK(nasked == 0);
    OK(ncclGroupStart());
    OK(ncclGroupEnd());
    CHECK(times_asked("NCCL_NVTX_DISABLE") == 1 && !times_asked("NCCL_SOCKET_IFNAME"));
    OK(init_one(NULL));
    CHECK(times_asked("NCCL_SOCKET_IFNAME") && times_asked("NCCL_COMM_ID"));
    OK(init_one(NULL));
    CHECK(times_asked("NCCL_BUFFSIZE") == 1);                               /* cached for the process */
    CHECK(times_asked("NCCL_PROTO") == 2 && times_asked("NCCL_ALGO") == 2); /* each communicator asks */
    CHECK(times_asked("NCCL_GRAPH_FILE") == 8);
    CHECK(!times_asked("NCCL_DEBUG") && !times_asked("NCCL_MULTI_RANK_GPU_ENABLE"));
}

TEST(a_conf_file_does_not_beat_the_environment_and_is_not_trimmed, "NCCL_CONF_FILE=/tmp/fake-nccl-test.conf", "NCCL_ALGO=Ring")
{
    FILE *f = fopen("/tmp/fake-nccl-test.conf", "w");
    fputs("#NCCL_X1=1\nNCCL_ALGO=NoSuchAlgorithm\nNCCL_PROTO = LL\nNCCL_X2=a=b \n", f);
    fclose(f);
    load(NULL);
    use_device(0);
    OK(init_one(NULL));
    CHECK(!getenv("NCCL_X1") && !strcmp(getenv("NCCL_X2"), "a=b ") && !strcmp(getenv("NCCL_PROTO "), " LL"));
    unlink("/tmp/fake-nccl-test.conf");
}

static void expect_init_failure(struct rank *r)
{
    CHECK(r->init == ncclInvalidUsage || r->init == ncclRemoteError);
}
static void run_bad_list(void)
{
    load(NULL);
    ranks(2, expect_init_failure);
}
static void tree_has_no_broadcast(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64);
    CHECK(ncclBroadcast(p, p, 4, ncclInt32, 0, r->comm, r->stream) == ncclInvalidUsage);
    OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    OK(ncclCommDestroy(r->comm));
}
static void run_tree(void)
{
    load(NULL);
    ranks(2, tree_has_no_broadcast);
}
static void run_good_list(void)
{
    load(NULL);
    ranks(2, reduce_all_types);
}
static void lists_of_algorithms_follow_NCCLs_grammar(void **state)
{
    (void)state;
    assert_int_equal(in_child(run_bad_list, "NCCL_ALGO=ring, tree", NULL), 0);
    assert_int_equal(in_child(run_bad_list, "NCCL_ALGO=ring;tree", NULL), 0);
    assert_int_equal(in_child(run_bad_list, "NCCL_PROTO=sum:LL", NULL), 0);
    assert_int_equal(in_child(run_good_list, "NCCL_ALGO=ring;allreduce:^ring", NULL), 0);
    assert_int_equal(in_child(run_tree, "NCCL_ALGO=Tree", NULL), 0);
}

static void one_duplicate(struct rank *r)
{
    (void)r;
}
TEST(two_ranks_on_one_device_are_refused_before_2_30, "NCCLSHIM_FAKE_GPUS=1")
{
    ncclComm_t c[2];
    int twice[] = {0, 0};
    load(NULL);
    use_device(0);
    (void)one_duplicate;
    CHECK(ncclCommInitAll(c, 2, twice) == ncclInvalidUsage);
}

TEST(two_ranks_share_a_device_from_2_30_on, "NCCLSHIM_FAKE_GPUS=1", "NCCL_MULTI_RANK_GPU_ENABLE=1")
{
    ncclComm_t c[2];
    int twice[] = {0, 0};
    load("nccl-23007/libnccl.so.2");
    use_device(0);
    OK(ncclCommInitAll(c, 2, twice));
    OK(ncclCommDestroy(c[0]));
    OK(ncclCommDestroy(c[1]));
}

static void grow_and_shrink(struct rank *r)
{
    ncclComm_t small = NULL, grown = NULL;
    static ncclUniqueId id;
    int exclude[] = {2}, count = 0;
    OK(r->init);
    if (r->rank != 2)
        OK(ncclCommShrink(r->comm, exclude, 1, &small, NULL, 0));
    pthread_barrier_wait(&barrier);
    if (r->rank == 0)
        OK(ncclCommGetUniqueId(small, &id));
    pthread_barrier_wait(&barrier);
    if (r->rank != 2)
        OK(ncclCommGrow(small, 3, NULL, -1, &grown, NULL));
    else
        OK(ncclCommGrow(NULL, 3, &id, 2, &grown, NULL));
    OK(ncclCommCount(grown, &count));
    CHECK(count == 3);
    OK(ncclCommDestroy(grown));
}
TEST(a_communicator_shrinks_and_grows)
{
    load("nccl-23007/libnccl.so.2");
    ranks(3, grow_and_shrink);
}

static void nonblocking(struct rank *r)
{
    ncclConfig_t c = config(80, 22809);
    ncclComm_t comm;
    ncclUniqueId *id = NULL;
    static ncclUniqueId shared;
    int count, *p = device_memory(64);
    ncclResult_t res;
    (void)id;
    OK(r->init);
    if (r->rank == 0)
        OK(ncclGetUniqueId(&shared));
    pthread_barrier_wait(&barrier);
    c.blocking = 0;
    if (r->rank == 0) { /* the other rank is not there: this one must not wait */
        CHECK(ncclCommInitRankConfig(&comm, 2, shared, 0, &c) == ncclInProgress);
        CHECK(async_error(comm) == ncclInProgress);
        CHECK(ncclCommCount(comm, &count) == ncclInvalidArgument);
    }
    pthread_barrier_wait(&barrier);
    if (r->rank == 1)
        CHECK(ncclCommInitRankConfig(&comm, 2, shared, 1, &c) == ncclInProgress);
    while ((res = async_error(comm)) == ncclInProgress)
        usleep(100);
    OK(res);
    OK(ncclCommCount(comm, &count));
    CHECK(count == 2);
    res = ncclAllReduce(p, p, 4, ncclInt32, ncclSum, comm, r->stream);
    CHECK(res == ncclSuccess || res == ncclInProgress);
    while ((res = async_error(comm)) == ncclInProgress)
        usleep(100);
    OK(res);
    OK(cu.cuStreamSynchronize(r->stream));
    res = ncclCommFinalize(comm);
    CHECK(res == ncclSuccess || res == ncclInProgress);
    while ((res = async_error(comm)) == ncclInProgress)
        usleep(100);
    OK(ncclCommDestroy(comm));
}
TEST(non_blocking_communicators_are_in_progress_until_they_are_not)
{
    load(NULL);
    ranks(2, nonblocking);
}

/* ---- plugins ------------------------------------------------------------------------------------------------------- */

struct tuner {
    const char *name;
    ncclResult_t (*init)(void **, uint64_t, size_t, size_t, ncclDebugLogger_t, void *, void *);
    ncclResult_t (*get)(void *, ncclFunc_t, size_t, int, float **, int, int, int, int *);
    ncclResult_t (*finalize)(void *);
};
static ncclResult_t tuner_init(void **ctx, uint64_t id, size_t nranks, size_t nodes, ncclDebugLogger_t log, void *domain, void *constants)
{
    *ctx = &nasked;
    return id && nranks == 2 && nodes == 1 && log && domain && constants ? ncclSuccess : ncclInternalError;
}
static ncclResult_t tuner_get(void *ctx, ncclFunc_t func, size_t bytes, int ops, float **flat, int na, int np, int reg, int *nc)
{
    float(*table)[3] = (float(*)[3])(void *)flat;
    (void)reg;
    if (ctx != &nasked || na != 7 || np != 3 || ops < 1)
        return ncclInternalError;
    if (func != ncclFuncAllReduce)
        return ncclInternalError;
    if (table[ALGO_NVLS][PROTO_SIMPLE] != -1.0f || table[ALGO_RING][PROTO_LL128] != -1.0f)
        return ncclInternalError;
    if (bytes == 65536) {
        table[ALGO_TREE][PROTO_SIMPLE] = 0.0f;
        *nc = 3;
    }
    return ncclSuccess;
}
static ncclResult_t tuner_fini(void *ctx)
{
    return ctx ? ncclSuccess : ncclInternalError;
}
extern const struct tuner ncclTunerPlugin_v5;
__attribute__((visibility("default"))) const struct tuner ncclTunerPlugin_v5 = {"test", tuner_init, tuner_get, tuner_fini};

/* The part of the v5 descriptor that the test looks at. */
struct descr {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool captured;
        } api;
        struct {
            uint64_t seq;
            const char *func;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algo, *proto;
        } coll;
    };
};
static struct {
    uint64_t type;
    void *parent;
    char text[64];
    int channels, stopped;
} events[100];
static int nevents;
static ncclResult_t profiler_init(void **ctx, uint64_t id, int *mask, const char *name, int nodes, int nranks, int rank, ncclDebugLogger_t log)
{
    *ctx = &events;
    *mask = 2 | 512; /* Coll and CollApi */
    return id && !name && nodes == 1 && nranks == 2 && rank < 2 && log ? ncclSuccess : ncclInternalError;
}
static ncclResult_t profiler_start(void *ctx, void **handle, void *descr)
{
    struct descr *d = descr;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (ctx != &events)
        return ncclInternalError;
    pthread_mutex_lock(&lock);
    int i = nevents++;
    events[i].type = d->type;
    events[i].parent = d->parent;
    if (d->type == 2) {
        snprintf(events[i].text, 64, "%s %s %s %zu", d->coll.func, d->coll.algo, d->coll.proto, d->coll.count);
        events[i].channels = d->coll.channels;
    } else if (d->type == 512) {
        snprintf(events[i].text, 64, "%s %s %zu %d", d->api.func, d->api.datatype, d->api.count, d->api.captured);
    }
    *handle = &events[i];
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}
static ncclResult_t profiler_stop(void *handle)
{
    events[((char *)handle - (char *)events) / (long)sizeof(events[0])].stopped++;
    return ncclSuccess;
}
static ncclResult_t profiler_record(void *handle, int what, void *args)
{
    return handle && what && !args ? ncclSuccess : ncclInternalError;
}
struct profiler {
    const char *name;
    ncclResult_t (*init)(void **, uint64_t, int *, const char *, int, int, int, ncclDebugLogger_t);
    ncclResult_t (*start)(void *, void **, void *);
    ncclResult_t (*stop)(void *);
    ncclResult_t (*record)(void *, int, void *);
    ncclResult_t (*finalize)(void *);
};
extern const struct profiler ncclProfiler_v5;
__attribute__((visibility("default"))) const struct profiler ncclProfiler_v5 = {
    "test", profiler_init, profiler_start, profiler_stop, profiler_record, tuner_fini};

static void tuned(struct rank *r)
{
    OK(r->init);
    char *p = device_memory(65536);
    OK(ncclAllReduce(p, p, 16384, ncclFloat32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    pthread_barrier_wait(&barrier);
    OK(ncclAllReduce(p, p, 1024, ncclFloat32, ncclSum, r->comm, r->stream));
    /* The plugin refuses anything else, and so the call fails. */
    CHECK(ncclBroadcast(p, p, 8, ncclInt8, 0, r->comm, r->stream) == ncclInternalError);
    OK(cu.cuStreamSynchronize(r->stream));
    OK(ncclCommDestroy(r->comm));
}
TEST(tuner_and_profiler_see_each_call_and_decide, "NCCL_TUNER_PLUGIN=STATIC_PLUGIN", "NCCL_PROFILER_PLUGIN=S")
{
    load(NULL);
    ranks(2, tuned);
    int tree = 0, ring = 0, api = 0;
    for (int i = 0; i < nevents; i++) {
        tree += !strcmp(events[i].text, "AllReduce TREE SIMPLE 16384") && events[i].channels == 3;
        ring += !strncmp(events[i].text, "AllReduce RING LL 1024", 22);
        api += !strcmp(events[i].text, "AllReduce ncclFloat32 16384 0");
        CHECK(events[i].stopped == 1);
        if (events[i].type == 2) /* the parent is the API event, that of the group is its own */
            CHECK(((uint64_t *)events[i].parent)[0] == 512);
    }
    CHECK(tree == 2 && ring == 2 && api == 2);
}

/* ---- graphs, time, knobs ----------------------------------------------------------------------------------------------- */

static int mixing_nodes; /* expected beside the kernels */
static void replay(struct rank *r)
{
    OK(r->init);
    int host[4] = {1, 1, 1, 1}, *p = device_memory(64);
    CUgraph graph;
    CUgraphExec exec;
    size_t n = 0;
    put(p, host, 16);
    OK(cu.cuStreamBeginCapture_v2(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < 3; i++)
        OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamEndCapture(r->stream, &graph));
    OK(cu.cuGraphGetNodes(graph, NULL, &n));
    CUgraphNode nodes[32];
    OK(cu.cuGraphGetNodes(graph, nodes, &n));
    int kernels = 0, others = 0;
    for (size_t i = 0; i < n; i++) {
        CUgraphNodeType type;
        OK(cu.cuGraphNodeGetType(nodes[i], &type));
        type == CU_GRAPH_NODE_TYPE_KERNEL ? kernels++ : others++;
    }
    CHECK(kernels == 3 && others == mixing_nodes);
    OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2; i++)
        OK(cu.cuGraphLaunch(exec, r->stream));
    OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream)); /* eager behind graphs */
    OK(cu.cuStreamSynchronize(r->stream));
    get(host, p, 16);
    CHECK(host[0] == 128 && host[3] == 128); /* 2 to the 7th */
    OK(cu.cuGraphExecDestroy(exec));
    OK(cu.cuGraphDestroy(graph));
    OK(ncclCommDestroy(r->comm));
}
TEST(captured_collectives_compute_at_each_replay)
{
    mixing_nodes = 4; /* one wait, and one record behind each collective */
    load(NULL);
    ranks(2, replay);
}
TEST(without_graph_mixing_there_are_no_event_nodes, "NCCL_GRAPH_MIXING_SUPPORT=0")
{
    load(NULL);
    ranks(2, replay);
}

static float duration_us;
static size_t timed_bytes;
static void time_one(struct rank *r)
{
    OK(r->init);
    char *p = device_memory(4 << 20);
    CUevent a, b;
    float ms = 0;
    OK(cu.cuEventCreate(&a, 0));
    OK(cu.cuEventCreate(&b, 0));
    OK(ncclAllReduce(p, p, 2, ncclBfloat16, ncclSum, r->comm, r->stream)); /* all have arrived */
    pthread_barrier_wait(&barrier);
    OK(cu.cuEventRecord(a, r->stream));
    for (int i = 0; i < 20; i++)
        OK(ncclAllReduce(p, p, timed_bytes / 2, ncclBfloat16, ncclSum, r->comm, r->stream));
    OK(cu.cuEventRecord(b, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    OK(cu.cuEventElapsedTime(&ms, a, b));
    if (r->rank == 0)
        duration_us = ms * 1000 / 20;
    OK(ncclCommDestroy(r->comm));
}
static void run_timing(void)
{
    load(NULL);
    timed_bytes = (size_t)atol(getenv("BYTES"));
    ranks(atoi(getenv("RANKS")), time_one);
    _exit(duration_us > 4200 ? 210 : duration_us > 100 ? (int)(100 + duration_us / 40) : (int)duration_us);
}
/* Microseconds, coarser above a hundred. */
#define TIME(...) in_child(run_timing, "NCCLSHIM_FAKE_SKIP_DATA=1", __VA_ARGS__, NULL)
#define SEVEN "NCCL_PROTO=LL", "NCCL_ALGO=Ring", "NCCL_P2P_LEVEL=SYS", "NCCL_MIN_NCHANNELS=1", "NCCL_MAX_NCHANNELS=2",  \
              "NCCL_BUFFSIZE=131072", "NCCL_NTHREADS=64"
static void settings_help_one_size_and_ruin_another(void **state)
{
    (void)state;
    int usual = TIME("RANKS=2", "BYTES=43008"), usual_large = TIME("RANKS=2", "BYTES=4194304");
    assert_in_range(usual, 10, 30);
    assert_true(TIME("RANKS=2", "BYTES=43008", SEVEN) > 2 * usual);
    assert_true(TIME("RANKS=2", "BYTES=4194304", SEVEN) > usual_large + 80); /* more than ten times */
    assert_true(TIME("RANKS=2", "BYTES=43008", "NCCL_P2P_LEVEL=SYS") < usual);
    int eight = TIME("RANKS=8", "BYTES=43008");
    assert_true(TIME("RANKS=8", "BYTES=43008", "NCCL_ALGO=Tree") < eight - 10);
    assert_true(TIME("RANKS=8", "BYTES=4194304", "NCCL_ALGO=Tree") > TIME("RANKS=8", "BYTES=4194304"));
    assert_int_equal(TIME("RANKS=2", "BYTES=43008", "NCCLSHIM_FAKE_SEED=5"), TIME("RANKS=2", "BYTES=43008", "NCCLSHIM_FAKE_SEED=5"));
}

static void a_straggler_holds_up_everyone(void **state)
{
    (void)state;
    int usual = TIME("RANKS=2", "BYTES=1024"), late = TIME("RANKS=2", "BYTES=1024", "NCCLSHIM_FAKE_STRAGGLER=1:50000");
    assert_in_range(late, usual + 45, usual + 60);
}

static void run_wrong(void)
{
    load(NULL);
    ranks(2, big_sum);
}
static void the_knobs_make_wrong_sums_and_hangs(void **state)
{
    (void)state;
    assert_int_equal(in_child(run_wrong, "NCCLSHIM_FAKE_WRONG=NCCL_PROTO=LL", NULL), 0);
    assert_int_equal(in_child(run_wrong, "NCCLSHIM_FAKE_WRONG=NCCL_PROTO=LL", "NCCL_PROTO=LL", NULL), 1);
    assert_int_equal(in_child(run_wrong, "NCCLSHIM_FAKE_WRONG=NCCL_NTHREADS=128", "NCCL_NTHREADS=128", NULL), 1);
    assert_int_equal(in_child(run_wrong, "NCCLSHIM_FAKE_HANG=NCCL_ALGO=Tree", NULL), 0);
}

static void hanging(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64);
    OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream));
    usleep(300000);
    OK(ncclCommAbort(r->comm));
}
TEST(a_hanging_setting_is_ended_by_abort, "NCCLSHIM_FAKE_HANG=NCCL_ALGO=Tree", "NCCL_ALGO=Tree")
{
    load(NULL);
    ranks(2, hanging);
}

#define RATE_CALLS 40000
static void rate(struct rank *r)
{
    struct timespec a, b;
    OK(r->init);
    char *p = device_memory(64);
    pthread_barrier_wait(&barrier);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < RATE_CALLS; i++)
        OK(ncclAllReduce(p, p, 4, ncclBfloat16, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    clock_gettime(CLOCK_MONOTONIC, &b);
    double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    if (r->rank == 0)
        print_message("           %.0f eager collectives a second, 2 ranks as threads\n", RATE_CALLS / s);
    OK(ncclCommDestroy(r->comm));
}
TEST(small_collectives_are_quick)
{
    load(NULL);
    ranks(2, rate);
}

int main(void)
{
    const char *given = getenv("FAKE_DIR");
    ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
    if (n > 0)
        *strrchr(dir, '/') = 0;
    char probe[4200];
    snprintf(probe, sizeof(probe), "%s/libnccl.so.2", dir);
    if (given || access(probe, R_OK))
        snprintf(dir, sizeof(dir), "%s", given ? given : "build/fake");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_id_and_groups_work_without_a_driver),
        cmocka_unit_test(each_version_exports_what_it_had_and_no_more),
        cmocka_unit_test(every_type_and_operator_gives_the_right_sum),
        cmocka_unit_test(every_collective_moves_the_right_data),
        cmocka_unit_test(ranks_in_several_processes_share_one_communicator),
        cmocka_unit_test(a_killed_rank_ends_in_a_remote_error_on_the_others),
        cmocka_unit_test(init_gives_up_when_a_rank_does_not_come),
        cmocka_unit_test(abort_frees_a_stuck_collective),
        cmocka_unit_test(different_sizes_are_an_asynchronous_error),
        cmocka_unit_test(a_forked_child_gets_an_error_and_does_not_hang),
        cmocka_unit_test(wrong_arguments_are_refused_as_NCCL_refuses_them),
        cmocka_unit_test(one_thread_drives_many_ranks_by_groups),
        cmocka_unit_test(an_old_callers_short_config_is_read_to_its_end_and_no_further),
        cmocka_unit_test(the_env_plugin_is_asked_and_obeyed),
        cmocka_unit_test(a_conf_file_does_not_beat_the_environment_and_is_not_trimmed),
        cmocka_unit_test(lists_of_algorithms_follow_NCCLs_grammar),
        cmocka_unit_test(two_ranks_on_one_device_are_refused_before_2_30),
        cmocka_unit_test(two_ranks_share_a_device_from_2_30_on),
        cmocka_unit_test(a_communicator_shrinks_and_grows),
        cmocka_unit_test(non_blocking_communicators_are_in_progress_until_they_are_not),
        cmocka_unit_test(tuner_and_profiler_see_each_call_and_decide),
        cmocka_unit_test(captured_collectives_compute_at_each_replay),
        cmocka_unit_test(without_graph_mixing_there_are_no_event_nodes),
        cmocka_unit_test(settings_help_one_size_and_ruin_another),
        cmocka_unit_test(a_straggler_holds_up_everyone),
        cmocka_unit_test(the_knobs_make_wrong_sums_and_hangs),
        cmocka_unit_test(a_hanging_setting_is_ended_by_abort),
        cmocka_unit_test(small_collectives_are_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
