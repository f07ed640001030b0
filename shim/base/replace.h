/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file replaced in one step: who reads it sees the old one or the new one, whole. The content is
 * written to a file of another name beside it, which nobody else's can be: whatever was planted
 * there, in a folder of many, is removed and never followed.
 */
#ifndef NCCLSHIM_BASE_REPLACE_H
#define NCCLSHIM_BASE_REPLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct replacement {
    int dirfd, fd; /* fd: what the new content is written to */
    const char *name;
    char temporary[PATH_MAX];
};

/*
 * Begin to replace `name` in the folder dirfd, which has one writer: what a dead one left behind is
 * written over. The name and dirfd must stay until the end. Returns 0, or -1 with errno.
 */
int replace_begin(struct replacement *r, int dirfd, const char *name);

/* The same for a path in a folder where others may replace the same file now: the last one wins. */
int replace_begin_path(struct replacement *r, const char *path, mode_t mode);

/*
 * The content is there and takes the place of the old one (good), or nothing is left of it. To be
 * called once after each begin that went well. Returns 0, or -1 with errno: the old stays.
 */
int replace_end(struct replacement *r, bool good);

/* All n bytes, whatever a signal or a full pipe does. Returns 0, or -1 with errno. */
int write_all(int fd, const void *bytes, size_t n);

#endif
