/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL's plugin interfaces share. ncclResult_t: shim/preload/nccl_abi.h. */
#ifndef NCCLSHIM_PLUGIN_ABI_COMMON_H
#define NCCLSHIM_PLUGIN_ABI_COMMON_H

#include "shim/preload/nccl_abi.h"

typedef void (*nccl_logger_fn)(int level, unsigned long flags, const char *file, int line,
                               const char *fmt, ...);

/* ncclFunc_t; tuners are asked about the first five only. */
enum {
    NCCL_FUNC_BROADCAST = 0,
    NCCL_FUNC_REDUCE = 1,
    NCCL_FUNC_ALL_GATHER = 2,
    NCCL_FUNC_REDUCE_SCATTER = 3,
    NCCL_FUNC_ALL_REDUCE = 4,
    NCCL_FUNC_TUNED = 5, /* count of those above */
    NCCL_FUNC_SEND = 6,
    NCCL_FUNC_RECV = 7,
};

#define PLUGIN_EXPORT __attribute__((visibility("default")))

#endif
