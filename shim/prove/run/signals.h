/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals of the launcher. It takes them one by one with sigtimedwait while it collects, and hands
 * on those that the command has not got itself:
 *
 * - from the terminal (^C, ^\, hang-up): the kernel sends them to the whole foreground group, the
 *   command among it, so they are not sent a second time: many servers take a second ^C as
 *   "at once". (A hang-up goes to the session's leader alone; where that is us, it is handed on.)
 * - from kill(): handed on, since most senders (a supervisor, docker stop) name one process. One
 *   that names the whole group reaches the command twice; the same signal is therefore handed
 *   on only once within half a second.
 *
 * What the caller ignored (nohup) stays ignored, here and in the command.
 */
#ifndef NCCLSHIM_PROVE_SIGNALS_H
#define NCCLSHIM_PROVE_SIGNALS_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct signal_state {
    sigset_t mask;
    struct sigaction chld, pipe;
};

/* Take over: block what is to be waited for, into *wait; what was before goes to *before. */
void signals_take(sigset_t *wait, struct signal_state *before);
/* As it was: in the child before exec. */
void signals_restore(const struct signal_state *before);

/*
 * Wait at most `ms` for a signal of the set; 0 when none came, else its number, and *info filled.
 */
int signals_wait(const sigset_t *wait, unsigned ms, siginfo_t *info);

/* Hand a signal on to the child when it has not got it itself. */
void signals_forward(const siginfo_t *info, pid_t child);

#endif
