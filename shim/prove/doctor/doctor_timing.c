/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a process being timed right now? Its log is looked at twice, a moment apart. The path is the
 * one under which the process has it mapped, seen from its own root: that holds for containers,
 * too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/log/read/reader.h"
#include "shim/prove/doctor/doctor_process.h"

static int open_log(const struct doctor_process *p, const char *root, struct log_file **f,
                    struct error *e)
{
    char path[DOCTOR_PATH], *slash;
    int dir, rc;

    doctor_path(path, root, "/proc/%d/root%s", p->pid, p->log);
    slash = strrchr(path, '/');
    *slash = '\0';
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return error_set(e, path, 0, "can't be opened: %s", strerror(errno));
    rc = log_open_at(dir, slash + 1, p->log, f, e);
    close(dir);
    return rc;
}

static int count(struct log_file *f, uint64_t *timed, uint64_t *issued, struct error *e)
{
    uint64_t n;

    *timed = *issued = 0;
    for (uint32_t i = 0; i < f->ring_count; i++) {
        if (ring_total(f, &f->rings[i], &n, e) < 0)
            return -1;
        *timed += n;
    }
    for (uint32_t i = 0; i < f->site_count; i++)
        if (f->sites[i].state)
            *issued += f->sites[i].issued;
    return 0;
}

static void look_at_comms(struct doctor_timing *t, const struct log_file *f)
{
    const struct ncclshim_note *n = NULL;

    while ((n = log_note_next(f, n)))
        t->missed_all |= n->type == NCCLSHIM_NOTE_MISSED;
    for (uint32_t i = 0; i < f->comm_count; i++) {
        const struct ncclshim_comm *c = &f->comms[i];
        if (c->state != NCCLSHIM_COMM_READY)
            continue;
        t->comms++;
        t->untimed += c->ring < 0;
        t->missed += c->missed_calls;
    }
}

static void first_look(struct doctor_timing *t, struct log_file **f, const struct doctor_process *p,
                       const char *root)
{
    struct error e = {0};

    if (open_log(p, root, f, &e) == 0 && count(*f, &t->timed, &t->issued, &e) == 0) {
        t->opened = true;
        return;
    }
    error_str(&e, t->why, sizeof(t->why));
}

static void second_look(struct doctor_timing *t, struct log_file *f)
{
    uint64_t timed = t->timed, issued = t->issued;
    struct error e;

    if (log_refresh(f, &e) == 0 && count(f, &timed, &issued, &e) == 0) {
        t->more_timed = timed - t->timed;
        t->more_issued = issued - t->issued;
        t->timed = timed;
        t->issued = issued;
    }
    look_at_comms(t, f);
}

void doctor_timing_read(struct doctor_timing *t, const struct doctor_processes *all,
                        const char *root, unsigned moment_ms)
{
    struct log_file **files = calloc(all->count + 1, sizeof(*files));
    struct timespec moment = {.tv_sec = moment_ms / 1000,
                              .tv_nsec = (long)(moment_ms % 1000) * 1000000};
    bool any = false;

    for (size_t i = 0; i < all->count; i++) {
        t[i] = (struct doctor_timing){0};
        if (files && all->list[i].log)
            first_look(&t[i], &files[i], &all->list[i], root);
        any |= t[i].opened;
    }
    if (any)
        nanosleep(&moment, NULL);
    for (size_t i = 0; files && i < all->count; i++) {
        if (t[i].opened)
            second_look(&t[i], files[i]);
        log_free(files[i]);
    }
    free(files);
}
