/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL variables for one communicator alone: those that NCCL reads anew at each init (NCCL_ALGO,
 * NCCL_PROTO, NCCL_GRAPH_FILE, ...) can stand in a [comm NAME] section. While that communicator's
 * init runs on this thread, the env door answers NCCL's question with the section's value.
 *
 * Not for an init inside a group or a non-blocking one, which asks from another thread: there the
 * variables are not given, and that is said in the log.
 */
#ifndef NCCLSHIM_PRELOAD_COMMENV_H
#define NCCLSHIM_PRELOAD_COMMENV_H

#include "shim/preload/comm.h"

void comm_env_begin(struct birth *b, bool grouped);
void comm_env_end(void);

/* What NCCL is to be told of a variable on this thread now; NULL = nothing special. */
const char *comm_env_get(const char *name);

#endif
