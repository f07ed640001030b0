/* SPDX-License-Identifier: Apache-2.0 */
/* A log, copied from tmpfs to the run folder. */
#ifndef NCCLSHIM_PROVE_LOGCOPY_H
#define NCCLSHIM_PROVE_LOGCOPY_H

#include <stdbool.h>

#include "shim/log/read/reader.h"

/*
 * Copy the log to `name` in the folder, by a temporary file and a rename; pages of zeros become
 * holes, so that the copy takes only what was used. Without `records` the rings are left empty (a
 * log that is still being written: its records are in the statistics, and a ring copied while the
 * GPU writes would be neither old nor new). 0, or -1 with *e filled.
 */
int logcopy(const struct log_file *f, int dirfd, const char *name, bool records, struct error *e);

#endif
