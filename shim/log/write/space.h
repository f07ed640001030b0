/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for the log on a tmpfs that others need too. NCCL itself keeps its host buffers in
 * /dev/shm, and containers often give it 64 MiB: the logs of all ranks together must stay a small
 * share of the mount, and what is mapped must be reserved for real, since a store into a hole of a
 * full tmpfs kills the process with SIGBUS.
 */
#ifndef NCCLSHIM_LOG_SPACE_H
#define NCCLSHIM_LOG_SPACE_H

#include <stdint.h>
#include <sys/types.h>

#include "shim/base/error.h"

/*
 * Bytes one process may take of the file system that holds `fd`: 1/32 of its size, at most 1/4 of
 * what is free, at most 256 MiB. Eight ranks in a 64 MiB mount take 16 MiB together.
 */
uint64_t space_share(int fd);

/* Reserve [offset, offset + bytes) of the file for real. 0, or -1 with *e (ENOSPC, EDQUOT, ...). */
int space_reserve(int fd, uint64_t offset, uint64_t bytes, const char *path, struct error *e);

#endif
