/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NAME.hist of a run folder: an accum on disk, and where the collector stood when it wrote it, so
 * that a collector that died is continued without counting a record twice or leaving one out. Both
 * are in one file, replaced by one rename, and so never disagree. Layout: docs/run-folder.md.
 */
#ifndef NCCLSHIM_STATS_HISTFILE_H
#define NCCLSHIM_STATS_HISTFILE_H

#include <stdint.h>

#include "shim/base/error.h"
#include "shim/log/read/reader.h"
#include "shim/stats/accum.h"

#define HISTFILE_SUFFIX ".hist"

struct histfile_ring {
    uint32_t number;
    struct ring_cursor cursor;
};

/* What stands beside the statistics. */
struct histfile {
    /* whose: the same words as in the log's header */
    uint32_t pid;
    uint64_t start_ticks, pid_ns, created_ns;
    char boot_id[40];

    uint64_t written_ns; /* host clock, when the file was written */
    uint64_t kept_bytes; /* length of NAME.records.zst that belongs to it; 0 = none kept */
    uint32_t final;      /* 1: the process is gone and all its records are in here */
    struct histfile_ring *rings;
    uint32_t ring_count;
};

/* Write `name` in the folder, by a temporary file and a rename. 0, or -1 with *e filled. */
int histfile_save(int dirfd, const char *name, const struct accum *a, const struct histfile *h,
                  struct error *e);

/*
 * Read a file into *a (which must be empty, as after accum_init) and *h (may be NULL; free it with
 * histfile_free). Nothing in the file is trusted. 0, or -1 with *e filled and both empty.
 */
int histfile_load(const char *path, struct accum *a, struct histfile *h, struct error *e);
void histfile_free(struct histfile *h);

/* The identity of a log's process, with no rings yet. */
void histfile_identify(struct histfile *h, const struct ncclshim_log_header *head);
/* Is it the same process, and the same log of it? */
bool histfile_is_of(const struct histfile *h, const struct ncclshim_log_header *head);

#endif
