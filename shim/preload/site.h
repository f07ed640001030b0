/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call sites: what the records of the ring refer to. Eagerly, all calls with the same description
 * are one site; under capture each call is a site of its own, and its replays are runs. Lock-free,
 * any thread, no allocation.
 */
#ifndef NCCLSHIM_PRELOAD_SITE_H
#define NCCLSHIM_PRELOAD_SITE_H

#include "shim/base/names.h"
#include "shim/preload/comm.h"

/* One call of the program, as it asked for it. */
struct call_desc {
    enum ncclshim_op op;
    int dtype;
    int redop; /* 255 = none, or made by the program */
    size_t count;
    uint64_t bytes; /* as nccl-tests counts, see include/ncclshim/log.h */
    int root;       /* root or peer; -1 = none */
    bool in_place;
    cudaStream_t stream;
};

/* A site and its number; NULL where the log has no room (counted there). */
struct site_ref {
    struct ncclshim_site *site;
    uint32_t number;
};

/* The site of an eager call. `flags` of NCCLSHIM_SITE_PART is part of what it is. */
struct site_ref site_eager(struct log_writer *log, const struct comm *c, const struct call_desc *d,
                           uint8_t flags);

/* A fresh site of a captured call; published when site_publish is called. */
struct site_ref site_captured(struct log_writer *log, const struct comm *c,
                              const struct call_desc *d, uint8_t flags, uint32_t capture,
                              uint32_t index);

void site_add_flags(struct ncclshim_site *s, uint8_t flags);
void site_count(struct ncclshim_site *s, bool stamped);
void site_choice(struct ncclshim_site *s, const struct choice *choice);

/* A forked child begins without any. */
void site_forget(void);

#endif
