/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the reader: the sections of a log, copied out and checked. */
#ifndef NCCLSHIM_LOG_READ_TABLES_H
#define NCCLSHIM_LOG_READ_TABLES_H

#include "shim/log/read/reader.h"

/*
 * Check the sections that `h` names and read notes, communicators, sites and ring heads into *f,
 * together with the header. On failure *f keeps what it had. 0, or -1 with *e filled.
 */
int log_tables_read(struct log_file *f, const struct ncclshim_log_header *h, struct error *e);

/* Read exactly `bytes` at `offset`. 0, or -1 with *e filled (a file cut meanwhile, say). */
int log_pread(const struct log_file *f, void *buf, size_t bytes, uint64_t offset, struct error *e);

#endif
