/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a communicator: finalize, destroy, abort, revoke; and suspend, resume, statistics. */
#include "test/fake/nccl_fake.h"

/* Waits for what was enqueued; then plugins are told. The handle stays valid. */
static ncclResult_t finalize_job(ncclComm_t comm, void *arg)
{
    (void)arg;
    fake_cu.cuCtxSetCurrent(comm->ctx);
    if (comm->init_state == ncclSuccess && !atomic_load(&comm->abort_flag))
        fake_exec_wait_idle(comm, true);
    fake_profiler_fini(comm);
    fake_tuner_fini(comm);
    return ncclSuccess;
}

static ncclResult_t reclaim_job(ncclComm_t comm, void *arg)
{
    const char *what = atomic_load(&comm->abort_flag) ? "Abort" : "Destroy";
    CUcontext current = NULL;
    (void)arg;
    fake_cu.cuCtxGetCurrent(&current);
    if (!comm->finalize_called)
        finalize_job(comm, NULL);
    else
        fake_cu.cuCtxSetCurrent(comm->ctx);
    if (atomic_load(&comm->abort_flag))
        fake_exec_wait_idle(comm, false);
    fake_capture_fini(comm);
    fake_cu.cuCtxSetCurrent(current);
    INFO(NCCL_INIT, "comm %p rank %d nranks %d cudaDev %d busId %lx - %s COMPLETE", (void *)comm,
         comm->rank, comm->nranks, comm->cuda_dev, (unsigned long)comm->bus_id, what);
    comm->start_magic = comm->end_magic = 0; /* a later call with this handle finds it corrupted */
    fake_comm_unref(comm);
    return ncclSuccess;
}

#if FAKE_VER >= 21403
FAKE_API(ncclResult_t, ncclCommFinalize, ncclComm_t comm)
{
    API_ENTER(ncclCommFinalize);
    NCCLCHECK(fake_group_start());
    ncclResult_t res = ncclSuccess;
    if (comm) {
        res = fake_comm_check(comm, "CommFinalize");
        if (res == ncclSuccess)
            res = fake_comm_ready(comm);
        if (res == ncclSuccess && comm->finalize_called)
            res = ncclInvalidArgument;
        if (res == ncclSuccess) {
            comm->finalize_called = true;
            res = fake_group_job(comm, finalize_job, NULL, false);
        }
    }
    fake_group_error(res);
    ncclResult_t end = fake_group_end(NULL);
    if (end != ncclSuccess && end != ncclInProgress)
        return end;
    if (comm && res == ncclSuccess && !comm->config.blocking)
        NCCLCHECK(ncclCommGetAsyncError(comm, &res));
    return res;
}
#endif

static ncclResult_t end_of(ncclComm_t comm, bool abort)
{
    if (!comm)
        return ncclSuccess;
    if (comm->fork_generation !=
        fake_fork_generation) /* the parent's: its threads and streams are not here */
        return ncclUnhandledCudaError;
    NCCLCHECK(fake_comm_check(comm, abort ? "CommAbort" : "CommDestroy"));
    INFO(NCCL_INIT, "comm %p rank %d nranks %d cudaDev %d busId %lx - %s START", (void *)comm,
         comm->rank, comm->nranks, comm->cuda_dev, (unsigned long)comm->bus_id,
         abort ? "Abort" : "Destroy");
    NCCLCHECK(fake_group_start());
    if (abort) {
        atomic_store(&comm->abort_flag, 1);
        if (comm->shm)
            fake_shm_wake(comm->shm);
    }
    fake_group_join_thread(comm); /* an init that is still under way; its error no longer matters */
    ncclResult_t res = fake_group_job(comm, reclaim_job, NULL, true);
    fake_group_error(res);
    ncclResult_t end = fake_group_end(NULL);
    return end != ncclSuccess && end != ncclInProgress ? end : res;
}

FAKE_API(ncclResult_t, ncclCommDestroy, ncclComm_t comm)
{
    API_ENTER(ncclCommDestroy);
    return end_of(comm, false);
}

FAKE_API(ncclResult_t, ncclCommAbort, ncclComm_t comm)
{
    API_ENTER(ncclCommAbort);
    return end_of(comm, true);
}

#if FAKE_VER >= 22807
FAKE_API(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int flags)
{
    API_ENTER(ncclCommRevoke);
    if (!comm)
        return ncclSuccess;
    NCCLCHECK(fake_comm_check(comm, "CommRevoke"));
    if (flags || comm->finalize_called || comm->revoked)
        return ncclInvalidArgument;
    comm->revoked = comm->finalize_called = true;
    atomic_store(&comm->abort_flag, 1);
    fake_shm_wake(comm->shm);
    fake_group_join_thread(comm);
    fake_exec_wait_idle(comm, false);
    atomic_store(&comm->abort_flag, 0);
    fake_comm_set_async(comm, ncclSuccess);
    return ncclSuccess;
}
#endif

#if FAKE_VER >= 22907
FAKE_API(ncclResult_t, ncclCommSuspend, ncclComm_t comm, int flags)
{
    API_ENTER(ncclCommSuspend);
    NCCLCHECK(fake_comm_check(comm, "CommSuspend"));
    NCCLCHECK(fake_comm_ready(comm));
    if (flags != 1 || comm->suspended)
        return ncclInvalidArgument;
    fake_exec_wait_idle(comm, false);
    comm->suspended = true;
    return ncclSuccess;
}

FAKE_API(ncclResult_t, ncclCommResume, ncclComm_t comm)
{
    API_ENTER(ncclCommResume);
    NCCLCHECK(fake_comm_check(comm, "CommResume"));
    if (!comm->suspended)
        return ncclInvalidArgument;
    comm->suspended = false;
    return ncclSuccess;
}

FAKE_API(ncclResult_t, ncclCommMemStats, ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value)
{
    API_ENTER(ncclCommMemStats);
    NCCLCHECK(fake_comm_check(comm, "CommMemStats"));
    if (!value || (int)stat < 0 || stat > ncclStatGpuMemTotal)
        return ncclInvalidArgument;
    /* Invented: what the channels' buffers would take. */
    uint64_t buffers = (uint64_t)comm->machine.nchannels * (4u << 20);
    *value = stat == ncclStatGpuMemSuspended ? comm->suspended
             : stat == ncclStatGpuMemPersist ? 1u << 20
             : stat == ncclStatGpuMemSuspend ? buffers
                                             : buffers + (1u << 20);
    return ncclSuccess;
}
#endif
