/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators, from birth to death. A communicator has a counting number of ours, never its
 * address: NCCL reuses addresses. What is known of it was learnt from the calls that made it; a
 * communicator is never asked, since it may still be in progress.
 *
 * Look-up is lock-free and safe against births and deaths on other threads. Births and deaths may
 * happen on any thread; neither is on the call path.
 */
#ifndef NCCLSHIM_PRELOAD_COMM_H
#define NCCLSHIM_PRELOAD_COMM_H

#include <stdatomic.h>
#include <stdbool.h>

#include "shim/preload/config.h"
#include "shim/preload/gpu.h"
#include "shim/preload/real.h"
#include "shim/preload/shim.h"

#define COMM_LIVE_MAX 4096 /* living at once; further ones are passed through unseen */
#define COMM_STREAMS 8     /* streams of one communicator with a start slot of their own */

/* NCCL's choice for one call, as its profiler door tells it. */
struct choice {
    uint8_t algo, proto, channels, warps; /* NCCLSHIM_NO_CHOICE / 0 = not told */
};

struct comm {
    _Atomic int state; /* 0 free, 1 taken */
    struct nccl_lib *lib;          /* NULL: only its plugin doors were seen, and no NCCL is visible */
    struct gpu *gpu;               /* NULL: its calls are counted, not timed */
    struct ncclshim_comm *entry;   /* in the log; NULL when there is no log */
    uint32_t number;
    _Atomic int ranks, rank;       /* -1 until learnt */
    int index;                     /* n-th communicator of the process */
    _Atomic bool nonblocking;
    _Atomic int door;              /* 1: NCCL's plugin doors may yet tell of its birth; 2: they have */
    _Atomic int without_handle;    /* known from a plugin door alone */
    bool symmetric;                /* has symmetric windows: NCCL's kernels may be launched dependently */
    _Atomic int used;              /* bit 0 eagerly, bit 1 under capture */
    _Atomic uint32_t eager_calls;  /* for sampling */
    struct {
        _Atomic(cudaStream_t) stream;
        _Atomic int state; /* 0 free, 1 being filled, 2 in use */
        CUdeviceptr start;
    } streams[COMM_STREAMS];
    struct config_copy config;     /* what it was made with, for children that inherit */
    char name[64];
    struct choice choice;          /* of the call under way on the launching thread */
};

/* The communicator of a handle, or NULL when its birth did not come through us. */
struct comm *comm_find(ncclComm_t handle);

/* A handle that we never saw being made: counted from now on, flagged ADOPTED. NULL without a log. */
struct comm *comm_adopt(ncclComm_t handle, struct nccl_lib *lib);

/* One communicator on its way into life, between the wrapper's entry and NCCL's answer. */
struct birth {
    struct comm *comm;           /* NULL when there is no place for one more */
    ncclComm_t *out;             /* where NCCL puts the handle */
    struct config_copy config;   /* handed to NCCL when use_config */
    bool use_config;
    bool grouped;                /* the handle is read at the group's end */
    const struct comm_section *section; /* named section that matched */
};

struct birth_facts {
    struct nccl_lib *lib;
    int ranks, rank;             /* -1 = not known */
    const ncclUniqueId *id;      /* NULL = none */
    struct comm *parent;         /* NULL = none */
    bool has_parent;             /* there is a parent, though we may not know it */
    const void *config;          /* the caller's; NULL */
    bool takes_config;           /* a config can be handed to NCCL with this function */
};

/* Before the real call: prepares GPU and log, decides the config. */
void birth_begin(struct birth *b, const struct birth_facts *f, ncclComm_t *out);
/* After it (or, in a group, after the outermost end). No handle and success: no child (no colour). */
void birth_end(struct birth *b, ncclResult_t result);

/* Destroyed, aborted or revoked: the handle is no longer ours. */
void comm_end(ncclComm_t handle);

/* The birth under way on this thread: NCCL's plugin doors ask for it. NULL = none. */
extern __thread struct birth *birth_current __attribute__((tls_model("initial-exec")));

/*
 * A communicator that NCCL's plugins tell of: the one being born on this thread, else one being
 * born elsewhere with this rank and size, else a new one that came to life without us (NULL when
 * there is no log).
 */
struct comm *comm_for_plugin(uint64_t hash, const char *name, int nodes, int ranks, int rank);

/* At the process's end: sections of the profile that no communicator was like, if there were any. */
void comm_tell_unused_sections(struct log_writer *log);

void comm_forget(void); /* a forked child */

#endif
