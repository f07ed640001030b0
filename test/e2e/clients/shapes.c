/* SPDX-License-Identifier: Apache-2.0 */
#include "test/e2e/clients/ranks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void give_up(const char *file, int line, const char *what, int result)
{
    fprintf(stderr, "%s:%d: %s: %d\n", file, line, what, result);
    exit(1);
}

static ncclUniqueId shared_id;
static pthread_barrier_t all;

struct job {
    int number;
    bool with_comm;
    void (*body)(struct rank *r);
};

static void *rank_thread(void *arg)
{
    const struct job *job = arg;
    struct rank r = {.number = job->number, .all = &all};
    CUdevice dev;

    CU(cuDeviceGet(&dev, getenv("SHAPES_ONE_GPU") ? 0 : r.number));
    CU(cuDevicePrimaryCtxRetain(&r.ctx, dev));
    CU(cuCtxSetCurrent(r.ctx));
    CU(cuStreamCreate(&r.stream, CU_STREAM_NON_BLOCKING));
    CU(cuMemAlloc(&r.buffer, BUFFER_BYTES));
    CU(cuMemsetD8Async(r.buffer, 0, BUFFER_BYTES, r.stream));
    CU(cuStreamSynchronize(r.stream));
    wait_all(&r);
    if (job->with_comm)
        NC(ncclCommInitRank(&r.comm, RANKS, shared_id, r.number));
    wait_all(&r);
    if (r.comm && getenv("SHAPES_WARM")) { /* real NCCL connects at the first call, which a capture forbids */
        NC(reduce(&r, 1, r.stream));
        CU(cuStreamSynchronize(r.stream));
        wait_all(&r);
    }
    job->body(&r);
    wait_all(&r);
    if (r.comm)
        NC(ncclCommDestroy(r.comm));
    return NULL;
}

void on_ranks(void (*body)(struct rank *r), bool with_comm)
{
    struct job jobs[RANKS];
    pthread_t threads[RANKS];

    CU(cuInit(0));
    NC(ncclGetUniqueId(&shared_id));
    pthread_barrier_init(&all, NULL, RANKS);
    for (int i = 0; i < RANKS; i++) {
        jobs[i] = (struct job){i, with_comm, body};
        NEED(pthread_create(&threads[i], NULL, rank_thread, &jobs[i]) == 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
}

void on_devices(struct device *d, bool own)
{
    ncclComm_t comms[RANKS];
    int numbers[RANKS];

    for (int i = 0; i < RANKS; i++)
        numbers[i] = i;
    CU(cuInit(0));
    NC(ncclCommInitAll(comms, RANKS, numbers));
    for (int i = 0; i < RANKS; i++) {
        CUdevice dev;
        d[i] = (struct device){.comm = comms[i]};
        CU(cuDeviceGet(&dev, i));
        CU(cuDevicePrimaryCtxRetain(&d[i].ctx, dev));
        CU(cuCtxSetCurrent(d[i].ctx));
        if (own)
            CU(cuStreamCreate(&d[i].stream, CU_STREAM_NON_BLOCKING));
        CU(cuMemAlloc(&d[i].buffer, 65536));
    }
}

void reduce_devices(struct device *d, size_t count)
{
    NC(ncclGroupStart());
    for (int i = 0; i < RANKS; i++)
        NC(ncclAllReduce((void *)d[i].buffer, (void *)d[i].buffer, count, ncclFloat, ncclSum, d[i].comm,
                         (cudaStream_t)d[i].stream));
    NC(ncclGroupEnd());
}

void *function(const char *name)
{
    void *f = dlsym(RTLD_DEFAULT, name);

    NEED(f != NULL);
    return f;
}

void wait_all(struct rank *r)
{
    pthread_barrier_wait(r->all);
}

ncclResult_t reduce(struct rank *r, size_t count, CUstream stream)
{
    return ncclAllReduce((void *)r->buffer, (void *)r->buffer, count, ncclFloat, ncclSum, r->comm, (cudaStream_t)stream);
}

CUgraphExec capture(struct rank *r, CUstreamCaptureMode mode, void (*body)(struct rank *r), CUgraph *graph)
{
    CUgraphExec exec;

    CU(cuStreamBeginCapture(r->stream, mode));
    body(r);
    CU(cuStreamEndCapture(r->stream, graph));
    CU(cuGraphInstantiate(&exec, *graph, 0));
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
    return exec;
}

void drop(CUgraphExec exec, CUgraph graph)
{
    CU(cuGraphExecDestroy(exec));
    if (graph)
        CU(cuGraphDestroy(graph));
}

int main(int argc, char **argv)
{
    static const struct shape *const tables[] = {group_shapes, capture_shapes, birth_shapes, process_shapes,
                                                 config_shapes, thread_shapes, operation_shapes};

    for (size_t t = 0; argc > 1 && t < sizeof(tables) / sizeof(tables[0]); t++)
        for (const struct shape *s = tables[t]; s->name; s++)
            if (!strcmp(s->name, argv[1])) {
                s->run();
                puts("done");
                return 0;
            }
    fprintf(stderr, "usage: shapes NAME; there is no shape '%s'\n", argc > 1 ? argv[1] : "");
    return 2;
}
