/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NAME.records.zst: every record in order, compressed as they come. A checkpoint ends a zstd frame,
 * so that the file, cut to the length of a checkpoint, is whole again for a collector that goes on.
 */
#ifndef NCCLSHIM_PROVE_KEEP_H
#define NCCLSHIM_PROVE_KEEP_H

#include <stddef.h>
#include <stdint.h>

#include "include/ncclshim/log.h"
#include "shim/base/error.h"

#define KEEP_SUFFIX ".records.zst"

struct keep;

/* Open `name` in the folder, cut to `bytes` (0: begin anew). NULL with *e filled on failure. */
struct keep *keep_open(int dirfd, const char *name, uint64_t bytes, struct error *e);
int keep_write(struct keep *k, const struct ncclshim_record *r, size_t n, struct error *e);
/* End the frame; *bytes is then the length of the file. 0, or -1 with *e filled. */
int keep_checkpoint(struct keep *k, uint64_t *bytes, struct error *e);
/* Without a checkpoint before it, what was written since the last one is lost. */
void keep_close(struct keep *k);

#endif
