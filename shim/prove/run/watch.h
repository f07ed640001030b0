/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a command under the shim to its end, and collecting its logs meanwhile: what
 * `ncclshim run` does, and what everything else does that starts servers.
 */
#ifndef NCCLSHIM_PROVE_WATCH_H
#define NCCLSHIM_PROVE_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/base/error.h"
#include "shim/profile/profile.h"
#include "shim/prove/run/runfolder.h"
#include "shim/prove/run/summary.h"

struct watch_options {
    char *const *command; /* NULL-terminated */
    const char *profile;  /* name, path or "none"; NULL = NCCLSHIM_PROFILE, or none */
    const char *run_dir;  /* NULL = a new one below ncclshim-runs */
    const char *log_dir;  /* folder in which the private one is made; NULL = log_dir_default */
    bool keep_all;
    bool strict;
    bool no_collect;
    /* Called once, when all is checked and before the command starts. */
    void (*started)(const struct profile *p, const char *folder, bool collects);
    void (*warn)(const struct error *e);
};

struct watch_result {
    int exit_code; /* of the command; 128 + n when signal n ended it */
    int signal;    /* n, or 0 */
    size_t left;   /* processes that outlived the command */
    struct summary summary;
    char run_path[4096];
    char log_dir[4096]; /* where their logs are */
};

/*
 * 0 when the command was started (whatever became of it), or -1 with *e filled and nothing started.
 * Does not return at all with no_collect, unless it fails: the command takes this process over.
 */
int watch(const struct watch_options *o, struct watch_result *r, struct error *e);

#endif
