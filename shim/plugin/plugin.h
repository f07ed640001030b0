/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The room of the tables that NCCL itself loads. libncclshim.so is NCCL's environment, profiler and
 * tuner plugin at once, in all versions of these interfaces:
 *
 *   env.c          which variables NCCL asks for; values for one communicator alone
 *   asked.c        what it asked, remembered until the log is open
 *   profiler*.c    what NCCL chose for each call; calls that no wrapper saw
 *   tuner*.c       the [tune] rules
 *   behind.c       the plugin that the user had in our place, loaded behind ours
 *
 * The tables never return an error of their own: NCCL makes the program's call fail for one.
 */
#ifndef NCCLSHIM_PLUGIN_PLUGIN_H
#define NCCLSHIM_PLUGIN_PLUGIN_H

#include "shim/plugin/abi_env.h"
#include "shim/plugin/abi_profiler.h"
#include "shim/plugin/abi_tuner.h"

struct log_writer;

/* Exported data; NCCL looks the names up in the object that NCCL_..._PLUGIN names. */
extern const struct env_table ncclEnvPlugin_v1, ncclEnvPlugin_v2;
extern const struct profiler_table ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3,
    ncclProfiler_v4, ncclProfiler_v5, ncclProfiler_v6;
extern const struct tuner_table ncclTunerPlugin_v2, ncclTunerPlugin_v3, ncclTunerPlugin_v4,
    ncclTunerPlugin_v5;
extern const struct tuner_table_v6 ncclTunerPlugin_v6;

/*
 * The log of this process was opened: write what was learnt before, and the notes whose counters go
 * on changing. Called once for each log, in a forked child again.
 */
void plugin_log_opened(struct log_writer *log);

#endif
