/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few lines the shim may print in the server's process: each kind once, on stderr, in one
 * write, so that it never tears another line. No stdio, no lock, no allocation.
 */
#ifndef NCCLSHIM_PRELOAD_SAY_H
#define NCCLSHIM_PRELOAD_SAY_H

enum say_kind {
    SAY_PROFILE,    /* the profile is bad: nothing was set */
    SAY_NO_NCCL,    /* no real NCCL found */
    SAY_NO_FN,      /* this NCCL lacks a function that was called */
    SAY_NO_LOG,     /* no log can be written */
    SAY_NO_STAMP,   /* calls are counted, not timed */
    SAY_STRICT,     /* NCCLSHIM_STRICT=1 made a communicator fail */
    SAY_COMM,       /* [comm] settings that could not be given */
    SAY_KIND_COUNT
};

/* "ncclshim: SENTENCE\n", the first time for this kind in this process; else nothing. */
void say_once(enum say_kind kind, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A forked child is a process of its own. */
void say_forget(void);

#endif
