/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's public functions: one table, from which the exported wrappers, the entry points of each
 * NCCL copy, the look-ups and the tests come.
 *
 * OWN(ret, name, since, params, args)       written by hand in shim/preload/wrap_*.c: own_NAME
 * PASS(ret, name, since, comm, params, args) handed on; `comm` is the communicator argument, by
 *                                            which the copy of NCCL is found, or NULL
 * LEAVE(name, since)                         not exported by us: the caller reaches NCCL directly
 *
 * name is without "nccl"; since is the version code of the first release whose header declares it
 * (nccl.h and nccl_device.h of 2.8.3 to 2.32.3; everything older counts as 20800).
 */
#ifndef NCCLSHIM_NCCL_API_H
#define NCCLSHIM_NCCL_API_H

#include "shim/preload/nccl_abi.h"

/* clang-format off */
#define NCCLSHIM_API_OWN(OWN)                                                                      \
    OWN(CommInitRank, 20800, (ncclComm_t *comm, int nranks, ncclUniqueId id, int rank),            \
        (comm, nranks, id, rank))                                                                  \
    OWN(CommInitAll, 20800, (ncclComm_t *comms, int ndev, const int *devlist),                     \
        (comms, ndev, devlist))                                                                    \
    OWN(CommInitRankConfig, 21403,                                                                 \
        (ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, void *config),                   \
        (comm, nranks, id, rank, config))                                                          \
    OWN(CommInitRankScalable, 22304,                                                               \
        (ncclComm_t *comm, int nranks, int rank, int nid, ncclUniqueId *ids, void *config),        \
        (comm, nranks, rank, nid, ids, config))                                                    \
    OWN(CommSplit, 21801,                                                                          \
        (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, void *config),                  \
        (comm, color, key, newcomm, config))                                                       \
    OWN(CommShrink, 22703,                                                                         \
        (ncclComm_t comm, int *exclude, int count, ncclComm_t *newcomm, void *config, int flags),  \
        (comm, exclude, count, newcomm, config, flags))                                            \
    OWN(CommGrow, 22902,                                                                           \
        (ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank, ncclComm_t *newcomm,       \
         void *config),                                                                            \
        (comm, nranks, id, rank, newcomm, config))                                                 \
    OWN(CommCount, 20800, (ncclComm_t comm, int *count), (comm, count))                            \
    OWN(CommUserRank, 20800, (ncclComm_t comm, int *rank), (comm, rank))                           \
    OWN(CommFinalize, 21403, (ncclComm_t comm), (comm))                                            \
    OWN(CommDestroy, 20800, (ncclComm_t comm), (comm))                                             \
    OWN(CommAbort, 20800, (ncclComm_t comm), (comm))                                               \
    OWN(CommRevoke, 22807, (ncclComm_t comm, int flags), (comm, flags))                            \
    OWN(CommWindowRegister, 22703,                                                                 \
        (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int flags),                  \
        (comm, buff, size, win, flags))                                                            \
    OWN(DevCommCreate, 22803, (ncclComm_t comm, const void *reqs, void *dev), (comm, reqs, dev))   \
    OWN(Reduce, 20800,                                                                             \
        (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t redop,       \
         int root, ncclComm_t comm, cudaStream_t stream),                                          \
        (send, recv, count, type, redop, root, comm, stream))                                      \
    OWN(Bcast, 20800,                                                                              \
        (void *buff, size_t count, ncclDataType_t type, int root, ncclComm_t comm,                 \
         cudaStream_t stream),                                                                     \
        (buff, count, type, root, comm, stream))                                                   \
    OWN(Broadcast, 20800,                                                                          \
        (const void *send, void *recv, size_t count, ncclDataType_t type, int root,                \
         ncclComm_t comm, cudaStream_t stream),                                                    \
        (send, recv, count, type, root, comm, stream))                                             \
    OWN(AllReduce, 20800,                                                                          \
        (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t redop,       \
         ncclComm_t comm, cudaStream_t stream),                                                    \
        (send, recv, count, type, redop, comm, stream))                                            \
    OWN(ReduceScatter, 20800,                                                                      \
        (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t redop,       \
         ncclComm_t comm, cudaStream_t stream),                                                    \
        (send, recv, count, type, redop, comm, stream))                                            \
    OWN(AllGather, 20800,                                                                          \
        (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,         \
         cudaStream_t stream),                                                                     \
        (send, recv, count, type, comm, stream))                                                   \
    OWN(AlltoAll, 22803,                                                                           \
        (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,         \
         cudaStream_t stream),                                                                     \
        (send, recv, count, type, comm, stream))                                                   \
    OWN(Gather, 22803,                                                                             \
        (const void *send, void *recv, size_t count, ncclDataType_t type, int root,                \
         ncclComm_t comm, cudaStream_t stream),                                                    \
        (send, recv, count, type, root, comm, stream))                                             \
    OWN(Scatter, 22803,                                                                            \
        (const void *send, void *recv, size_t count, ncclDataType_t type, int root,                \
         ncclComm_t comm, cudaStream_t stream),                                                    \
        (send, recv, count, type, root, comm, stream))                                             \
    OWN(Send, 20800,                                                                               \
        (const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,           \
         cudaStream_t stream),                                                                     \
        (send, count, type, peer, comm, stream))                                                   \
    OWN(Recv, 20800,                                                                               \
        (void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,                 \
         cudaStream_t stream),                                                                     \
        (recv, count, type, peer, comm, stream))                                                   \
    OWN(PutSignal, 22902,                                                                          \
        (const void *send, size_t count, ncclDataType_t type, int peer, ncclWindow_t win,          \
         size_t offset, int sig, int ctx, unsigned int flags, ncclComm_t comm,                     \
         cudaStream_t stream),                                                                     \
        (send, count, type, peer, win, offset, sig, ctx, flags, comm, stream))                     \
    OWN(Signal, 22902,                                                                             \
        (int peer, int sig, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream),    \
        (peer, sig, ctx, flags, comm, stream))                                                     \
    OWN(WaitSignal, 22902, (int n, void *descs, ncclComm_t comm, cudaStream_t stream),             \
        (n, descs, comm, stream))                                                                  \
    OWN(AllReduceConfig, 23102,                                                                    \
        (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t redop,       \
         ncclComm_t comm, cudaStream_t stream, const void *config),                                \
        (send, recv, count, type, redop, comm, stream, config))                                    \
    OWN(BroadcastConfig, 23102,                                                                    \
        (const void *send, void *recv, size_t count, ncclDataType_t type, int root,                \
         ncclComm_t comm, cudaStream_t stream, const void *config),                                \
        (send, recv, count, type, root, comm, stream, config))                                     \
    OWN(ReduceConfig, 23102,                                                                       \
        (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t redop,       \
         int root, ncclComm_t comm, cudaStream_t stream, const void *config),                      \
        (send, recv, count, type, redop, root, comm, stream, config))                              \
    OWN(AllGatherConfig, 23102,                                                                    \
        (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,         \
         cudaStream_t stream, const void *config),                                                 \
        (send, recv, count, type, comm, stream, config))                                           \
    OWN(ReduceScatterConfig, 23102,                                                                \
        (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t redop,       \
         ncclComm_t comm, cudaStream_t stream, const void *config),                                \
        (send, recv, count, type, redop, comm, stream, config))                                    \
    OWN(AlltoAllConfig, 23102,                                                                     \
        (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,         \
         cudaStream_t stream, const void *config),                                                 \
        (send, recv, count, type, comm, stream, config))                                           \
    OWN(GatherConfig, 23102,                                                                       \
        (const void *send, void *recv, size_t count, ncclDataType_t type, int root,                \
         ncclComm_t comm, cudaStream_t stream, const void *config),                                \
        (send, recv, count, type, root, comm, stream, config))                                     \
    OWN(ScatterConfig, 23102,                                                                      \
        (const void *send, void *recv, size_t count, ncclDataType_t type, int root,                \
         ncclComm_t comm, cudaStream_t stream, const void *config),                                \
        (send, recv, count, type, root, comm, stream, config))                                     \
    OWN(GroupSimulateEnd, 22203, (void *info), (info))

/* No arguments: the same as OWN, apart because C's `(void)` can't be joined with more. */
#define NCCLSHIM_API_OWN0(OWN0)                                                                    \
    OWN0(GroupStart, 20800)                                                                        \
    OWN0(GroupEnd, 20800)

#define NCCLSHIM_API_PASS(PASS)                                                                    \
    PASS(GetVersion, 20800, NULL, (int *version), (version))                                       \
    PASS(GetUniqueId, 20800, NULL, (ncclUniqueId *id), (id))                                       \
    PASS(CommGetUniqueId, 22902, comm, (ncclComm_t comm, ncclUniqueId *id), (comm, id))            \
    PASS(CommGetAsyncError, 20800, comm, (ncclComm_t comm, ncclResult_t *error), (comm, error))    \
    PASS(CommCuDevice, 20800, comm, (ncclComm_t comm, int *device), (comm, device))                \
    PASS(CommRegister, 21901, comm,                                                                \
         (ncclComm_t comm, void *buff, size_t size, void **handle), (comm, buff, size, handle))    \
    PASS(CommDeregister, 21901, comm, (ncclComm_t comm, void *handle), (comm, handle))             \
    PASS(CommWindowDeregister, 22703, comm, (ncclComm_t comm, ncclWindow_t win), (comm, win))      \
    PASS(WinGetUserPtr, 22902, comm, (ncclComm_t comm, ncclWindow_t win, void **ptr),              \
         (comm, win, ptr))                                                                         \
    PASS(CommSuspend, 22907, comm, (ncclComm_t comm, int flags), (comm, flags))                    \
    PASS(CommResume, 22907, comm, (ncclComm_t comm), (comm))                                       \
    PASS(CommMemStats, 22907, comm, (ncclComm_t comm, int stat, uint64_t *value),                  \
         (comm, stat, value))                                                                      \
    PASS(DevCommDestroy, 22803, comm, (ncclComm_t comm, const void *dev), (comm, dev))             \
    PASS(MemAlloc, 21901, NULL, (void **ptr, size_t size), (ptr, size))                            \
    PASS(MemFree, 21901, NULL, (void *ptr), (ptr))                                                 \
    PASS(RedOpCreatePreMulSum, 21104, comm,                                                        \
         (ncclRedOp_t *op, void *scalar, ncclDataType_t type, int residence, ncclComm_t comm),     \
         (op, scalar, type, residence, comm))                                                      \
    PASS(RedOpDestroy, 21104, comm, (ncclRedOp_t op, ncclComm_t comm), (op, comm))                 \
    PASS(SetEncryption, 23203, NULL, (const void *config), (config))                               \
    PASS(ParamBind, 23004, NULL, (void *out, const char *key), (out, key))                         \
    PASS(ParamGetI8, 23004, NULL, (void *h, int8_t *out), (h, out))                                \
    PASS(ParamGetI16, 23004, NULL, (void *h, int16_t *out), (h, out))                              \
    PASS(ParamGetI32, 23004, NULL, (void *h, int32_t *out), (h, out))                              \
    PASS(ParamGetI64, 23004, NULL, (void *h, int64_t *out), (h, out))                              \
    PASS(ParamGetU8, 23004, NULL, (void *h, uint8_t *out), (h, out))                               \
    PASS(ParamGetU16, 23004, NULL, (void *h, uint16_t *out), (h, out))                             \
    PASS(ParamGetU32, 23004, NULL, (void *h, uint32_t *out), (h, out))                             \
    PASS(ParamGetU64, 23004, NULL, (void *h, uint64_t *out), (h, out))                             \
    PASS(ParamGetStr, 23004, NULL, (void *h, const char **out), (h, out))                          \
    PASS(ParamGet, 23004, NULL, (void *h, void *out, int most, int *len), (h, out, most, len))     \
    PASS(ParamGetParameter, 23004, NULL, (const char *key, const char **value, int *len),          \
         (key, value, len))                                                                        \
    PASS(ParamGetAllParameterKeys, 23004, NULL, (const char ***table, int *len), (table, len))

/* Functions that return a text: PASS_TEXT(name, since, comm, params, args). */
#define NCCLSHIM_API_TEXT(PASS_TEXT)                                                               \
    PASS_TEXT(GetErrorString, 20800, NULL, (ncclResult_t result), (result))                        \
    PASS_TEXT(GetLastError, 21304, comm, (ncclComm_t comm), (comm))

/*
 * No traffic and no setting goes through these; wrapping them would only be one more thing to
 * break: helpers of the device API, whose types differ between versions (teams by value), and two
 * debugging aids.
 */
#define NCCLSHIM_API_LEAVE(LEAVE)                                                                  \
    LEAVE(ResetDebugInit, 22403)                                                                   \
    LEAVE(ParamDumpAll, 23004)                                                                     \
    LEAVE(TeamWorld, 22803)                                                                        \
    LEAVE(TeamLsa, 22803)                                                                          \
    LEAVE(TeamRail, 22803)                                                                         \
    LEAVE(TeamRankToWorld, 22803)                                                                  \
    LEAVE(TeamRankToLsa, 22803)                                                                    \
    LEAVE(LsaBarrierCreateRequirement, 22803)                                                      \
    LEAVE(GinBarrierCreateRequirement, 22807)                                                      \
    LEAVE(LLA2ACalcSlots, 22803)                                                                   \
    LEAVE(LLA2ACreateRequirement, 22803)                                                           \
    LEAVE(CommQueryProperties, 22902)                                                              \
    LEAVE(GetLsaDevicePointer, 22902)                                                              \
    LEAVE(GetLsaMultimemDevicePointer, 22902)                                                      \
    LEAVE(GetMultimemDevicePointer, 22902)                                                         \
    LEAVE(GetPeerDevicePointer, 22902)                                                             \
    LEAVE(GinOutboxCreateRequirement, 23003)                                                       \
    LEAVE(GinInboxA2ACreateRequirement, 23003)                                                     \
    LEAVE(CftBarrierCreateRequirement, 23102)                                                      \
    LEAVE(GetCftDeviceLeInfo, 23102)                                                               \
    LEAVE(GetMultimemDeviceLeInfo, 23102)                                                          \
    LEAVE(GetPeerDeviceLeInfo, 23102)                                                              \
    LEAVE(TeamCft, 23102)                                                                          \
    LEAVE(TeamCftMultimem, 23102)
/* clang-format on */

enum nccl_fn {
#define X(name, ...) FN_##name,
    NCCLSHIM_API_OWN(X) NCCLSHIM_API_OWN0(X) NCCLSHIM_API_PASS(X) NCCLSHIM_API_TEXT(X)
#undef X
        FN_COUNT
};

/* "(a, b)" without its brackets. */
#define UNBRACKET(...) __VA_ARGS__

/* Types of the real functions. */
#define X(name, since, params, args) typedef ncclResult_t(*name##_fn) params;
NCCLSHIM_API_OWN(X)
#undef X
#define X(name, since) typedef ncclResult_t (*name##_fn)(void);
NCCLSHIM_API_OWN0(X)
#undef X
#define X(name, since, comm, params, args) typedef ncclResult_t(*name##_fn) params;
NCCLSHIM_API_PASS(X)
#undef X
#define X(name, since, comm, params, args) typedef const char *(*name##_fn)params;
NCCLSHIM_API_TEXT(X)
#undef X

#endif
