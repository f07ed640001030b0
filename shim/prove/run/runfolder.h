/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run folder: its name, and run.json in it (docs/run-folder.md). What the collector puts beside
 * it is in collector.h.
 */
#ifndef NCCLSHIM_PROVE_RUNFOLDER_H
#define NCCLSHIM_PROVE_RUNFOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/error.h"

struct runfolder {
    char path[4096]; /* as the user would write it */
    int fd;          /* of the folder */
};

/*
 * Make a new folder: `path`, which must not exist or be empty; or, when it is NULL,
 * ncclshim-runs/DATE-TIME-NAME with NAME taken from the command. Two runs of one second get two
 * folders. 0, or -1 with *e filled.
 */
int runfolder_make(struct runfolder *r, const char *path, char *const *command, struct error *e);
/* Open one that is there (it holds a run.json) to go on in it, or make it. 0, or -1 with *e. */
int runfolder_open(struct runfolder *r, const char *path, struct error *e);

/*
 * NAME for a command: the module of `python -m`, the script, else the program; 32 letters at most.
 */
void runfolder_name_of(char *const *command, char *buf, size_t size);

/*
 * What run.json says. Strings belong to the caller. A collector that goes on in a run of another
 * leaves NULL, 0 or -1 what only that one knew: then what stood there stays.
 */
struct run_facts {
    const char *made_by;  /* "run" or "collect" */
    char *const *command; /* NULL-terminated */
    const char *profile, *profile_path;
    const char *log_dir; /* where the live logs are; NULL when all were taken over: it goes */
    uint64_t started_ns;
    uint64_t ended_ns; /* 0 while it runs: it goes */
    int exit_code;     /* -1 = none */
    int signal;        /* 0 = none */
    bool simulated;
    char *const *processes; /* log names without suffix, added to those that stand there */
    size_t process_count;
};

/* Write run.json, by a rename. 0, or -1 with *e filled. */
int runfolder_describe(const struct runfolder *r, const struct run_facts *f, struct error *e);

/*
 * What an earlier collector wrote, for going on: the folder of the logs (buf, "" when there is
 * none) and the start. 0, or -1 with *e filled.
 */
int runfolder_recall(const struct runfolder *r, char *log_dir, size_t size, uint64_t *started_ns,
                     struct error *e);

uint64_t wall_ns(void);      /* CLOCK_REALTIME */
uint64_t monotonic_ns(void); /* CLOCK_MONOTONIC */

#endif
