/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "shim/base/grow.h"
#include "shim/stats/loglist.h"

#define BATCH 4096
#define ROWS_MOST 4096u

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int live_open(struct live *l, const char *folder)
{
    memset(l, 0, sizeof(*l));
    l->folder = strdup(folder);
    l->last_ns = now_ns();
    return l->folder ? 0 : -1;
}

/* ---- logs that come and go ------------------------------------------------------------------- */

static void free_process(struct live_process *p)
{
    log_free(p->log);
    free(p->cursors);
    free(p->row_of);
    free(p->rank_of);
}

void live_free(struct live *l)
{
    for (uint32_t i = 0; i < l->process_count; i++)
        free_process(&l->processes[i]);
    for (uint32_t i = 0; i < l->row_count; i++) {
        for (unsigned k = 0; k < LIVE_SLOTS; k++)
            hist_free(&l->rows[i].slots[k]);
        hist_free(&l->rows[i].window);
    }
    free(l->processes);
    free(l->rows);
    free(l->ranks);
    free(l->folder);
    memset(l, 0, sizeof(*l));
}

/* Rings may be added while a process runs. New ones are read from their newest record on. */
static int follow_rings(struct live_process *p, bool from_start)
{
    struct ring_cursor *more;
    struct error e;

    if (p->cursor_count >= p->log->ring_count)
        return 0;
    more = realloc(p->cursors, p->log->ring_count * sizeof(*more));
    if (!more)
        return -1;
    p->cursors = more;
    for (uint32_t i = p->cursor_count; i < p->log->ring_count; i++) {
        uint64_t total = 0;
        memset(&more[i], 0, sizeof(more[i]));
        if (!from_start && ring_total(p->log, &p->log->rings[i], &total, &e) == 0)
            more[i].next = total;
    }
    p->cursor_count = p->log->ring_count;
    return 0;
}

static int add_log(struct live *l, const char *path, uint64_t ino, bool from_start)
{
    struct live_process *more, p = {.ino = ino, .lives = true, .seen = true};
    struct error e;

    if (log_open(path, &p.log, &e) < 0)
        return 0; /* being written just now, or not a log: looked at again next time */
    if (!log_writer_lives(p.log)) {
        log_free(p.log);
        return 0;
    }
    more = follow_rings(&p, from_start) < 0 ? NULL : GROW(l->processes, l->process_count);
    if (!more) {
        free_process(&p);
        return -1;
    }
    *more = p;
    return 0;
}

static bool known(struct live *l, const char *path, uint64_t ino)
{
    for (uint32_t i = 0; i < l->process_count; i++)
        if (l->processes[i].ino == ino && !strcmp(l->processes[i].log->path, path)) {
            l->processes[i].seen = true;
            return true;
        }
    return false;
}

/* from_start: not at the first look, whose logs are old; a server that comes later is seen whole.
 */
static int find_logs(struct live *l, bool from_start)
{
    struct loglist list;
    struct stat st;
    int rc = 0;

    for (uint32_t i = 0; i < l->process_count; i++)
        l->processes[i].seen = false;
    loglist_read(l->folder, true, &list); /* no such folder yet: no server yet */
    for (size_t i = 0; i < list.count && rc == 0; i++)
        if (stat(list.paths[i], &st) == 0 && !known(l, list.paths[i], st.st_ino))
            rc = add_log(l, list.paths[i], st.st_ino, from_start);
    loglist_free(&list);
    return rc;
}

static void drop_dead(struct live *l)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < l->process_count; i++) {
        if (l->processes[i].lives)
            l->processes[kept++] = l->processes[i];
        else
            free_process(&l->processes[i]);
    }
    l->process_count = kept;
}

/* ---- rows and ranks -------------------------------------------------------------------------- */

static void comm_name(const struct log_file *f, uint32_t comm, char *buf, size_t size)
{
    const struct ncclshim_comm *c = &f->comms[comm];

    if (c->name[0])
        snprintf(buf, size, "%.*s", (int)sizeof(c->name), c->name);
    else
        snprintf(buf, size, "%u", comm + 1);
}

static uint32_t row_for(struct live *l, const struct log_file *f, const struct ncclshim_site *s)
{
    struct live_row *more, key = {.ranks = f->comms[s->comm].ranks,
                                  .op = s->op,
                                  .dtype = s->dtype,
                                  .captured = s->flags & NCCLSHIM_SITE_CAPTURED,
                                  .bytes = s->bytes};

    comm_name(f, s->comm, key.comm, sizeof(key.comm));
    for (uint32_t i = 0; i < l->row_count; i++) {
        struct live_row *r = &l->rows[i];
        if (r->op == key.op && r->bytes == key.bytes && r->captured == key.captured &&
            r->dtype == key.dtype && r->ranks == key.ranks && !strcmp(r->comm, key.comm)) {
            r->algo = s->algo;
            r->proto = s->proto;
            r->channels = s->channels;
            return i;
        }
    }
    if (l->row_count == ROWS_MOST)
        return LIVE_NONE;
    more = GROW(l->rows, l->row_count);
    if (!more)
        return LIVE_NONE;
    key.algo = s->algo;
    key.proto = s->proto;
    key.channels = s->channels;
    *more = key;
    for (unsigned k = 0; k < LIVE_SLOTS; k++)
        hist_init(&more->slots[k]);
    hist_init(&more->window);
    return l->row_count - 1;
}

static uint32_t rank_for(struct live *l, const struct log_file *f, uint32_t comm)
{
    struct live_rank *more, key = {.rank = f->comms[comm].rank, .ranks = f->comms[comm].ranks};

    comm_name(f, comm, key.comm, sizeof(key.comm));
    for (uint32_t i = 0; i < l->rank_count; i++)
        if (l->ranks[i].rank == key.rank && l->ranks[i].ranks == key.ranks &&
            !strcmp(l->ranks[i].comm, key.comm))
            return i;
    if (l->rank_count == ROWS_MOST || !(more = GROW(l->ranks, l->rank_count)))
        return LIVE_NONE;
    *more = key;
    return l->rank_count - 1;
}

/* Sites may be added while a process runs; what is not published yet is looked at again. */
static int follow_sites(struct live *l, struct live_process *p)
{
    const struct log_file *f = p->log;

    if (f->site_count > p->site_room) {
        uint32_t *rows = realloc(p->row_of, f->site_count * sizeof(*rows));
        uint32_t *ranks = rows ? realloc(p->rank_of, f->site_count * sizeof(*ranks)) : NULL;
        if (rows)
            p->row_of = rows;
        if (!ranks)
            return -1;
        p->rank_of = ranks;
        for (uint32_t i = p->site_room; i < f->site_count; i++)
            rows[i] = ranks[i] = LIVE_NONE;
        p->site_room = f->site_count;
    }
    for (uint32_t i = 0; i < f->site_count; i++) {
        const struct ncclshim_site *s = &f->sites[i];
        if (p->row_of[i] != LIVE_NONE || !s->state || s->comm >= f->comm_count)
            continue;
        p->row_of[i] = row_for(l, f, s);
        p->rank_of[i] = rank_for(l, f, s->comm);
    }
    return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int take(struct live *l, const struct live_process *p, const struct ncclshim_record *r)
{
    uint64_t ns = r->end_ns - r->start_ns;
    struct live_rank *rank;

    if (r->site >= p->site_room || r->end_ns < r->start_ns || p->row_of[r->site] == LIVE_NONE)
        return 0;
    if (!hist_add(&l->rows[p->row_of[r->site]].slots[l->slot], ns))
        return -1;
    if (p->rank_of[r->site] == LIVE_NONE)
        return 0;
    rank = &l->ranks[p->rank_of[r->site]];
    rank->slots[l->slot].calls++;
    rank->slots[l->slot].ns += ns;
    return 0;
}

static int read_process(struct live *l, struct live_process *p)
{
    static struct ncclshim_record records[BATCH];
    struct error e;
    long n = 0;

    p->lives = p->seen && log_writer_lives(p->log);
    if (log_refresh(p->log, &e) < 0) {
        p->lives = false;
        return 0;
    }
    if (follow_rings(p, true) < 0 || follow_sites(l, p) < 0)
        return -1;
    for (uint32_t i = 0; i < p->log->ring_count; i++) {
        struct ring_cursor *c = &p->cursors[i];
        uint64_t lost = c->lost;
        while ((n = ring_read(p->log, &p->log->rings[i], c, records, BATCH, !p->lives, &e)) > 0) {
            l->records += (uint64_t)n;
            for (long k = 0; k < n; k++)
                if (take(l, p, &records[k]) < 0)
                    return -1;
        }
        if (n < 0)
            p->lives = false; /* cut or gone: the others go on */
        l->lost += c->lost - lost;
    }
    return 0;
}

/* ---- the window ------------------------------------------------------------------------------ */

static void next_slot(struct live *l, uint64_t now)
{
    l->slot_ns[l->slot] = now - l->last_ns;
    l->last_ns = now;
    if (l->slots_used < LIVE_SLOTS)
        l->slots_used++;
    l->window_ns = 0;
    for (uint32_t i = 0; i < l->slots_used; i++)
        l->window_ns += l->slot_ns[i];
}

static int sum_window(struct live *l)
{
    for (uint32_t i = 0; i < l->row_count; i++) {
        hist_free(&l->rows[i].window);
        hist_init(&l->rows[i].window);
        for (unsigned k = 0; k < LIVE_SLOTS; k++)
            if (l->rows[i].slots[k].count && !hist_merge(&l->rows[i].window, &l->rows[i].slots[k]))
                return -1;
    }
    for (uint32_t i = 0; i < l->rank_count; i++) {
        l->ranks[i].calls = l->ranks[i].ns = 0;
        for (unsigned k = 0; k < LIVE_SLOTS; k++) {
            l->ranks[i].calls += l->ranks[i].slots[k].calls;
            l->ranks[i].ns += l->ranks[i].slots[k].ns;
        }
    }
    return 0;
}

static void empty_slot(struct live *l)
{
    l->slot = (l->slot + 1) % LIVE_SLOTS;
    for (uint32_t i = 0; i < l->row_count; i++) {
        hist_free(&l->rows[i].slots[l->slot]);
        hist_init(&l->rows[i].slots[l->slot]);
    }
    for (uint32_t i = 0; i < l->rank_count; i++)
        l->ranks[i].slots[l->slot].calls = l->ranks[i].slots[l->slot].ns = 0;
}

int live_look(struct live *l)
{
    bool first = l->slots_used == 0;

    if (!first)
        empty_slot(l);
    if (find_logs(l, !first) < 0)
        return -1;
    for (uint32_t i = 0; i < l->process_count; i++)
        if (read_process(l, &l->processes[i]) < 0)
            return -1;
    next_slot(l, now_ns());
    drop_dead(l);
    return sum_window(l);
}
