/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a command under the shim: everything is checked first, so that what can go wrong goes
 * wrong before a server is started, not as a line per process of it.
 */
#ifndef NCCLSHIM_PROVE_LAUNCH_H
#define NCCLSHIM_PROVE_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "shim/base/error.h"

#define LAUNCH_PATH_MAX 4096

struct launch {
    char *const *command;          /* NULL-terminated; the caller's */
    char program[LAUNCH_PATH_MAX]; /* what will be executed */
    char shim[LAUNCH_PATH_MAX];    /* libncclshim.so */
    char *preload;                 /* LD_PRELOAD for it; launch_free */
    const char *profile;           /* for NCCLSHIM_PROFILE */
    const char *log_dir;           /* for NCCLSHIM_LOG_DIR */
    bool strict;
};

/* Find the program and the shim, and make up LD_PRELOAD. 0, or -1 with *e filled. */
int launch_prepare(struct launch *l, char *const *command, struct error *e);
void launch_free(struct launch *l);

/* Set the variables in this process's environment. 0, or -1 with *e filled. */
int launch_environment(const struct launch *l, struct error *e);

/* Replace this process by the command; returns only on failure, -1 with *e filled. */
int launch_exec(const struct launch *l, struct error *e);

/*
 * Start the command as a child in our own process group, so that the terminal's signals reach both,
 * with the signal mask and the dispositions in `before`. Its pid, or -1 with *e filled.
 */
struct signal_state;
pid_t launch_child(const struct launch *l, const struct signal_state *before, struct error *e);

/*
 * LD_PRELOAD with the shim in it: a sanitizer's runtime that is in the list stays first, since it
 * ends the process otherwise; then the shim, then all others in their order. malloc'ed; NULL when
 * memory is out. `list` may be NULL.
 */
char *preload_with(const char *list, const char *shim);

/*
 * Make a new private folder (mode 0700) `run-XXXXXXXX` in the folder `base`, which is made when it
 * is missing; its path in buf. Returns its descriptor, or -1 with *e filled.
 */
int private_log_dir(const char *base, char *buf, size_t size, struct error *e);

#endif
