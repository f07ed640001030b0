/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's environment interface: v1 from 2.28.7, v2 from 2.30.7 on, which is looked up first. */
#ifndef NCCLSHIM_PLUGIN_ABI_ENV_H
#define NCCLSHIM_PLUGIN_ABI_ENV_H

#include <stdint.h>

#include "shim/plugin/abi_common.h"

typedef ncclResult_t (*env_init_v1_fn)(uint8_t major, uint8_t minor, uint8_t patch,
                                       const char *suffix);
typedef ncclResult_t (*env_init_v2_fn)(uint8_t major, uint8_t minor, uint8_t patch,
                                       const char *suffix, nccl_logger_fn log);

struct env_table {
    const char *name;
    union {
        env_init_v1_fn v1;
        env_init_v2_fn v2;
    } init;
    ncclResult_t (*finalize)(void);
    const char *(*get)(const char *name); /* any thread; NULL = not set */
};

_Static_assert(sizeof(struct env_table) == 32, "env table");

#endif
