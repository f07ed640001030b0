/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Naming calls so that the same collective has the same name on every rank: the n-th run of the
 * m-th call of the k-th capture of a communicator, or the n-th run of an eager call site.
 */
#ifndef NCCLSHIM_STATS_CALLS_H
#define NCCLSHIM_STATS_CALLS_H

#include "shim/stats/run.h"

/* One key for each site of the process's log; malloc'ed, NULL when memory is out. */
uint64_t *call_keys(const struct run_process *p);
/* The key of one run of a site. */
uint64_t call_key(uint64_t site_key, uint32_t run);
/* Does an operation end on no rank before it began on every rank? */
bool op_synchronises(unsigned op);

#endif
