/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "shim/base/paths.h"
#include "shim/prove/run/collector.h"
#include "shim/prove/run/signals.h"

#define QUIET_NS 5000000000ull /* until_ended: a server's processes do not all come and go at once */

struct session {
    const struct gather_options *o;
    struct runfolder folder;
    char log_dir[4096];
    int log_fd;
    uint64_t started_ns; /* 0: the run was begun by another, who said when */
    uint64_t living_ns;  /* when a process was last seen to write; 0: none yet */
    struct collector *collector;
};

/* Where the logs are: said, or left by the collector before us, or the usual place. */
static int find_logs(struct session *s, const char *recalled, struct error *e)
{
    int n;

    if (s->o->log_dir)
        n = snprintf(s->log_dir, sizeof(s->log_dir), "%s", s->o->log_dir);
    else if (recalled[0])
        n = snprintf(s->log_dir, sizeof(s->log_dir), "%s", recalled);
    else
        n = log_dir_default(s->log_dir, sizeof(s->log_dir));
    if (n < 0 || n >= (int)sizeof(s->log_dir))
        return error_set(e, NULL, 0, "the name of the folder for logs is too long");
    /* A side-car may be there before its server; --once finds what is there or says so. */
    s->log_fd = log_dir_open(s->log_dir, !s->o->once && access(s->log_dir, F_OK) < 0, e);
    if (s->log_fd < 0)
        return -1;
    flock(s->log_fd, LOCK_SH); /* `clean` leaves a folder alone that a collector is at work on */
    return 0;
}

static int open_session(struct session *s, struct error *e)
{
    static char *const name[] = {"collect", NULL};
    char recalled[4096] = "";
    uint64_t started_ns = 0;

    if (s->o->run_dir && runfolder_open(&s->folder, s->o->run_dir, e) < 0)
        return -1;
    if (s->o->run_dir && faccessat(s->folder.fd, "run.json", F_OK, 0) == 0 &&
        runfolder_recall(&s->folder, recalled, sizeof(recalled), &started_ns, e) < 0)
        return -1;
    if (find_logs(s, recalled, e) < 0)
        return -1;
    if (!s->o->run_dir && runfolder_make(&s->folder, NULL, name, e) < 0)
        return -1;
    s->started_ns = started_ns ? 0 : wall_ns();
    return 0;
}

static void describe(struct session *s, bool ended)
{
    struct summary sum = {0};
    struct error e;
    struct run_facts f = {.made_by = s->started_ns ? "collect" : NULL,
                          .log_dir = s->log_dir,
                          .started_ns = s->started_ns,
                          .ended_ns = ended ? wall_ns() : 0,
                          .exit_code = -1};

    f.processes = collector_processes(s->collector, &f.process_count);
    if (collector_summarize(s->collector, &sum) == 0)
        f.simulated = sum.simulated;
    if (runfolder_describe(&s->folder, &f, &e) < 0)
        s->o->warn(&e);
}

/* Servers were running, and for a while now none has been. What ended before does not count: its
 * log may be left from the day before, and the server that is waited for still be loading. */
static bool all_ended(struct session *s)
{
    uint64_t now = monotonic_ns();

    if (collector_living(s->collector, false))
        s->living_ns = now;
    return s->living_ns && now - s->living_ns >= QUIET_NS;
}

static void collect_until_told(struct session *s)
{
    struct signal_state before;
    siginfo_t info;
    sigset_t wait;
    unsigned ms;
    int signal;

    signals_take(&wait, &before);
    do {
        ms = collector_round(s->collector);
        if (collector_changed(s->collector))
            describe(s, false);
        signal = s->o->once || (s->o->until_ended && all_ended(s)) ? SIGTERM
                                                                  : signals_wait(&wait, ms, &info);
    } while (signal != SIGINT && signal != SIGTERM && signal != SIGHUP && signal != SIGQUIT);
    collector_finish(s->collector);
    describe(s, true);
}

static int collect(struct session *s, struct gather_result *r, struct error *e)
{
    struct collector_options c = {.log_dir = s->log_dir,
                                  .log_fd = s->log_fd,
                                  .run = &s->folder,
                                  .keep_all = s->o->keep_all,
                                  .remove = !s->o->leave_logs,
                                  .pid = s->o->pid,
                                  .interval_ms = s->o->interval_ms,
                                  .warn = s->o->warn};

    s->collector = collector_new(&c, e);
    if (!s->collector)
        return -1;
    describe(s, false);
    s->o->started(s->log_dir, s->folder.path);
    collect_until_told(s);
    snprintf(r->run_path, sizeof(r->run_path), "%s", s->folder.path);
    snprintf(r->log_dir, sizeof(r->log_dir), "%s", s->log_dir);
    r->went_on = s->started_ns == 0;
    r->left = collector_living(s->collector, false);
    return collector_summarize(s->collector, &r->summary);
}

int gather(const struct gather_options *o, struct gather_result *r, struct error *e)
{
    struct session *s = calloc(1, sizeof(*s));
    int rc;

    memset(r, 0, sizeof(*r));
    if (!s)
        return error_set(e, NULL, 0, "out of memory");
    s->o = o;
    s->log_fd = -1;
    s->folder.fd = -1;
    rc = open_session(s, e);
    if (!rc)
        rc = collect(s, r, e);
    collector_free(s->collector);
    if (s->log_fd >= 0)
        close(s->log_fd);
    if (s->folder.fd >= 0)
        close(s->folder.fd);
    free(s);
    return rc;
}
