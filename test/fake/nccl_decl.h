/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's public types, as far as the simulated NCCL needs them, for any version from 2.8 to 2.30.7.
 * Own declarations rather than the machine's nccl.h, so that one machine can build every version. A
 * program that was compiled with a real nccl.h works with the library: layouts and numbers are the
 * same.
 */
#ifndef FAKE_NCCL_DECL_H
#define FAKE_NCCL_DECL_H

#include <cuda.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version to be, in ncclGetVersion's own code (2803 for 2.8.3, 22809 for 2.28.9). */
#ifndef FAKE_NCCL_VERSION
#define FAKE_NCCL_VERSION 22809
#endif
/* Up to 2.8 NCCL's code has one digit less for the major number; FAKE_VER is uniform. */
#if FAKE_NCCL_VERSION < 10000
#define FAKE_VER (20000 + (FAKE_NCCL_VERSION - 2000))
#else
#define FAKE_VER FAKE_NCCL_VERSION
#endif
#define FAKE_MAJOR (FAKE_VER / 10000)
#define FAKE_MINOR (FAKE_VER / 100 % 100)
#define FAKE_PATCH (FAKE_VER % 100)

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef CUstream cudaStream_t; /* the runtime's and the driver's stream are one type */

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6, /* 2.13 */
    ncclInProgress = 7,  /* 2.14 */
    ncclTimeout = 8,     /* 2.30 */
    ncclNumResults = 9
} ncclResult_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_API_MAGIC 0xcafebeefu
#define NCCL_SIM_INFO_MAGIC 0x74685283u
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_SHRINK_ABORT 0x01

/* The newest layout; older ones are its beginnings (config_size() in nccl_config.c). */
typedef struct {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
    int trafficClass;
    const char *commName;
    int collnetEnable;
    int CTAPolicy;
    int shrinkShare;
    int nvlsCTAs;
    int nChannelsPerNetPeer;
    int nvlinkCentricSched;
    int graphUsageMode;
    int numRmaCtx;
    int maxP2pPeers;
    int graphStreamOrdering;
} ncclConfig_t;
_Static_assert(sizeof(ncclConfig_t) == 96, "ncclConfig_t as in 2.30.7");
_Static_assert(offsetof(ncclConfig_t, commName) == 48, "commName as in 2.27.3");

typedef struct {
    size_t size;
    unsigned int magic;
    unsigned int version;
    float estimatedTime;
} ncclSimInfo_t;

typedef enum {
    ncclInt8 = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9,    /* 2.10 */
    ncclFloat8e4m3 = 10, /* 2.24 */
    ncclFloat8e5m2 = 11  /* 2.24 */
} ncclDataType_t;
#if FAKE_VER >= 22403
#define FAKE_NUM_TYPES 12
#elif FAKE_VER >= 21003
#define FAKE_NUM_TYPES 10
#else
#define FAKE_NUM_TYPES 9
#endif

typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4, /* 2.10 */
    ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;
#if FAKE_VER >= 21003
#define FAKE_NUM_OPS 5
#else
#define FAKE_NUM_OPS 4
#endif

typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

typedef enum {
    ncclStatGpuMemSuspend = 0,
    ncclStatGpuMemSuspended = 1,
    ncclStatGpuMemPersist = 2,
    ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

typedef struct {
    int opCnt, peer, sigIdx, ctx;
} ncclWaitSignalDesc_t;

typedef struct ncclParamHandle *ncclParamHandle_t;

/* Numbers that plugins share with NCCL. */
typedef enum {
    ncclFuncBroadcast = 0,
    ncclFuncReduce = 1,
    ncclFuncAllGather = 2,
    ncclFuncReduceScatter = 3,
    ncclFuncAllReduce = 4,
    ncclFuncSendRecv = 5,
    ncclFuncSend = 6,
    ncclFuncRecv = 7,
    ncclFuncAlltoAll = 8,
    ncclFuncScatter = 9,
    ncclFuncGather = 10
} ncclFunc_t;
#define FAKE_NUM_FUNCS 5 /* those with an algorithm and a protocol */
enum {
    ALGO_TREE,
    ALGO_RING,
    ALGO_COLLNET_DIRECT,
    ALGO_COLLNET_CHAIN,
    ALGO_NVLS,
    ALGO_NVLS_TREE,
    ALGO_PAT
};
#define FAKE_NUM_ALGOS 7
enum { PROTO_LL, PROTO_LL128, PROTO_SIMPLE };
#define FAKE_NUM_PROTOS 3

typedef enum {
    NCCL_LOG_NONE = 0,
    NCCL_LOG_VERSION = 1,
    NCCL_LOG_WARN = 2,
    NCCL_LOG_INFO = 3,
    NCCL_LOG_ABORT = 4,
    NCCL_LOG_TRACE = 5
} ncclDebugLogLevel;
#define NCCL_INIT 0x1ul
#define NCCL_COLL 0x2ul
#define NCCL_P2P 0x4ul
#define NCCL_NET 0x10ul
#define NCCL_GRAPH 0x20ul
#define NCCL_TUNING 0x40ul
#define NCCL_ENV 0x80ul
#define NCCL_REG 0x2000ul
#define NCCL_BOOTSTRAP 0x1000ul
#define NCCL_DESTROY 0x10000ul
#define NCCL_ALL (~0ul)
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char *file,
                                  int line, const char *fmt, ...);

/*
 * One public function: exported weak under its name, with a strong p-twin, as NCCL does it. Weak
 * also means that calls between public functions stay interposable, which a preloaded library may
 * rely on.
 */
#define FAKE_API(ret, name, ...)                                                   \
    __attribute__((visibility("default"), weak)) ret name(__VA_ARGS__);            \
    __attribute__((visibility("default"), alias(#name))) ret p##name(__VA_ARGS__); \
    ret name(__VA_ARGS__)

#endif
