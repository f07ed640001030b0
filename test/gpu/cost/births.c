/* SPDX-License-Identifier: Apache-2.0 */
/*
 * births: two ranks (threads; one GPU each, or --one-gpu) make a communicator in one of the ways that
 * programs use, and do a few all-reduces of 43,008 bytes with it. What settings it got is NCCL's to say
 * (NCCL_DEBUG=INFO) and the shim's log's.
 *
 *   births [--one-gpu] InitRank|InitRankConfig|InitAll|Split|SplitAlone|Named
 *
 * SplitAlone leaves each rank alone in its part. Named makes two communicators, each init alone and one
 * after the other, that are called "low" and "simple"; each does its calls eagerly and in a replayed graph.
 */
#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS 2
#define BYTES 43008u
#define CALLS 20

static _Noreturn void die(int line, const char *what, int result)
{
    fprintf(stderr, "births: births.c:%d: %s: %d\n", line, what, result);
    _exit(1);
}

#define CU(e) do { CUresult r_ = (e); if (r_ != CUDA_SUCCESS) die(__LINE__, #e, r_); } while (0)
#define NC(e) do { ncclResult_t r_ = (e); if (r_ != ncclSuccess) die(__LINE__, #e, r_); } while (0)

static pthread_barrier_t all;
static ncclUniqueId ids[2];
static ncclComm_t from_init_all[RANKS];
static const char *way;
static bool one_gpu;

struct rank {
    int number;
    CUcontext ctx;
    CUstream stream;
    CUdeviceptr buffer;
};

static void set_up(struct rank *r)
{
    CUdevice dev;

    CU(cuDeviceGet(&dev, one_gpu ? 0 : r->number));
    CU(cuDevicePrimaryCtxRetain(&r->ctx, dev));
    CU(cuCtxSetCurrent(r->ctx));
    CU(cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING));
    CU(cuMemAlloc(&r->buffer, BYTES));
    CU(cuMemsetD8Async(r->buffer, 0, BYTES, r->stream));
    CU(cuStreamSynchronize(r->stream));
}

static void calls(struct rank *r, ncclComm_t comm)
{
    for (int i = 0; i < CALLS; i++)
        NC(ncclAllReduce((void *)r->buffer, (void *)r->buffer, BYTES / 2, ncclBfloat16, ncclSum, comm,
                         (cudaStream_t)r->stream));
}

static void use(struct rank *r, ncclComm_t comm)
{
    pthread_barrier_wait(&all);
    calls(r, comm);
    CU(cuStreamSynchronize(r->stream));
    pthread_barrier_wait(&all);
}

static void use_captured(struct rank *r, ncclComm_t comm)
{
    CUgraphExec exec;
    CUgraph graph;

    CU(cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    calls(r, comm);
    CU(cuStreamEndCapture(r->stream, &graph));
    CU(cuGraphInstantiate(&exec, graph, 0));
    CU(cuGraphUpload(exec, r->stream));
    CU(cuStreamSynchronize(r->stream));
    pthread_barrier_wait(&all);
    CU(cuGraphLaunch(exec, r->stream));
    CU(cuStreamSynchronize(r->stream));
    CU(cuGraphExecDestroy(exec));
    CU(cuGraphDestroy(graph));
    pthread_barrier_wait(&all);
}

static ncclComm_t make_named(struct rank *r, const char *name, int which)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm;

    config.commName = name;
    NC(ncclCommInitRankConfig(&comm, RANKS, ids[which], r->number, &config));
    return comm;
}

static void named(struct rank *r)
{
    ncclComm_t low = make_named(r, "low", 0), simple = make_named(r, "simple", 1);

    use(r, low);
    use(r, simple);
    use_captured(r, low);
    use_captured(r, simple);
    NC(ncclCommDestroy(low));
    NC(ncclCommDestroy(simple));
}

static ncclComm_t make(struct rank *r)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm;

    if (!strcmp(way, "InitAll"))
        return from_init_all[r->number];
    if (!strcmp(way, "InitRankConfig"))
        NC(ncclCommInitRankConfig(&comm, RANKS, ids[0], r->number, &config));
    else
        NC(ncclCommInitRank(&comm, RANKS, ids[0], r->number));
    return comm;
}

static void *run(void *arg)
{
    struct rank *r = arg;
    ncclComm_t comm, child;

    set_up(r);
    pthread_barrier_wait(&all);
    if (!strcmp(way, "Named")) {
        named(r);
        return NULL;
    }
    comm = make(r);
    use(r, comm);
    if (!strncmp(way, "Split", 5)) {
        NC(ncclCommSplit(comm, !strcmp(way, "Split") ? 0 : r->number, r->number, &child, NULL));
        use(r, child);
        NC(ncclCommDestroy(child));
    }
    NC(ncclCommDestroy(comm));
    return NULL;
}

int main(int argc, char **argv)
{
    static const char *const ways[] = {"InitRank", "InitRankConfig", "InitAll", "Split", "SplitAlone", "Named"};
    const int devices[2][RANKS] = {{0, 1}, {0, 0}};
    struct rank ranks[RANKS] = {{.number = 0}, {.number = 1}};
    pthread_t threads[RANKS];
    bool known = false;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--one-gpu"))
            one_gpu = true;
        else
            way = argv[i];
    }
    for (size_t i = 0; way && i < sizeof(ways) / sizeof(ways[0]); i++)
        known |= !strcmp(way, ways[i]);
    if (!known) {
        fprintf(stderr, "usage: births [--one-gpu] InitRank|InitRankConfig|InitAll|Split|SplitAlone|Named\n");
        return 2;
    }
    alarm(60);
    CU(cuInit(0));
    for (int i = 0; i < 2; i++)
        NC(ncclGetUniqueId(&ids[i]));
    if (!strcmp(way, "InitAll"))
        NC(ncclCommInitAll(from_init_all, RANKS, devices[one_gpu]));
    pthread_barrier_init(&all, NULL, RANKS);
    for (int i = 0; i < RANKS; i++)
        if (pthread_create(&threads[i], NULL, run, &ranks[i]) != 0)
            return 1;
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
