/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's profiler interface, versions 1 to 6, as far as the shim reads or converts it. A plugin is
 * a table of six pointers, the same in all versions but for the arguments of init. NCCL takes the
 * newest that it knows: v1 2.23, v2 2.24, v3 2.26, v4 2.27, v5 2.28.3, v6 2.29.2 (2.31 knows a v7
 * beside it). Each version has stayed the same in every release that has it, up to 2.30.7.
 */
#ifndef NCCLSHIM_PLUGIN_ABI_PROFILER_H
#define NCCLSHIM_PLUGIN_ABI_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/plugin/abi_common.h"

/* Kinds of events; one bit in a descriptor, several in the activation mask. */
#define PROFILER_GROUP (1u << 0)
#define PROFILER_COLL (1u << 1)
#define PROFILER_P2P (1u << 2)
#define PROFILER_PROXY_OP (1u << 3)
#define PROFILER_PROXY_STEP (1u << 4)
#define PROFILER_PROXY_CTRL (1u << 5)
#define PROFILER_KERNEL_CH (1u << 6)      /* v3 on */
#define PROFILER_NET_PLUGIN (1u << 7)     /* v3 on */
#define PROFILER_GROUP_API (1u << 8)      /* v5 on */
#define PROFILER_COLL_API (1u << 9)       /* v5 on */
#define PROFILER_P2P_API (1u << 10)       /* v5 on */
#define PROFILER_KERNEL_LAUNCH (1u << 11) /* v5 on */
#define PROFILER_CE_COLL (1u << 12)       /* v6 on */
#define PROFILER_CE_SYNC (1u << 13)       /* v6 on */
#define PROFILER_CE_BATCH (1u << 14)      /* v6 on */

#define PROFILER_V4_EVENTS 0x00ffu
#define PROFILER_V5_EVENTS 0x0fffu
#define PROFILER_V6_EVENTS 0x7fffu

/* States that only newer versions know. */
#define PROFILER_STATE_FIRST_API 23 /* v5 on: 23, 24 */
#define PROFILER_STATE_FIRST_CE 25  /* v6 on: 25 to 30 */

/* The start of every descriptor. type is one byte wide before v5. */
struct profiler_head {
    union {
        uint8_t type_v1;
        uint64_t type_v5;
    };
    void *parent;
    int rank;
};

/* The collective's own part, which follows the head at offset 24. */
struct profiler_coll_v1 {
    const char *name;
    uint64_t comm_hash;
    uint64_t sequence;
    uint8_t func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    uint8_t datatype;
    uint32_t op;
    size_t traffic_bytes;
    uint8_t channels, warps, algo, proto;
    int is_collnet, is_nvls;
};
struct profiler_coll_v2 {
    const char *name;
    uint64_t comm_hash;
    uint64_t sequence;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    size_t traffic_bytes;
    uint8_t channels, warps;
    const char *algo, *proto;
};
struct profiler_coll_v3 {
    const char *name;
    uint64_t comm_hash;
    uint64_t sequence;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algo, *proto;
};
/* v5 and v6 add `parent_group` behind it. */
struct profiler_coll_v4 {
    uint64_t sequence;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algo, *proto;
};
struct profiler_coll_v5 {
    struct profiler_coll_v4 v4;
    void *parent_group;
};

/* Send or receive; v1 to v3 begin with the communicator's name and hash. */
struct profiler_p2p_v4 {
    const char *func;
    void *buff;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
};
struct profiler_p2p_v5 {
    const char *func;
    void *buff;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
    void *parent_group;
};

struct profiler_coll_api { /* v5 on */
    const char *func;
    size_t count;
    const char *datatype;
    int root;
    void *stream;
    bool captured;
};

/* Whole descriptors; `rest` has the size of the largest kind. */
struct profiler_event_v1 {
    struct profiler_head head;
    union {
        struct profiler_coll_v1 coll;
        uint64_t rest[12];
    };
};
struct profiler_event_v2 {
    struct profiler_head head;
    union {
        struct profiler_coll_v2 coll;
        uint64_t rest[13];
    };
};
struct profiler_event_v3 {
    struct profiler_head head;
    union {
        struct profiler_coll_v3 coll;
        uint64_t rest[12];
    };
};
struct profiler_event_v4 {
    struct profiler_head head;
    union {
        struct profiler_coll_v4 coll;
        struct profiler_p2p_v4 p2p;
        uint64_t rest[10];
    };
};
struct profiler_event_v5 { /* and v6: its further kinds are no larger */
    struct profiler_head head;
    union {
        struct profiler_coll_v5 coll;
        struct profiler_p2p_v5 p2p;
        struct profiler_coll_api coll_api;
        uint64_t rest[11];
    };
};

typedef ncclResult_t (*profiler_init_v1_fn)(void **context, int *mask);
typedef ncclResult_t (*profiler_init_v4_fn)(void **context, int *mask, const char *name,
                                            uint64_t hash, int nodes, int ranks, int rank,
                                            nccl_logger_fn log);
typedef ncclResult_t (*profiler_init_v5_fn)(void **context, uint64_t hash, int *mask,
                                            const char *name, int nodes, int ranks, int rank,
                                            nccl_logger_fn log);

struct profiler_table {
    const char *name;
    union {
        profiler_init_v1_fn v1; /* v1 to v3 */
        profiler_init_v4_fn v4;
        profiler_init_v5_fn v5; /* v5, v6 */
    } init;
    ncclResult_t (*start)(void *context, void **handle, void *event);
    ncclResult_t (*stop)(void *handle);
    ncclResult_t (*record)(void *handle, int state, void *args);
    ncclResult_t (*finalize)(void *context);
};

_Static_assert(sizeof(struct profiler_table) == 48, "table");
_Static_assert(offsetof(struct profiler_head, parent) == 8, "parent");
_Static_assert(offsetof(struct profiler_head, rank) == 16, "rank");
_Static_assert(sizeof(struct profiler_event_v1) == 120, "v1");
_Static_assert(sizeof(struct profiler_event_v2) == 128, "v2");
_Static_assert(sizeof(struct profiler_event_v3) == 120, "v3");
_Static_assert(sizeof(struct profiler_event_v4) == 104, "v4");
_Static_assert(sizeof(struct profiler_event_v5) == 112, "v5");
_Static_assert(offsetof(struct profiler_event_v1, coll.func) == 48, "v1 func");
_Static_assert(offsetof(struct profiler_event_v1, coll.channels) == 104, "v1 channels");
_Static_assert(offsetof(struct profiler_event_v1, coll.proto) == 107, "v1 proto");
_Static_assert(offsetof(struct profiler_event_v2, coll.channels) == 104, "v2 channels");
_Static_assert(offsetof(struct profiler_event_v2, coll.proto) == 120, "v2 proto");
_Static_assert(offsetof(struct profiler_event_v3, coll.channels) == 96, "v3 channels");
_Static_assert(offsetof(struct profiler_event_v3, coll.proto) == 112, "v3 proto");
_Static_assert(offsetof(struct profiler_event_v4, coll.func) == 32, "v4 func");
_Static_assert(offsetof(struct profiler_event_v4, coll.channels) == 80, "v4 channels");
_Static_assert(offsetof(struct profiler_event_v4, coll.proto) == 96, "v4 proto");
_Static_assert(offsetof(struct profiler_event_v4, p2p.channels) == 60, "v4 p2p");
_Static_assert(offsetof(struct profiler_event_v5, coll.v4.proto) == 96, "v5 proto");
_Static_assert(offsetof(struct profiler_event_v5, coll.parent_group) == 104, "v5 group");
_Static_assert(offsetof(struct profiler_event_v5, p2p.parent_group) == 64, "v5 p2p group");
_Static_assert(offsetof(struct profiler_event_v5, coll_api.captured) == 64, "v5 api");

#endif
