/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stuck: rank 0 calls an all-reduce that rank 1 never joins (T03). Two threads, one GPU each or --one-gpu.
 *
 *   stuck [--one-gpu] abort|exit|_exit
 *
 * Both do 5 all-reduces; rank 0 does a sixth, says "queued" and waits for a line on standard input. Then it
 * aborts its communicator and exits, or exits at once; rank 1 sleeps all the while. Says how long abort took.
 */
#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT 21504 /* of bf16: 43,008 bytes */

static _Noreturn void die(int line, const char *what, int result)
{
    fprintf(stderr, "stuck: stuck.c:%d: %s: %d\n", line, what, result);
    _exit(1);
}

#define CU(e) do { CUresult r_ = (e); if (r_ != CUDA_SUCCESS) die(__LINE__, #e, r_); } while (0)
#define NC(e) do { ncclResult_t r_ = (e); if (r_ != ncclSuccess) die(__LINE__, #e, r_); } while (0)

static pthread_barrier_t both;
static ncclUniqueId id;
static bool one_gpu;
static const char *end = "";

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct rank {
    int number;
    CUcontext ctx;
    CUstream stream;
    CUdeviceptr buffer;
    ncclComm_t comm;
};

static void all_reduce(struct rank *r)
{
    NC(ncclAllReduce((void *)r->buffer, (void *)r->buffer, COUNT, ncclBfloat16, ncclSum, r->comm,
                     (cudaStream_t)r->stream));
}

static void five_calls(struct rank *r)
{
    CUdevice dev;

    CU(cuDeviceGet(&dev, one_gpu ? 0 : r->number));
    CU(cuDevicePrimaryCtxRetain(&r->ctx, dev));
    CU(cuCtxSetCurrent(r->ctx));
    CU(cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING));
    CU(cuMemAlloc(&r->buffer, COUNT * 2));
    CU(cuMemsetD8Async(r->buffer, 0, COUNT * 2, r->stream));
    CU(cuStreamSynchronize(r->stream));
    pthread_barrier_wait(&both);
    NC(ncclCommInitRank(&r->comm, 2, id, r->number));
    for (int i = 0; i < 5; i++)
        all_reduce(r);
    CU(cuStreamSynchronize(r->stream));
    pthread_barrier_wait(&both);
}

static void *sleeper(void *arg)
{
    five_calls(arg);
    sleep(60);
    return NULL;
}

int main(int argc, char **argv)
{
    struct rank ranks[2] = {{.number = 0}, {.number = 1}};
    pthread_t thread;
    char line[8];
    double start;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--one-gpu"))
            one_gpu = true;
        else
            end = argv[i];
    }
    if (strcmp(end, "abort") && strcmp(end, "exit") && strcmp(end, "_exit")) {
        fprintf(stderr, "usage: stuck [--one-gpu] abort|exit|_exit\n");
        return 2;
    }
    alarm(60);
    CU(cuInit(0));
    NC(ncclGetUniqueId(&id));
    pthread_barrier_init(&both, NULL, 2);
    if (pthread_create(&thread, NULL, sleeper, &ranks[1]) != 0)
        return 1;
    five_calls(&ranks[0]);
    all_reduce(&ranks[0]);
    puts("queued");
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        return 1;
    start = now_ms();
    if (!strcmp(end, "abort"))
        NC(ncclCommAbort(ranks[0].comm));
    printf("%s after %.1f ms\n", end, now_ms() - start);
    fflush(stdout);
    if (!strcmp(end, "_exit"))
        _exit(0);
    exit(0);
}
