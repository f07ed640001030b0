/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the log of this process (format: include/ncclshim/log.h). All functions may be called
 * from any thread; none takes a lock, none allocates from the heap. Space is reserved for real
 * when the log is opened and when a ring is added, never later: writing can not raise SIGBUS
 * because the file system is full.
 *
 * A log that could not be opened is not an error for the server: the functions below then do
 * nothing, and hand out NULL or -1.
 */
#ifndef NCCLSHIM_LOG_WRITER_H
#define NCCLSHIM_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/ncclshim/log.h"
#include "shim/base/error.h"

struct log_writer {
    struct ncclshim_log_header *head; /* first page, mapped */
    int fd;
    int pid; /* who opened it: a forked child must not write to it */
    char path[512];
    /* bases of the fixed sections, mapped in one piece behind the header */
    uint8_t *notes;
    struct ncclshim_comm *comms;
    struct ncclshim_site *sites;
    uint32_t comm_cap, site_cap;
    uint64_t notes_cap;
    uint64_t room; /* bytes this process may still reserve for rings */
};

/*
 * Make the log file of this process in `dir` (made with mode 0700 if it is not there; refused when it
 * belongs to somebody else or is a symbolic link). `site_cap` is the wish for call sites; it is
 * cut down when the file system is small. 0, or -1 with *e: then w->head is NULL.
 */
int log_writer_open(struct log_writer *w, const char *dir, uint32_t site_cap, struct error *e);

/* Mark as closed (only by the process that opened it). The file and the mappings stay. */
void log_writer_close(struct log_writer *w);

/*
 * Reserve and map a ring of `capacity` records (a power of two), or of the largest smaller
 * power of two for which there is room, 1024 at the least. Returns its head page, or NULL with *e.
 */
struct ncclshim_ring *log_ring_add(struct log_writer *w, uint32_t capacity, int device,
                                   uint32_t *number, struct error *e);

/*
 * Announce a ring to readers. Only once nothing but the program's records will be written to it: a
 * collector that saw the records of a measurement would take the first real ones for lost.
 */
void log_ring_publish(struct log_writer *w, uint32_t number);

/* A fresh entry, zeroed, not yet published: store its state last. NULL when there is no room. */
struct ncclshim_comm *log_comm_add(struct log_writer *w, uint32_t *number);
struct ncclshim_site *log_site_add(struct log_writer *w, uint32_t *number);
bool log_sites_full(const struct log_writer *w);

/*
 * Write a note: `body` (may be NULL) of body_bytes, then `text` of text_bytes. Returns where the
 * note's body lies in the log, for counters that go on changing; NULL when there was no room.
 */
void *log_note(struct log_writer *w, enum ncclshim_note_type type, uint32_t a, uint32_t b,
               uint64_t value, const void *body, size_t body_bytes, const char *text,
               size_t text_bytes);

/* One sentence, as a WARNING note of communicator `comm` (-1: of none). */
void log_warn(struct log_writer *w, int comm, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* CLOCK_REALTIME in nanoseconds. */
uint64_t log_now_ns(void);

#endif
