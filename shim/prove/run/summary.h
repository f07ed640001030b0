/* SPDX-License-Identifier: Apache-2.0 */
/* What was seen in all processes of a run, in a few numbers: the last line of `ncclshim run`. */
#ifndef NCCLSHIM_PROVE_SUMMARY_H
#define NCCLSHIM_PROVE_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/log/read/reader.h"
#include "shim/stats/accum.h"

/* Of one process. */
struct process_summary {
    uint32_t ranks; /* most members that one of its communicators has in this process */
    uint64_t timed; /* records read */
    uint64_t lost, torn;
    uint64_t calls;           /* issued through the shim */
    uint64_t not_intercepted; /* that NCCL counted and the shim did not see */
    uint64_t without_site;    /* calls that found no room in the table of call sites */
    bool simulated;           /* its GPUs are */
    bool missed;              /* it has NCCL, but no call came through the shim */
    uint64_t *comms;          /* what its communicators are known by; the same on every rank */
    size_t comm_count;
};

/* Fill *s from the log as last refreshed and its statistics (may be NULL). 0, or -1: no memory. */
int process_summarize(struct process_summary *s, const struct log_file *f, const struct accum *a);
void process_summary_free(struct process_summary *s);

/* Of a run. */
struct summary {
    size_t processes;
    uint64_t ranks, comms, timed, lost, torn, calls, not_intercepted, without_site;
    bool simulated;
    size_t missed; /* processes */
};

/* Add up. 0, or -1 when memory is out. */
int summarize(struct summary *s, const struct process_summary *const *list, size_t count);

/* "8 ranks, 3 communicators, ..." without a line end, for `ncclshim: %s`. */
void summary_text(const struct summary *s, char *buf, size_t size);

#endif
