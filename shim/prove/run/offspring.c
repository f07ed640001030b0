/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/offspring.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/prove/run/runfolder.h"

#define MS 1000000ull
#define POLL_MS 50u
#define PARENT_MS 8000u /* `ncclshim run` waits 5 s for workers, then saves its logs */
#define PROCESSES_MAX 65536

/* ---- who came of us ------------------------------------------------------------------------- */

struct process {
    pid_t pid, parent;
    bool ours;
};

static bool read_parent(const char *name, struct process *p)
{
    char path[64], text[512];
    const char *end;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    end = strrchr(text, ')'); /* the name before it may hold anything */
    p->pid = atoi(name);
    p->ours = false;
    /* A zombie is gone already, but for us to wait for. */
    return end && strlen(end) > 4 && end[2] != 'Z' && (p->parent = atoi(end + 4)) > 0;
}

static size_t list_processes(struct process *list)
{
    DIR *d = opendir("/proc");
    struct dirent *entry;
    size_t n = 0;

    while (d && n < PROCESSES_MAX && (entry = readdir(d)))
        if (isdigit((unsigned char)entry->d_name[0]))
            n += read_parent(entry->d_name, &list[n]);
    if (d)
        closedir(d);
    return n;
}

/* Send a signal to all descendants but one; how many there are. */
static size_t signal_descendants(int number, pid_t but)
{
    struct process *list = calloc(PROCESSES_MAX, sizeof(*list));
    size_t n = list ? list_processes(list) : 0, found = 0;
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            bool ours = list[i].parent == getpid();
            for (size_t k = 0; k < n && !ours && !list[i].ours; k++)
                ours = list[k].ours && list[k].pid == list[i].parent;
            more |= ours && !list[i].ours;
            list[i].ours |= ours;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (list[i].ours && list[i].pid != but) {
            found++;
            if (number)
                kill(list[i].pid, number);
        }
    free(list);
    return found;
}

/* ---- signals -------------------------------------------------------------------------------- */

void nursery_open(struct nursery *n)
{
    memset(n, 0, sizeof(*n));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signals_take(&n->wait, &n->before);
}

static void reap_all(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

void nursery_close(struct nursery *n)
{
    for (int i = 0; i < 100 && signal_descendants(SIGKILL, 0); i++) {
        reap_all();
        usleep(20000);
    }
    reap_all();
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    signals_restore(&n->before);
}

/* ---- one command ---------------------------------------------------------------------------- */

static void become(const struct nursery *n, char *const *argv, const int fds[3], pid_t parent)
{
    /* When we are killed, `ncclshim run` hands this on, and the ranks of a bench die with it. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    setpgid(0, 0);
    for (int i = 0; i < 3; i++)
        dup2(fds[i], i);
    signals_restore(&n->before);
    execvp(argv[0], argv);
    fprintf(stderr, "ncclshim: %s: can't be run: %s\n", argv[0], strerror(errno));
    _exit(127);
}

int offspring_start(struct nursery *n, struct offspring *c, char *const *argv, const char *out,
                    const char *err, struct error *e)
{
    int fds[3] = {open("/dev/null", O_RDONLY | O_CLOEXEC),
                  open(out, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666), -1};
    pid_t parent = getpid();

    memset(c, 0, sizeof(*c));
    fds[2] = err ? open(err, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666) : fds[1];
    if (fds[0] < 0 || fds[1] < 0 || fds[2] < 0) {
        error_set(e, fds[1] < 0 ? out : err, 0, "can't be written: %s", strerror(errno));
    } else {
        fflush(NULL);
        c->pid = fork();
        if (c->pid == 0)
            become(n, argv, fds, parent);
        if (c->pid < 0)
            error_set(e, argv[0], 0, "can't be started: %s", strerror(errno));
        else
            setpgid(c->pid, c->pid); /* here and in the child: whoever comes first */
    }
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0 && (i < 2 || err))
            close(fds[i]);
    return c->pid > 0 ? 0 : -1;
}

bool reap_children(pid_t pid, int *status)
{
    bool found = false;
    int s;
    pid_t ended;

    while ((ended = waitpid(-1, &s, WNOHANG)) > 0)
        if (ended == pid) {
            found = true;
            *status = s;
        }
    return found;
}

static void reap(struct offspring *c)
{
    c->over |= reap_children(c->pid, &c->status);
}

static bool asks_us_to_end(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

enum offspring_event offspring_wait(struct nursery *n, struct offspring *c, uint64_t until_ns,
                                    unsigned look_ms)
{
    uint64_t look_ns = monotonic_ns() + look_ms * MS, now;
    siginfo_t info;
    int number;

    for (;;) {
        reap(c);
        if (c->over)
            return OFFSPRING_ENDED;
        now = monotonic_ns();
        if (now >= until_ns)
            return OFFSPRING_LATE;
        if (look_ms && now >= look_ns)
            return OFFSPRING_LOOK;
        number = signals_wait(&n->wait, POLL_MS, &info);
        if (asks_us_to_end(number)) {
            n->stopped = number;
            return OFFSPRING_STOPPED;
        }
    }
}

/* ---- ending --------------------------------------------------------------------------------- */

/* Until all but `but` are gone, or the time is over. */
static bool gone_within(struct nursery *n, struct offspring *c, unsigned ms, pid_t but)
{
    uint64_t until = monotonic_ns() + ms * MS;
    siginfo_t info;
    int number;

    do {
        reap(c);
        if (!signal_descendants(0, but))
            return true;
        number = signals_wait(&n->wait, POLL_MS, &info);
        if (asks_us_to_end(number)) { /* a second ^C: no more grace */
            n->stopped = number;
            return false;
        }
    } while (monotonic_ns() < until);
    return false;
}

void offspring_end(struct nursery *n, struct offspring *c, unsigned grace_ms, bool parent_last)
{
    static const int kindly[] = {SIGINT, SIGTERM};
    pid_t but = parent_last && !c->over ? c->pid : 0;
    bool gone = false;

    /* Each one gets it once, as from a terminal: `run` does not hand on what it has not got. */
    for (size_t i = 0; i < 2 && !gone; i++) {
        signal_descendants(kindly[i], but);
        gone = gone_within(n, c, grace_ms, but);
    }
    for (int i = 0; i < 50 && !gone; i++) {
        signal_descendants(SIGKILL, but);
        gone = gone_within(n, c, 100, but);
    }
    if (but && !c->over && !gone_within(n, c, PARENT_MS, 0)) {
        signal_descendants(SIGKILL, 0);
        gone_within(n, c, 2000, 0);
    }
}

const char *offspring_status(int status, char *buf, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(buf, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(buf, size, "exit code %d", WEXITSTATUS(status));
    return buf;
}
