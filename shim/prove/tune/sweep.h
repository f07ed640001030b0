/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing logs that nobody needs any more: what `ncclshim clean` does. A log goes only when it is
 * ours, is a log, its process is certainly gone, and no collector is at work in its folder.
 */
#ifndef NCCLSHIM_PROVE_SWEEP_H
#define NCCLSHIM_PROVE_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/base/error.h"

enum sweep_verdict {
    SWEEP_REMOVED, /* or would be, in a dry run */
    SWEEP_LEFT,    /* `why` tells */
};

struct sweep_options {
    const char *log_dir;
    bool dry_run;
    /* Called for each log, and for each folder that is left out as a whole. */
    void (*tell)(enum sweep_verdict v, const char *path, const char *why, uint64_t bytes);
};

struct sweep_result {
    unsigned removed, left;
    uint64_t bytes; /* of those removed */
};

/*
 * Sweep the folder and the private ones of `ncclshim run` in it. No folder is no failure: there is
 * nothing to remove. 0, or -1 with *e filled.
 */
int sweep(const struct sweep_options *o, struct sweep_result *r, struct error *e);

#endif
