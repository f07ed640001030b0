/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One log being collected: its rings are drained into an accum (and a file of all records), which
 * is saved into the run folder from time to time and for good when its process is gone.
 */
#ifndef NCCLSHIM_PROVE_INTAKE_H
#define NCCLSHIM_PROVE_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/log/read/reader.h"
#include "shim/prove/run/keep.h"
#include "shim/prove/run/summary.h"
#include "shim/stats/accum.h"
#include "shim/stats/histfile.h"

#define INTAKE_BATCH 8192u /* records read at a time */

/* Where things go and come from; shared by all logs of a collector, which owns it. */
struct intake_place {
    int log_fd; /* the folder of the logs */
    const char *log_path;
    int run_fd; /* the run folder */
    const char *run_path;
    bool keep_all;
    bool remove; /* unlink the log once it is saved for good */
    void (*warn)(const struct error *e);
    struct ncclshim_record *batch; /* room for INTAKE_BATCH */
};

enum intake_state {
    INTAKE_ACTIVE,
    INTAKE_DONE,   /* its process is gone, all is saved */
    INTAKE_BROKEN, /* it can't be read any more; what was read is saved */
};

struct intake {
    char *name; /* of the log's file */
    char *stem; /* the same without suffix */
    enum intake_state state;
    /* NULL, or empty, unless active: a collector may see thousands of processes come and go */
    struct log_file *f;
    struct accum a;
    struct histfile_ring *rings; /* room for NCCLSHIM_LOG_SECTIONS */
    uint32_t ring_count;
    struct keep *keep;
    char *keep_name;
    bool followed;          /* its process has another program, with a log of its own */
    enum log_writer_state writer; /* as last asked */
    int pid;                /* as seen from here; 0 unless it lives */
    uint64_t asked_ns;      /* when (monotonic) */
    uint64_t refreshed_ns, drained_ns, saved_ns;
    bool save_failed; /* warned about */
    struct process_summary summary;
};

/*
 * Open the log `name`; goes on from NAME.hist when the run folder has one of the same process.
 * NULL with *e filled on failure.
 */
struct intake *intake_open(const struct intake_place *p, const char *name, struct error *e);
void intake_free(struct intake *s);

/*
 * Read all that is new. `final`: the writer is gone. Returns how many milliseconds may pass before
 * the next time without a ring filling up by half, at a million records a second or at twice the
 * rate just seen.
 */
unsigned intake_drain(struct intake *s, const struct intake_place *p, bool final);

/*
 * Ask whether the writer lives, if that was not done within the last `every_ns`; and when it is
 * gone, drain what is left, save, and let go of everything but the summary.
 */
void intake_check(struct intake *s, const struct intake_place *p, uint64_t every_ns);

/* Save statistics and tables as they are now. 0, or -1 (warned about, once). */
int intake_save(struct intake *s, const struct intake_place *p, bool final);

#endif
