/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a log file, live or finished (format: include/ncclshim/log.h). Everything is copied out
 * with pread, never mapped: a file that somebody cuts short while we read must not raise SIGBUS.
 * Nothing in a file is trusted: whatever does not fit the format is an error with the offset.
 *
 * One log_file belongs to one thread at a time.
 */
#ifndef NCCLSHIM_LOG_READER_H
#define NCCLSHIM_LOG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/ncclshim/log.h"
#include "shim/base/error.h"

struct log_file {
    char *path;
    int fd;
    struct ncclshim_log_header head; /* as of the last log_refresh */
    uint8_t *notes;                  /* all NOTES sections, one behind the other */
    size_t notes_bytes;
    struct ncclshim_comm *comms; /* entries whose state is FREE have not been published */
    uint32_t comm_count;
    struct ncclshim_site *sites; /* likewise */
    uint32_t site_count;
    struct log_ring *rings;
    uint32_t ring_count;
};

struct log_ring {
    uint32_t number;
    int32_t device;
    uint32_t capacity;
    uint64_t offset; /* of the ring's head page in the file */
};

/* Open and read all but the records. 0, or -1 with *e filled. */
int log_open(const char *path, struct log_file **out, struct error *e);
/*
 * The same for a name in an open folder, never following a symbolic link: for folders in which
 * somebody else may write. `path` is only what messages and f->path say.
 */
int log_open_at(int dirfd, const char *name, const char *path, struct log_file **out,
                struct error *e);
/*
 * Is there a log, or what should be one? A process that begins makes the file first and its header
 * after that; a collector removes what it has saved. Both happen while somebody reads a folder.
 */
bool log_is_made(const char *path);
/* Read header, notes, comms and sites anew (a live file). 0, or -1 with *e filled. */
int log_refresh(struct log_file *f, struct error *e);
void log_free(struct log_file *f);

/* Next published note after `prev` (NULL: the first); NULL at the end. Points into f->notes. */
const struct ncclshim_note *log_note_next(const struct log_file *f,
                                          const struct ncclshim_note *prev);
/*
 * The note's text (behind a body of body_bytes), always zero-terminated in buf; returns its length.
 * A text of several strings (NAME \0 value \0) keeps its zeros, which count in the length.
 */
size_t log_note_text(const struct ncclshim_note *n, size_t body_bytes, char *buf, size_t size);

/* Does the process that writes it still live (pid, start time, boot, pid namespace all agree)? */
bool log_writer_lives(const struct log_file *f);

enum log_writer_state {
    LOG_WRITER_LIVES,
    LOG_WRITER_GONE,
    LOG_WRITER_UNSEEN, /* of a pid namespace that can't be seen from here (a neighbouring
                          container): it may live or not */
};
/* The same with the third answer. *pid (may be NULL): as seen from here; 0 unless it lives. */
enum log_writer_state log_writer_find(const struct log_file *f, int *pid);
/*
 * Is `later` of the very process that made `f`, which has another program now (exec)? Then nobody
 * writes `f` any more, though its process lives.
 */
bool log_is_followed(const struct log_file *f, const struct log_file *later);

/*
 * Where a reader stands in one ring. Start with {0}: the first read then begins at the oldest
 * record that is still there and counts those before it as lost.
 */
struct ring_cursor {
    uint64_t next; /* number of the next record to read */
    uint64_t lost; /* overwritten before we came */
    uint64_t torn; /* half written by a process that is gone; never handed out */
};
/*
 * Every number below `next` was handed out, or is counted in lost or torn: the three add up to it.
 */

/*
 * Copy up to `cap` finished records, in order, into `out`; returns how many (0: nothing new), or -1
 * with *e filled. A record may name a site that was published after the last log_refresh: refresh
 * then before you use it. `final` says that the writer is gone: a half-written record is then
 * counted as torn and passed over instead of being waited for.
 */
long ring_read(struct log_file *f, const struct log_ring *ring, struct ring_cursor *c,
               struct ncclshim_record *out, size_t cap, bool final, struct error *e);

/*
 * Exact number of records the GPU has written so far, retained or not: one more than the highest
 * number of which at least one half is there. 0, or -1 with *e.
 */
int ring_total(struct log_file *f, const struct log_ring *ring, uint64_t *total, struct error *e);

#endif
