/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of NCCL's core: choice, channels, buffers, kernels, plugins, debugging.
 * See nccl_vars.h for the columns.
 */
#ifndef NCCLSHIM_PROFILE_NCCL_VARS_CORE_H
#define NCCLSHIM_PROFILE_NCCL_VARS_CORE_H

/* clang-format off */
#define NCCLSHIM_NCCL_VARS_CORE(V) \
    V(AGG_ALLOC_MODE, TEXT, ONCE, 21003, 21212, 0, 0, NONE, "", "", "") \
    V(AGG_CHANNEL_SIZE, BYTES, ONCE, 21003, 21904, 0, INT64_MAX, NONE, "", "", "") \
    V(ALGO, ALGO, COMM, 0, NOW, 0, 0, NONE, "all", "", \
      "blanks are removed; an unknown word fails the init of every communicator; what is " \
      "left without an algorithm fails at its call") \
    V(ALLGATHERV_ENABLE, BOOL, PARAM, 22902, NOW, 0, 1, NONE, "1", "", "") \
    V(ALLOC_P2P_NET_LL_BUFFERS, BOOL, PARAM, 21605, NOW, 0, 1, NONE, "0", "", "") \
    V(BUFFSIZE, BYTES, PARAM, 0, NOW, 4096, 2147483647, -2, "4194304", "", \
      "taken as it is, even 0 or 4 (of \"4M\"); 1000000 gave wrong sums; recommended: " \
      "powers of two") \
    V(CE_CHUNK_SIZE, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(CE_COLL_AG_MULTICAST_THRESHOLD, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(CE_INTRA_GPU_MEMCPY_ENABLE, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(CFT_ENABLE, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(CGA_CLUSTER_SIZE, INT, PARAM, 21501, NOW, 0, 8, NONE, "unset", "", \
      "above 8: 8; negative ignored; drops to 1 where it does not divide the grid") \
    V(CHECK_MODE, WORD, COMM, 22907, NOW, 0, 0, NONE, "default", \
      "DEFAULT|DEBUG_LOCAL|DEBUG_GLOBAL", "unknown words ignored") \
    V(CHECK_POINTERS, BOOL, PARAM, 0, NOW, 0, 1, NONE, "0", "", "") \
    V(CHUNK_SIZE, BYTES, PARAM, 21207, NOW, 0, 2147483647, NONE, "0", "", \
      "chunks of 1 MiB and more outrun the buffers: faster, with wrong data") \
    V(COLLNET_ENABLE, BOOL, COMM, 0, NOW, 0, 1, NONE, "config (0)", "", \
      "other than 0 and 1: 0; read anew for each communicator") \
    V(COLLNET_NODE_THRESHOLD, INT, PARAM, 20909, NOW, 0, INT64_MAX, NONE, "2", "", "") \
    V(COMM_BLOCKING, BOOL, PARAM, 21403, NOW, 0, 1, NONE, "unset", "", \
      "0 makes every communicator non-blocking: a program that does not poll hangs or fails") \
    V(COMM_SHRINK_SHARE_RESOURCES, BOOL, PARAM, 22703, NOW, 0, 1, NONE, "unset", "", "") \
    V(COMM_SPLIT_SHARE_RESOURCES, BOOL, PARAM, 21801, NOW, 0, 1, NONE, "unset", "", "") \
    V(CONF_FILE, PATH, RAW, 22304, NOW, 0, 0, NONE, "~/.nccl.conf", "", \
      "lines NAME=VALUE, no blanks around =; the environment wins") \
    V(CONNECT_ROUND_MAX_PEERS, INT, PARAM, 21904, NOW, 1, 1048576, NONE, "128", "", "") \
    V(CREATE_THREAD_CONTEXT, BOOL, ONCE, 21304, 23004, 0, 1, NONE, "", "", "") \
    V(CTA_POLICY, CTA_POLICY, ONCE, 22703, NOW, 0, 0, NONE, "config (DEFAULT)", "", \
      "up to 2.28 a number (words are 0); then DEFAULT, EFFICIENCY, ZERO joined by |; " \
      "unknown words ignored") \
    V(CUDA_PATH, PATH, ONCE, 21304, 22005, 0, 0, NONE, "", "", "") \
    V(CUMEM_ENABLE, INT, PARAM, 21801, NOW, 0, 1, -2, "by itself", "", "") \
    V(CUMEM_HOST_ENABLE, INT, PARAM, 22304, NOW, 0, 1, -1, "-1", "", "") \
    V(DEBUG, WORD, DEBUG, 0, NOW, 0, 0, NONE, "NONE", "NONE|VERSION|WARN|INFO|ABORT|TRACE", \
      "unknown words are NONE; TRACE needs a library built for it") \
    V(DEBUG_FILE, PATH, DEBUG, 0, NOW, 0, 0, NONE, "unset", "", \
      "%h host, %p process; without %p processes write over one another") \
    V(DEBUG_LEVELS, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(DEBUG_SUBSYS, SUBSYS, DEBUG, 0, NOW, 0, 0, NONE, "INIT,BOOTSTRAP,ENV", "", \
      "unknown words ignored") \
    V(DEBUG_TIMESTAMP_FORMAT, TEXT, DEBUG, 22602, NOW, 0, 0, NONE, "[%F %T]", "", "") \
    V(DEBUG_TIMESTAMP_LEVELS, LIST, DEBUG, 22602, NOW, 0, 0, NONE, "WARN", "", "") \
    V(DEV_API_JIT, BOOL, PARAM, 23007, NOW, 0, 1, NONE, "0", "", "") \
    V(DIAGNOSTICS_ECC_THRESHOLD, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(DIAGNOSTICS_IB_BW_TIMEOUT, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(DISABLE_MEM_MANAGER, BOOL, PARAM, 22907, NOW, 0, 1, NONE, "0", "", "") \
    V(ELASTIC_BUFFER_REGISTER, BOOL, PARAM, 23003, NOW, 0, 1, NONE, "1", "", "") \
    V(ENABLE_VERSION_CHECK, BOOL, PARAM, 22902, NOW, 0, 1, NONE, "1", "", "") \
    V(ENQUEUE_REARCH_ENABLE, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(ENV_PLUGIN, PLUGIN, RAW, 22807, NOW, 0, 0, NONE, "libnccl-env.so", "", \
      "read before everything else; a failed load is final for the process") \
    V(GRAPH_DUMP_FILE, PATH, COMM, 0, NOW, 0, 0, NONE, "unset", "", "") \
    V(GRAPH_DUMP_FILE_RANK, INT, PARAM, 0, NOW, 0, INT64_MAX, NONE, "0", "", "") \
    V(GRAPH_FILE, PATH, COMM, 0, NOW, 0, 0, NONE, "unset", "", \
      "for one exact number of ranks; every other communicator fails at init") \
    V(GRAPH_HELPER_DISABLE, BOOL, PARAM, 21104, NOW, 0, 1, NONE, "0", "", "") \
    V(GRAPH_MIXING_SUPPORT, BOOL, PARAM, 21304, NOW, 0, 1, NONE, "unset", "", \
      "0 forbids a communicator in two graphs at once, and an eager call while a graph " \
      "that uses it runs") \
    V(GRAPH_REGISTER, BOOL, PARAM, 21104, NOW, 0, 1, NONE, "1", "", "") \
    V(GRAPH_STREAM_ORDERING, BOOL, PARAM, 23007, NOW, 0, 1, NONE, "unset", "", \
      "0 is set back to 1 beside graph mixing, with a warning") \
    V(GROUP_CUDA_STREAM, INT, PARAM, 0, NOW, 0, 1, NONE, "0", "", "") \
    V(HIER_CE_COLL_AG_RAIL_RING_ENABLE, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(HIER_CE_COLL_NUM_CTX, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(IGNORE_COLLNET_MISMATCH, BOOL, PARAM, 23003, NOW, 0, 1, NONE, "0", "", "") \
    V(IGNORE_CPU_AFFINITY, BOOL, PARAM, 0, NOW, 0, 1, NONE, "0", "", "") \
    V(IGNORE_DISABLED_P2P, BOOL, PARAM, 21207, NOW, 0, 1, NONE, "0", "", "") \
    V(IGNORE_NET_MISMATCH, BOOL, PARAM, 23003, NOW, 0, 1, NONE, "1", "", "") \
    V(IPC_USE_ABSTRACT_SOCKET, BOOL, PARAM, 22902, NOW, 0, 1, NONE, "1", "", "") \
    V(L1_SHARED_MEMORY_CARVEOUT, INT, PARAM, 21210, NOW, 0, 100, NONE, "0", "", "") \
    V(LAUNCH_MODE, WORD, LAST, 0, NOW, 0, 0, NONE, "PARALLEL", "PARALLEL|GROUP", \
      "GROUP, else PARALLEL; the last init wins for all communicators") \
    V(LAUNCH_ORDER_IMPLICIT, BOOL, PARAM, 22602, NOW, 0, 1, NONE, "0", "", "") \
    V(LAUNCH_RACE_FATAL, BOOL, PARAM, 22602, NOW, 0, 1, NONE, "1", "", \
      "0 hides a race of two threads that launch on one communicator") \
    V(LEGACY_CUDA_REGISTER, BOOL, PARAM, 22403, NOW, 0, 1, NONE, "0", "", "") \
    V(LL128_BUFFSIZE, BYTES, PARAM, 0, NOW, 15360, 2147483647, -2, "4915200", "", \
      "taken as it is; what is no multiple of 120 bytes in whole 128-byte lines hangs or " \
      "gives wrong data") \
    V(LL128_C2C, BOOL, PARAM, 22703, NOW, 0, 1, NONE, "1", "", "") \
    V(LL128_NTHREADS, INT, PARAM, 0, NOW, 160, 640, -2, "640", "", \
      "no multiple of 32: 640; outside 160 to 640: the nearer end, without a word") \
    V(LL_BUFFSIZE, BYTES, PARAM, 0, NOW, 4096, 2147483647, -2, "524288", "", \
      "taken as it is, even 0 or 4 (of \"4M\")") \
    V(LOCAL_REGISTER, BOOL, PARAM, 21901, NOW, 0, 1, NONE, "1", "", "") \
    V(LSA_TEAM_SIZE, INT, PARAM, 22907, NOW, 0, INT64_MAX, NONE, "0", "", "") \
    V(MAX_CTAS, INT, PARAM, 21701, NOW, 1, 64, NONE, "unset", "", \
      "0 and less ignored; above 64: 64; beats max_ctas") \
    V(MAX_NCHANNELS, INT, PARAM, 0, NOW, 1, 64, -2, "by itself", "", \
      "cut to 1 to 64; no cap for send/recv and NVLS, which have their own") \
    V(MAX_NRINGS, INT, PARAM, 0, NOW, 1, 64, -2, "by itself", "", \
      "old name of NCCL_MAX_NCHANNELS") \
    V(MAX_P2P_NCHANNELS, INT, PARAM, 0, NOW, 1, 64, NONE, "64", "", "") \
    V(MEM_SYNC_DOMAIN, INT, PARAM, 21602, NOW, 0, 1, NONE, "1", "", \
      "handed to the driver unchecked") \
    V(MIN_CTAS, INT, PARAM, 21701, NOW, 1, 64, NONE, "unset", "", \
      "0 and less ignored; above 64: 64; above the maximum: the maximum; beats min_ctas") \
    V(MIN_NCHANNELS, INT, PARAM, 0, NOW, 0, 64, -2, "by itself", "", \
      "cut to 0 to 64; wins over NCCL_MAX_NCHANNELS and over max_ctas") \
    V(MIN_NRINGS, INT, PARAM, 0, NOW, 0, 64, -2, "by itself", "", \
      "old name of NCCL_MIN_NCHANNELS, which wins") \
    V(MIN_P2P_NCHANNELS, INT, PARAM, 0, NOW, 1, 64, NONE, "1", "", "") \
    V(MLOPART_RDMA_ENABLE, BOOL, PARAM, 23007, 23102, 0, 1, NONE, "0", "", "") \
    V(MULTI_RANK_GPU_ENABLE, BOOL, PARAM, 23003, NOW, 0, 1, NONE, "0", "", \
      "lets several ranks share one GPU") \
    V(MULTI_SEGMENT_REGISTER, BOOL, PARAM, 22902, NOW, 0, 1, NONE, "1", "", "") \
    V(NCCL_ALLOC_P2P_NET_LL_BUFFERS, BOOL, ONCE, 21403, 21602, 0, 1, NONE, "", "", "") \
    V(NET, TEXT, COMM, 21003, NOW, 0, 0, NONE, "unset", "", "no such network: init fails") \
    V(NO_CACHE, LIST, ONCE, 22907, NOW, 0, 0, NONE, "unset", "", \
      "ALL makes every number be read again at every launch") \
    V(NTHREADS, INT, PARAM, 0, NOW, 64, 512, -2, "256 or 512", "", \
      "no multiple of 32: 512; above 512: 512; below 64: 64, all without a word; 480 gave " \
      "wrong sums") \
    V(NUM_RMA_CTX, INT, PARAM, 22902, NOW, 0, 65536, NONE, "unset", "", "") \
    V(NUM_RMA_INT_CTX, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(NVB_DISABLE, BOOL, PARAM, 20909, NOW, 0, 1, NONE, "0", "", "") \
    V(NVB_PRECONNECT, BOOL, PARAM, 20909, NOW, 0, 1, NONE, "1", "", "") \
    V(NVLINK_UTIL_CENTRIC_SCHED_ENABLE, BOOL, PARAM, 22703, NOW, 0, 1, NONE, "unset", "", "") \
    V(NVLSTREE_MAX_CHUNKSIZE, BYTES, PARAM, 22003, NOW, 512, 1073741824, -2, "by itself", "", "") \
    V(NVLS_CHUNKSIZE, BYTES, ONCE, 22105, NOW, 512, 1073741824, NONE, "131072", "", "") \
    V(NVLS_ENABLE, INT, PARAM, 21701, NOW, 0, 2, NONE, "2", "", \
      "1 forces: init fails where NVLS is not possible") \
    V(NVLS_NCHANNELS, INT, PARAM, 21701, NOW, 1, 64, NONE, "unset", "", \
      "0 and less: automatic; beats nvls_ctas") \
    V(NVLS_UB_SIZE, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(NVTX_DISABLE, BOOL, PARAM, 22803, NOW, 0, 1, NONE, "0", "", "") \
    V(P2P_DIRECT_DISABLE, BOOL, PARAM, 21212, NOW, 0, 1, NONE, "0", "", "") \
    V(P2P_DISABLE, BOOL, ONCE, 0, NOW, 0, 1, NONE, "unset", "", \
      "only 1 counts; beats NCCL_P2P_LEVEL") \
    V(P2P_EPOCH_ENABLE, BOOL, PARAM, 22902, NOW, 0, 1, NONE, "1", "", "") \
    V(P2P_LEVEL, LEVEL, ONCE, 0, NOW, 0, 0, NONE, "unset", "", \
      "capitals only; anything else is taken for unset; old numbers are mapped") \
    V(P2P_LL_THRESHOLD, BYTES, PARAM, 21403, NOW, 0, 1073741824, NONE, "16384", "", "") \
    V(P2P_MAX_PEERS, INT, PARAM, 23003, NOW, 1, 1048576, NONE, "unset", "", "") \
    V(P2P_NET_CHUNKSIZE, BYTES, PARAM, 21403, NOW, 512, 1073741824, NONE, "131072", "", "") \
    V(P2P_NVL_CHUNKSIZE, BYTES, PARAM, 21602, NOW, 512, 1073741824, NONE, "524288", "", "") \
    V(P2P_PCI_CHUNKSIZE, BYTES, PARAM, 21602, NOW, 512, 1073741824, NONE, "131072", "", "") \
    V(P2P_PER_CHANNEL_NET_BW, INT, PARAM, 22902, NOW, 0, INT64_MAX, NONE, "14", "", "") \
    V(P2P_PER_CHANNEL_REG_NET_BW, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(P2P_PXN_LEVEL, INT, PARAM, 21207, NOW, 0, 2, NONE, "2", "", "") \
    V(P2P_READ_ENABLE, BOOL, PARAM, 0, NOW, 0, 1, -2, "by itself", "", "") \
    V(P2P_SCHEDULE_GROUP_SIZE, INT, PARAM, 22807, NOW, 0, INT64_MAX, NONE, "8", "", "") \
    V(P2P_USE_CUDA_MEMCPY, INT, PARAM, 21304, NOW, 0, 1, NONE, "0", "", "") \
    V(PARAM_DUMP_ALL, BOOL, EACH, 23003, NOW, 0, 1, NONE, "0", "", "") \
    V(PAT_ENABLE, INT, PARAM, 22304, NOW, 0, 2, NONE, "2", "", "") \
    V(PAT_NDIMS, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(PROFILER_PLUGIN, PLUGIN, ONCE, 22304, NOW, 0, 0, NONE, "libnccl-profiler.so", "", \
      "path of at most 254 letters; a failed load is final for the process") \
    V(PROGRESS_APPENDOP_FREQ, INT, PARAM, 21605, NOW, 0, INT64_MAX, NONE, "8", "", "") \
    V(PROGRESS_COUNTERS, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(PROGRESS_COUNTER_MONITOR_POLL_MS, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(PROGRESS_COUNTER_MONITOR_STALE_MS, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(PROGRESS_COUNTER_MONITOR_STALE_WARN_SEC, ANY, ONCE, 23203, NOW, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(PROTO, PROTO, COMM, 0, NOW, 0, 0, NONE, "LL,Simple; LL128 by itself", "", \
      "naming LL128, or a ^ list that leaves it in, forces it on where 128-byte stores may " \
      "be split: wrong data without a word") \
    V(PROXY_APPEND_BATCH_SIZE, INT, PARAM, 21602, NOW, 0, INT64_MAX, NONE, "16", "", "") \
    V(PROXY_CPUSET, TEXT, ONCE, 22803, NOW, 0, 0, NONE, "unset", "", "") \
    V(PROXY_DUMP_SIGNAL, INT, PARAM, 21403, NOW, 0, INT64_MAX, -1, "-1", "", "") \
    V(PROXY_PROFILE, TEXT, ONCE, 21207, 22203, 0, 0, NONE, "", "", "") \
    V(REPORT_CONNECT_PROGRESS, INT, PARAM, 21904, NOW, 0, 1, NONE, "0", "", "") \
    V(RUNTIME_CONNECT, BOOL, PARAM, 22203, NOW, 0, 1, NONE, "1", "", "") \
    V(RUN_DIAGNOSTICS, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(RUN_RAS_DIAGNOSTICS, ANY, ONCE, 23102, NOW, 0, 0, NONE, "", "", "known by its name only") \
    V(SET_CPU_STACK_SIZE, INT, PARAM, 22803, NOW, 0, 1099511627776LL, NONE, "1", "", "") \
    V(SET_STACK_SIZE, BYTES, PARAM, 20906, NOW, 0, INT64_MAX, NONE, "0", "", "") \
    V(SET_THREAD_NAME, BOOL, ONCE, 21207, NOW, 0, 1, NONE, "0", "", "") \
    V(SHADOW_MEMPOOL_MAX_SIZE, BYTES, PARAM, 23007, NOW, 0, INT64_MAX, NONE, "1073741824", "", \
      "") \
    V(SHARED_BUFF_COUNT, INT, ONCE, 0, 2804, 0, INT64_MAX, NONE, "", "", "") \
    V(SHM_DISABLE, BOOL, PARAM, 0, NOW, 0, 1, NONE, "0", "", "") \
    V(SHM_LOCALITY, INT, PARAM, 21304, NOW, 1, 2, NONE, "2", "", "1 sender, 2 receiver") \
    V(SHM_MEMCPY_MODE, INT, ONCE, 21304, 23004, 0, 3, NONE, "", "", "") \
    V(SHM_USE_CUDA_MEMCPY, BOOL, ONCE, 21304, 23004, 0, 1, NONE, "", "", "") \
    V(SINGLE_PROC_MEM_REG_ENABLE, BOOL, PARAM, 22803, NOW, 0, 1, NONE, "0", "", "") \
    V(SYM_CE_THRESHOLD, BYTES, PARAM, 22902, NOW, 0, INT64_MAX, NONE, "8388608", "", "") \
    V(SYM_CTAS, INT, PARAM, 22703, NOW, 0, 64, NONE, "0", "", "") \
    V(SYM_GIN_KERNELS_ENABLE, BOOL, PARAM, 22907, NOW, 0, 1, NONE, "1", "", "") \
    V(SYM_KERNEL, TEXT, ONCE, 22703, NOW, 0, 0, NONE, "unset or ^ = all", "", \
      "exact name; an unknown one turns symmetric kernels off") \
    V(SYM_NOWIN_ENABLE, BOOL, PARAM, 22902, NOW, 0, 1, NONE, "0", "", "") \
    V(SYM_REUSE_SYSMEM_HANDLES, INT, PARAM, 23004, NOW, 0, 1, NONE, "0", "", "") \
    V(SYM_RS_GIN_CHUNK_SIZE, BYTES, PARAM, 23007, NOW, 0, INT64_MAX, -1, "-1", "", "") \
    V(SYM_TMA_ENABLE, BOOL, PARAM, 23003, NOW, 0, 1, NONE, "0", "", "") \
    V(THREAD_THRESHOLDS, THRESHOLDS, COMM, 0, NOW, 0, 0, NONE, "unset", "", \
      "up to 6 numbers: tree LL LL128 Simple, ring LL LL128 Simple; negative keeps") \
    V(TOPO_DUMP_FILE, PATH, COMM, 0, NOW, 0, 0, NONE, "unset", "", "") \
    V(TOPO_DUMP_FILE_RANK, INT, PARAM, 0, NOW, 0, INT64_MAX, NONE, "0", "", "") \
    V(TOPO_FILE, PATH, COMM, 0, NOW, 0, 0, NONE, "unset", "", "") \
    V(TOPO_SCATTER_START_NET, ANY, ONCE, 23102, 23102, 0, 0, NONE, "", "", \
      "known by its name only") \
    V(TOPO_SPLIT_MLOPART, BOOL, PARAM, 23007, NOW, 0, 1, NONE, "1", "", "") \
    V(TUNER_PLUGIN, PLUGIN, LOADED, 21901, NOW, 0, 0, NONE, "libnccl-tuner.so", "", \
      "path of at most 254 letters; a failed load is final for the process") \
    V(UNPACK_DOUBLE_NCHANNELS, BOOL, PARAM, 22203, NOW, 0, 1, NONE, "1", "", "") \
    V(WARN_ENABLE_DEBUG_INFO, BOOL, DEBUG, 21904, NOW, 0, 1, NONE, "0", "", "") \
    V(WIN_ENABLE, BOOL, PARAM, 22703, NOW, 0, 1, NONE, "1", "", "") \
    V(WIN_STRIDE, INT, PARAM, 22703, NOW, 0, INT64_MAX, -1, "-1", "", "") \
    V(WORK_ARGS_BYTES, BYTES, PARAM, 22203, NOW, 1024, INT64_MAX, NONE, "no limit", "", "") \
    V(WORK_FIFO_BYTES, BYTES, PARAM, 22203, NOW, 4096, 1073741824, NONE, "1048576", "", \
      "no power of two: the default; above 1 GiB: 1 GiB") \
    V(WORK_FIFO_DEPTH, INT, ONCE, 21304, 22105, 0, INT64_MAX, NONE, "", "", "")
/* clang-format on */

#endif
