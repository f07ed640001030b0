/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of the simulated NCCL: both stand-ins by dlopen, ranks as threads, each test in a
 * child process of its own, since NCCL reads most of its environment once.
 */
#ifndef NCCLSHIM_TEST_UNIT_FAKE_NCCL_H
#define NCCLSHIM_TEST_UNIT_FAKE_NCCL_H

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

/* Not every test file uses all of this. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"

/* ---- the libraries, by dlopen
 * ----------------------------------------------------------------------- */

#define N(ret, name, ...) static ret (*name)(__VA_ARGS__);
#define NCCL_FUNCTIONS(F)                                                                         \
    F(ncclResult_t, ncclGetVersion, int *)                                                        \
    F(ncclResult_t, ncclGetUniqueId, ncclUniqueId *)                                              \
    F(const char *, ncclGetErrorString, ncclResult_t)                                             \
    F(const char *, ncclGetLastError, ncclComm_t)                                                 \
    F(ncclResult_t, ncclCommInitRank, ncclComm_t *, int, ncclUniqueId, int)                       \
    F(ncclResult_t, ncclCommInitAll, ncclComm_t *, int, const int *)                              \
    F(ncclResult_t, ncclCommInitRankConfig, ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *) \
    F(ncclResult_t, ncclCommSplit, ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *)            \
    F(ncclResult_t, ncclCommShrink, ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int)    \
    F(ncclResult_t, ncclCommGrow, ncclComm_t, int, const ncclUniqueId *, int, ncclComm_t *,       \
      ncclConfig_t *)                                                                             \
    F(ncclResult_t, ncclCommGetUniqueId, ncclComm_t, ncclUniqueId *)                              \
    F(ncclResult_t, ncclCommDestroy, ncclComm_t)                                                  \
    F(ncclResult_t, ncclCommAbort, ncclComm_t)                                                    \
    F(ncclResult_t, ncclCommFinalize, ncclComm_t)                                                 \
    F(ncclResult_t, ncclCommGetAsyncError, ncclComm_t, ncclResult_t *)                            \
    F(ncclResult_t, ncclCommCount, ncclComm_t, int *)                                             \
    F(ncclResult_t, ncclCommUserRank, ncclComm_t, int *)                                          \
    F(ncclResult_t, ncclAllReduce, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,     \
      ncclComm_t, CUstream)                                                                       \
    F(ncclResult_t, ncclReduce, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int,   \
      ncclComm_t, CUstream)                                                                       \
    F(ncclResult_t, ncclBroadcast, const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, \
      CUstream)                                                                                   \
    F(ncclResult_t, ncclAllGather, const void *, void *, size_t, ncclDataType_t, ncclComm_t,      \
      CUstream)                                                                                   \
    F(ncclResult_t, ncclReduceScatter, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, \
      ncclComm_t, CUstream)                                                                       \
    F(ncclResult_t, ncclAlltoAll, const void *, void *, size_t, ncclDataType_t, ncclComm_t,       \
      CUstream)                                                                                   \
    F(ncclResult_t, ncclSend, const void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream)    \
    F(ncclResult_t, ncclRecv, void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream)          \
    F(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t *, void *, ncclDataType_t,              \
      ncclScalarResidence_t, ncclComm_t)                                                          \
    F(ncclResult_t, ncclGroupStart, void)                                                         \
    F(ncclResult_t, ncclGroupEnd, void)
NCCL_FUNCTIONS(N)
#define MEMBER(ret, name, ...) ret (*name)(__VA_ARGS__);
#define CUDA_FUNCTIONS(F)                                                                \
    F(CUresult, cuInit, unsigned)                                                        \
    F(CUresult, cuDeviceGet, CUdevice *, int)                                            \
    F(CUresult, cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)                         \
    F(CUresult, cuCtxSetCurrent, CUcontext)                                              \
    F(CUresult, cuMemAlloc_v2, CUdeviceptr *, size_t)                                    \
    F(CUresult, cuMemcpyHtoD_v2, CUdeviceptr, const void *, size_t)                      \
    F(CUresult, cuMemcpyDtoH_v2, void *, CUdeviceptr, size_t)                            \
    F(CUresult, cuStreamCreate, CUstream *, unsigned)                                    \
    F(CUresult, cuStreamSynchronize, CUstream)                                           \
    F(CUresult, cuStreamBeginCapture_v2, CUstream, CUstreamCaptureMode)                  \
    F(CUresult, cuStreamEndCapture, CUstream, CUgraph *)                                 \
    F(CUresult, cuGraphGetNodes, CUgraph, CUgraphNode *, size_t *)                       \
    F(CUresult, cuGraphNodeGetType, CUgraphNode, CUgraphNodeType *)                      \
    F(CUresult, cuGraphInstantiateWithFlags, CUgraphExec *, CUgraph, unsigned long long) \
    F(CUresult, cuGraphLaunch, CUgraphExec, CUstream)                                    \
    F(CUresult, cuGraphExecDestroy, CUgraphExec)                                         \
    F(CUresult, cuGraphDestroy, CUgraph)                                                 \
    F(CUresult, cuEventCreate, CUevent *, unsigned)                                      \
    F(CUresult, cuEventRecord, CUevent, CUstream)                                        \
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

/* ---- children and ranks
 * -------------------------------------------------------------------------------- */

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
#define TEST(name, ...)                                                 \
    static void run_##name(void);                                       \
    static void name(void **state)                                      \
    {                                                                   \
        (void)state;                                                    \
        assert_int_equal(in_child(run_##name, ##__VA_ARGS__, NULL), 0); \
    }                                                                   \
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

/* Where the stand-ins are: FAKE_DIR, or fake/ beside the folder of the test. */
static void find_stand_ins(void)
{
    const char *given = getenv("FAKE_DIR");
    ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 16);
    if (n > 0) {
        *strrchr(dir, '/') = 0;
        *strrchr(dir, '/') = 0;
        strcat(dir, "/fake");
    }
    if (given)
        snprintf(dir, sizeof(dir), "%s", given);
}

#endif
