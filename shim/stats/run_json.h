/* SPDX-License-Identifier: Apache-2.0 */
/* What run.json says of a run (docs/run-folder.md), to those who read one. One thread. */
#ifndef NCCLSHIM_STATS_RUN_JSON_H
#define NCCLSHIM_STATS_RUN_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/base/error.h"
#include "shim/stats/loglist.h"
#include "shim/stats/run.h"

struct run_json {
    bool there;
    char *command; /* arguments with blanks between; this and the next three: malloc'ed or NULL */
    char *profile, *profile_path;
    char *log_dir; /* where the live logs are; NULL when all were taken over */
    uint64_t started_ns, ended_ns; /* ended 0 = still going, or killed */
    int exit_code, signal;         /* -1 = not said */
    bool simulated;
};

/* 0, also when there is none, or -1 with *e filled. */
int run_json_read(const char *folder, struct run_json *j, struct error *e);
/* Put it into the run, beside what other nodes' said, and free it. */
void run_json_take(struct run *r, struct run_json *j);

/* The run folders right below this one. 0, or -1 with *e filled; free the list in both cases. */
int run_json_nodes(const char *folder, struct loglist *nodes, struct error *e);

#endif
