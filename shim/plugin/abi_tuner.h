/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's tuner interface, versions 2 to 6. NCCL takes the newest that it knows: v2 2.21, v3 2.22,
 * v4 2.24, v5 2.28.3, v6 2.30.3. A table's last pointer is called destroy in v2 to v4.
 *
 * The cost table is a flat float[algos][protos], of 6 algorithms in 2.22 and 7 from 2.23 on. An
 * entry below 0 is one that NCCL, or the user through NCCL_ALGO and NCCL_PROTO, has ruled out. The
 * smallest entry wins, at equal values the first.
 */
#ifndef NCCLSHIM_PLUGIN_ABI_TUNER_H
#define NCCLSHIM_PLUGIN_ABI_TUNER_H

#include <stddef.h>
#include <stdint.h>

#include "shim/plugin/abi_common.h"

typedef ncclResult_t (*tuner_init_v2_fn)(size_t ranks, size_t nodes, nccl_logger_fn log,
                                         void **context);
typedef ncclResult_t (*tuner_init_v5_fn)(void **context, uint64_t hash, size_t ranks, size_t nodes,
                                         nccl_logger_fn log, void *domain, void *constants);
typedef ncclResult_t (*tuner_info_v2_fn)(void *context, int func, size_t bytes, int collnet,
                                         int nvls, int pipe_ops, int *algo, int *proto,
                                         int *channels);
typedef ncclResult_t (*tuner_info_v3_fn)(void *context, int func, size_t bytes, int pipe_ops,
                                         float **table, int algos, int protos, int *channels);
typedef ncclResult_t (*tuner_info_v4_fn)(void *context, int func, size_t bytes, int pipe_ops,
                                         float **table, int algos, int protos, int registered,
                                         int *channels);
typedef ncclResult_t (*tuner_chunk_v6_fn)(void *context, int func, size_t bytes, int algo,
                                          int proto, int channels, size_t *chunk);

struct tuner_table {
    const char *name;
    union {
        tuner_init_v2_fn v2; /* v2 to v4 */
        tuner_init_v5_fn v5; /* v5, v6 */
    } init;
    union {
        tuner_info_v2_fn v2;
        tuner_info_v3_fn v3;
        tuner_info_v4_fn v4; /* v4 to v6 */
    } info;
    ncclResult_t (*finalize)(void *context);
};
struct tuner_table_v6 {
    struct tuner_table v5;
    tuner_chunk_v6_fn chunk; /* may be NULL */
};

_Static_assert(sizeof(struct tuner_table) == 32, "v2 to v5");
_Static_assert(offsetof(struct tuner_table_v6, chunk) == 32, "v6");

#endif
