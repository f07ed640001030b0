/* SPDX-License-Identifier: Apache-2.0 */
/* One turn of an ab: start, wait until it is ready, load it, stop it, read the metric. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/prove/ab/ab.h"
#include "shim/prove/run/offspring.h"
#include "shim/prove/ab/ready.h"

#define SECOND 1000000000ull
#define LOOK_MS 50u
#define LAST_BYTES 2000 /* of its output, in which the last line is looked for */
#define LAST_SHOWN 300

struct turn {
    struct ab_result *r;
    struct nursery *n;
    struct ab_turn *t;
    struct offspring run; /* `ncclshim run`, the parent of the command */
    uint64_t until_ns;
};

/* ---- telling what went wrong ---------------------------------------------------------------- */

/*
 * The last line of a file that says anything. What `ncclshim run` itself says comes last, and
 * counts only when the command said nothing.
 */
static void last_line(const char *path, char *buf, size_t size)
{
    char text[LAST_BYTES + 1], *save = NULL;
    FILE *in = fopen(path, "re");
    bool theirs = false;

    buf[0] = '\0';
    if (!in)
        return;
    if (fseek(in, -LAST_BYTES, SEEK_END) < 0)
        rewind(in);
    text[fread(text, 1, LAST_BYTES, in)] = '\0';
    fclose(in);
    for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
        bool own = !strncmp(line, "ncclshim: ", 10);
        if (line[strspn(line, " ")] && !(own && theirs))
            snprintf(buf, size, "%s", line);
        theirs |= !own;
    }
}

static int turn_failed(const struct turn *x, const char *output, const char *what, struct error *e)
{
    char last[LAST_SHOWN];
    const struct ab_result *r = x->r;

    last_line(output, last, sizeof(last));
    return error_set(e, output, 0, "turn %zu of %zu (%s) %s%s%s", (size_t)(x->t - r->turns) + 1,
                     r->turn_count, r->labels[x->t->side], what, last[0] ? "; its last line: " : "",
                     last);
}

static int turn_late(const struct turn *x, const char *output, const char *waiting_for,
                     struct error *e)
{
    char what[160];

    snprintf(what, sizeof(what), "was ended: %u s were over (--timeout) while waiting for %s",
             x->r->o.timeout_s, waiting_for);
    return turn_failed(x, output, what, e);
}

static int turn_stopped(const struct turn *x, struct error *e)
{
    x->r->stopped = x->n->stopped;
    return error_set(
        e, NULL, 0, "stopped by signal %d in turn %zu of %zu; what was recorded is in %s",
        x->n->stopped, (size_t)(x->t - x->r->turns) + 1, x->r->turn_count, x->r->folder.path);
}

/* ---- starting ------------------------------------------------------------------------------- */

static int start_run(struct turn *x, struct error *e)
{
    const struct ab_options *o = &x->r->o;
    static char self[PATH_MAX];
    char *head[] = {
        self,           (char[]){"run"}, (char[]){"-p"},     (char *)o->profiles[x->t->side],
        (char[]){"-o"}, x->t->run_dir,   (char[]){"--keep"}, (char[]){"all"}};
    size_t used = o->keep_all ? 8 : 6, count = 0;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char **argv;
    int rc;

    self[n > 0 ? n : 0] = '\0';
    while (o->command[count])
        count++;
    argv = calloc(used + count + 2, sizeof(*argv));
    if (!argv)
        return error_set(e, NULL, 0, "out of memory");
    memcpy(argv, head, used * sizeof(*argv));
    argv[used] = (char[]){"--"};
    memcpy(argv + used + 1, o->command, count * sizeof(*argv));
    rc = offspring_start(x->n, &x->run, argv, x->t->output, NULL, e);
    free(argv);
    return rc;
}

/* ---- a command that ends by itself ---------------------------------------------------------- */

static int wait_for_end(struct turn *x, struct error *e)
{
    char status[80], what[120];

    switch (offspring_wait(x->n, &x->run, x->until_ns, 0)) {
    case OFFSPRING_STOPPED:
        return turn_stopped(x, e);
    case OFFSPRING_ENDED:
        if (WIFEXITED(x->run.status) && WEXITSTATUS(x->run.status) == 0)
            return 0;
        snprintf(what, sizeof(what), "ended with %s",
                 offspring_status(x->run.status, status, sizeof(status)));
        return turn_failed(x, x->t->output, what, e);
    default:
        return turn_late(x, x->t->output, "its end", e);
    }
}

/* ---- a server ------------------------------------------------------------------------------- */

static int ended_early(struct turn *x, const char *when, struct error *e)
{
    char status[80], what[160];

    snprintf(what, sizeof(what), "ended with %s %s",
             offspring_status(x->run.status, status, sizeof(status)), when);
    return turn_failed(x, x->t->output, what, e);
}

static int wait_until_ready(struct turn *x, struct ready *ready, struct error *e)
{
    enum offspring_event event;

    ready_watch(ready, x->t->output);
    for (;;) {
        event = offspring_wait(x->n, &x->run, x->until_ns, LOOK_MS);
        if (ready_look(ready))
            return 0;
        if (event == OFFSPRING_STOPPED)
            return turn_stopped(x, e);
        if (event == OFFSPRING_ENDED)
            return ended_early(x, "before any line of its output matched --ready", e);
        if (event == OFFSPRING_LATE)
            return turn_late(x, x->t->output, "a line that matches --ready", e);
    }
}

/* The load runs beside the server: whichever ends first is of interest. */
static int wait_for_load(struct turn *x, struct offspring *load, struct error *e)
{
    enum offspring_event event;
    char status[80], what[160];

    for (;;) {
        event = offspring_wait(x->n, load, x->until_ns, LOOK_MS);
        if (event == OFFSPRING_STOPPED)
            return turn_stopped(x, e);
        if (event == OFFSPRING_ENDED && WIFEXITED(load->status) && WEXITSTATUS(load->status) == 0)
            return 0;
        if (event == OFFSPRING_ENDED) {
            snprintf(what, sizeof(what), "failed: the load command ended with %s",
                     offspring_status(load->status, status, sizeof(status)));
            return turn_failed(x, x->t->load, what, e);
        }
        if (event == OFFSPRING_LATE)
            return turn_late(x, x->t->load, "the load command", e);
        /* Not waitpid: the loop above reaps it, but keeps the status of the load alone. */
        if (kill(x->run.pid, 0) < 0 && errno == ESRCH) {
            x->run.over = true;
            return turn_failed(x, x->t->output,
                               "failed: the server ended while the load command ran", e);
        }
    }
}

static int load_it(struct turn *x, struct error *e)
{
    char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char *)x->r->o.load, NULL};
    struct offspring load;

    if (offspring_start(x->n, &load, argv, x->t->load, NULL, e) < 0)
        return -1;
    return wait_for_load(x, &load, e);
}

/* ---- the whole ------------------------------------------------------------------------------ */

int ab_take_turn(struct ab_result *r, struct nursery *n, struct ready *ready, size_t turn,
                 struct error *e)
{
    struct turn x = {.r = r, .n = n, .t = &r->turns[turn]};
    uint64_t begin = monotonic_ns();
    int rc = start_run(&x, e);

    if (rc < 0)
        return -1;
    x.until_ns = begin + r->o.timeout_s * SECOND;
    if (!ready)
        rc = wait_for_end(&x, e);
    else if ((rc = wait_until_ready(&x, ready, e)) == 0)
        rc = load_it(&x, e);
    /* Whatever is left of it: the server, what it detached, the load command of a failed turn. */
    offspring_end(n, &x.run, r->o.grace_s * 1000, true);
    if (rc == 0 && n->stopped)
        rc = turn_stopped(&x, e);
    if (rc == 0 && r->has_metric)
        rc = metric_in_file(&r->metric, ready ? x.t->load : x.t->output, &x.t->metric, e);
    x.t->took_ns = monotonic_ns() - begin;
    x.t->done = rc == 0;
    return rc;
}
