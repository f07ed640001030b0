/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in the way of fast collectives and of seeing them: the machine, its NCCL libraries
 * and settings, the processes that should be timed, and a server's own log. Nothing is changed and
 * no NCCL or CUDA function is called; NVML is loaded at run time where it is.
 */
#ifndef NCCLSHIM_PROVE_DOCTOR_LOOK_H
#define NCCLSHIM_PROVE_DOCTOR_LOOK_H

#include "shim/base/error.h"
#include "shim/prove/doctor/doctor_list.h"

struct doctor_options {
    const char *root; /* in front of every absolute path that is looked at, for tests; "" = none.
                         With one, NVML is ROOT/usr/lib/libnvidia-ml.so.1 and no other */
    int pid;          /* look at this process and its children; 0 = search all of this user */
    const char *server_log; /* NULL = none */
    unsigned moment_ms; /* between the two looks at a log that tell whether calls are timed now */
};

/* 0, or -1 with *e filled: no such process, or the server's log can't be read. */
int doctor_look(const struct doctor_options *o, struct doctor_list *l, struct error *e);

#endif
