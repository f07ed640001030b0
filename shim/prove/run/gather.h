/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting from servers that somebody else started: what `ncclshim collect` does. */
#ifndef NCCLSHIM_PROVE_GATHER_H
#define NCCLSHIM_PROVE_GATHER_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/base/error.h"
#include "shim/prove/run/summary.h"

struct gather_options {
    const char *log_dir; /* NULL = what run.json of run_dir says, else log_dir_default */
    const char *run_dir; /* one that is there is gone on with; NULL = a new one */
    bool keep_all;
    bool leave_logs;      /* do not remove logs of ended processes once they are saved */
    bool once;            /* one round, then the end */
    bool until_ended;     /* the end is also when those that were seen to run have ended */
    int pid;              /* 0 = all */
    unsigned interval_ms; /* 0 = as the rings need it */
    void (*started)(const char *log_dir, const char *run_dir);
    void (*warn)(const struct error *e);
};

struct gather_result {
    size_t left;  /* processes that still live and write */
    bool went_on; /* in a run folder that was there */
    struct summary summary;
    char run_path[4096];
    char log_dir[4096];
};

/* Collect until SIGINT, SIGTERM or SIGHUP. 0, or -1 with *e filled and nothing collected. */
int gather(const struct gather_options *o, struct gather_result *r, struct error *e);

#endif
