/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's own log, read for what it says about all-reduce paths that bypass NCCL: those calls
 * are neither timed nor tuned by anything that stands in front of NCCL. Lines as vLLM (0.6 to
 * 0.30), SGLang, TensorRT-LLM and LMDeploy print them.
 */
#ifndef NCCLSHIM_PROVE_DOCTOR_SERVER_H
#define NCCLSHIM_PROVE_DOCTOR_SERVER_H

#include <stdint.h>
#include <stdio.h>

#include "shim/base/error.h"
#include "shim/prove/doctor/doctor_list.h"

#define DOCTOR_SERVER_LINE \
    65536 /* a longer line is read in pieces of this size that overlap a little */

/* Each with how many lines said so (a server has a process for each GPU). */
struct doctor_said {
    const char *topic;
    enum doctor_level level;
    char subject[64]; /* backend, flag, reason: what tells two of one topic apart; "" = none */
    char group[32];   /* vLLM: which communicator; "" = not told */
    const char *advice;
    uint64_t lines;
};

#define DOCTOR_SAID_MAX 64

struct doctor_server {
    struct doctor_said said[DOCTOR_SAID_MAX];
    unsigned count;
    uint64_t lines;
    bool overflow; /* there was more to say */
    bool sglang, vllm;
    int tensor_parallel; /* -1 = not told */
    int custom;          /* disable_custom_all_reduce: 1 = off, 0 = on, -1 = not told */
    bool named;          /* a line named the paths in use */
};

/* Take one line or piece of one; any bytes, without zeros, zero-terminated. */
void doctor_server_line(struct doctor_server *s, const char *line);
/* Read it all. */
void doctor_server_read(struct doctor_server *s, FILE *in);
/* Put what was read into findings. `file` is what to call it. */
void doctor_server_tell(struct doctor_list *l, const struct doctor_server *s, const char *file);
/* All of it for a file. 0, or -1 with *e filled when it can't be read. */
int doctor_server_judge(struct doctor_list *l, const char *path, struct error *e);

#endif
