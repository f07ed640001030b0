/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of one process one batch after the other: from NAME.records.zst when every record was
 * kept, else from the rings in its log, which hold the newest. Never more than one batch is in
 * memory.
 */
#ifndef NCCLSHIM_STATS_RECORDS_H
#define NCCLSHIM_STATS_RECORDS_H

#include "shim/stats/run.h"

struct records;

/* 0 and *out, or -1 with *e filled. The process must outlive it. */
int records_open(const struct run_process *p, struct records **out, struct error *e);
/* The newest `newest` records of each ring, kept file or not. */
int records_open_newest(const struct run_process *p, uint64_t newest, struct records **out,
                        struct error *e);
/*
 * The next batch: *batch points at records in ring order, valid until the next call; *ring is the
 * ring that they all come from. Returns how many, 0 at the end, -1 with *e filled.
 */
long records_next(struct records *r, const struct ncclshim_record **batch, uint32_t *ring,
                  struct error *e);
/* Records that were overwritten before we came, and torn ones. */
void records_losses(const struct records *r, uint64_t *lost, uint64_t *torn);
void records_close(struct records *r);

/* Ring of a call site's communicator; RUN_NONE when the record names no site of the log. */
uint32_t ring_of_site(const struct run_process *p, uint32_t site);

#endif
