/* SPDX-License-Identifier: Apache-2.0 */
#include "test/gpu/cost/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "examples/driver.h"

/* Long enough for the host to queue a call and its events behind it. */
#define BUSY_NS 150000
#define CHECKED 1024 /* elements of the first all-reduce, whose sums are checked */

static _Noreturn void die(int line, const char *what, int result)
{
    fflush(stdout);
    fprintf(stderr, "load: load_rank.c:%d: %s: %d\n", line, what, result);
    _exit(1);
}

#define CU(e) do { CUresult r_ = (e); if (r_ != CUDA_SUCCESS) die(__LINE__, #e, r_); } while (0)
#define NC(e) do { ncclResult_t r_ = (e); if (r_ != ncclSuccess) die(__LINE__, #e, r_); } while (0)
#define NEED(e) do { if (!(e)) die(__LINE__, #e, 0); } while (0)

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void spin_on(struct rank *r, CUstream stream, uint64_t ns)
{
    void *params[] = {&ns};

    CU(cuLaunchKernel(r->spin, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

static void spin(struct rank *r, uint64_t ns)
{
    spin_on(r, r->stream, ns);
}

static void all_reduce(struct rank *r, size_t bytes)
{
    NC(ncclAllReduce((void *)r->buffer, (void *)r->buffer, bytes / 2, ncclBfloat16, ncclSum, r->comm,
                     (cudaStream_t)r->stream));
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static void set_up(struct rank *r)
{
    size_t most = CHECKED * 2;

    for (int i = 0; i < r->opt->shape_count; i++)
        if (r->opt->shapes[i].bytes > most)
            most = r->opt->shapes[i].bytes;
    CU(cuDeviceGet(&r->device, r->opt->one_gpu ? 0 : r->number));
    CU(cuDevicePrimaryCtxRetain(&r->ctx, r->device));
    CU(cuCtxSetCurrent(r->ctx));
    CU(cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING));
    CU(cuStreamCreate(&r->second, CU_STREAM_NON_BLOCKING));
    CU(cuModuleLoadData(&r->module, spin_ptx));
    CU(cuModuleGetFunction(&r->spin, r->module, SPIN_KERNEL));
    spin(r, 0); /* kernels are loaded at their first launch */
    CU(cuMemAlloc(&r->buffer, most));
    CU(cuMemsetD8Async(r->buffer, 0, most, r->stream));
    CU(cuStreamSynchronize(r->stream));
    for (int i = 0; i < r->opt->shape_count; i++) {
        const struct shape *s = &r->opt->shapes[i];
        struct state *st = &r->states[i];
        st->events = calloc((size_t)s->calls * 2, sizeof(*st->events));
        NEED(st->events);
        for (int k = 0; s->events && k < s->calls * 2; k++)
            CU(cuEventCreate(&st->events[k], CU_EVENT_DEFAULT));
    }
}

/* A wrong sum shows in the first call or not at all: later ones are of zeros. */
static void check_sums(struct rank *r)
{
    uint16_t host[CHECKED];
    int sum = r->opt->ranks * (r->opt->ranks + 1) / 2;
    union { float f; uint32_t bits; } mine = {.f = (float)(r->number + 1)}, all = {.f = (float)sum};

    for (int i = 0; i < CHECKED; i++)
        host[i] = (uint16_t)(mine.bits >> 16);
    CU(cuMemcpyHtoD(r->buffer, host, sizeof(host)));
    load_meet(r);
    all_reduce(r, sizeof(host));
    CU(cuStreamSynchronize(r->stream));
    load_meet(r);
    CU(cuMemcpyDtoH(host, r->buffer, sizeof(host)));
    for (int i = 0; i < CHECKED; i++)
        NEED(host[i] == (uint16_t)(all.bits >> 16));
    CU(cuMemsetD8Async(r->buffer, 0, sizeof(host), r->stream));
    CU(cuStreamSynchronize(r->stream));
    r->calls++;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void mark(struct rank *r, const struct shape *s, CUevent event)
{
    /* Recorded plainly in a capture, an event has no time and no node. */
    if (s->events)
        CU(cuEventRecordWithFlags(event, r->stream,
                                  s->kind == KIND_GRAPH ? CU_EVENT_RECORD_EXTERNAL : CU_EVENT_RECORD_DEFAULT));
}

static void one_call(struct rank *r, const struct shape *s, struct state *st, int i)
{
    uint64_t gap = s->gap_ns + (r->number == 1 ? s->late_ns : 0) + (s->kind == KIND_SINGLE ? BUSY_NS : 0);

    for (int k = 0; k < s->small; k++)
        spin(r, 0);
    if (gap)
        spin(r, gap);
    if (s->beside_ns)
        spin_on(r, r->second, s->beside_ns);
    mark(r, s, st->events[2 * i]);
    all_reduce(r, s->bytes);
    mark(r, s, st->events[2 * i + 1]);
}

static void capture(struct rank *r, const struct shape *s, struct state *st)
{
    CU(cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < s->calls; i++)
        one_call(r, s, st, i);
    CU(cuStreamEndCapture(r->stream, &st->graph));
    CU(cuGraphInstantiate(&st->exec, st->graph, 0));
    CU(cuGraphUpload(st->exec, r->stream));
    CU(cuStreamSynchronize(r->stream));
}

static void read_events(const struct shape *s, struct state *st)
{
    for (int i = 0; s->events && i < s->calls; i++) {
        float ms;
        CU(cuEventElapsedTime(&ms, st->events[2 * i], st->events[2 * i + 1]));
        st->event_us[i] = ms * 1000;
    }
}

static double one_repeat(struct rank *r, const struct shape *s, struct state *st)
{
    double start;

    load_meet(r);
    start = now_us();
    if (s->kind == KIND_GRAPH)
        CU(cuGraphLaunch(st->exec, r->stream));
    for (int i = 0; s->kind == KIND_EAGER && i < s->calls; i++)
        one_call(r, s, st, i);
    CU(cuStreamSynchronize(r->stream));
    if (s->beside_ns)
        CU(cuStreamSynchronize(r->second));
    r->calls += (uint64_t)s->calls;
    return (now_us() - start) / s->calls;
}

static void run_single(struct rank *r, const struct shape *s, struct state *st)
{
    double start = now_us();

    for (int i = 0; i < s->calls; i++) {
        load_meet(r);
        one_call(r, s, st, i);
        CU(cuStreamSynchronize(r->stream));
        r->calls++;
    }
    st->wall_us[0] = (now_us() - start) / s->calls;
}

static void run_shape(struct rank *r, const struct shape *s, struct state *st)
{
    if (s->kind == KIND_SINGLE) {
        run_single(r, s, st);
    } else {
        for (int i = -s->warmup; i < s->repeats; i++) {
            double us = one_repeat(r, s, st);
            if (i >= 0)
                st->wall_us[i] = us;
        }
    }
    read_events(s, st);
}

static void run_shapes(struct rank *r, bool graphs)
{
    const struct options *o = r->opt;

    for (int i = 0; graphs && i < o->shape_count; i++)
        if (o->shapes[i].kind == KIND_GRAPH)
            capture(r, &o->shapes[i], &r->states[i]);
    load_meet(r);
    for (int i = 0; i < o->shape_count; i++)
        if ((o->shapes[i].kind == KIND_GRAPH) == graphs)
            run_shape(r, &o->shapes[i], &r->states[i]);
    load_meet(r);
}

/* ---- what came out --------------------------------------------------------------------------- */

static void print_shape(const struct options *o, const struct rank *ranks, int n)
{
    const struct shape *s = &o->shapes[n];
    static const char *const kinds[] = {"graph", "eager", "single"};

    printf("{\"shape\": \"%s\", \"kind\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"calls\": %d, \"wall_us\": [",
           s->name, kinds[s->kind], o->ranks, s->bytes, s->calls);
    for (int i = 0; i < (s->kind == KIND_SINGLE ? 1 : s->repeats); i++)
        printf("%s%.3f", i ? ", " : "", ranks[0].states[n].wall_us[i]);
    printf("], \"event_us\": [");
    for (int k = 0; s->events && k < o->ranks; k++) {
        printf("%s[", k ? ", " : "");
        for (int i = 0; i < s->calls; i++)
            printf("%s%.3f", i ? ", " : "", (double)ranks[k].states[n].event_us[i]);
        printf("]");
    }
    printf("]}\n");
}

static void tell(const struct rank *r, const struct rank *ranks)
{
    char name[128] = "";
    int version = 0;

    NC(ncclGetVersion(&version));
    CU(cuDeviceGetName(name, sizeof(name), r->device));
    for (int i = 0; i < r->opt->shape_count; i++)
        print_shape(r->opt, ranks, i);
    printf("{\"calls\": %llu, \"ranks\": %d, \"nccl\": %d, \"gpu\": \"%s\"}\n", (unsigned long long)r->calls,
           r->opt->ranks, version, name);
    fflush(stdout);
}

static void tear_down(struct rank *r)
{
    for (int i = 0; i < r->opt->shape_count; i++) {
        if (r->states[i].exec)
            CU(cuGraphExecDestroy(r->states[i].exec));
        if (r->states[i].graph)
            CU(cuGraphDestroy(r->states[i].graph));
    }
    NC(ncclCommDestroy(r->comm));
    load_meet(r);
    CU(cuMemFree(r->buffer));
    CU(cuModuleUnload(r->module));
    CU(cuStreamDestroy(r->second));
    CU(cuStreamDestroy(r->stream));
    CU(cuDevicePrimaryCtxRelease(r->device));
    for (int i = 0; i < r->opt->shape_count; i++)
        free(r->states[i].events);
}

void load_rank(struct rank *r, struct meeting *m)
{
    CU(cuInit(0));
    if (r->number == 0)
        NC(ncclGetUniqueId(&m->id));
    set_up(r);
    load_meet(r);
    NC(ncclCommInitRank(&r->comm, r->opt->ranks, m->id, r->number));
    check_sums(r);
    run_shapes(r, false);
    run_shapes(r, true);
    if (r->number == 0)
        tell(r, m->ranks);
    load_meet(r);
    tear_down(r);
}
