/* SPDX-License-Identifier: Apache-2.0 */
/* Inside compare: the rows of all sides, matched, with the estimates of each side. */
#ifndef NCCLSHIM_STATS_COMPARE_ROWS_H
#define NCCLSHIM_STATS_COMPARE_ROWS_H

#include "shim/stats/compare.h"

/* Fill c->rows from c->sides. 0, or -1 with *e filled. */
int compare_gather(struct compare *c, struct error *e);

#endif
