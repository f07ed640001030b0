/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator object: life, checks, and the functions that ask it something. */
#include "test/fake/nccl_fake.h"

#include <stdlib.h>
#include <string.h>

unsigned fake_fork_generation;

static void in_child(void)
{
    fake_fork_generation++;
    fake_debug_after_fork();
    fake_env_after_fork();
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

uint64_t fake_hash(const void *data, size_t size, uint64_t start)
{
    const unsigned char *p = data;
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ start * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

/* NCCLSHIM_FAKE_REUSE: what ended, the newest first. The first word of each points to the next. */
static ncclComm_t ended;
static pthread_mutex_t ended_lock = PTHREAD_MUTEX_INITIALIZER;

static void give_memory(ncclComm_t c)
{
    if (!fake_knob("NCCLSHIM_FAKE_REUSE", 0)) {
        free(c);
        return;
    }
    pthread_mutex_lock(&ended_lock);
    *(ncclComm_t *)c = ended;
    ended = c;
    pthread_mutex_unlock(&ended_lock);
}

static ncclComm_t take_memory(void)
{
    pthread_mutex_lock(&ended_lock);
    ncclComm_t c = ended;
    if (c)
        ended = *(ncclComm_t *)c;
    pthread_mutex_unlock(&ended_lock);
    return c ? memset(c, 0, sizeof(*c)) : calloc(1, sizeof(*c));
}

ncclComm_t fake_comm_new(void)
{
    ncclComm_t c = take_memory();
    c->start_magic = c->end_magic = FAKE_MAGIC;
    c->fork_generation = fake_fork_generation;
    c->nnodes = 1;
    pthread_mutex_init(&c->exec_lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->exec_cond, &attr);
    pthread_condattr_destroy(&attr);
    atomic_store(&c->refs, 1);
    return c;
}

void fake_comm_unref(ncclComm_t c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    fake_shm_leave(c->shm);
    pthread_mutex_destroy(&c->exec_lock);
    pthread_cond_destroy(&c->exec_cond);
    free(c->userops);
    free(c->net_name);
    give_memory(c);
}

ncclResult_t fake_comm_check(const struct ncclComm *comm, const char *op)
{
    if (!comm) {
        WARN("%s : comm argument is NULL", op);
        return ncclInvalidArgument;
    }
    if (comm->start_magic != FAKE_MAGIC || comm->end_magic != FAKE_MAGIC) {
        WARN("Error: corrupted comm object detected");
        return ncclInvalidArgument;
    }
    if (comm->fork_generation != fake_fork_generation) {
        WARN("%s : the communicator belongs to the parent process", op);
        return ncclUnhandledCudaError;
    }
    return ncclSuccess;
}

void fake_comm_set_async(ncclComm_t comm, ncclResult_t res)
{
    atomic_store(&comm->async, (int)res);
}

ncclResult_t fake_comm_ready(ncclComm_t comm)
{
    ncclResult_t res = ncclSuccess;
    if (atomic_load(&comm->abort_flag))
        return fake_group_join_thread(comm);
    NCCLCHECK(ncclCommGetAsyncError(comm, &res));
    if (res == ncclInProgress) {
        WARN("Attempt to use communicator before the previous operation returned ncclSuccess");
        return ncclInvalidArgument;
    }
    return res;
}

FAKE_API(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t *error)
{
    COUNT(ncclCommGetAsyncError);
    NCCLCHECK(fake_comm_check(comm, "ncclGetAsyncError"));
    if (!error) {
        WARN("ncclGetAsyncError : asyncError argument is NULL");
        return ncclInvalidArgument;
    }
    *error = (ncclResult_t)atomic_load(&comm->async);
    /* A finished background thread is collected at the first look. */
    if (*error != ncclInProgress && comm->job_running && atomic_load(&comm->job_done))
        fake_group_join_thread(comm);
    return ncclSuccess;
}

/* Count, device and rank: refused while the communicator is still being made. */
static ncclResult_t ask(ncclComm_t comm, const char *op, const int *from, int *to)
{
    fake_ask_stage(STAGE_NVTX);
    NCCLCHECK(fake_comm_check(comm, op));
    if (!to) {
        WARN("%s : result argument is NULL", op);
        return ncclInvalidArgument;
    }
    NCCLCHECK(fake_comm_ready(comm));
    *to = *from;
    return ncclSuccess;
}

FAKE_API(ncclResult_t, ncclCommCount, ncclComm_t comm, int *count)
{
    COUNT(ncclCommCount);
    return ask(comm, "CommCount", comm ? &comm->nranks : NULL, count);
}

FAKE_API(ncclResult_t, ncclCommCuDevice, ncclComm_t comm, int *device)
{
    COUNT(ncclCommCuDevice);
    return ask(comm, "CommCuDevice", comm ? &comm->cuda_dev : NULL, device);
}

FAKE_API(ncclResult_t, ncclCommUserRank, ncclComm_t comm, int *rank)
{
    COUNT(ncclCommUserRank);
    return ask(comm, "CommUserRank", comm ? &comm->rank : NULL, rank);
}

FAKE_API(ncclResult_t, ncclGetVersion, int *version)
{
    COUNT(ncclGetVersion);
    if (!version)
        return ncclInvalidArgument;
    *version = FAKE_NCCL_VERSION;
    return ncclSuccess;
}

FAKE_API(const char *, ncclGetErrorString, ncclResult_t res)
{
    COUNT(ncclGetErrorString);
    static const char *const texts[] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
        "timeout",
    };
    int known = FAKE_VER >= 23003 ? 9 : FAKE_VER >= 21403 ? 8 : FAKE_VER >= 21304 ? 7 : 6;
    return (int)res >= 0 && (int)res < known ? texts[res] : "unknown result code";
}

#if FAKE_VER >= 21304
FAKE_API(const char *, ncclGetLastError, ncclComm_t comm)
{
    COUNT(ncclGetLastError);
    (void)comm;
    return fake_last_error();
}
#endif

#if FAKE_VER >= 22403
FAKE_API(void, ncclResetDebugInit, void)
{
    COUNT(ncclResetDebugInit);
    fake_debug_reset();
}

__attribute__((visibility("default"))) void ncclResetDebugInitInternal(void);
void ncclResetDebugInitInternal(void)
{
    fake_debug_reset();
}
#endif
