/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of decode_server. */
#ifndef NCCLSHIM_EXAMPLES_DECODE_OPTIONS_H
#define NCCLSHIM_EXAMPLES_DECODE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* The pattern's sums (below 16 a rank) stay exact in bf16, which holds every integer up to 256. */
#define MAX_RANKS 16

struct options {
    int ranks; /* 0 = decide by the GPUs at hand */
    bool one_process;
    bool one_gpu;
    int requests;
    int steps; /* decode steps a request */
    int calls; /* all-reduces in the graph of one step */
    size_t bytes;
    int prefill_calls;
    size_t prefill_bytes;
    int compute_us; /* kernel before each captured all-reduce; 0 = none */
    int delay_rank; /* -1 = nobody */
    int delay_us;
    bool mixed;          /* an eager all-reduce right behind each graph launch, without waiting */
    bool hold;           /* serve until told to stop */
    bool die_mid_replay; /* SIGKILL in the middle of a replay */
    bool timing;
    bool probe;
    int limit_s; /* give up after so many seconds */

    int worker;   /* rank of this process when the server started it; else -1 */
    int share_fd; /* of a worker: the memory that all ranks share */
};

/*
 * Fill *opt. 0 to go on; otherwise the exit code of a program that must end now (help: printed on
 * stdout, 0; a wrong call: printed on stderr, 2) plus 1.
 */
int options_parse(struct options *opt, int argc, char **argv);

#endif
