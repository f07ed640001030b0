/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads: each makes communicators, uses them and ends them while the others do the same. */
#include "test/e2e/clients/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS 4 /* threads of one rank; thread n of one rank works with thread n of the other */
#define ALLOWED_GROWTH_KIB 1024

static ncclUniqueId pair_id[PAIRS];
static pthread_barrier_t pair[PAIRS];

struct worker {
    struct rank *r;
    int n, rounds;
};

static void one_communicator(struct worker *w, CUstream stream, CUdeviceptr buffer, int round)
{
    const struct rank *r = w->r;
    ncclComm_t comm, child;

    if (r->number == 0)
        NC(ncclGetUniqueId(&pair_id[w->n]));
    pthread_barrier_wait(&pair[w->n]);
    NC(ncclCommInitRank(&comm, RANKS, pair_id[w->n], r->number));
    NC(ncclAllReduce((void *)buffer, (void *)buffer, 1000, ncclFloat, ncclSum, comm, (cudaStream_t)stream));
    if (round % 4 == 0) {
        NC(ncclCommSplit(comm, 0, r->number, &child, NULL));
        NC(ncclGroupStart());
        NC(ncclAllReduce((void *)buffer, (void *)buffer, 2000, ncclFloat, ncclSum, comm, (cudaStream_t)stream));
        NC(ncclAllReduce((void *)buffer, (void *)buffer, 3000, ncclFloat, ncclSum, child, (cudaStream_t)stream));
        NC(ncclGroupEnd());
        CU(cuStreamSynchronize(stream));
        pthread_barrier_wait(&pair[w->n]);
        NC(ncclCommDestroy(child));
    }
    CU(cuStreamSynchronize(stream));
    pthread_barrier_wait(&pair[w->n]);
    NC(ncclCommDestroy(comm));
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    CUdeviceptr buffer;
    CUstream stream;

    CU(cuCtxSetCurrent(w->r->ctx));
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuMemAlloc(&buffer, 65536));
    CU(cuMemsetD8Async(buffer, 0, 65536, stream));
    for (int i = 0; i < w->rounds; i++)
        one_communicator(w, stream, buffer, i);
    return NULL;
}

static void run_workers(struct rank *r, int rounds)
{
    struct worker workers[PAIRS];
    pthread_t threads[PAIRS];

    for (int n = 0; n < PAIRS; n++) {
        workers[n] = (struct worker){r, n, rounds};
        NEED(pthread_create(&threads[n], NULL, worker_main, &workers[n]) == 0);
    }
    for (int n = 0; n < PAIRS; n++)
        pthread_join(threads[n], NULL);
}

static long anonymous_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;

    while (f && fgets(line, sizeof(line), f))
        sscanf(line, "RssAnon: %ld", &kib);
    if (f)
        fclose(f);
    return kib;
}

static int total_rounds(void)
{
    const char *rounds = getenv("SHAPES_ROUNDS");

    return rounds ? atoi(rounds) : 200;
}

static int warm_up_rounds(void)
{
    return total_rounds() < 500 ? total_rounds() : 500;
}

/* SHAPES_ROUNDS communicators for each of the four pairs. Memory must not grow with them. */
static void many_body(struct rank *r)
{
    long before = 0;

    /* What is touched once: arenas, and the shim's table of living communicators, which it goes round
     * (4,096 places), so that a place is not another's the moment it is free. */
    run_workers(r, warm_up_rounds());
    wait_all(r);
    if (r->number == 0)
        before = anonymous_kib();
    wait_all(r);
    run_workers(r, total_rounds());
    wait_all(r);
#ifndef __SANITIZE_THREAD__
    if (r->number == 0)
        NEED(total_rounds() < 500 || anonymous_kib() - before < ALLOWED_GROWTH_KIB);
#endif
    (void)before;
}

static void many(void)
{
    for (int n = 0; n < PAIRS; n++)
        pthread_barrier_init(&pair[n], NULL, RANKS);
    on_ranks(many_body, false);
}

const struct shape thread_shapes[] = {
    {"threads-many", many},
    {NULL, NULL},
};
