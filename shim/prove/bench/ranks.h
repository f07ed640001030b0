/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the rank processes of a bench and watching them: fork and exec of this very program, so
 * that nothing of CUDA is inherited and the settings are read anew. Each runs in a process group
 * of ours and dies with us (PR_SET_PDEATHSIG). The first that fails, or no progress of any for the
 * time limit, ends all of them; when ranks_run returns, none is left.
 */
#ifndef NCCLSHIM_PROVE_RANKS_H
#define NCCLSHIM_PROVE_RANKS_H

#include "shim/prove/bench/bench_share.h"

enum ranks_end {
    RANKS_GOOD,
    RANKS_WRONG,  /* a result was wrong */
    RANKS_HUNG,   /* no progress within the limit */
    RANKS_FAILED, /* a rank failed or was killed */
    RANKS_STOPPED, /* we got a signal: `signal` */
};

/* How the ranks' environment differs from ours. */
struct ranks_env {
    const char *preload; /* LD_PRELOAD, NULL = as it is */
    const char *profile; /* NCCLSHIM_PROFILE: a path or "none"; with preload only */
    const char *log_dir; /* stamps go there; NULL = NCCLSHIM_LOG=off. With preload only */
};

struct ranks_result {
    enum ranks_end end;
    int signal;
    struct error error; /* why, for all ends but RANKS_GOOD */
};

/*
 * Start those ranks of the share that are ours and wait for their end. 0 when they were started
 * (*r tells what came of them), or -1 with *e filled.
 */
int ranks_run(struct bench_share *share, int fd, const struct ranks_env *env,
              struct ranks_result *r, struct error *e);

/* The started process: `--rank-of FD:RANK`. Returns its exit code. */
int ranks_be_one(const char *word);

#endif
