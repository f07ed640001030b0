/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/signals.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/prove/run/runfolder.h"

static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
#define PASSED (sizeof(passed) / sizeof(passed[0]))
#define AGAIN_NS 500000000ull

void signals_take(sigset_t *wait, struct signal_state *before)
{
    struct sigaction a;

    sigemptyset(wait);
    sigaddset(wait, SIGCHLD);
    for (size_t i = 0; i < PASSED; i++)
        if (sigaction(passed[i], NULL, &a) == 0 && a.sa_handler != SIG_IGN)
            sigaddset(wait, passed[i]);
    sigprocmask(SIG_BLOCK, wait, &before->mask);
    /* Inherited as ignored, SIGCHLD would make the kernel throw the exit code away. */
    memset(&a, 0, sizeof(a));
    a.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &a, &before->chld);
    /* A reader of our stderr that went away must not end the collecting. */
    a.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &a, &before->pipe);
}

void signals_restore(const struct signal_state *before)
{
    sigaction(SIGCHLD, &before->chld, NULL);
    sigaction(SIGPIPE, &before->pipe, NULL);
    sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

int signals_wait(const sigset_t *wait, unsigned ms, siginfo_t *info)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000L};
    int number = sigtimedwait(wait, info, &t);

    return number > 0 ? number : 0;
}

void signals_forward(const siginfo_t *info, pid_t child)
{
    static uint64_t last_ns[NSIG];
    uint64_t now = monotonic_ns();

    /* The terminal's: the command has it too. But a hang-up goes to the session's leader alone. */
    if (info->si_code == SI_KERNEL && (info->si_signo != SIGHUP || getsid(0) != getpid()))
        return;
    /* The command's own, which signals its group. (0 is a sender outside of our container.) */
    if (info->si_code == SI_USER && info->si_pid == child)
        return;
    if (last_ns[info->si_signo] && now - last_ns[info->si_signo] < AGAIN_NS)
        return;
    last_ns[info->si_signo] = now;
    kill(child, info->si_signo);
}
