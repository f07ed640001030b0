/* SPDX-License-Identifier: Apache-2.0 */
/* The logs in a folder, in order of their names. */
#ifndef NCCLSHIM_STATS_LOGLIST_H
#define NCCLSHIM_STATS_LOGLIST_H

#include <stdbool.h>
#include <stddef.h>

struct loglist {
    char **paths; /* folder and name */
    size_t count;
};

/*
 * `deep` looks into the folders run-* below as well, where `ncclshim run` puts the live logs of
 * each server. 0, or -1 with errno set: the folder can't be read, or ENOMEM.
 */
int loglist_read(const char *folder, bool deep, struct loglist *l);
/* Is a log of that file name in the list? */
bool loglist_has(const struct loglist *l, const char *name);
/* Add one path. 0, or -1 with errno set. */
int loglist_add(struct loglist *l, const char *folder, const char *name);
void loglist_sort(struct loglist *l);
void loglist_free(struct loglist *l);

#endif
