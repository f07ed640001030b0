/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/prove/run/logcopy.h"
#include "shim/prove/run/runfolder.h"

#define REFRESH_NS \
    250000000ull /* tables; sooner when a section came or a record names a new site */
#define UNSEEN_EVERY_NS 5000000000ull /* that question reads all of /proc */

/* Only names and summary stay. */
static void let_go(struct intake *s)
{
    log_free(s->f);
    s->f = NULL;
    accum_free(&s->a);
    keep_close(s->keep);
    s->keep = NULL;
    free(s->keep_name);
    s->keep_name = NULL;
    free(s->rings);
    s->rings = NULL;
    s->ring_count = 0;
}

void intake_free(struct intake *s)
{
    if (!s)
        return;
    let_go(s);
    process_summary_free(&s->summary);
    free(s->name);
    free(s->stem);
    free(s);
}

static char *join(const char *a, const char *b)
{
    char *s;

    return asprintf(&s, "%s%s", a, b) < 0 ? NULL : s;
}

/* Go on where an earlier collector stood, when its file is there and speaks of this very log. */
static int resume(struct intake *s, const struct intake_place *p, uint64_t *kept, struct error *e)
{
    char path[4600];
    struct histfile h;

    *kept = 0;
    snprintf(path, sizeof(path), "%s/%s" HISTFILE_SUFFIX, p->run_path, s->stem);
    if (access(path, F_OK) < 0)
        return 0;
    if (histfile_load(path, &s->a, &h, e) < 0)
        return -1;
    if (!histfile_is_of(&h, &s->f->head)) {
        histfile_free(&h);
        return error_set(e, path, 0,
                         "these statistics are of another process of the same name: "
                         "collect into another run folder");
    }
    memcpy(s->rings, h.rings, h.ring_count * sizeof(*h.rings));
    s->ring_count = h.ring_count;
    *kept = h.kept_bytes;
    if (h.final)
        s->state = INTAKE_DONE;
    histfile_free(&h);
    return 0;
}

static int start(struct intake *s, const struct intake_place *p, struct error *e)
{
    char path[4600];
    uint64_t kept;

    snprintf(path, sizeof(path), "%s/%s", p->log_path, s->name);
    if (log_open_at(p->log_fd, s->name, path, &s->f, e) < 0 || resume(s, p, &kept, e) < 0)
        return -1;
    if (process_summarize(&s->summary, s->f, &s->a) < 0)
        return error_set(e, path, 0, "out of memory");
    if (s->state == INTAKE_DONE || !p->keep_all)
        return 0;
    s->keep = keep_open(p->run_fd, s->keep_name, kept, e);
    return s->keep ? 0 : -1;
}

/* All of it is saved. */
static void be_done(struct intake *s, const struct intake_place *p)
{
    if (p->remove)
        unlinkat(p->log_fd, s->name, 0);
    s->state = INTAKE_DONE;
    let_go(s);
}

struct intake *intake_open(const struct intake_place *p, const char *name, struct error *e)
{
    struct intake *s = calloc(1, sizeof(*s));
    size_t suffix = sizeof(NCCLSHIM_LOG_SUFFIX) - 1;

    if (s) {
        accum_init(&s->a);
        s->name = strdup(name);
        s->stem = strndup(name, strlen(name) - suffix);
        s->keep_name = s->stem ? join(s->stem, KEEP_SUFFIX) : NULL;
        s->rings = calloc(NCCLSHIM_LOG_SECTIONS, sizeof(*s->rings));
    }
    if (!s || !s->name || !s->keep_name || !s->rings) {
        intake_free(s);
        error_set(e, name, 0, "out of memory");
        return NULL;
    }
    if (start(s, p, e) < 0) {
        intake_free(s);
        return NULL;
    }
    s->writer = LOG_WRITER_LIVES;
    s->saved_ns = s->refreshed_ns = monotonic_ns();
    if (s->state == INTAKE_DONE)
        be_done(s, p);
    return s;
}

static void break_off(struct intake *s, const struct intake_place *p, const struct error *e)
{
    p->warn(e);
    if (s->state != INTAKE_ACTIVE)
        return;
    s->state = INTAKE_BROKEN;
    intake_save(s, p, false);
    let_go(s);
}

/* Does a record name a site that was published after the tables were read? */
static bool names_unknown_site(const struct intake *s, const struct ncclshim_record *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (r[i].site >= s->f->site_count || !s->f->sites[r[i].site].state)
            return true;
    return false;
}

static int refresh(struct intake *s, struct error *e)
{
    s->refreshed_ns = monotonic_ns();
    return log_refresh(s->f, e);
}

/* Feed in stretches without a missing record between. `next` is the number behind the last one. */
static int feed(struct intake *s, uint32_t ring, const struct ncclshim_record *r, size_t n,
                bool gap_before)
{
    size_t from = 0;

    if (gap_before)
        accum_break(&s->a, ring);
    for (size_t i = 1; i <= n; i++) {
        if (i < n && r[i].sequence == r[i - 1].sequence + 1)
            continue;
        if (accum_feed(&s->a, ring, r + from, i - from, s->f->sites, s->f->site_count) < 0)
            return -1;
        if (i < n)
            accum_break(&s->a, ring);
        from = i;
    }
    return 0;
}

/* Has a section come since the last refresh? A new ring must not fill unseen. */
static bool sections_changed(const struct intake *s)
{
    struct ncclshim_section now[NCCLSHIM_LOG_SECTIONS];
    const struct ncclshim_section *was = s->f->head.sections;
    ssize_t n = pread(s->f->fd, now, sizeof(now), offsetof(struct ncclshim_log_header, sections));

    for (unsigned i = 0; n == (ssize_t)sizeof(now) && i < NCCLSHIM_LOG_SECTIONS; i++)
        if (now[i].type != was[i].type)
            return true;
    return false;
}

static struct ring_cursor *cursor_of(struct intake *s, uint32_t ring)
{
    for (uint32_t i = 0; i < s->ring_count; i++)
        if (s->rings[i].number == ring)
            return &s->rings[i].cursor;
    if (s->ring_count == NCCLSHIM_LOG_SECTIONS)
        return NULL;
    s->rings[s->ring_count] = (struct histfile_ring){ring, {0, 0, 0}};
    return &s->rings[s->ring_count++].cursor;
}

static int take_batch(struct intake *s, const struct intake_place *p, const struct log_ring *ring,
                      struct ring_cursor *c, const struct ncclshim_record *r, size_t n,
                      uint64_t before, struct error *e)
{
    if (names_unknown_site(s, r, n) && refresh(s, e) < 0)
        return -1;
    /* The first record did not follow directly: some before it are missing. */
    if (feed(s, ring->number, r, n, r[0].sequence != (uint32_t)(before + 1)) < 0)
        return error_set(e, s->f->path, 0, "out of memory for the statistics");
    if (c->next - before != n && r[n - 1].sequence != (uint32_t)c->next)
        accum_break(&s->a, ring->number); /* those behind the last one */
    if (s->keep && keep_write(s->keep, r, n, e) < 0) {
        p->warn(e); /* a full disk must not end the statistics */
        keep_close(s->keep);
        s->keep = NULL;
    }
    return 0;
}

/* All that is new in one ring; returns how many, or -1. */
static long drain_ring(struct intake *s, const struct intake_place *p, struct log_ring ring,
                       bool final, struct error *e)
{
    struct ring_cursor *c = cursor_of(s, ring.number), was;
    uint64_t bound = 2ull * ring.capacity + INTAKE_BATCH, all = 0;
    long n = 1;

    /* A writer faster than we are must not keep us from the other rings. */
    while (c && n > 0 && all < bound) {
        was = *c;
        n = ring_read(s->f, &ring, c, p->batch, INTAKE_BATCH, final, e);
        s->a.lost += c->lost - was.lost;
        s->a.torn += c->torn - was.torn;
        if (n == 0 && c->next != was.next)
            accum_break(&s->a, ring.number);
        if (n < 0 || (n > 0 && take_batch(s, p, &ring, c, p->batch, (size_t)n, was.next, e) < 0))
            return -1;
        all += (uint64_t)n;
    }
    return (long)all;
}

#define WAIT_MAX_MS 100u
#define WAIT_MIN_MS 1u

/*
 * A ring must not fill by more than half while we sleep: at a million records a second (nothing in
 * use comes near that), or at twice the rate just seen.
 */
static unsigned wait_for(const struct log_ring *ring, long records, uint64_t since_ns)
{
    uint64_t ms = ring->capacity / 2 / 1000, rate_ms;

    if (records > 0 && since_ns) {
        rate_ms = since_ns / 1000000ull * (ring->capacity / 4) / (uint64_t)records;
        ms = rate_ms < ms ? rate_ms : ms;
    }
    if (ms > WAIT_MAX_MS)
        return WAIT_MAX_MS;
    return ms < WAIT_MIN_MS ? WAIT_MIN_MS : (unsigned)ms;
}

unsigned intake_drain(struct intake *s, const struct intake_place *p, bool final)
{
    uint64_t now = monotonic_ns(), since = s->drained_ns ? now - s->drained_ns : 0;
    unsigned wait = WAIT_MAX_MS, w;
    struct error e;
    long n;

    if (s->state != INTAKE_ACTIVE)
        return wait;
    if ((final || now - s->refreshed_ns >= REFRESH_NS || sections_changed(s)) &&
        refresh(s, &e) < 0) {
        break_off(s, p, &e);
        return wait;
    }
    for (uint32_t i = 0; i < s->f->ring_count; i++) {
        n = drain_ring(s, p, s->f->rings[i], final, &e);
        if (n < 0) {
            break_off(s, p, &e);
            return wait;
        }
        w = wait_for(&s->f->rings[i], n, since);
        wait = w < wait ? w : wait;
    }
    s->drained_ns = now;
    return wait;
}

static int save_parts(struct intake *s, const struct intake_place *p, bool final, struct error *e)
{
    char name[300];
    struct histfile h;

    histfile_identify(&h, &s->f->head);
    h.rings = s->rings;
    h.ring_count = s->ring_count;
    h.final = final;
    if (s->keep && keep_checkpoint(s->keep, &h.kept_bytes, e) < 0)
        return -1;
    /* The log first: statistics of which no table tells the call sites would be worth nothing. */
    if (logcopy(s->f, p->run_fd, s->name, final, e) < 0 && s->state != INTAKE_BROKEN)
        return -1;
    snprintf(name, sizeof(name), "%s" HISTFILE_SUFFIX, s->stem);
    return histfile_save(p->run_fd, name, &s->a, &h, e);
}

int intake_save(struct intake *s, const struct intake_place *p, bool final)
{
    struct error e;
    int rc;

    s->saved_ns = monotonic_ns();
    if (!s->f)
        return 0;
    process_summarize(&s->summary, s->f, &s->a);
    rc = save_parts(s, p, final, &e);
    if (rc < 0 && !s->save_failed)
        p->warn(&e);
    s->save_failed = rc < 0;
    return rc;
}

/* The process is gone: what is in the ring now is all there will be. */
static void settle(struct intake *s, const struct intake_place *p)
{
    intake_drain(s, p, true);
    if (s->state != INTAKE_ACTIVE)
        return;
    accum_finish(&s->a);
    if (intake_save(s, p, true) < 0)
        return; /* no room on the disk: the log stays where it is, and we try again */
    be_done(s, p);
}

void intake_check(struct intake *s, const struct intake_place *p, uint64_t every_ns)
{
    uint64_t now = monotonic_ns();

    if (s->state != INTAKE_ACTIVE)
        return;
    if (s->writer == LOG_WRITER_UNSEEN && every_ns < UNSEEN_EVERY_NS && every_ns)
        every_ns = UNSEEN_EVERY_NS;
    if (s->asked_ns && now - s->asked_ns < every_ns)
        return;
    s->asked_ns = now;
    s->writer = s->followed ? LOG_WRITER_GONE : log_writer_find(s->f, &s->pid);
    if (s->writer == LOG_WRITER_GONE)
        settle(s, p);
}
