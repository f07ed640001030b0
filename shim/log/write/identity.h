/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process this is, so that a log can be told from that of a later process with the same pid.
 */
#ifndef NCCLSHIM_LOG_IDENTITY_H
#define NCCLSHIM_LOG_IDENTITY_H

#include <stdint.h>

struct identity {
    uint32_t pid;
    uint32_t uid;
    uint64_t start_ticks; /* field 22 of /proc/self/stat; 0 when /proc is not there */
    uint64_t pid_ns;      /* inode of /proc/self/ns/pid; 0 when it can't be read */
    char boot_id[40];     /* "" when it can't be read */
    char host[64];
};

void identity_read(struct identity *id);

/* Field 22 of /proc/PID/stat; 0 when there is no such process. */
uint64_t identity_start_ticks(int pid);

#endif
