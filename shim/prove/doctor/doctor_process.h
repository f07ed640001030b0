/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a process under the shim, and if not, why? Read from /proc alone; the process is not touched.
 */
#ifndef NCCLSHIM_PROVE_DOCTOR_PROCESS_H
#define NCCLSHIM_PROVE_DOCTOR_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/base/error.h"
#include "shim/prove/doctor/doctor_files.h"
#include "shim/prove/doctor/doctor_list.h"

#define DOCTOR_COPIES 8

struct doctor_process {
    int pid, parent;
    uid_t uid;
    char name[64];               /* as its user would call it */
    bool readable;               /* maps and environment could be read */
    bool shim;                   /* libncclshim.so is mapped */
    bool cuda;                   /* libcuda.so.1 is mapped */
    bool torch_nccl;             /* NCCL stands inside its libtorch_cuda.so (copies has it) */
    bool saver;                  /* torch_memory_saver's library is mapped or preloaded */
    char *copies[DOCTOR_COPIES]; /* NCCL libraries that are mapped */
    unsigned copy_count;
    char *log;           /* its log, as the process names it; NULL = none is mapped */
    bool secure;         /* started with privileges from its file: the loader ignores LD_PRELOAD */
    bool setid, capable; /* why: set-user-id or set-group-id, file capabilities */
    bool static_exe, foreign,
        musl;  /* no loader at all; 32-bit or another processor; another loader */
    char *env; /* block; NULL = not readable */
    size_t env_bytes;
};

/* 0, or -1 when there is no such process. Free with doctor_process_free in both cases. */
int doctor_process_read(struct doctor_process *p, const char *root, int pid);
void doctor_process_free(struct doctor_process *p);

struct doctor_processes {
    struct doctor_process *list;
    size_t count;
};
/* `pid` and all that descend from it, parents first; or with pid 0 all of user `uid` (0 =
 * everybody). */
int doctor_processes_read(struct doctor_processes *all, const char *root, int pid, uid_t uid,
                          struct error *e);
void doctor_processes_free(struct doctor_processes *all);

/* What its log shows, looked at twice. */
struct doctor_timing {
    bool opened;
    char why[512];                /* not opened: why */
    uint64_t timed, more_timed;   /* records, and how many came in the moment between */
    uint64_t issued, more_issued; /* calls of the host */
    uint64_t missed;              /* NCCL told of, no wrapper saw */
    bool missed_all;              /* NCCL is mapped and no call came through */
    unsigned comms;
    unsigned untimed; /* communicators without a ring */
};
/* One result for each process; those without a log are left zeroed. Sleeps `moment_ms` once. */
void doctor_timing_read(struct doctor_timing *t, const struct doctor_processes *all,
                        const char *root, unsigned moment_ms);

/* In which light a process is seen. */
struct doctor_view {
    const char *root;
    bool asked; /* the user named it with --pid: without the shim it is bad, not only worth a
                   warning */
    bool others_have_logs; /* of those that are looked at */
    unsigned moment_ms;
};

/* One line for the process, and one more when it has several copies of NCCL. */
void doctor_process_judge(struct doctor_list *l, const struct doctor_process *p,
                          const struct doctor_timing *t, const struct doctor_view *v);
/* Was it meant to be under the shim, by its environment? */
bool doctor_process_meant(const struct doctor_process *p);

#endif
