/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/paths.h"
#include "shim/prove/run/collector.h"
#include "shim/prove/run/heirs.h"
#include "shim/prove/run/launch.h"
#include "shim/prove/run/offspring.h"
#include "shim/prove/run/signals.h"

#define LINGER_NS 5000000000ull /* for workers that end a little after the command itself */
#define LINGER_WITHOUT_LOG_NS 2000000000ull
#define LINGER_POLL_MS 20u

/* Everything of one run that must be let go of at its end. */
struct run {
    const struct watch_options *o;
    struct profile *profile;
    char profile_path[LAUNCH_PATH_MAX]; /* absolute; "none" for none */
    struct launch launch;
    struct runfolder folder;
    char log_base[LAUNCH_PATH_MAX], log_dir[LAUNCH_PATH_MAX];
    int log_fd;
    struct collector *collector;
    uint64_t started_ns;
    pid_t child;
    bool over;   /* the child was waited for */
    int status;  /* its */
    size_t left; /* processes that outlived it */
};

static int load_profile(struct run *r, struct error *e)
{
    const char *name = r->o->profile ? r->o->profile : getenv("NCCLSHIM_PROFILE");

    if (profile_load(name, &r->profile, e) < 0)
        return -1;
    if (!r->profile->path[0]) {
        snprintf(r->profile_path, sizeof(r->profile_path), "none");
        return 0;
    }
    /* What was checked is what they get, wherever they change their folder to. */
    if (!realpath(r->profile->path, r->profile_path))
        return error_set(e, r->profile->path, 0, "can't find the profile again: %s",
                         strerror(errno));
    if (strchr(r->profile_path, '\n'))
        return error_set(e, r->profile->path, 0, "the profile's path has a line break");
    return 0;
}

static int find_log_base(struct run *r, struct error *e)
{
    if (r->o->log_dir &&
        snprintf(r->log_base, sizeof(r->log_base), "%s", r->o->log_dir) < (int)sizeof(r->log_base))
        return 0;
    if (!r->o->log_dir && log_dir_default(r->log_base, sizeof(r->log_base)) == 0)
        return 0;
    return error_set(e, NULL, 0, "the name of the folder for logs is too long");
}

static void describe(struct run *r, struct error *e)
{
    struct summary s = {0};
    struct run_facts f = {.made_by = "run",
                          .command = r->o->command,
                          .profile = r->profile->name,
                          .profile_path = r->profile->path,
                          .log_dir = r->log_dir[0] ? r->log_dir : NULL,
                          .started_ns = r->started_ns,
                          .exit_code = -1};

    if (r->over) {
        f.ended_ns = wall_ns();
        f.signal = WIFSIGNALED(r->status) ? WTERMSIG(r->status) : 0;
        f.exit_code = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : -1;
    }
    if (r->collector) {
        f.processes = collector_processes(r->collector, &f.process_count);
        collector_summarize(r->collector, &s);
    }
    f.simulated = s.simulated;
    if (runfolder_describe(&r->folder, &f, e) < 0)
        r->o->warn(e);
}

static int make_folders(struct run *r, struct error *e)
{
    struct collector_options c = {.log_dir = r->log_dir,
                                  .run = &r->folder,
                                  .keep_all = r->o->keep_all,
                                  .remove = true,
                                  .warn = r->o->warn};

    r->log_fd = private_log_dir(r->log_base, r->log_dir, sizeof(r->log_dir), e);
    if (r->log_fd < 0)
        return -1;
    flock(r->log_fd, LOCK_SH); /* `clean` leaves a folder alone that a collector is at work on */
    if (runfolder_make(&r->folder, r->o->run_dir, r->o->command, e) < 0)
        return -1;
    c.log_fd = r->log_fd;
    r->collector = collector_new(&c, e);
    return r->collector ? 0 : -1;
}

static void reap(struct run *r)
{
    r->over |= reap_children(r->child, &r->status);
}

static void tell_changes(struct run *r)
{
    struct error e;

    if (collector_changed(r->collector))
        describe(r, &e);
}

static void collect_while_it_runs(struct run *r, const sigset_t *wait)
{
    siginfo_t info;
    unsigned ms;

    while (!r->over) {
        ms = collector_round(r->collector);
        tell_changes(r);
        switch (signals_wait(wait, ms, &info)) {
        case 0:
            break;
        case SIGCHLD:
            reap(r);
            break;
        default:
            signals_forward(&info, r->child);
        }
        reap(r); /* SIGCHLDs of several children may arrive as one */
    }
}

/*
 * The command ended, its workers may need a moment more: those that have a log, and those that may
 * yet have one. A signal ends the waiting.
 */
static void linger(struct run *r, const sigset_t *wait)
{
    uint64_t begin = monotonic_ns(), now = begin;
    siginfo_t info;
    unsigned ms;
    int signal;

    for (;;) {
        ms = collector_round(r->collector);
        r->left = collector_living(r->collector, true);
        if (now - begin >= (r->left ? LINGER_NS : LINGER_WITHOUT_LOG_NS))
            break;
        if (r->left == 0 && heirs_of(r->log_dir) == 0)
            break;
        signal = signals_wait(wait, ms < LINGER_POLL_MS ? ms : LINGER_POLL_MS, &info);
        reap(r);
        if (signal && signal != SIGCHLD)
            break;
        now = monotonic_ns();
    }
    collector_finish(r->collector);
    r->left = collector_living(r->collector, false);
    if (r->left == 0)
        r->left = heirs_of(r->log_dir);
}

static void conclude(struct run *r, struct watch_result *result, struct error *e)
{
    snprintf(result->run_path, sizeof(result->run_path), "%s", r->folder.path);
    result->signal = WIFSIGNALED(r->status) ? WTERMSIG(r->status) : 0;
    result->exit_code = result->signal ? 128 + result->signal : WEXITSTATUS(r->status);
    result->left = r->left;
    snprintf(result->log_dir, sizeof(result->log_dir), "%s", r->log_dir);
    collector_summarize(r->collector, &result->summary);
    if (!r->left && rmdir(r->log_dir) == 0) /* not while a log is left in it, or may come */
        r->log_dir[0] = '\0';
    describe(r, e);
}

static void let_go(struct run *r)
{
    collector_free(r->collector);
    if (r->log_fd >= 0)
        close(r->log_fd);
    if (r->folder.fd > 0)
        close(r->folder.fd);
    launch_free(&r->launch);
    profile_free(r->profile);
}

static int start_without_collector(struct run *r, struct error *e)
{
    int fd = log_dir_open(r->log_base, true, e);

    if (fd < 0)
        return -1;
    close(fd);
    if (!realpath(r->log_base, r->log_dir))
        return error_set(e, r->log_base, 0, "can't find the folder for logs: %s", strerror(errno));
    r->launch.log_dir = r->log_dir;
    r->o->started(r->profile, r->log_dir, false);
    fflush(NULL);
    return launch_exec(&r->launch, e);
}

/* Nothing was started: nothing must be left of it. */
static void undo_folders(struct run *r)
{
    if (r->log_dir[0])
        rmdir(r->log_dir);
    if (r->folder.fd > 0) {
        unlinkat(r->folder.fd, "run.json", 0);
        rmdir(r->folder.path);
        if (!r->o->run_dir)
            rmdir(NCCLSHIM_RUNS_DIR); /* fails while it holds other runs */
    }
}

static int start_and_collect(struct run *r, struct watch_result *result, struct error *e)
{
    struct signal_state before;
    sigset_t wait;

    if (make_folders(r, e) < 0) {
        undo_folders(r);
        return -1;
    }
    r->launch.log_dir = r->log_dir;
    r->started_ns = wall_ns();
    describe(r, e);
    r->o->started(r->profile, r->folder.path, true);
    fflush(NULL); /* or the child would print it again */
    signals_take(&wait, &before);
    r->child = launch_child(&r->launch, &before, e);
    if (r->child < 0) {
        signals_restore(&before);
        undo_folders(r);
        return -1;
    }
    collect_while_it_runs(r, &wait);
    linger(r, &wait);
    conclude(r, result, e);
    return 0;
}

int watch(const struct watch_options *o, struct watch_result *result, struct error *e)
{
    struct run *r = calloc(1, sizeof(*r));
    int rc;

    memset(result, 0, sizeof(*result));
    if (!r)
        return error_set(e, NULL, 0, "out of memory");
    r->o = o;
    r->log_fd = -1;
    rc = load_profile(r, e);
    if (!rc)
        rc = launch_prepare(&r->launch, o->command, e);
    if (!rc)
        rc = find_log_base(r, e);
    if (!rc) {
        r->launch.profile = r->profile_path;
        r->launch.strict = o->strict;
        rc = o->no_collect ? start_without_collector(r, e) : start_and_collect(r, result, e);
    }
    let_go(r);
    free(r);
    return rc;
}
