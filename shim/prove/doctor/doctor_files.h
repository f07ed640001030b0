/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of /proc and /sys below a root, and variables of somebody's environment. */
#ifndef NCCLSHIM_PROVE_DOCTOR_FILES_H
#define NCCLSHIM_PROVE_DOCTOR_FILES_H

#include <stdbool.h>
#include <stddef.h>

#define DOCTOR_PATH 4096

/* ROOT followed by the formatted path, cut when it does not fit. Returns buf. */
const char *doctor_path(char buf[DOCTOR_PATH], const char *root, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * The first `most` bytes of a file, with a zero behind them; NULL (errno tells) when it can't be
 * read. Never waits for a FIFO. Free with free().
 */
char *doctor_slurp(const char *path, size_t most, size_t *bytes);
/* Its first line without the line feed in buf; false (and "") when it can't be read. */
bool doctor_line_of(const char *path, char *buf, size_t size);

/* An environment as /proc/PID/environ has it; {0} is our own. */
struct doctor_env {
    const char *block;
    size_t size;
};
const char *doctor_getenv(const struct doctor_env *env, const char *name);

/* Is `want` a member of the list, split at any of `separators`, by the last part of its path? */
bool doctor_list_has(const char *list, const char *separators, const char *want);
/* Is there a folder ROOT/path with something in it? */
bool doctor_has_entries(const char *root, const char *path);
/* What follows the last slash. */
const char *doctor_base_name(const char *path);

#endif
