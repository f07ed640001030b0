/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that `ab` and `tune` start one after the other: each in a process group of its own, its
 * output in a file, its end within a time limit, and nothing of it left behind.
 *
 * The caller becomes a subreaper, so that what a server detaches from itself comes to us when its
 * parent ends, and can be found and ended. (`run` does not do that, for the program's sake: see
 * docs/run.md. Here programs are started to be measured and thrown away.) One thread; the signals
 * are blocked meanwhile and taken one by one.
 */
#ifndef NCCLSHIM_PROVE_OFFSPRING_H
#define NCCLSHIM_PROVE_OFFSPRING_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/base/error.h"
#include "shim/prove/run/signals.h"

/* What holds for all of them. */
struct nursery {
    sigset_t wait;
    struct signal_state before;
    int stopped; /* the signal that we were asked to end by; 0 = none */
};

void nursery_open(struct nursery *n);
/* Ends whatever is left, and gives the signals back. */
void nursery_close(struct nursery *n);

struct offspring {
    pid_t pid;
    bool over;
    int status; /* of waitpid, once it is over */
};

/*
 * Start argv[0] with standard output in the file `out` and errors in `err` (NULL: the same file);
 * standard input is empty. 0, or -1 with *e filled.
 */
int offspring_start(struct nursery *n, struct offspring *c, char *const *argv, const char *out,
                    const char *err, struct error *e);

enum offspring_event { OFFSPRING_ENDED, OFFSPRING_LATE, OFFSPRING_STOPPED, OFFSPRING_LOOK };

/*
 * Wait until it ends, until monotonic_ns() is `until_ns`, or until a signal asks us to end. With
 * `look_ms` it returns OFFSPRING_LOOK after so long, for a look at its output.
 */
enum offspring_event offspring_wait(struct nursery *n, struct offspring *c, uint64_t until_ns,
                                    unsigned look_ms);

/*
 * End it and all that came of it: SIGINT, after grace_ms SIGTERM, after as long again SIGKILL. `c`
 * itself is left to end by itself once its descendants are gone when `parent_last` is set
 * (`ncclshim run` still has logs to save then), and killed when it does not.
 */
void offspring_end(struct nursery *n, struct offspring *c, unsigned grace_ms, bool parent_last);

/*
 * Take the end of every child, adopted ones as well: as the first process of a container we get
 * orphans, too. True when `pid` was among them; then *status is filled.
 */
bool reap_children(pid_t pid, int *status);

/* "exit code 3", "signal 9 (Killed)" */
const char *offspring_status(int status, char *buf, size_t size);

#endif
