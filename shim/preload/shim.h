/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the shim in this process: what the constructor found, and the log. Everything else
 * belongs to the room's other files.
 */
#ifndef NCCLSHIM_PRELOAD_SHIM_H
#define NCCLSHIM_PRELOAD_SHIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/log/write/writer.h"
#include "shim/profile/profile.h"

struct shim {
    bool preloaded;                /* in the process from its start: may set variables */
    bool log_wanted;               /* NCCLSHIM_LOG is not `off` */
    bool refuse;                   /* NCCLSHIM_STRICT=1 and the profile is bad */
    const struct profile *profile; /* never NULL after the constructor: `none` has nothing set */
    struct log_options log_options;
    char bad_profile[640];         /* why the profile was not applied; "" = it was */
};
extern struct shim shim;

/*
 * The log of this process, opened at the first call (the first communicator, or the first of NCCL's
 * plugin doors that is entered). NULL when it is not wanted or could not be opened (said once).
 */
struct log_writer *shim_log(void);

/* The log if it is open by now; never opens it. */
struct log_writer *shim_log_if_open(void);

/* Called once when the log has been opened; the plugin room sets it before the constructor runs. */
extern void (*shim_on_log_open)(struct log_writer *log);

/*
 * For the check at exit: did any call come through a wrapper, and did NCCL begin its work (it
 * entered one of its plugin doors)? NCCL at work without a call through us was not intercepted.
 */
extern _Atomic int shim_was_called, shim_nccl_began;

/* true in the wrappers' own calls into NCCL: what NCCL calls of itself is not the program's. */
extern __thread unsigned shim_inside __attribute__((tls_model("initial-exec")));

/* Write the notes that tell of a library, once; check the profile's `nccl` condition against it. */
struct nccl_lib;
void shim_note_library(struct nccl_lib *lib);

#endif
