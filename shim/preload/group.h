/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclGroupStart/End. What is called inside is launched at the outermost end, so there the stamps
 * stand around that end, once per communicator. A communicator with a single call in the group
 * gets that call's time; several calls become one GROUP record, and the parts have no time of
 * their own. Depth is counted per thread and per copy of NCCL, as NCCL itself does.
 */
#ifndef NCCLSHIM_PRELOAD_GROUP_H
#define NCCLSHIM_PRELOAD_GROUP_H

#include "shim/preload/site.h"

/* Is this thread inside a group of this copy? */
bool group_open(const struct nccl_lib *lib);

void group_start(struct nccl_lib *lib);

/* Remember a call of an open group. */
void group_add(struct nccl_lib *lib, struct comm *c, const struct call_desc *d);

/* Remember a communicator whose handle comes at the group's end. */
void group_add_birth(struct nccl_lib *lib, const struct birth *b);

/* Is a group of this communicator's NCCL open or ending on this thread? */
bool group_is_of(const struct comm *c);

/*
 * NCCL's choice for a call of that group, which holds `bytes` (count times the size of the type; 0 =
 * not known). NCCL tells of a group's calls in an order of its own, the largest first.
 */
void group_note_choice(struct comm *c, int op, uint64_t bytes, const struct choice *choice);

/* Around the real ncclGroupEnd: stamps only when it is the outermost one. */
void group_before_end(struct nccl_lib *lib);
void group_after_end(struct nccl_lib *lib, ncclResult_t result);

/* The group ended without launching anything (ncclGroupSimulateEnd). */
void group_drop(struct nccl_lib *lib);

#endif
