/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run for other programs. Calls are written as they are read, so that the size of a run does not
 * matter; what is not on record (overwritten, not kept) is not in them.
 *
 * Times of calls are on the clock of their host, by the anchors in the log (stats/clock.h).
 */
#ifndef NCCLSHIM_SHOW_EXPORT_H
#define NCCLSHIM_SHOW_EXPORT_H

#include <stdio.h>

#include "shim/stats/run.h"

/* Each writes to `out` and returns 0, or -1 with *e filled. */
int export_csv(const struct run *r, FILE *out, struct error *e);
/* One JSON document with one call a line. */
int export_json(const struct run *r, FILE *out, struct error *e);
/* The Trace Event Format that chrome://tracing and Perfetto read. */
int export_chrome(const struct run *r, FILE *out, struct error *e);
/* Prometheus text format 0.0.4: the rows' histograms and counts. */
int export_prometheus(const struct run *r, FILE *out, struct error *e);

#endif
