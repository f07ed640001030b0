/* SPDX-License-Identifier: Apache-2.0 */
/* P06 and the end of a process: forks among calls, every way to end. */
#include "test/e2e/clients/ranks.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool stop;

static void *forker(void *arg)
{
    int *bad = arg;

    for (int i = 0; i < 200; i++) {
        int version, status;
        pid_t child = fork();
        if (child == 0) {
            if (i % 3 == 0)
                _exit(0);
            if (i % 3 == 1) {
                execl("/bin/true", "true", (char *)NULL);
                _exit(1);
            }
            _exit(ncclGetVersion(&version) == ncclSuccess ? 0 : 1); /* goes on and calls NCCL */
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            (*bad)++;
    }
    atomic_store(&stop, true);
    return NULL;
}

static void busy_body(struct rank *r)
{
    static atomic_int agreed;

    for (;;) {
        NC(reduce(r, 1000, r->stream));
        CU(cuStreamSynchronize(r->stream));
        wait_all(r);
        if (r->number == 0)
            atomic_store(&agreed, atomic_load(&stop));
        wait_all(r);
        if (atomic_load(&agreed))
            return;
    }
}

static void forks(void)
{
    pthread_t thread;
    int bad = 0;

    NEED(pthread_create(&thread, NULL, forker, &bad) == 0);
    on_ranks(busy_body, true);
    pthread_join(thread, NULL);
    NEED(bad == 0);
}

/*
 * A child that goes on with what it inherited, before and after it has a log of its own: its init
 * fails, since CUDA does not work in a child. The parent ends without destroying its communicators.
 */
static void go_on(struct rank *r, ncclUniqueId id)
{
    ncclComm_t own;

    NEED(reduce(r, 1000, r->stream) != ncclSuccess);
    NEED(ncclCommInitRank(&own, 1, id, 0) != ncclSuccess);
    NEED(reduce(r, 1000, r->stream) != ncclSuccess);
    NEED(ncclCommDestroy(r->comm) != ncclSuccess);
    exit(0);
}

typedef ncclResult_t init_rank(ncclComm_t *, int, ncclUniqueId, int);

static void inherited_body(struct rank *r)
{
    static ncclUniqueId id;
    int status;

    if (r->comm) {
        NC(reduce(r, 1000, r->stream));
        CU(cuStreamSynchronize(r->stream));
    } else { /* rank 0's is made past the wrappers, and nobody has called yet */
        if (r->number == 0)
            NC(ncclGetUniqueId(&id));
        wait_all(r);
        const char *name = r->number ? "ncclCommInitRank" : "pncclCommInitRank";
        init_rank *init = (init_rank *)function(name);
        NC(init(&r->comm, RANKS, id, r->number));
    }
    wait_all(r);
    if (r->number == 0) {
        NC(ncclGetUniqueId(&id));
        pid_t child = fork();
        if (child == 0)
            go_on(r, id);
        NEED(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    wait_all(r);
    NC(reduce(r, 1000, r->stream));
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
    if (r->number == 0) {
        puts("done");
        fflush(stdout);
        _exit(0);
    }
}

static void inherited(void)
{
    on_ranks(inherited_body, !getenv("SHAPES_UNSEEN"));
}

static void end_as(const char *end)
{
    if (!end)
        return;
    if (!strcmp(end, "kill"))
        kill(getpid(), SIGKILL);
    else if (!strcmp(end, "abort"))
        abort();
    else if (!strcmp(end, "_exit"))
        _exit(0);
    else if (!strcmp(end, "exec"))
        execl("/bin/true", "true", (char *)NULL);
    else if (!strcmp(end, "quick_exit"))
        quick_exit(0);
}

/* 50 eager calls, finished on the GPU; then an end of the kind that SHAPES_END names. */
static void ending_body(struct rank *r)
{
    for (int i = 0; i < 50; i++)
        NC(reduce(r, 1000, r->stream));
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
    if (r->number == 0)
        end_as(getenv("SHAPES_END"));
}

static void ending(void)
{
    on_ranks(ending_body, true);
}

/*
 * Replays of a graph of 20 calls without end; after a random while another thread ends the process in
 * mid-replay, by the kind that SHAPES_END names. How many replays were finished by then stands in the
 * file SHAPES_PROGRESS, a 64-bit count for each rank.
 */
static uint64_t *progress;

static void twenty_calls(struct rank *r)
{
    for (int i = 0; i < 20; i++)
        NC(reduce(r, 1000, r->stream));
}

static void *ender(void *arg)
{
    (void)arg;
    for (int i = 0; i < RANKS; i++)
        while (!__atomic_load_n(&progress[i], __ATOMIC_ACQUIRE))
            usleep(100);
    usleep((unsigned)getpid() * 2654435761u % 30000);
    end_as(getenv("SHAPES_END"));
    return NULL;
}

static void endless_body(struct rank *r)
{
    CUgraph graph;
    CUgraphExec exec = capture(r, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, twenty_calls, &graph);
    pthread_t thread;

    if (r->number == 0)
        NEED(pthread_create(&thread, NULL, ender, NULL) == 0);
    for (;;) {
        CU(cuGraphLaunch(exec, r->stream));
        CU(cuStreamSynchronize(r->stream));
        __atomic_add_fetch(&progress[r->number], 1, __ATOMIC_RELEASE);
    }
}

static void mid_replay(void)
{
    int fd = open(getenv("SHAPES_PROGRESS"), O_RDWR | O_CREAT, 0600);

    NEED(fd >= 0 && ftruncate(fd, RANKS * sizeof(*progress)) == 0);
    progress = mmap(NULL, RANKS * sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    NEED(progress != MAP_FAILED);
    on_ranks(endless_body, true);
}

/* After the first calls no allocation from the shim on the call path: malloc is watched by its
 * caller, which the test's own interposer (below) sees. */
static atomic_bool watching;
static atomic_int caught;
static char *shim_low, *shim_high;

static void find_shim(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");

    while (maps && fgets(line, sizeof(line), maps)) {
        void *low, *high;
        if (!strstr(line, "libncclshim.so") || sscanf(line, "%p-%p", &low, &high) != 2)
            continue;
        if (!shim_low || (char *)low < shim_low)
            shim_low = low;
        if ((char *)high > shim_high)
            shim_high = high;
    }
    if (maps)
        fclose(maps);
}

__attribute__((unused)) static void watch(const char *caller)
{
    if (atomic_load_explicit(&watching, memory_order_relaxed) && caller >= shim_low && caller < shim_high)
        atomic_fetch_add(&caught, 1);
}

/* ThreadSanitizer has a malloc of its own, and this one would be called before it is up. */
#ifndef __SANITIZE_THREAD__
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t a, size_t b);
extern void *__libc_realloc(void *p, size_t n);
void *malloc(size_t n)
{
    watch(__builtin_return_address(0));
    return __libc_malloc(n);
}
void *calloc(size_t a, size_t b)
{
    watch(__builtin_return_address(0));
    return __libc_calloc(a, b);
}
void *realloc(void *p, size_t n)
{
    watch(__builtin_return_address(0));
    return __libc_realloc(p, n);
}
#endif

static void all_kinds(struct rank *r)
{
    NC(reduce(r, 1000, r->stream));
    NC(ncclGroupStart());
    NC(reduce(r, 2000, r->stream));
    NC(reduce(r, 3000, r->stream));
    NC(ncclGroupEnd());
}

static void no_malloc_body(struct rank *r)
{
    CUgraphExec exec;
    CUgraph graph;

    all_kinds(r);
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
    if (r->number == 0) {
        find_shim();
        NEED(shim_low != NULL || !getenv("LD_PRELOAD"));
        atomic_store(&watching, true);
    }
    wait_all(r);
    for (int i = 0; i < 100; i++)
        all_kinds(r);
    NC(reduce(r, 5000 + (size_t)r->number * 0, r->stream)); /* a new size */
    exec = capture(r, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, all_kinds, &graph);
    CU(cuGraphLaunch(exec, r->stream));
    CU(cuStreamSynchronize(r->stream));
    wait_all(r);
    atomic_store(&watching, false);
    drop(exec, graph);
    NEED(atomic_load(&caught) == 0);
}

static void no_malloc(void)
{
    on_ranks(no_malloc_body, true);
}

const struct shape process_shapes[] = {
    {"process-forks", forks},
    {"process-inherited", inherited},
    {"process-ending", ending},
    {"process-mid-replay", mid_replay},
    {"process-no-malloc", no_malloc},
    {NULL, NULL},
};
