/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of each set of names: operations, data types, reductions, algorithms, protocols.
 * Parsing, printing, the log and the documentation come from here. The numbers of operations are
 * ours and stand in the log; those of types and reductions are NCCL's (nccl.h, 2.8 to 2.30.7),
 * those of algorithms and protocols are NCCL's plugin interface's (tuner v2 to v6).
 */
#ifndef NCCLSHIM_BASE_NAMES_H
#define NCCLSHIM_BASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* X(symbol, number, text, NCCL's own spelling) */
#define NCCLSHIM_OPS(X)                                                                            \
    X(ALL_REDUCE, 0, "all_reduce", "AllReduce")                                                    \
    X(ALL_GATHER, 1, "all_gather", "AllGather")                                                    \
    X(REDUCE_SCATTER, 2, "reduce_scatter", "ReduceScatter")                                        \
    X(BROADCAST, 3, "broadcast", "Broadcast")                                                      \
    X(REDUCE, 4, "reduce", "Reduce")                                                               \
    X(ALL_TO_ALL, 5, "all_to_all", "AlltoAll")                                                     \
    X(GATHER, 6, "gather", "Gather")                                                               \
    X(SCATTER, 7, "scatter", "Scatter")                                                            \
    X(SEND, 8, "send", "Send")                                                                     \
    X(RECV, 9, "recv", "Recv")                                                                     \
    X(GROUP, 10, "group", "Group")                                                                 \
    X(PUT_SIGNAL, 11, "put_signal", "PutSignal")                                                   \
    X(SIGNAL, 12, "signal", "Signal")                                                              \
    X(WAIT_SIGNAL, 13, "wait_signal", "WaitSignal")

/* X(symbol, number, text, bytes of one element) */
#define NCCLSHIM_DTYPES(X)                                                                         \
    X(INT8, 0, "int8", 1)                                                                          \
    X(UINT8, 1, "uint8", 1)                                                                        \
    X(INT32, 2, "int32", 4)                                                                        \
    X(UINT32, 3, "uint32", 4)                                                                      \
    X(INT64, 4, "int64", 8)                                                                        \
    X(UINT64, 5, "uint64", 8)                                                                      \
    X(FLOAT16, 6, "float16", 2)                                                                    \
    X(FLOAT32, 7, "float32", 4)                                                                    \
    X(FLOAT64, 8, "float64", 8)                                                                    \
    X(BFLOAT16, 9, "bfloat16", 2)                                                                  \
    X(FLOAT8E4M3, 10, "float8e4m3", 1)                                                             \
    X(FLOAT8E5M2, 11, "float8e5m2", 1)

/* X(symbol, number, text) */
#define NCCLSHIM_REDOPS(X)                                                                         \
    X(SUM, 0, "sum")                                                                               \
    X(PROD, 1, "prod")                                                                             \
    X(MAX, 2, "max")                                                                               \
    X(MIN, 3, "min")                                                                               \
    X(AVG, 4, "avg")

/* X(symbol, number, text, NCCL's own spelling) */
#define NCCLSHIM_ALGOS(X)                                                                          \
    X(TREE, 0, "tree", "Tree")                                                                     \
    X(RING, 1, "ring", "Ring")                                                                     \
    X(COLLNET_DIRECT, 2, "collnetdirect", "CollNetDirect")                                         \
    X(COLLNET_CHAIN, 3, "collnetchain", "CollNetChain")                                            \
    X(NVLS, 4, "nvls", "NVLS")                                                                     \
    X(NVLS_TREE, 5, "nvlstree", "NVLSTree")                                                        \
    X(PAT, 6, "pat", "PAT")

#define NCCLSHIM_PROTOS(X)                                                                         \
    X(LL, 0, "ll", "LL")                                                                           \
    X(LL128, 1, "ll128", "LL128")                                                                  \
    X(SIMPLE, 2, "simple", "Simple")

/* Where a setting comes from, enum ncclshim_origin of the log. X(number, word, in a sentence) */
#define NCCLSHIM_ORIGINS(X)                                                                        \
    X(0, "user", "environment")                                                                    \
    X(1, "profile", "profile")                                                                     \
    X(2, "override", "profile (override)")                                                         \
    X(3, "conf", "NCCL's conf file")                                                               \
    X(4, "program", "program")                                                                     \
    X(5, "comm", "profile (comm)")                                                                 \
    X(6, "shim", "ncclshim")

enum ncclshim_op {
#define X(sym, num, ...) OP_##sym = num,
    NCCLSHIM_OPS(X)
#undef X
        OP_COUNT
};
enum ncclshim_dtype {
#define X(sym, num, ...) DTYPE_##sym = num,
    NCCLSHIM_DTYPES(X)
#undef X
        DTYPE_COUNT
};
enum ncclshim_redop {
#define X(sym, num, ...) REDOP_##sym = num,
    NCCLSHIM_REDOPS(X)
#undef X
        REDOP_COUNT
};
enum ncclshim_algo {
#define X(sym, num, ...) ALGO_##sym = num,
    NCCLSHIM_ALGOS(X)
#undef X
        ALGO_COUNT
};
enum ncclshim_proto {
#define X(sym, num, ...) PROTO_##sym = num,
    NCCLSHIM_PROTOS(X)
#undef X
        PROTO_COUNT
};

/* Text of a number; "?" for one that is not in the table. Static strings, any thread. */
const char *op_name(unsigned op);
const char *dtype_name(unsigned dtype);
const char *redop_name(unsigned redop);
const char *algo_name(unsigned algo);
const char *proto_name(unsigned proto);
const char *origin_name(unsigned origin);
const char *origin_label(unsigned origin);

/* All names of a set in the order of their numbers, NULL behind the last. */
extern const char *const op_names[OP_COUNT + 1];
extern const char *const dtype_names[DTYPE_COUNT + 1];

/* Bytes of one element; 0 for a type that is not in the table. */
size_t dtype_bytes(unsigned dtype);

/*
 * Number of a name, letters in any case; underscores and blanks do not count, so that
 * "allreduce", "AllReduce" and "all_reduce" are one. -1 when it is no name of the set.
 */
int op_parse(const char *text);
int dtype_parse(const char *text);
int redop_parse(const char *text);
int algo_parse(const char *text);
int proto_parse(const char *text);

/*
 * The member of `names` (NULL-terminated) nearest to `text` by edit distance, or NULL when none is
 * near enough to be meant (more than a third of its letters differ).
 */
const char *nearest_name(const char *text, const char *const *names);

#endif
