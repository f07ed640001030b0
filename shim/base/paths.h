/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where logs and runs lie, and under which names: agreed between the shared object, which writes
 * the logs, and the command, which finds them. libc alone, no malloc, any thread; safe in a
 * constructor.
 */
#ifndef NCCLSHIM_BASE_PATHS_H
#define NCCLSHIM_BASE_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/error.h"

#define NCCLSHIM_RUNS_DIR "ncclshim-runs" /* below the current folder; holds the run folders */

/*
 * The folder for logs: NCCLSHIM_LOG_DIR, or /dev/shm/ncclshim-UID (effective user) where that is
 * unset or empty. 0, or -1 when the path does not fit.
 */
int log_dir_default(char *buf, size_t size);

/*
 * Open a log folder and return its descriptor (close-on-exec), for openat; -1 with *e filled.
 * `create` makes the last part of the path, mode 0700, when it is missing. A symbolic link in the
 * last part is never followed. Refused, because another user could then put or swap files: below
 * /dev/shm, a folder of another user (root may read one, not create into one) or one that others
 * can write; elsewhere, one that others can write without the sticky bit (a user may share a folder
 * between containers).
 */
int log_dir_open(const char *path, bool create, struct error *e);

/*
 * Name of a log file: HOST-PID-START.ncclshim, START being start_ticks. attempt 0 is the plain
 * name; a higher one adds "-ATTEMPT" before the suffix: the same process after exec has the same
 * pid and start, and two containers may share a folder. Create it O_EXCL | O_NOFOLLOW, mode 0600,
 * and try the next attempt on EEXIST. Letters of `host` that do not belong in a file name become
 * '_'. 0, or -1 when it does not fit.
 */
int log_file_name(char *buf, size_t size, const char *host, uint32_t pid, uint64_t start_ticks,
                  unsigned attempt);

/* Does a file name end in NCCLSHIM_LOG_SUFFIX, with something before it and no slash? */
bool is_log_file_name(const char *name);

#endif
