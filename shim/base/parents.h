/* SPDX-License-Identifier: Apache-2.0 */
/* The folders that a path goes through. Any thread. */
#ifndef NCCLSHIM_BASE_PARENTS_H
#define NCCLSHIM_BASE_PARENTS_H

/* Make those that are missing, not the last part itself. 0, or -1 with errno set. */
int parents_make(const char *path);

#endif
