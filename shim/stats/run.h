/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run, read from what lies on disk or in the log folder: its processes, its communicators matched
 * across ranks, and its call sites gathered into rows. Everything that reports, compares or exports
 * starts from here.
 *
 * A run belongs to one thread. Strings are as the processes wrote them: not to be trusted, to be
 * made printable by whoever shows them.
 */
#ifndef NCCLSHIM_STATS_RUN_H
#define NCCLSHIM_STATS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/base/error.h"
#include "shim/log/read/reader.h"
#include "shim/stats/accum.h"
#include "shim/stats/clock.h"

struct run_gpu {
    uint32_t ring; /* number of the ring it writes */
    struct ncclshim_gpu gpu;
    char name[96];
    struct clock clock; /* from the anchors of that ring */
};

struct run_process {
    char *name; /* of its log, without folder and suffix */
    struct log_file *log;
    struct accum acc;
    bool whole; /* acc covers the whole run, not only the newest records */
    bool lives;
    char *records_path; /* every record, compressed; NULL when they were not kept */
    struct run_gpu *gpus;
    uint32_t gpu_count;
    uint64_t written;  /* records the GPUs wrote, by the rings' own count */
    uint32_t *comm_of; /* comm number -> index in run.comms, RUN_NONE = no such */
    uint32_t *row_of;  /* site number -> index in run.rows, RUN_NONE = no such or filtered out */
};
#define RUN_NONE UINT32_MAX

/* One rank of a communicator: which process, under which number there. */
struct run_member {
    uint32_t process, comm;
    int32_t rank;
    struct ncclshim_comm *entry; /* in that process's log */
};

struct run_comm {
    char name[80]; /* the program's name for it, or "comm N" */
    bool named;
    uint64_t hash, id_digest;
    int32_t ranks;
    int32_t nodes;  /* -1 unknown */
    uint32_t flags; /* of all members together */
    bool timed;     /* at least one member has a ring */
    bool counted;   /* missed_calls is exact for every member */
    uint64_t wrapped_calls, missed_calls, failed_calls;
    uint64_t total_ns;          /* of its rows, for sorting */
    struct run_member *members; /* by rank */
    uint32_t member_count;
};

/* Waiting for peers and transfer, from calls that could be lined up across ranks (wait.h). */
struct run_wait {
    uint64_t calls;            /* lined up */
    uint64_t wait_ns, busy_ns; /* sums over calls and ranks; busy = wait + transfer */
    struct hist transfer;      /* last arrival to last end, a call */
};

/* All calls of one kind: communicator, operation, size, type, how issued, what NCCL chose. */
struct run_row {
    uint32_t comm; /* index in run.comms */
    uint8_t op, dtype, algo, proto, channels, warps;
    bool captured;
    bool part;           /* part of a group: the group's row has the time */
    bool mixed_channels; /* sites of this row got different numbers of channels */
    uint64_t bytes;
    uint64_t issued;     /* runs on all ranks together */
    uint64_t stamped;    /* those that have stamps */
    uint64_t timed;      /* those whose time is in ns */
    uint64_t lost;       /* stamped, ran, and overwritten or torn before anyone read them */
    uint64_t unfinished; /* stamped, issued, no end seen: queued or running when we looked */
    uint32_t sites;
    struct hist ns, gap_ns;
    struct hist *rank_ns; /* by member of the communicator */
    struct run_wait wait;
    uint64_t expected_ns; /* by a reference measurement or NCCL's own model; 0 = none is known */
};

/* Replays of like graphs: the forward passes of the server. */
struct run_pass {
    uint64_t key;
    uint8_t op; /* of most of its calls */
    uint64_t bytes;
    uint32_t like;   /* calls with that operation and size, of `calls` */
    uint32_t calls;  /* timed calls of one pass */
    uint32_t graphs; /* captures, on the rank that has most */
    uint64_t passes; /* replays on the rank that has most */
    struct hist pass_ns, comm_ns, period_ns;
};

/* What to read. Zeroed: everything. */
struct run_filter {
    int op;                        /* -1 = all */
    int64_t bytes_low, bytes_high; /* inclusive; high 0 = no limit */
    const char *comm;              /* name, or number as shown; NULL = all */
    int rank;                      /* -1 = all */
    int captured;                  /* -1 = all, 0 eager, 1 captured */
    uint64_t since_ns;             /* only calls that started then or later (GPU time); 0 = all */
};
#define RUN_FILTER_ALL                       \
    {                                        \
        .op = -1, .rank = -1, .captured = -1 \
    }

struct run {
    char *path; /* folder or file it was read from */
    char *name; /* last part of it; "live" for the log folder */
    bool live;  /* read from the log folder */
    struct run_process *processes;
    uint32_t process_count;
    struct run_comm *comms; /* by total time, largest first */
    uint32_t comm_count;
    struct run_row *rows; /* by communicator, then total time */
    uint32_t row_count;
    struct run_pass *passes; /* by total time */
    uint32_t pass_count;

    /* from run.json; NULL or 0 when there is none */
    char *command; /* arguments with blanks between; else the first process's own */
    char *profile, *profile_path;
    uint64_t started_ns, ended_ns; /* host clock; ended 0 = still going or killed */
    int exit_code, signal;         /* -1 = unknown */

    bool simulated;
    uint64_t first_ns, last_ns; /* first start and last end on record (GPU clocks) */
    uint64_t issued, timed, lost, unfinished, torn, bad;
    uint64_t groups_timed; /* groups of calls, each timed as a whole; in none of the above */
    uint64_t unsited;      /* calls for which a log had no room */
    uint64_t missed_calls; /* counted by NCCL, not seen by the shim */
    bool whole;            /* every process has whole-run statistics */
    bool closed;           /* every log was closed by its process */
    uint32_t floor_ns, floor_max_ns; /* largest over its GPUs */
    uint32_t stamp;                  /* enum ncclshim_stamp_kind; 255 = differs */
};

/*
 * Read the run that is meant: `given` (a run folder, a folder of logs, one log file, or a name below
 * ncclshim-runs/), or with NULL the newest run folder, else the log folder of live servers. 0 and
 * *out, or -1 with *e filled.
 */
int run_open_given(const char *given, const struct run_filter *filter, struct run **out,
                   struct error *e);

/*
 * Read it. A folder without a log is an error; a log that can't be read is an error with its name.
 * 0 and *out, or -1 with *e filled.
 */
int run_open(const char *path, bool live, const struct run_filter *filter, struct run **out,
             struct error *e);
void run_free(struct run *r);

/* The steps of run_open, for `top`, which repeats the last ones. Each 0, or -1 when memory is out.
 */
int run_load(struct run *r, const struct run_filter *f, struct error *e);
int run_match_comms(struct run *r);
int run_gather_rows(struct run *r, const struct run_filter *f);
int run_gather_passes(struct run *r);

/*
 * Sort items, leaving equals in their order. Returns where each of them went, by its old number
 * (free it), or NULL when memory is out, and then nothing has moved.
 */
uint32_t *run_sort(void *items, uint32_t count, size_t bytes,
                   int (*compare)(const void *a, const void *b));

/* nccl-tests' factor from bytes/time to bus bandwidth; 0 where it has no meaning (groups, signals).
 */
double bus_factor(unsigned op, int32_t ranks);
/* GB/s for one call of that row that takes ns; 0 = not known. */
double row_bus_gbps(const struct run *r, const struct run_row *row, uint64_t ns);

/* The GPU that writes a ring of a process; NULL when no note tells. */
const struct run_gpu *run_gpu_of(const struct run_process *p, uint32_t ring);
/* Index of a member by process and comm number; RUN_NONE when absent. */
uint32_t run_member_of(const struct run_comm *c, uint32_t process, uint32_t comm);

#endif
