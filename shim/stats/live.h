/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that run now, looked at again and again: the calls of a moving window, by kind of call
 * and by rank. Logs come and go with their servers; a row lives on when its server is started anew.
 */
#ifndef NCCLSHIM_STATS_LIVE_H
#define NCCLSHIM_STATS_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/log/read/reader.h"
#include "shim/stats/hist.h"

#define LIVE_SLOTS 10u /* looks that make up the window */
#define LIVE_NONE UINT32_MAX

/* A kind of call, on all ranks. */
struct live_row {
    char comm[80];
    int32_t ranks;
    uint8_t op, dtype, algo, proto, channels;
    bool captured;
    uint64_t bytes;
    struct hist slots[LIVE_SLOTS];
    struct hist window; /* all slots together, made by live_look */
};

/* One rank of a communicator. */
struct live_rank {
    char comm[80];
    int32_t rank, ranks;
    struct {
        uint64_t calls, ns;
    } slots[LIVE_SLOTS];
    uint64_t calls, ns; /* of the window */
};

struct live_process {
    struct log_file *log;
    struct ring_cursor *cursors; /* by place of the ring */
    uint32_t cursor_count;
    uint32_t *row_of, *rank_of; /* by site */
    uint32_t site_room;
    uint64_t ino;
    bool lives, seen;
};

struct live {
    char *folder;
    struct live_process *processes;
    uint32_t process_count;
    struct live_row *rows;
    uint32_t row_count;
    struct live_rank *ranks;
    uint32_t rank_count;
    uint32_t slot;                /* being filled */
    uint32_t slots_used;          /* of the window, until it is full for the first time */
    uint64_t slot_ns[LIVE_SLOTS]; /* how long each slot took */
    uint64_t window_ns;
    uint64_t last_ns; /* monotonic time of the last look */
    uint64_t lost;    /* records overwritten before we came, since the start */
    uint64_t records; /* read since the start */
};

int live_open(struct live *l, const char *folder);
/* Read what is new. A log that can't be read is left out, not an error. 0, or -1 when memory is
 * out. */
int live_look(struct live *l);
void live_free(struct live *l);

#endif
