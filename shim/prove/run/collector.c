/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/collector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/grow.h"
#include "shim/base/paths.h"
#include "shim/prove/run/intake.h"

#define ALIVE_NS 250000000ull /* for writers that are gone */
#define SAVE_NS                                                                             \
    10000000000ull      /* what a collector that is killed loses of the statistics: nothing \
                           but the work of reading what is still in the rings again */
#define INTERVAL_MS 50u /* between looks for new logs, at most */
#define OPEN_TRIES 40   /* scans: a log is no log yet while its header is being written */

/* A name that could not be opened, and how often that was tried. */
struct refused {
    char *name;
    int tries;
};

struct collector {
    struct collector_options o;
    struct intake_place place;
    struct intake **intakes;
    char **stems; /* of the same, for run.json */
    size_t count, cap;
    struct refused *refused;
    size_t refused_count;
    bool changed;
};

struct collector *collector_new(const struct collector_options *o, struct error *e)
{
    struct collector *c = calloc(1, sizeof(*c));

    if (c)
        c->place.batch = malloc(INTAKE_BATCH * sizeof(*c->place.batch));
    if (!c || !c->place.batch) {
        free(c);
        error_set(e, NULL, 0, "out of memory");
        return NULL;
    }
    c->o = *o;
    c->place.log_fd = o->log_fd;
    c->place.log_path = o->log_dir;
    c->place.run_fd = o->run->fd;
    c->place.run_path = o->run->path;
    c->place.keep_all = o->keep_all;
    c->place.remove = o->remove;
    c->place.warn = o->warn;
    return c;
}

void collector_free(struct collector *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++)
        intake_free(c->intakes[i]);
    for (size_t i = 0; i < c->refused_count; i++)
        free(c->refused[i].name);
    free(c->intakes);
    free(c->stems);
    free(c->refused);
    free(c->place.batch);
    free(c);
}

static bool known(const struct collector *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (!strcmp(c->intakes[i]->name, name))
            return true;
    return false;
}

/* Say once, after some tries, that a file is no log. Those given up are never opened again. */
static struct refused *refusal_of(struct collector *c, const char *name)
{
    struct refused *r;

    for (size_t i = 0; i < c->refused_count; i++)
        if (!strcmp(c->refused[i].name, name))
            return &c->refused[i];
    r = GROW(c->refused, c->refused_count);
    if (!r)
        return NULL;
    r->name = strdup(name);
    if (!r->name) {
        c->refused_count--;
        return NULL;
    }
    return r;
}

/* A process that runs one program after the other (exec) leaves a log of each. */
static void note_followed(struct collector *c, struct intake *s)
{
    for (size_t i = 0; i < c->count && s->f; i++) {
        struct intake *other = c->intakes[i];
        if (!other->f)
            continue;
        other->followed |= log_is_followed(other->f, s->f);
        s->followed |= log_is_followed(s->f, other->f);
    }
}

static int append(struct collector *c, struct intake *s)
{
    size_t cap = c->cap ? 2 * c->cap : 16;
    void *p;

    if (c->count == c->cap) {
        if (!(p = realloc(c->intakes, cap * sizeof(*c->intakes))))
            return -1;
        c->intakes = p;
        if (!(p = realloc(c->stems, cap * sizeof(*c->stems))))
            return -1;
        c->stems = p;
        c->cap = cap;
    }
    note_followed(c, s);
    c->intakes[c->count] = s;
    c->stems[c->count++] = s->stem;
    c->changed = true;
    return 0;
}

/* With --pid: is this log that of the process asked for? */
static bool wanted(const struct collector *c, struct intake *s)
{
    if (!c->o.pid)
        return true;
    if (s->f && s->f->head.pid == (uint32_t)c->o.pid)
        return true;
    return s->f && log_writer_find(s->f, &s->pid) == LOG_WRITER_LIVES && s->pid == c->o.pid;
}

static void try_open(struct collector *c, const char *name)
{
    struct refused *r = NULL;
    struct intake *s;
    struct error e;

    for (size_t i = 0; i < c->refused_count; i++)
        if (!strcmp(c->refused[i].name, name))
            r = &c->refused[i];
    if (r && r->tries >= OPEN_TRIES)
        return;
    s = intake_open(&c->place, name, &e);
    if (s && wanted(c, s) && append(c, s) == 0) {
        if (r) { /* its header was still being written */
            free(r->name);
            *r = c->refused[--c->refused_count];
        }
        return;
    }
    r = refusal_of(c, name);
    if (r)
        r->tries = s ? OPEN_TRIES : r->tries + 1;
    if (!s && r && r->tries == OPEN_TRIES)
        c->o.warn(&e);
    intake_free(s);
}

static void scan(struct collector *c)
{
    int fd = openat(c->o.log_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((entry = readdir(d)))
        if (is_log_file_name(entry->d_name) && strlen(entry->d_name) < 250 &&
            !known(c, entry->d_name))
            try_open(c, entry->d_name);
    closedir(d);
}

unsigned collector_round(struct collector *c)
{
    unsigned wait = c->o.interval_ms ? c->o.interval_ms : INTERVAL_MS, w;

    scan(c); /* each time: a small ring that is new fills within a tenth of a second */
    for (size_t i = 0; i < c->count; i++) {
        struct intake *s = c->intakes[i];
        if (s->state != INTAKE_ACTIVE)
            continue;
        w = intake_drain(s, &c->place, false);
        wait = w < wait ? w : wait;
        intake_check(s, &c->place, ALIVE_NS);
        c->changed |= s->state != INTAKE_ACTIVE;
        if (s->state == INTAKE_ACTIVE && monotonic_ns() - s->saved_ns >= SAVE_NS)
            intake_save(s, &c->place, false);
    }
    return wait;
}

void collector_finish(struct collector *c)
{
    scan(c);
    for (size_t i = 0; i < c->count; i++) {
        struct intake *s = c->intakes[i];
        if (s->state != INTAKE_ACTIVE)
            continue;
        intake_drain(s, &c->place, false);
        intake_check(s, &c->place, 0);
        if (s->state == INTAKE_ACTIVE)
            intake_save(s, &c->place, false);
    }
    c->changed = true;
    /* Files that never became logs were given several scans; this is the last, so say it now. */
    for (size_t i = 0; i < c->refused_count; i++) {
        struct error e;
        if (c->refused[i].tries >= OPEN_TRIES)
            continue;
        error_set(&e, c->refused[i].name, 0, "not a log that can be read: left out");
        c->o.warn(&e);
        c->refused[i].tries = OPEN_TRIES;
    }
}

size_t collector_living(struct collector *c, bool ask)
{
    size_t n = 0;

    for (size_t i = 0; i < c->count; i++) {
        if (ask)
            intake_check(c->intakes[i], &c->place, 0);
        n += c->intakes[i]->state == INTAKE_ACTIVE;
    }
    return n;
}

bool collector_changed(struct collector *c)
{
    bool changed = c->changed;

    c->changed = false;
    return changed;
}

char *const *collector_processes(const struct collector *c, size_t *count)
{
    *count = c->count;
    return c->stems;
}

int collector_summarize(const struct collector *c, struct summary *s)
{
    const struct process_summary **list = malloc((c->count + 1) * sizeof(*list));
    int rc;

    if (!list)
        return -1;
    for (size_t i = 0; i < c->count; i++)
        list[i] = &c->intakes[i]->summary;
    rc = summarize(s, list, c->count);
    free(list);
    return rc;
}
