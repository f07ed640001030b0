/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of NCCL's networks: InfiniBand, sockets, GIN, bootstrap, multi-node NVLink.
 * See nccl_vars.h for the columns.
 */
#ifndef NCCLSHIM_PROFILE_NCCL_VARS_NET_H
#define NCCLSHIM_PROFILE_NCCL_VARS_NET_H

/* clang-format off */
#define NCCLSHIM_NCCL_VARS_NET(V) \
    V(COMM_ID, TEXT, EACH, 0, NOW, 0, 0, NONE, "unset", "", \
      "replaces the unique id of every communicator of the job: a second communicator hangs") \
    V(CROSS_NIC, INT, PARAM, 0, NOW, 0, 2, NONE, "2", "", "") \
    V(DMABUF_ENABLE, BOOL, PARAM, 21304, NOW, 0, 1, NONE, "1", "", "") \
    V(GDAKI_FORCE_MCST, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(GDAKI_USE_RELIABLE_DB, BOOL, PARAM, 22907, NOW, 0, 1, NONE, "0", "", "") \
    V(GDRCOPY_ENABLE, BOOL, PARAM, 20906, NOW, 0, 1, NONE, "0", "", "") \
    V(GDRCOPY_FIFO_ENABLE, BOOL, PARAM, 20906, NOW, 0, 1, NONE, "1", "", "") \
    V(GDRCOPY_FLUSH_ENABLE, BOOL, PARAM, 20906, NOW, 0, 1, NONE, "0", "", "") \
    V(GDRCOPY_SYNC_ENABLE, BOOL, PARAM, 21207, NOW, 0, 1, NONE, "1", "", "") \
    V(GDRCOPY_TAIL_ENABLE, BOOL, ONCE, 20906, 21104, 0, 1, NONE, "", "", "") \
    V(GDRCOPY_USE_INTERNAL_DMABUF, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(GDR_FLUSH_DISABLE, BOOL, PARAM, 0, NOW, 0, 1, NONE, "0", "", "") \
    V(GIN_COUNTER_POOL_SIZE, INT, ONCE, 22807, 22907, 0, INT64_MAX, NONE, "", "", "") \
    V(GIN_ENABLE, BOOL, PARAM, 22807, NOW, 0, 1, NONE, "1", "", "") \
    V(GIN_ERROR_QUERY_SEC, INT, PARAM, 22807, NOW, 0, INT64_MAX, NONE, "10", "", "") \
    V(GIN_EXCLUSIVE_CONTEXTS, BOOL, ONCE, 22907, 22907, 0, 1, NONE, "", "", "") \
    V(GIN_GDAKI_LAG_AWARE_DISABLE, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(GIN_GDAKI_MAX_DEST_RD_ATOMIC, INT, PARAM, 23003, NOW, 0, INT64_MAX, -2, "by itself", "", \
      "") \
    V(GIN_GDAKI_MAX_QP_RD_ATOMIC, INT, PARAM, 23003, NOW, 0, INT64_MAX, -2, "by itself", "", "") \
    V(GIN_GDAKI_NIC_HANDLER, INT, PARAM, 22807, NOW, 0, INT64_MAX, NONE, "0", "", "") \
    V(GIN_GDAKI_QP_DEPTH, INT, PARAM, 22807, NOW, 0, INT64_MAX, NONE, "128", "", "") \
    V(GIN_IB_OOO_OPT, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(GIN_IB_TC, INT, PARAM, 23007, NOW, 0, 255, -1, "-1", "", "") \
    V(GIN_NCONNECTIONS, INT, PARAM, 22907, NOW, 0, INT64_MAX, -2, "by itself", "", "") \
    V(GIN_NCONTEXTS, INT, ONCE, 22807, 22907, 0, INT64_MAX, NONE, "", "", "") \
    V(GIN_PLUGIN, LIST, ONCE, 22907, NOW, 0, 0, NONE, "unset", "", "") \
    V(GIN_PLUGIN_REF_COUNT, BOOL, PARAM, 22907, NOW, 0, 1, NONE, "0", "", "") \
    V(GIN_PROXY_NTHREADS, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(GIN_PROXY_POLL_BATCH, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(GIN_PROXY_QUEUE_SIZE, INT, PARAM, 22807, NOW, 0, INT64_MAX, -1, "-1", "", "") \
    V(GIN_SIGNAL_POOL_SIZE, INT, ONCE, 22807, 22907, 0, INT64_MAX, NONE, "", "", "") \
    V(GIN_TYPE, INT, PARAM, 22807, NOW, 0, 16, -1, "-1", "", "") \
    V(HOSTID, TEXT, ONCE, 0, NOW, 0, 0, NONE, "unset", "", \
      "ranks with one id are taken to share a machine") \
    V(IBVERBS_LIB, TEXT, ONCE, 23003, NOW, 0, 0, NONE, "libibverbs.so", "", "") \
    V(IB_ADAPTIVE_ROUTING, INT, PARAM, 21602, NOW, 0, 1, -2, "by itself", "", "") \
    V(IB_ADDR_FAMILY, WORD, EACH, 22105, NOW, 0, 0, NONE, "AF_INET", "AF_INET|AF_INET6", "") \
    V(IB_ADDR_RANGE, TEXT, EACH, 22105, NOW, 0, 0, NONE, "unset", "", "") \
    V(IB_AR_THRESHOLD, INT, PARAM, 0, NOW, 0, INT64_MAX, -2, "by itself", "", "") \
    V(IB_DATA_DIRECT, BOOL, PARAM, 22703, NOW, 0, 1, NONE, "1", "", "") \
    V(IB_DEVICE_PCI_ORDER, BOOL, PARAM, 22907, NOW, 0, 1, NONE, "1", "", "") \
    V(IB_DISABLE, BOOL, PARAM, 0, NOW, 0, 1, NONE, "0", "", "") \
    V(IB_ECE_ENABLE, BOOL, PARAM, 22304, NOW, 0, 1, NONE, "1", "", "") \
    V(IB_EVENT_BASED_LB, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(IB_EVENT_BASED_LB_REMOTE, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(IB_FIFO_TC, INT, PARAM, 22203, NOW, 0, 255, -1, "-1", "", "") \
    V(IB_GID_INDEX, INT, PARAM, 0, NOW, 0, 255, -1, "-1", "", "") \
    V(IB_HCA, LIST, ONCE, 0, NOW, 0, 0, NONE, "unset", "", "") \
    V(IB_MERGE_NICS, BOOL, PARAM, 22003, NOW, 0, 1, NONE, "1", "", "") \
    V(IB_MERGE_VFS, BOOL, PARAM, 21801, NOW, 0, 1, NONE, "1", "", "") \
    V(IB_MQP_RETRY_ALL, BOOL, PARAM, 22403, NOW, 0, 1, NONE, "0", "", "") \
    V(IB_MQP_RETRY_CNT, INT, PARAM, 22403, NOW, 0, INT64_MAX, NONE, "34", "", "") \
    V(IB_MQP_RETRY_SLEEP_MSEC, INT, PARAM, 22403, NOW, 0, INT64_MAX, NONE, "100", "", "") \
    V(IB_OOO_RQ, BOOL, PARAM, 23003, NOW, 0, 1, NONE, "0", "", "") \
    V(IB_PCI_RELAXED_ORDERING, INT, PARAM, 21207, NOW, 0, 2, NONE, "2", "", "") \
    V(IB_PKEY, INT, PARAM, 0, NOW, 0, 65535, NONE, "0", "", "") \
    V(IB_PREPOST_RECEIVE_WORK_REQUESTS, INT, PARAM, 22907, NOW, 0, INT64_MAX, -2, "by itself", \
      "", "") \
    V(IB_QPS_PER_CONNECTION, INT, PARAM, 21003, NOW, 1, 128, NONE, "1", "", "") \
    V(IB_QUERY_PORT_SPEED, BOOL, PARAM, 23007, NOW, 0, 1, NONE, "1", "", "") \
    V(IB_RAIL_POLICY, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(IB_RECEIVER_SIDE_MATCHING_SCHEME, INT, PARAM, 22907, NOW, 0, INT64_MAX, -2, "by itself", \
      "", "") \
    V(IB_RESILIENCY_PORT_FAILOVER, BOOL, PARAM, 22907, NOW, 0, 1, NONE, "0", "", "") \
    V(IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS, INT, PARAM, 22907, NOW, 0, INT64_MAX, NONE, "1", \
      "", "") \
    V(IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY, INT, PARAM, 22907, NOW, 0, INT64_MAX, NONE, "10", \
      "", "") \
    V(IB_RESILIENCY_PORT_RECOVERY, BOOL, PARAM, 23003, NOW, 0, 1, NONE, "0", "", "") \
    V(IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT, INT, PARAM, 23003, NOW, 0, INT64_MAX, NONE, \
      "5000", "", "") \
    V(IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL, INT, PARAM, 23003, NOW, 0, INT64_MAX, \
      NONE, "500", "", "") \
    V(IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE, INT, PARAM, 23003, NOW, 0, INT64_MAX, \
      NONE, "5", "", "") \
    V(IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE, INT, PARAM, 23003, NOW, 0, INT64_MAX, \
      NONE, "5", "", "") \
    V(IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT, INT, PARAM, 23003, NOW, 0, INT64_MAX, NONE, \
      "4000", "", "") \
    V(IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX, INT, PARAM, 23003, NOW, 0, INT64_MAX, NONE, "5", \
      "", "") \
    V(IB_RESILIENCY_PORT_RECOVERY_START_DELAY, INT, PARAM, 23003, NOW, 0, INT64_MAX, NONE, "200", \
      "", "") \
    V(IB_RETRY_CNT, INT, PARAM, 0, NOW, 0, 7, NONE, "7", "", "") \
    V(IB_RETURN_ASYNC_EVENTS, BOOL, PARAM, 22304, NOW, 0, 1, NONE, "1", "", "") \
    V(IB_ROCE_VERSION_NUM, INT, PARAM, 22105, NOW, 1, 2, NONE, "2", "", "") \
    V(IB_ROUTABLE_FLID_GID_INDEX, INT, PARAM, 22203, NOW, 0, INT64_MAX, NONE, "1", "", "") \
    V(IB_SL, INT, PARAM, 0, NOW, 0, 15, -1, "-1", "", "") \
    V(IB_SORT_MERGE_NICS, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(IB_SPLIT_DATA_ON_QPS, BOOL, PARAM, 21801, NOW, 0, 1, NONE, "0", "", "") \
    V(IB_SUBNET_AWARE_ROUTING, BOOL, PARAM, 23007, NOW, 0, 1, NONE, "0", "", "") \
    V(IB_SUBNET_PREFIX_LEN, INT, PARAM, 23007, NOW, 0, 128, NONE, "24", "", "") \
    V(IB_TC, INT, PARAM, 0, NOW, 0, 255, -1, "-1", "", "") \
    V(IB_TIMEOUT, INT, PARAM, 0, NOW, 0, 31, NONE, "20", "", "leading 0 is octal: 022 is 18") \
    V(IB_USE_INLINE, INT, PARAM, 0, NOW, 0, 1, NONE, "0", "", "") \
    V(IB_VR_RAILS_PER_SOCKET, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(IB_VR_SOCKET_COUNT, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(IB_WARN_RAIL_LOCAL, INT, PARAM, 22403, NOW, 0, 1, NONE, "0", "", "") \
    V(IB_WQE_LATENCY_REPORT, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(IB_WQE_LATENCY_THRESHOLD_NS, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(MNNVL, INT, ONCE, 22003, 22005, 0, INT64_MAX, NONE, "", "", "") \
    V(MNNVL_CLIQUE_ID, INT, PARAM, 22304, NOW, 0, INT64_MAX, -1, "-1", "", "") \
    V(MNNVL_CROSS_CLIQUE, INT, PARAM, 23003, NOW, 0, 1, NONE, "0", "", "") \
    V(MNNVL_ENABLE, INT, PARAM, 22105, NOW, 0, 2, NONE, "2", "", "") \
    V(MNNVL_RAIL_PER_HOST, BOOL, PARAM, 22807, NOW, 0, 1, NONE, "0", "", "") \
    V(MNNVL_SCATTER_NETS_ENABLE, BOOL, PARAM, 22705, NOW, 0, 1, NONE, "1", "", "") \
    V(MNNVL_UUID, INT, PARAM, 22501, NOW, 0, INT64_MAX, -1, "-1", "", "") \
    V(NCHANNELS_PER_NET_PEER, INT, PARAM, 21207, NOW, 1, 64, NONE, "unset", "", "") \
    V(NETDEVS_POLICY, NETDEVS, ONCE, 22803, NOW, 0, 0, NONE, "AUTO", "", "AUTO, ALL or MAX:n") \
    V(NET_DISABLE_INTRA, BOOL, PARAM, 21207, NOW, 0, 1, NONE, "0", "", "") \
    V(NET_FORCE_FLUSH, BOOL, PARAM, 21501, NOW, 0, 1, NONE, "0", "", "") \
    V(NET_FORCE_MERGE, TEXT, COMM, 22403, NOW, 0, 0, NONE, "unset", "", "") \
    V(NET_GDR_C2C, BOOL, PARAM, 22602, NOW, 0, 1, NONE, "1", "", "") \
    V(NET_GDR_LEVEL, LEVEL, ONCE, 0, NOW, 0, 0, NONE, "unset", "", \
      "capitals only; anything else is taken for unset; old numbers are mapped") \
    V(NET_GDR_MLOPART, INT, PARAM, 23007, 23102, 0, INT64_MAX, NONE, "0", "", "") \
    V(NET_GDR_READ, INT, PARAM, 0, NOW, 0, 1, -2, "by itself", "", "") \
    V(NET_MERGE_LEVEL, WORD, COMM, 22403, NOW, 0, 0, NONE, "PORT", \
      "LOC|NVL|NVB|C2C|PIX|PXB|P2C|PXN|PHB|SYS|PORT", "unknown words ignored") \
    V(NET_MERGE_POLICY, WORD, COMM, 23007, NOW, 0, 0, NONE, "ALL", "ALL|RAIL", "") \
    V(NET_OPTIONAL_RECV_COMPLETION, BOOL, PARAM, 22403, NOW, 0, 1, NONE, "1", "", "") \
    V(NET_OVERHEAD, INT, PARAM, 21801, NOW, 0, INT64_MAX, -2, "by itself", "", "") \
    V(NET_PLUGIN, LIST, ONCE, 21104, NOW, 0, 0, NONE, "libnccl-net.so", "", "") \
    V(NET_PLUGIN_REF_COUNT, BOOL, PARAM, 22602, NOW, 0, 1, NONE, "0", "", "") \
    V(NET_SHARED_BUFFERS, INT, PARAM, 0, NOW, 0, 1, -2, "by itself", "", "") \
    V(NET_SHARED_COMMS, BOOL, PARAM, 21207, NOW, 0, 1, NONE, "1", "", "") \
    V(NSOCKS_PERTHREAD, INT, PARAM, 0, NOW, 0, 16, -2, "by itself", "", "") \
    V(OOB_NET_ENABLE, BOOL, PARAM, 22304, NOW, 0, 1, NONE, "0", "", "") \
    V(OOB_NET_IFNAME, LIST, ONCE, 22304, NOW, 0, 0, NONE, "unset", "", "") \
    V(PXN_C2C, BOOL, PARAM, 22703, NOW, 0, 1, NONE, "1", "", "") \
    V(PXN_DISABLE, BOOL, PARAM, 21207, NOW, 0, 1, NONE, "0", "", "") \
    V(RAS_ADDR, TEXT, ONCE, 22403, NOW, 0, 0, NONE, "localhost:28028", "", "") \
    V(RAS_ENABLE, BOOL, PARAM, 22403, NOW, 0, 1, NONE, "1", "", "") \
    V(RAS_TIMEOUT_FACTOR, INT, PARAM, 22403, NOW, 0, INT64_MAX, NONE, "1", "", "") \
    V(RMA_DISABLE, BOOL, PARAM, 23007, NOW, 0, 1, NONE, "0", "", "") \
    V(RMA_EAGER_INIT, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(RMA_IB_WR_BATCHSIZE, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(RMA_MULTI_CTX_THRESHOLD, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(RMA_PLUGIN, LIST, ONCE, 23007, NOW, 0, 0, NONE, "unset", "", "") \
    V(RMA_PLUGIN_REF_COUNT, BOOL, PARAM, 23007, NOW, 0, 1, NONE, "0", "", "") \
    V(RMA_PROXY_DUMP_SIGNAL, INT, PARAM, 22902, NOW, 0, INT64_MAX, -1, "-1", "", "") \
    V(RMA_PROXY_QUEUE_SIZE, INT, PARAM, 22902, NOW, 0, INT64_MAX, -1, "-1", "", "") \
    V(SOCKET_FAMILY, WORD, EACH, 0, NOW, 0, 0, NONE, "unset", "AF_INET|AF_INET6", "") \
    V(SOCKET_IFNAME, LIST, EACH, 0, NOW, 0, 0, NONE, "unset", "", "") \
    V(SOCKET_INLINE, BYTES, PARAM, 22703, NOW, 0, INT64_MAX, NONE, "128", "", "") \
    V(SOCKET_MAGIC, TEXT, ONCE, 23007, NOW, 0, 0, NONE, "built-in", "", "") \
    V(SOCKET_MIN_TASKSIZE, BYTES, PARAM, 22703, NOW, 0, INT64_MAX, NONE, "65536", "", "") \
    V(SOCKET_NTHREADS, INT, PARAM, 0, NOW, 0, 16, -2, "by itself", "", "") \
    V(SOCKET_POLL_TIMEOUT_MSEC, INT, PARAM, 22902, NOW, 0, INT64_MAX, NONE, "0", "", "") \
    V(SOCKET_RCVBUF, BYTES, PARAM, 22703, NOW, 0, INT64_MAX, -1, "-1", "", "") \
    V(SOCKET_RETRY_CNT, INT, PARAM, 22403, NOW, 0, INT64_MAX, NONE, "34", "", "") \
    V(SOCKET_RETRY_SLEEP_MSEC, INT, PARAM, 22403, NOW, 0, INT64_MAX, NONE, "100", "", "") \
    V(SOCKET_SNDBUF, BYTES, PARAM, 22703, NOW, 0, INT64_MAX, -1, "-1", "", "") \
    V(UID_STAGGER_RATE, INT, PARAM, 22304, NOW, 0, INT64_MAX, NONE, "7000", "", "") \
    V(UID_STAGGER_THRESHOLD, INT, PARAM, 22304, NOW, 0, INT64_MAX, NONE, "256", "", "")
/* clang-format on */

#endif
