/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of ncclConfig_t that a [comm] section may give, one table for the profile reader,
 * `check`, the config merge and the documentation. Offsets are those of LP64 and have never moved;
 * they, the versions and the variables that beat a field are facts of NCCL (nccl.h and
 * parseCommConfig / envConfigOverride in init.cc, 2.14.3 to 2.30.7).
 *
 * `blocking` (offset 16) is no setting: whether a program polls is not ours to choose.
 */
#ifndef NCCLSHIM_PROFILE_CONFIG_FIELDS_H
#define NCCLSHIM_PROFILE_CONFIG_FIELDS_H

#include <stdbool.h>

/* X(symbol, key, offset, since version code, kind INT or STR, least, most, variable that beats it) */
#define NCCLSHIM_CONFIG_FIELDS(X)                                                                  \
    X(CGA_CLUSTER_SIZE, "cga_cluster_size", 20, 21701, INT, 0, 8, "NCCL_CGA_CLUSTER_SIZE")         \
    X(MIN_CTAS, "min_ctas", 24, 21701, INT, 1, 64, "NCCL_MIN_CTAS")                                \
    X(MAX_CTAS, "max_ctas", 28, 21701, INT, 1, 64, "NCCL_MAX_CTAS")                                \
    X(NET_NAME, "net_name", 32, 21701, STR, 0, 0, "NCCL_NET")                                      \
    X(SPLIT_SHARE, "split_share", 40, 21801, INT, 0, 1, "NCCL_COMM_SPLIT_SHARE_RESOURCES")         \
    X(TRAFFIC_CLASS, "traffic_class", 44, 22602, INT, 0, 255, "NCCL_IB_TC")                        \
    X(COLLNET_ENABLE, "collnet_enable", 56, 22703, INT, 0, 1, "NCCL_COLLNET_ENABLE")               \
    X(CTA_POLICY, "cta_policy", 60, 22703, INT, 0, 2, "NCCL_CTA_POLICY")                           \
    X(SHRINK_SHARE, "shrink_share", 64, 22703, INT, 0, 1, "NCCL_COMM_SHRINK_SHARE_RESOURCES")      \
    X(NVLS_CTAS, "nvls_ctas", 68, 22703, INT, 1, 64, "NCCL_NVLS_NCHANNELS")                        \
    X(NCHANNELS_PER_NET_PEER, "nchannels_per_net_peer", 72, 22803, INT, 1, 64,                     \
      "NCCL_NCHANNELS_PER_NET_PEER")                                                               \
    X(NVLINK_CENTRIC_SCHED, "nvlink_centric_sched", 76, 22803, INT, 0, 1,                          \
      "NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE")                                                     \
    X(GRAPH_USAGE_MODE, "graph_usage_mode", 80, 22902, INT, 0, 2, "NCCL_GRAPH_MIXING_SUPPORT")     \
    X(NUM_RMA_CTX, "num_rma_ctx", 84, 22902, INT, 1, 64, "NCCL_NUM_RMA_CTX")                       \
    X(MAX_P2P_PEERS, "max_p2p_peers", 88, 23003, INT, 1, 65536, "NCCL_P2P_MAX_PEERS")              \
    X(GRAPH_STREAM_ORDERING, "graph_stream_ordering", 92, 23007, INT, 0, 1,                        \
      "NCCL_GRAPH_STREAM_ORDERING")

enum config_field {
#define X(sym, ...) CONFIG_##sym,
    NCCLSHIM_CONFIG_FIELDS(X)
#undef X
        CONFIG_FIELD_COUNT
};

extern const struct config_field_facts {
    const char *key;
    unsigned offset;
    int since;
    bool text; /* a string; else a number from least to most */
    int least, most;
    const char *variable; /* of the environment; where it is set, it wins */
} config_fields[CONFIG_FIELD_COUNT];

#endif
