/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of decode_server, and what the ranks share; a rank is a process or a thread. */
#ifndef NCCLSHIM_EXAMPLES_DECODE_RANK_H
#define NCCLSHIM_EXAMPLES_DECODE_RANK_H

#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "examples/decode_options.h"

/* Lies in memory that all ranks map. */
struct share {
    pthread_barrier_t barrier; /* all ranks; shared between processes */
    ncclUniqueId id;           /* written by rank 0 */
    atomic_int stop;           /* set by a signal: no further request */
    atomic_int go;             /* rank 0's word on the next request */
    atomic_int dying;          /* --die-mid-replay has begun */
    atomic_ullong checked;     /* sums found right, all ranks */
};

/*
 * Serve as rank `rank` of opt->ranks. Returns when all is done and right; on any fault it prints
 * one line on stderr and ends the process with _exit(1): no destructors, since other threads still
 * run.
 */
void rank_run(const struct options *opt, struct share *share, int rank);

#endif
