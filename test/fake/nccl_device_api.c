/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host side of NCCL's device API and of one-sided operations. Nothing here can run kernels of a
 * user, so the functions check their arguments, count, and accept; what would have to move data
 * between ranks answers ncclInvalidUsage, as NCCL does on a machine without symmetric memory.
 */
#include "test/fake/nccl_fake.h"

#include <string.h>

#if FAKE_VER >= 22803
typedef struct {
    int nRanks, rank, stride;
} team;

FAKE_API(ncclResult_t, ncclDevCommCreate, ncclComm_t comm, const void *requirements, void *out)
{
    COUNT(ncclDevCommCreate);
    fake_ask_stage(STAGE_WINDOW);
    NCCLCHECK(fake_comm_check(comm, "ncclDevCommCreate"));
    NCCLCHECK(fake_comm_ready(comm));
    return requirements && out ? ncclSuccess : ncclInvalidArgument;
}

FAKE_API(ncclResult_t, ncclDevCommDestroy, ncclComm_t comm, const void *dev_comm)
{
    COUNT(ncclDevCommDestroy);
    (void)dev_comm;
    return fake_comm_check(comm, "ncclDevCommDestroy");
}

static team whole(ncclComm_t comm, int stride)
{
    return (team){comm->nranks / stride, comm->rank / stride, stride};
}

FAKE_API(team, ncclTeamWorld, ncclComm_t comm)
{
    COUNT(ncclTeamWorld);
    return whole(comm, 1);
}

FAKE_API(team, ncclTeamLsa, ncclComm_t comm)
{
    COUNT(ncclTeamLsa);
    return whole(comm, 1);
}

FAKE_API(team, ncclTeamRail, ncclComm_t comm)
{
    COUNT(ncclTeamRail);
    return whole(comm, comm->nranks);
}

FAKE_API(int, ncclTeamRankToWorld, ncclComm_t comm, team t, int rank)
{
    COUNT(ncclTeamRankToWorld);
    return comm->rank + (rank - t.rank) * t.stride;
}

FAKE_API(int, ncclTeamRankToLsa, ncclComm_t comm, team t, int rank)
{
    COUNT(ncclTeamRankToLsa);
    return comm->rank + (rank - t.rank) * t.stride;
}

FAKE_API(int, ncclLLA2ACalcSlots, int max_elts, int max_elt_size)
{
    COUNT(ncclLLA2ACalcSlots);
    return max_elts * ((max_elt_size + 7) / 8);
}

FAKE_API(ncclResult_t, ncclLLA2ACreateRequirement, int blocks, int slots, void *handle,
         void *requirement)
{
    COUNT(ncclLLA2ACreateRequirement);
    return blocks >= 0 && slots >= 0 && handle && requirement ? ncclSuccess : ncclInvalidArgument;
}

FAKE_API(ncclResult_t, ncclLsaBarrierCreateRequirement, team t, int n, void *handle,
         void *requirement)
{
    COUNT(ncclLsaBarrierCreateRequirement);
    return t.nRanks > 0 && n >= 0 && handle && requirement ? ncclSuccess : ncclInvalidArgument;
}

FAKE_API(ncclResult_t, ncclGinBarrierCreateRequirement, ncclComm_t comm, team t, int n,
         void *handle, void *requirement)
{
    COUNT(ncclGinBarrierCreateRequirement);
    NCCLCHECK(fake_comm_check(comm, "ncclGinBarrierCreateRequirement"));
    return t.nRanks > 0 && n >= 0 && handle && requirement ? ncclSuccess : ncclInvalidArgument;
}
#endif

#if FAKE_VER >= 22902
FAKE_API(ncclResult_t, ncclCommQueryProperties, ncclComm_t comm, void *properties)
{
    COUNT(ncclCommQueryProperties);
    NCCLCHECK(fake_comm_check(comm, "ncclCommQueryProperties"));
    return properties ? ncclInvalidUsage : ncclInvalidArgument;
}

FAKE_API(ncclResult_t, ncclGetLsaDevicePointer, ncclWindow_t win, size_t offset, int rank,
         void **out)
{
    COUNT(ncclGetLsaDevicePointer);
    (void)offset, (void)rank;
    return win && out ? ncclInvalidUsage : ncclInvalidArgument;
}

FAKE_API(ncclResult_t, ncclGetPeerDevicePointer, ncclWindow_t win, size_t offset, int peer,
         void **out)
{
    COUNT(ncclGetPeerDevicePointer);
    (void)offset, (void)peer;
    return win && out ? ncclInvalidUsage : ncclInvalidArgument;
}

FAKE_API(ncclResult_t, ncclGetLsaMultimemDevicePointer, ncclWindow_t win, size_t offset, void **out)
{
    COUNT(ncclGetLsaMultimemDevicePointer);
    (void)offset;
    return win && out ? ncclInvalidUsage : ncclInvalidArgument;
}

typedef struct {
    void *base;
} multimem;

FAKE_API(ncclResult_t, ncclGetMultimemDevicePointer, ncclWindow_t win, size_t offset, multimem m,
         void **out)
{
    COUNT(ncclGetMultimemDevicePointer);
    (void)offset, (void)m;
    return win && out ? ncclInvalidUsage : ncclInvalidArgument;
}

FAKE_API(ncclResult_t, ncclGinOutboxCreateRequirement, int blocks, int size_log2, void *handle,
         void *requirement)
{
    COUNT(ncclGinOutboxCreateRequirement);
    return blocks >= 0 && size_log2 >= 0 && handle && requirement ? ncclSuccess
                                                                  : ncclInvalidArgument;
}

FAKE_API(ncclResult_t, ncclGinInboxA2ACreateRequirement, team peers, int blocks, int size_log2,
         void *handle, void *requirement)
{
    COUNT(ncclGinInboxA2ACreateRequirement);
    return peers.nRanks > 0 && blocks >= 0 && size_log2 >= 0 && handle && requirement
               ? ncclSuccess
               : ncclInvalidArgument;
}

FAKE_API(ncclResult_t, ncclPutSignal, const void *buff, size_t count, ncclDataType_t type, int peer,
         ncclWindow_t win, size_t offset, int sig, int ctx, unsigned flags, ncclComm_t comm,
         cudaStream_t stream)
{
    COUNT(ncclPutSignal);
    (void)buff, (void)count, (void)type, (void)peer, (void)win, (void)offset, (void)sig, (void)ctx,
        (void)flags;
    (void)stream;
    NCCLCHECK(fake_comm_check(comm, "PutSignal"));
    return fake_group_error(ncclInvalidUsage);
}

FAKE_API(ncclResult_t, ncclSignal, int peer, int sig, int ctx, unsigned flags, ncclComm_t comm,
         cudaStream_t stream)
{
    COUNT(ncclSignal);
    (void)peer, (void)sig, (void)ctx, (void)flags, (void)stream;
    NCCLCHECK(fake_comm_check(comm, "Signal"));
    return fake_group_error(ncclInvalidUsage);
}

FAKE_API(ncclResult_t, ncclWaitSignal, int n, ncclWaitSignalDesc_t *descs, ncclComm_t comm,
         cudaStream_t stream)
{
    COUNT(ncclWaitSignal);
    (void)n, (void)descs, (void)stream;
    NCCLCHECK(fake_comm_check(comm, "WaitSignal"));
    return fake_group_error(ncclInvalidUsage);
}
#endif
