/* SPDX-License-Identifier: Apache-2.0 */
#include "examples/decode_rank.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "examples/driver.h"

#define TOKENS_A_STEP 3
#define PATTERN 16 /* the values of a buffer run through 0..15 */

struct rank {
    const struct options *opt;
    struct share *share;
    int rank;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUmodule module;
    CUfunction spin;
    ncclComm_t comm;
    CUgraph graph;
    CUgraphExec exec;
    /*
     * A step works on one slice for each call, refilled at its start from the pattern: so all calls
     * of a replay can be checked, and sums don't grow from call to call.
     */
    size_t pitch, decode_bytes;
    CUdeviceptr decode, decode_pattern;
    CUdeviceptr prefill, prefill_pattern;
    uint16_t *host; /* as large as the larger of the two */
    uint16_t expected[PATTERN];
    uint64_t replays, eager_decode, eager_prefill; /* calls made */
    uint64_t *step_ns; /* wall time of each step but the first of a request */
    size_t timed, timed_room;
    uint64_t serving_ns;
};

static _Noreturn void die(const struct rank *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void die(const struct rank *r, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    fflush(stdout);
    fprintf(stderr, "decode_server: rank %d: %s\n", r->rank, text);
    _exit(1);
}

#define CU(r, call)                                                              \
    do {                                                                         \
        CUresult cu_result = cu.call;                                            \
        if (cu_result != CUDA_SUCCESS)                                           \
            die(r, "line %d: %s: %s", __LINE__, #call, driver_error(cu_result)); \
    } while (0)

#define NC(r, call)                                                                    \
    do {                                                                               \
        ncclResult_t nc_result = call;                                                 \
        if (nc_result != ncclSuccess)                                                  \
            die(r, "line %d: %s: %s", __LINE__, #call, ncclGetErrorString(nc_result)); \
    } while (0)

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void wait_for_all(struct rank *r)
{
    pthread_barrier_wait(&r->share->barrier);
}

/* ---- contents ----------------------------------------------------------------------------------
 */

/* bf16 is the upper half of a float; exact for integers up to 256. */
static uint16_t bf16(unsigned value)
{
    float number = (float)value;
    uint32_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return (uint16_t)(bits >> 16);
}

/* What stands at element i of call `call`'s buffer, as an index into the pattern. */
static unsigned pattern_index(unsigned call, size_t i)
{
    return (unsigned)(7 * i + 13 * call) % PATTERN;
}

/* Each rank has its own values, so that a missing or doubled part of the sum shows. */
static unsigned rank_value(unsigned index, int rank)
{
    return (index + 5 * (unsigned)rank) % PATTERN;
}

static void fill_host(struct rank *r, unsigned call, uint16_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = bf16(rank_value(pattern_index(call, i), r->rank));
}

static void check_sums(struct rank *r, const char *what, unsigned call, const uint16_t *got,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t want = r->expected[pattern_index(call, i)];

        if (got[i] != want)
            die(r, "wrong sum: %s call %u, element %zu of %zu is bf16 0x%04x, not 0x%04x", what,
                call, i, count, got[i], want);
    }
    atomic_fetch_add(&r->share->checked, count);
}

static void check_request(struct rank *r)
{
    const struct options *opt = r->opt;

    if (opt->prefill_calls) {
        CU(r, cuMemcpyDtoH(r->host, r->prefill, opt->prefill_bytes));
        check_sums(r, "prefill", 0, r->host, opt->prefill_bytes / 2);
    }
    CU(r, cuMemcpyDtoH(r->host, r->decode, r->decode_bytes));
    for (int call = 0; call < opt->calls; call++)
        check_sums(r, "decode", (unsigned)call, r->host + (size_t)call * r->pitch / 2,
                   opt->bytes / 2);
}

/* ---- set-up ------------------------------------------------------------------------------------
 */

static void launch_spin(struct rank *r, int us)
{
    uint64_t ns = (uint64_t)us * 1000;
    void *params[] = {&ns};

    CU(r, cuLaunchKernel(r->spin, 1, 1, 1, 32, 1, 1, 0, r->stream, params, NULL));
}

static void make_buffers(struct rank *r)
{
    const struct options *opt = r->opt;
    size_t larger;

    r->pitch = (opt->bytes + 255) / 256 * 256;
    r->decode_bytes = r->pitch * (size_t)opt->calls;
    larger = r->decode_bytes > opt->prefill_bytes ? r->decode_bytes : opt->prefill_bytes;
    r->host = calloc(1, larger);
    if (!r->host)
        die(r, "out of memory: %zu bytes", larger);
    for (unsigned i = 0; i < PATTERN; i++) {
        unsigned sum = 0;

        for (int rank = 0; rank < opt->ranks; rank++)
            sum += rank_value(i, rank);
        r->expected[i] = bf16(sum);
    }
    CU(r, cuMemAlloc(&r->decode, r->decode_bytes));
    CU(r, cuMemAlloc(&r->decode_pattern, r->decode_bytes));
    CU(r, cuMemAlloc(&r->prefill, opt->prefill_bytes));
    CU(r, cuMemAlloc(&r->prefill_pattern, opt->prefill_bytes));
    fill_host(r, 0, r->host, opt->prefill_bytes / 2);
    CU(r, cuMemcpyHtoD(r->prefill_pattern, r->host, opt->prefill_bytes));
    for (int call = 0; call < opt->calls; call++)
        fill_host(r, (unsigned)call, r->host + (size_t)call * r->pitch / 2, opt->bytes / 2);
    CU(r, cuMemcpyHtoD(r->decode_pattern, r->host, r->decode_bytes));
}

/* All that may wait for the device: before any rank's collective can run. */
static void set_up(struct rank *r)
{
    CU(r, cuDeviceGet(&r->device, r->opt->one_gpu ? 0 : r->rank));
    CU(r, cuDevicePrimaryCtxRetain(&r->context, r->device));
    CU(r, cuCtxSetCurrent(r->context));
    CU(r, cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING));
    CU(r, cuModuleLoadData(&r->module, spin_ptx));
    CU(r, cuModuleGetFunction(&r->spin, r->module, SPIN_KERNEL));
    launch_spin(r, 0); /* kernels are loaded at their first launch */
    make_buffers(r);
    CU(r, cuStreamSynchronize(r->stream));
    r->timed_room = r->opt->timing ? 1 << 16 : 0;
    r->step_ns = calloc(r->timed_room + 1, sizeof(*r->step_ns));
    if (!r->step_ns)
        die(r, "out of memory");
}

static void all_reduce(struct rank *r, CUdeviceptr at, size_t bytes)
{
    NC(r, ncclAllReduce((const void *)at, (void *)at, bytes / 2, ncclBfloat16, ncclSum, r->comm,
                        r->stream));
}

static void eager_prefill(struct rank *r)
{
    CU(r, cuMemcpyDtoDAsync(r->prefill, r->prefill_pattern, r->opt->prefill_bytes, r->stream));
    all_reduce(r, r->prefill, r->opt->prefill_bytes);
    r->eager_prefill++;
}

static void eager_decode(struct rank *r)
{
    CU(r, cuMemcpyDtoDAsync(r->decode, r->decode_pattern, r->opt->bytes, r->stream));
    all_reduce(r, r->decode, r->opt->bytes);
    r->eager_decode++;
}

static void connect_ranks(struct rank *r)
{
    if (r->rank == 0)
        NC(r, ncclGetUniqueId(&r->share->id));
    wait_for_all(r);
    NC(r, ncclCommInitRank(&r->comm, r->opt->ranks, r->share->id, r->rank));
    wait_for_all(r);
    /* As servers do: NCCL connects and loads kernels at the first call of a kind. */
    eager_decode(r);
    CU(r, cuStreamSynchronize(r->stream));
    wait_for_all(r);
    if (r->opt->prefill_calls) {
        eager_prefill(r);
        CU(r, cuStreamSynchronize(r->stream));
        wait_for_all(r);
    }
}

static void capture_step(struct rank *r)
{
    const struct options *opt = r->opt;

    CU(r, cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CU(r, cuMemcpyDtoDAsync(r->decode, r->decode_pattern, r->decode_bytes, r->stream));
    for (int call = 0; call < opt->calls; call++) {
        if (opt->compute_us)
            launch_spin(r, opt->compute_us);
        if (opt->delay_rank == r->rank)
            launch_spin(r, opt->delay_us);
        all_reduce(r, r->decode + (size_t)call * r->pitch, opt->bytes);
    }
    CU(r, cuStreamEndCapture(r->stream, &r->graph));
    CU(r, cuGraphInstantiateWithFlags(&r->exec, r->graph, 0));
    CU(r, cuGraphUpload(r->exec, r->stream));
    CU(r, cuStreamSynchronize(r->stream));
}

/* ---- serving -----------------------------------------------------------------------------------
 */

/* Dies while the replay runs: half of a step's time after its launch. */
static _Noreturn void launch_and_die(struct rank *r, uint64_t step_ns)
{
    struct timespec half = {0, (long)(step_ns / 2 % 1000000000u)};

    if (r->rank == 0) {
        printf("decode_server: killing itself in replay %llu of %d calls\n",
               (unsigned long long)r->replays + 1, r->opt->calls);
        fflush(stdout);
    }
    atomic_store(&r->share->dying, 1);
    wait_for_all(r);
    CU(r, cuGraphLaunch(r->exec, r->stream));
    nanosleep(&half, NULL);
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static uint64_t one_step(struct rank *r)
{
    uint64_t start = now_ns();

    CU(r, cuGraphLaunch(r->exec, r->stream));
    r->replays++;
    if (r->opt->mixed)
        eager_decode(r);
    CU(r, cuStreamSynchronize(r->stream));
    return now_ns() - start;
}

static void serve_request(struct rank *r, int request)
{
    const struct options *opt = r->opt;
    bool last = !opt->hold && request + 1 == opt->requests;
    uint64_t start = now_ns(), step_ns = 100000;

    /* What an earlier request left must not pass for this one's sums. */
    CU(r, cuMemsetD8Async(r->decode, 0xff, r->decode_bytes, r->stream));
    CU(r, cuMemsetD8Async(r->prefill, 0xff, opt->prefill_bytes, r->stream));
    for (int i = 0; i < opt->prefill_calls; i++)
        eager_prefill(r);
    CU(r, cuStreamSynchronize(r->stream));
    for (int step = 0; step < opt->steps; step++) {
        if (last && opt->die_mid_replay && step == opt->steps / 2)
            launch_and_die(r, step_ns);
        step_ns = one_step(r);
        if (step > 0 && r->timed < r->timed_room)
            r->step_ns[r->timed++] = step_ns;
    }
    r->serving_ns += now_ns() - start;
    check_request(r);
}

static bool another_request(struct rank *r, int request)
{
    struct share *share = r->share;
    bool go;

    if (r->rank == 0)
        atomic_store(&share->go,
                     !atomic_load(&share->stop) && (r->opt->hold || request < r->opt->requests));
    wait_for_all(r);
    go = atomic_load(&share->go);
    wait_for_all(r); /* or rank 0 could change its word before all have read it */
    return go;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void tell(struct rank *r, int requests)
{
    const struct options *opt = r->opt;
    char name[128] = "";
    int version = 0;

    NC(r, ncclGetVersion(&version));
    CU(r, cuDeviceGetName(name, sizeof(name), r->device));
    printf("ranks: %d, %s, %s (%s), NCCL %d.%d.%d\n", opt->ranks,
           opt->one_process ? "threads of one process" : "one process each",
           opt->one_gpu ? "all on one GPU" : "one GPU each", name, version / 10000,
           version / 100 % 100, version % 100);
    printf("calls: %llu replays of %d captured all-reduces of %zu bytes, %llu eager of %zu bytes, "
           "%llu eager of "
           "%zu bytes (each rank)\n",
           (unsigned long long)r->replays, opt->calls, opt->bytes,
           (unsigned long long)r->eager_prefill, opt->prefill_bytes,
           (unsigned long long)r->eager_decode, opt->bytes);
    printf("sums: right (%llu checked)\n", (unsigned long long)atomic_load(&r->share->checked));
    if (r->timed) {
        qsort(r->step_ns, r->timed, sizeof(*r->step_ns), by_size);
        printf("wall: %.2f us a call (median of %zu replays)\n",
               (double)r->step_ns[r->timed / 2] / 1e3 / opt->calls, r->timed);
    }
    if (r->serving_ns)
        printf("tokens/s: %.1f (%d requests of %d steps)\n",
               (double)r->replays * TOKENS_A_STEP * 1e9 / (double)r->serving_ns, requests,
               opt->steps);
    fflush(stdout);
}

static void tear_down(struct rank *r)
{
    CU(r, cuGraphExecDestroy(r->exec));
    CU(r, cuGraphDestroy(r->graph));
    NC(r, ncclCommDestroy(r->comm));
    wait_for_all(r);
    CU(r, cuMemFree(r->decode));
    CU(r, cuMemFree(r->decode_pattern));
    CU(r, cuMemFree(r->prefill));
    CU(r, cuMemFree(r->prefill_pattern));
    CU(r, cuModuleUnload(r->module));
    CU(r, cuStreamDestroy(r->stream));
    CU(r, cuDevicePrimaryCtxRelease(r->device));
    free(r->host);
    free(r->step_ns);
}

void rank_run(const struct options *opt, struct share *share, int rank)
{
    struct rank r = {.opt = opt, .share = share, .rank = rank};
    int request = 0;

    set_up(&r);
    wait_for_all(&r);
    connect_ranks(&r);
    capture_step(&r);
    wait_for_all(&r); /* ranks on one GPU: instantiating may wait for a peer's running all-reduce */
    for (; another_request(&r, request); request++)
        serve_request(&r, request);
    if (rank == 0)
        tell(&r, request);
    tear_down(&r);
}
