/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collecting: all logs of a folder, as they come and go, are drained into a run folder. One thread;
 * the caller sleeps between rounds as long as a round says. Memory grows with the number of call
 * sites that are alive, not with time; of a process that ended only its summary stays.
 */
#ifndef NCCLSHIM_PROVE_COLLECTOR_H
#define NCCLSHIM_PROVE_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/error.h"
#include "shim/prove/run/runfolder.h"
#include "shim/prove/run/summary.h"

struct collector_options {
    const char *log_dir; /* folder of the logs, and its open descriptor */
    int log_fd;
    const struct runfolder *run;
    bool keep_all;
    bool remove;          /* logs of processes that are gone, once they are in the run folder */
    int pid;              /* only the log of this process (as seen from here); 0 = all */
    unsigned interval_ms; /* sleep at most so long between rounds; 0 = no limit of the caller's */
    void (*warn)(const struct error *e); /* prints: trouble that does not end the collecting */
};

struct collector;

/* NULL with *e filled on failure. Paths and descriptors in `o` must outlive it. */
struct collector *collector_new(const struct collector_options *o, struct error *e);
void collector_free(struct collector *c);

/* Look for new logs, drain all, save what is due; returns the milliseconds to sleep. */
unsigned collector_round(struct collector *c);
/*
 * Drain and save all at the end of collecting. Logs of processes that are gone are finished, those
 * of the living left as they are, for another collector to go on with.
 */
void collector_finish(struct collector *c);

/* Processes that still write, as last asked; `ask`: ask again now. */
size_t collector_living(struct collector *c, bool ask);
/* Does it have anything to say in run.json that it had not at the last call? */
bool collector_changed(struct collector *c);
/* Names (without suffix) of all processes seen; valid until the next round. */
char *const *collector_processes(const struct collector *c, size_t *count);
int collector_summarize(const struct collector *c, struct summary *s);

#endif
