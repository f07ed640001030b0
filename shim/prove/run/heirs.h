/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that the command left behind: they carry the run's own folder in their environment. */
#ifndef NCCLSHIM_PROVE_HEIRS_H
#define NCCLSHIM_PROVE_HEIRS_H

#include <stddef.h>

/*
 * How many processes, this one left out, were started with NCCLSHIM_LOG_DIR = log_dir. Those of
 * other users, and those that wrote over their environment (setproctitle does), are not found; the
 * latter show by their logs, once they have one.
 */
size_t heirs_of(const char *log_dir);

#endif
