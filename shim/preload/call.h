/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One collective on its way through a wrapper: before the real call a stamp, after it another, and
 * the count. Inside ncclGroupStart/End nothing is launched until the outermost end, so there the
 * call is only remembered (group.h). Call path: no allocation, no lock, no system call of ours.
 */
#ifndef NCCLSHIM_PRELOAD_CALL_H
#define NCCLSHIM_PRELOAD_CALL_H

#include "shim/preload/capture.h"
#include "shim/preload/site.h"
#include "shim/preload/stamp.h"

struct call {
    struct comm *comm;
    struct log_writer *log;
    struct site_ref site;
    struct capture *capture; /* NULL = eager */
    CUdeviceptr start;       /* where its start stands */
    bool stamped;            /* has a start: gets an end */
};

/* Find the site, decide whether it is timed, put the first stamp. */
void call_begin(struct call *k, struct log_writer *log, struct comm *c, const struct call_desc *d,
                uint8_t site_flags);

/* Put the second stamp if the real call was good, and count. */
void call_end(struct call *k, const struct call_desc *d, ncclResult_t result);

/*
 * Note that a communicator is used eagerly (1) or under capture (2); warns once when it is used
 * both ways while NCCL_GRAPH_MIXING_SUPPORT=0 is in force.
 */
void call_note_use(struct log_writer *log, struct comm *c, int how);

#endif
