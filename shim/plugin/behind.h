/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin behind ours: what NCCL would have loaded if the shim were not there. That is what the
 * user named (kept in NCCLSHIM_BEHIND_... by the constructor), else NCCL's default name, else, for
 * profiler and tuner, the network plugin's library. It is opened once, the first time it is asked
 * for, and stays open.
 */
#ifndef NCCLSHIM_PLUGIN_BEHIND_H
#define NCCLSHIM_PLUGIN_BEHIND_H

enum behind_kind { BEHIND_ENV, BEHIND_PROFILER, BEHIND_TUNER, BEHIND_KINDS };

/*
 * The newest table PREFIX_vN of that plugin with N from `newest` down to `oldest`; *version is its
 * N. NULL when there is no plugin, or it has none of these. Never one of our own tables. May open
 * libraries: only from NCCL's init calls. Any thread.
 */
const void *behind_table(enum behind_kind kind, const char *prefix, int newest, int oldest,
                         int *version);

/*
 * A name that the user's own env plugin gives for NCCL_PROFILER_PLUGIN or NCCL_TUNER_PLUGIN: it
 * goes before NCCLSHIM_BEHIND_..., as it would without us. Remembered until the plugin is opened.
 */
void behind_name_from_env(enum behind_kind kind, const char *name);

#endif
