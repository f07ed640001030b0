/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a wrapped all-reduce costs the host beyond the bare one, with the log off: the wrapper's entry and
 * NCCL's own function (pncclAllReduce) in turns, in one process, as medians over blocks of calls.
 *
 * On the simulated NCCL, whose own work is large and uneven; and, more exactly, on a stub whose functions
 * do nothing. Both ways in: by handle, and as bound at link time.
 */
#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "examples/driver.h"

#define AIM_NS 15
#define BLOCK 32
#define BLOCKS 4000
#define RUNS 3 /* of the whole: the best one is the least disturbed */

typedef __typeof__(ncclAllReduce) all_reduce;
typedef CUresult sync_fn(CUstream);

struct bench {
    ncclComm_t comm;
    CUdeviceptr buffer;
    CUstream stream;
    sync_fn *sync; /* NULL on the stub */
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void need(int good, const char *what)
{
    if (good)
        return;
    printf("not ok wrapped call: %s\n", what);
    exit(1);
}

static double block(const struct bench *b, all_reduce *f)
{
    double start = now_ns();
    int bad = 0;

    for (int i = 0; i < BLOCK; i++)
        bad |= f((void *)b->buffer, (void *)b->buffer, 64, ncclFloat, ncclSum, b->comm, (cudaStream_t)b->stream);
    start = now_ns() - start;
    need(!bad, "an all-reduce failed");
    if (b->sync)
        b->sync(b->stream);
    return start / BLOCK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), by_value);
    return v[n / 2];
}

/* Median of the differences between neighbouring blocks; *bare_ns: the bare call's own. */
static double difference(const struct bench *b, all_reduce *wrapped, all_reduce *bare, double *bare_ns)
{
    static double diff[BLOCKS], base[BLOCKS];
    double best = 1e9;

    for (int run = 0; run < RUNS; run++) {
        int blocks = b->sync ? BLOCKS / 4 : BLOCKS;
        for (int i = 0; i < blocks; i++) {
            double first = block(b, i & 1 ? bare : wrapped), second = block(b, i & 1 ? wrapped : bare);
            base[i] = i & 1 ? first : second;
            diff[i] = i & 1 ? second - first : first - second;
        }
        double d = median(diff, blocks);
        if (d < best) {
            best = d;
            *bare_ns = median(base, blocks);
        }
    }
    return best;
}

static void *find(void *handle, const char *name)
{
    void *p = dlsym(handle, name);

    need(p != NULL, name);
    return p;
}

static int lies_in_shim(void *p)
{
    Dl_info info;

    return dladdr(p, &info) && strstr(info.dli_fname, "libncclshim.so") != NULL;
}

static void set_up_gpu(struct bench *b)
{
    const char *missing = driver_load();
    CUcontext ctx;
    CUdevice dev;

    need(!missing, missing);
    need(cu.cuInit(0) == CUDA_SUCCESS && cu.cuDeviceGet(&dev, 0) == CUDA_SUCCESS &&
             cu.cuDevicePrimaryCtxRetain(&ctx, dev) == CUDA_SUCCESS && cu.cuCtxSetCurrent(ctx) == CUDA_SUCCESS &&
             cu.cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
             cu.cuMemAlloc(&b->buffer, 4096) == CUDA_SUCCESS,
         "the simulated driver");
    b->sync = cu.cuStreamSynchronize;
}

/* In the process that has the shim in front. */
static int measure(const char *which)
{
    int stub = !strcmp(which, "stub"), failed = 0;
    struct bench b = {.stream = (CUstream)&b, .buffer = 4096};
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    double bare_ns, more;
    ncclUniqueId id;

    need(nccl != NULL, "no libnccl.so.2");
    if (!stub)
        set_up_gpu(&b);
    all_reduce *bare = find(nccl, "pncclAllReduce"), *handle = find(nccl, "ncclAllReduce");
    all_reduce *linked = find(RTLD_DEFAULT, "ncclAllReduce");
    need(lies_in_shim((void *)handle) && lies_in_shim((void *)linked) && !lies_in_shim((void *)bare),
         "the shim is not in front");
    for (int i = 0; i < 4; i++) { /* as in a server: the one that is used is not the only one */
        need(((__typeof__(ncclGetUniqueId) *)find(nccl, "ncclGetUniqueId"))(&id) == ncclSuccess &&
                 ((__typeof__(ncclCommInitRank) *)find(nccl, "ncclCommInitRank"))(&b.comm, 1, id, 0) == ncclSuccess,
             "init");
    }
    more = difference(&b, handle, bare, &bare_ns);
    if (stub) {
        failed |= more > AIM_NS;
        printf("%s wrapped call on a stub: %.1f ns more than the bare one (%.1f ns), by handle\n", failed ? "not ok" : "ok",
               more, bare_ns);
        more = difference(&b, linked, bare, &bare_ns);
        printf("%s wrapped call on a stub, linked: %.1f ns more than the bare one (%.1f ns)\n",
               more > AIM_NS ? "not ok" : "ok", more, bare_ns);
        failed |= more > AIM_NS;
    } else {
        printf("wrapped call: %.0f ns more than the bare one (%.0f ns)\n", more, bare_ns);
        failed |= more > AIM_NS;
        printf("%s wrapped call on the simulated NCCL\n", failed ? "not ok" : "ok");
    }
    return failed;
}

/* Runs this program again with the shim in front of that NCCL. */
static int again(const char *self, const char *build, const char *which)
{
    char preload[4096], path[4096];
    int status = 1;
    pid_t pid;

    snprintf(preload, sizeof(preload), "%s/libncclshim.so", build);
    snprintf(path, sizeof(path), "%s/%s:%s/fake", build, strcmp(which, "stub") ? "fake" : "bench/stub", build);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        setenv("LD_PRELOAD", preload, 1);
        setenv("LD_LIBRARY_PATH", path, 1);
        setenv("NCCLSHIM_LOG", "off", 1);
        setenv("NCCLSHIM_FAKE_SKIP_DATA", "1", 1);
        execl(self, self, which, (char *)NULL);
        _exit(127);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    const char *build = getenv("NCCLSHIM_BUILD");
    int bad;

    if (argc > 1)
        return measure(argv[1]);
    build = build ? build : "build";
    bad = again("/proc/self/exe", build, "stub");
    return again("/proc/self/exe", build, "simulated") | bad;
}
