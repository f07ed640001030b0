/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small stand-in for an inference server with tensor parallelism: one process for each GPU, as
 * vLLM and SGLang run (or one thread each, as llama.cpp and LMDeploy do), eager prefill, decode
 * steps as CUDA graph replays. This file starts and watches the ranks; decode_rank.c is what a rank
 * does.
 *
 * NCCL is linked as libtorch_cuda links it (DT_NEEDED libnccl.so.2, calls through the PLT), the
 * driver is found at run time.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "examples/decode_rank.h"
#include "examples/driver.h"

static struct share *share;
static pid_t workers[MAX_RANKS];

static int fail(const char *what)
{
    fprintf(stderr, "decode_server: %s\n", what);
    return 1;
}

/* ---- signals -----------------------------------------------------------------------------------
 */

static void on_stop(int number)
{
    (void)number;
    atomic_store(&share->stop, 1);
}

static void on_limit(int number)
{
    static const char text[] = "decode_server: gave up: --limit is over\n";

    (void)number;
    for (int i = 0; i < MAX_RANKS; i++)
        if (workers[i] > 0)
            kill(workers[i], SIGKILL);
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        _exit(4);
    _exit(3);
}

static void catch_signals(unsigned limit_s)
{
    struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    struct sigaction limit = {.sa_handler = on_limit};

    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGALRM, &limit, NULL);
    alarm(limit_s);
}

/* ---- the ranks ---------------------------------------------------------------------------------
 */

/* Memory for all ranks, as a file without a name, so that a worker finds it after exec. */
static int share_make(int ranks)
{
    pthread_barrierattr_t attr;
    int fd = memfd_create("decode_server", 0);

    if (fd < 0 || ftruncate(fd, sizeof(*share)) != 0)
        return -1;
    share = mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (share == MAP_FAILED)
        return -1;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&share->barrier, &attr, (unsigned)ranks);
    return fd;
}

static int be_worker(const struct options *opt)
{
    share = mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE, MAP_SHARED, opt->share_fd, 0);
    if (share == MAP_FAILED)
        return fail("--worker is for decode_server itself");
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no rank outlives the server */
    catch_signals((unsigned)opt->limit_s);
    rank_run(opt, share, opt->worker);
    return 0;
}

struct thread {
    pthread_t id;
    const struct options *opt;
    int rank;
};

static void *thread_main(void *arg)
{
    struct thread *t = arg;

    rank_run(t->opt, share, t->rank);
    return NULL;
}

static int run_threads(const struct options *opt)
{
    struct thread threads[MAX_RANKS];

    for (int i = 0; i < opt->ranks; i++) {
        threads[i] = (struct thread){.opt = opt, .rank = i};
        if (pthread_create(&threads[i].id, NULL, thread_main, &threads[i]) != 0)
            return fail("can't start a thread");
    }
    for (int i = 0; i < opt->ranks; i++)
        pthread_join(threads[i].id, NULL);
    return 0;
}

/* A fresh process for each rank (fork and exec, as servers spawn theirs): nothing of CUDA is
 * inherited. */
static pid_t start_worker(const struct options *opt, int rank, int fd, int argc, char **argv)
{
    char words[3][24];
    char **args = calloc((size_t)argc + 7, sizeof(*args));
    pid_t pid;

    if (!args)
        return -1;
    memcpy(args, argv, (size_t)argc * sizeof(*args));
    snprintf(words[0], sizeof(words[0]), "--ranks=%d", opt->ranks);
    snprintf(words[1], sizeof(words[1]), "--worker=%d", rank);
    snprintf(words[2], sizeof(words[2]), "--share=%d", fd);
    for (int i = 0; i < 3; i++)
        args[argc + i] = words[i];
    pid = fork();
    if (pid == 0) {
        execv("/proc/self/exe", args);
        fprintf(stderr, "decode_server: can't start itself: %s\n", strerror(errno));
        _exit(127);
    }
    free(args);
    return pid;
}

static void kill_workers(int ranks, int number)
{
    for (int i = 0; i < ranks; i++)
        if (workers[i] > 0)
            kill(workers[i], number);
}

/* Wait for all; the first that fails takes the others with it, since they would wait for it for
 * ever. */
static int watch_workers(int ranks)
{
    int result = 0;

    for (int left = ranks; left > 0;) {
        int status;
        pid_t pid = wait(&status);

        if (pid < 0)
            return errno == EINTR ? 1 : fail("wait failed");
        for (int i = 0; i < ranks; i++) {
            if (workers[i] != pid)
                continue;
            workers[i] = 0;
            left--;
            if (status == 0 || result)
                continue;
            result = 1;
            if (WIFSIGNALED(status) && !atomic_load(&share->dying))
                fprintf(stderr, "decode_server: rank %d was ended by signal %d\n", i,
                        WTERMSIG(status));
            kill_workers(ranks, SIGKILL);
        }
    }
    if (atomic_load(&share->dying)) /* the whole server is to look killed */
        kill(getpid(), SIGKILL);
    return result;
}

static int run_processes(const struct options *opt, int fd, int argc, char **argv)
{
    for (int i = 0; i < opt->ranks; i++) {
        workers[i] = start_worker(opt, i, fd, argc, argv);
        if (workers[i] < 0) {
            kill_workers(opt->ranks, SIGKILL);
            return fail("can't start a process");
        }
    }
    return watch_workers(opt->ranks);
}

/* ---- what is at hand ---------------------------------------------------------------------------
 */

static int count_gpus(bool *simulated)
{
    CUdevice device;
    char name[64] = "";
    int count = 0;

    *simulated = false;
    if (cu.cuInit(0) != CUDA_SUCCESS || cu.cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return 0;
    if (count > 0 && cu.cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
        cu.cuDeviceGetName(name, sizeof(name), device) == CUDA_SUCCESS)
        *simulated = !strncmp(name, "Simulated", 9);
    return count;
}

static int probe(void)
{
    bool simulated = false;
    int version = 0, gpus = driver_load() ? 0 : count_gpus(&simulated);

    if (ncclGetVersion(&version) != ncclSuccess)
        return fail("ncclGetVersion failed");
    printf("gpus=%d simulated=%d nccl=%d\n", gpus, simulated, version);
    return 0;
}

/* Fills opt->ranks. 0, or an exit code. */
static int choose_ranks(struct options *opt)
{
    bool simulated;
    int gpus = count_gpus(&simulated), wanted = opt->ranks;

    if (gpus == 0)
        return fail("the driver shows no GPU"), 2;
    if (!wanted)
        opt->ranks = opt->one_gpu || simulated ? 2 : gpus < 8 ? gpus : 8;
    if (!wanted && opt->ranks == 1) {
        fail(
            "one GPU alone has nobody to reduce with: --one-process --one-gpu puts two ranks on it "
            "(NCCL 2.30.3 or newer, NCCL_MULTI_RANK_GPU_ENABLE=1), --ranks 1 runs one");
        return 2;
    }
    if (!opt->one_gpu && opt->ranks > gpus) {
        fprintf(stderr, "decode_server: %d ranks need %d GPUs, the driver shows %d\n", opt->ranks,
                opt->ranks, gpus);
        return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options opt;
    const char *missing;
    int fd, rc = options_parse(&opt, argc, argv);

    if (rc)
        return rc - 1;
    if (opt.probe)
        return probe();
    missing = driver_load();
    if (missing)
        return fail(missing), 2;
    if (cu.cuInit(0) != CUDA_SUCCESS)
        return fail("cuInit failed: is there a GPU, and may this user open it?"), 2;
    if (opt.worker >= 0)
        return be_worker(&opt);
    rc = choose_ranks(&opt);
    if (rc)
        return rc;
    fd = share_make(opt.ranks);
    if (fd < 0)
        return fail("no shared memory for the ranks");
    catch_signals((unsigned)opt.limit_s + (opt.one_process ? 0 : 2));
    return opt.one_process ? run_threads(&opt) : run_processes(&opt, fd, argc, argv);
}
