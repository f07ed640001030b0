/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler plugin's interfaces, v1 to v6: the descriptors' layouts, as far as the host path
 * uses them, from NCCL's public plugin headers. Every union is as large as the real one (a plugin
 * may copy it whole): its largest member is `coll`, in v6 `ceColl`.
 */
#ifndef FAKE_NCCL_PROFILER_ABI_H
#define FAKE_NCCL_PROFILER_ABI_H

#include "test/fake/nccl_decl.h"

enum {
    EVENT_GROUP = 1 << 0,
    EVENT_COLL = 1 << 1,
    EVENT_P2P = 1 << 2,
    EVENT_PROXY_OP = 1 << 3,
    EVENT_PROXY_STEP = 1 << 4,
    EVENT_KERNEL_CH = 1 << 6,
    EVENT_NET_PLUGIN = 1 << 7,
    EVENT_GROUP_API = 1 << 8,
    EVENT_COLL_API = 1 << 9,
    EVENT_P2P_API = 1 << 10,
    EVENT_KERNEL_LAUNCH = 1 << 11,
    EVENT_CE_ALL = 7 << 12,
};
enum { STATE_GROUP_START_API_STOP = 23, STATE_GROUP_END_API_START = 24 };

typedef struct {
    uint64_t type;
    void *parentObj;
    int rank;
    union {
        struct {
            bool graphCaptured;
            int groupDepth;
        } groupApi;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool graphCaptured;
        } collApi;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            void *stream;
            bool graphCaptured;
        } p2pApi;
        struct {
            void *stream;
        } kernelLaunch;
        struct {
            uint64_t seqNumber;
            const char *func;
            void const *sendBuff;
            void *recvBuff;
            size_t count;
            int root;
            const char *datatype;
            uint8_t nChannels;
            uint8_t nWarps;
            const char *algo;
            const char *proto;
            void *parentGroup;
        } coll;
        struct {
            const char *func;
            void *buff;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t nChannels;
            void *parentGroup;
        } p2p;
        struct {
            uint64_t seqNumber;
            const char *func;
            void const *sendBuff;
            void *recvBuff;
            size_t count;
            int root;
            const char *datatype, *syncStrategy;
            bool intraBatchSync;
            uint32_t batchSize, numBatches, ceSeqNum;
            void *stream;
        } ceColl;
    };
} descr_v6; /* v5 is the same without ceColl */

typedef struct {
    uint8_t type;
    void *parentObj;
    int rank;
    union {
        struct {
            uint64_t seqNumber;
            const char *func;
            void const *sendBuff;
            void *recvBuff;
            size_t count;
            int root;
            const char *datatype;
            uint8_t nChannels;
            uint8_t nWarps;
            const char *algo;
            const char *proto;
        } coll;
        struct {
            const char *func;
            void *buff;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t nChannels;
        } p2p;
    };
} descr_v4;

typedef struct {
    uint8_t type;
    void *parentObj;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t commHash;
            uint64_t seqNumber;
            const char *func;
            void const *sendBuff;
            void *recvBuff;
            size_t count;
            int root;
            const char *datatype;
            uint8_t nMaxChannels;
            uint8_t nWarps;
            const char *algo;
            const char *proto;
        } coll;
        struct {
            const char *name;
            uint64_t commHash;
            const char *func;
            void *buff;
            const char *datatype;
            size_t count;
            int peer;
        } p2p;
    };
} descr_v3;

typedef struct {
    uint8_t type;
    void *parentObj;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t commHash;
            uint64_t seqNumber;
            const char *func;
            void const *sendBuff;
            void *recvBuff;
            size_t count;
            int root;
            const char *datatype;
            size_t trafficBytes;
            uint8_t nMaxChannels;
            uint8_t nWarps;
            const char *algo;
            const char *proto;
        } coll;
        struct {
            const char *name;
            uint64_t commHash;
            const char *func;
            void *buff;
            const char *datatype;
            size_t count;
            int peer;
        } p2p;
    };
} descr_v2;

typedef struct {
    uint8_t type;
    void *parentObj;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t commHash;
            uint64_t seqNumber;
            uint8_t func;
            void const *sendBuff;
            void *recvBuff;
            size_t count;
            int root;
            uint8_t datatype;
            uint32_t op;
            size_t trafficBytes;
            uint8_t nMaxChannels;
            uint8_t nWarps;
            uint8_t algo;
            uint8_t proto;
            int isCollnet;
            int isNvls;
        } coll;
        struct {
            const char *name;
            uint64_t commHash;
            uint8_t func;
            void *buff;
            uint8_t datatype;
            size_t count;
            int peer;
        } p2p;
    };
} descr_v1;

/* The tables differ in init's arguments alone; the descriptor's type goes with the version. */
typedef struct {
    const char *name;
    void *init;
    ncclResult_t (*startEvent)(void *ctx, void **event, void *descr);
    ncclResult_t (*stopEvent)(void *event);
    ncclResult_t (*recordEventState)(void *event, int state, void *args);
    ncclResult_t (*finalize)(void *ctx);
} profiler_table;
typedef ncclResult_t (*profiler_init_v1)(void **ctx, int *mask); /* v1 to v3 */
typedef ncclResult_t (*profiler_init_v4)(void **ctx, int *mask, const char *commName,
                                         uint64_t commHash, int nNodes, int nranks, int rank,
                                         ncclDebugLogger_t log);
typedef ncclResult_t (*profiler_init_v5)(void **ctx, uint64_t commId, int *mask,
                                         const char *commName, int nNodes, int nranks, int rank,
                                         ncclDebugLogger_t log);

#endif
