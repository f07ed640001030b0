/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of a run folder, replaced in one step: who reads it sees the old one or the new one, whole.
 * One writer a name; the caller's descriptors stay the caller's.
 */
#ifndef NCCLSHIM_STATS_REPLACE_H
#define NCCLSHIM_STATS_REPLACE_H

#include <stdbool.h>

struct replacement {
    int dirfd, fd; /* fd: what the new content is written to */
    const char *name;
    char temporary[300];
};

/* Begin to replace `name` (which must stay until the end) in dirfd. Returns 0, or -1 with errno. */
int replace_begin(struct replacement *r, int dirfd, const char *name);

/*
 * The content is there and takes the place of the old one (good), or nothing is left of it. To be
 * called once after each replace_begin that went well. Returns 0, or -1 with errno: the old stays.
 */
int replace_end(struct replacement *r, bool good);

#endif
