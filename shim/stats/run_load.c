/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a run: which logs there are, and what each says of itself. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/grow.h"
#include "shim/base/paths.h"
#include "shim/stats/histfile.h"
#include "shim/stats/loglist.h"
#include "shim/stats/records.h"
#include "shim/stats/run.h"
#include "shim/stats/run_json.h"

static int no_memory(const char *path, struct error *e)
{
    return error_set(e, path, 0, "out of memory");
}

/* ---- one process ----------------------------------------------------------------------------- */

static struct run_gpu *gpu_for_ring(struct run_process *p, uint32_t ring)
{
    struct run_gpu *more;

    for (uint32_t i = 0; i < p->gpu_count; i++)
        if (p->gpus[i].ring == ring)
            return &p->gpus[i];
    more = GROW(p->gpus, p->gpu_count);
    if (!more)
        return NULL;
    more->ring = ring;
    more->gpu.stamp = UINT32_MAX; /* no GPU note yet */
    return more;
}

static const void *note_body(const struct ncclshim_note *n, size_t bytes)
{
    return n->bytes >= sizeof(*n) + bytes ? n + 1 : NULL;
}

static int read_gpus(struct run_process *p)
{
    const struct ncclshim_note *n = NULL;
    struct ncclshim_anchor anchor;
    struct run_gpu *g;
    const void *body;

    while ((n = log_note_next(p->log, n))) {
        size_t bytes = n->type == NCCLSHIM_NOTE_GPU ? sizeof(struct ncclshim_gpu) : sizeof(anchor);
        if (n->type != NCCLSHIM_NOTE_GPU && n->type != NCCLSHIM_NOTE_ANCHOR)
            continue;
        if (!(body = note_body(n, bytes)))
            continue;
        if (!(g = gpu_for_ring(p, n->a)))
            return -1;
        if (n->type == NCCLSHIM_NOTE_GPU) {
            memcpy(&g->gpu, body, sizeof(g->gpu));
            log_note_text(n, sizeof(g->gpu), g->name, sizeof(g->name));
        } else {
            memcpy(&anchor, body, sizeof(anchor));
            clock_add(&g->clock, &anchor);
        }
    }
    return 0;
}

/* Statistics from the records themselves: a bare log, or only the calls since some time. */
static int feed_records(struct run_process *p, uint64_t since_ns, struct error *e)
{
    const struct ncclshim_record *batch;
    struct records *records;
    uint32_t ring;
    long n;
    int rc = 0;

    if (accum_init(&p->acc) < 0)
        return no_memory(p->log->path, e);
    if (records_open(p, &records, e) < 0)
        return -1;
    while (rc == 0 && (n = records_next(records, &batch, &ring, e)) != 0) {
        long from = 0;
        if (n < 0) {
            rc = -1;
            break;
        }
        while (since_ns && from < n && batch[from].start_ns < since_ns)
            from++;
        if (accum_feed(&p->acc, ring, batch + from, (size_t)(n - from), p->log->sites,
                       p->log->site_count) < 0)
            rc = no_memory(p->log->path, e);
    }
    records_losses(records, &p->acc.lost, &p->acc.torn);
    records_close(records);
    accum_finish(&p->acc);
    p->whole = p->acc.lost == 0;
    return rc;
}

/*
 * The collector saves every ten seconds; what the GPU wrote since then is in the live log. Go on
 * from where the collector stood.
 */
static int feed_newer(struct run_process *p, const struct histfile *h, struct error *e)
{
    static struct ncclshim_record batch[4096];

    for (uint32_t i = 0; i < p->log->ring_count; i++) {
        const struct log_ring *ring = &p->log->rings[i];
        struct ring_cursor c = {0};
        long n;
        for (uint32_t k = 0; k < h->ring_count; k++)
            if (h->rings[k].number == ring->number)
                c = h->rings[k].cursor;
        p->acc.lost -= c.lost; /* told again below, with what was lost since */
        while ((n = ring_read(p->log, ring, &c, batch, 4096, !p->lives, e)) > 0)
            if (accum_feed(&p->acc, ring->number, batch, (size_t)n, p->log->sites,
                           p->log->site_count) < 0)
                return no_memory(p->log->path, e);
        if (n < 0)
            return -1;
        p->acc.lost += c.lost;
    }
    accum_finish(&p->acc);
    return 0;
}

static int load_statistics(struct run_process *p, const char *path, struct error *e)
{
    struct histfile h;
    int rc;

    p->whole = true;
    if (accum_init(&p->acc) < 0)
        return no_memory(path, e);
    if (histfile_load(path, &p->acc, &h, e) < 0)
        return -1;
    rc = !h.final && histfile_is_of(&h, &p->log->head) ? feed_newer(p, &h, e) : 0;
    histfile_free(&h);
    return rc;
}

static int load_process(struct run_process *p, const char *folder, const struct run_filter *f,
                        struct error *e)
{
    char path[4096 + 256];

    p->lives = log_writer_lives(p->log);
    if (read_gpus(p) < 0)
        return no_memory(p->log->path, e);
    for (uint32_t i = 0; i < p->log->ring_count; i++) {
        uint64_t total = 0;
        if (ring_total(p->log, &p->log->rings[i], &total, e) < 0)
            return -1;
        p->written += total;
    }
    snprintf(path, sizeof(path), "%s/%s.records.zst", folder, p->name);
    if (access(path, R_OK) == 0 && !(p->records_path = strdup(path)))
        return no_memory(path, e);
    snprintf(path, sizeof(path), "%s/%s.hist", folder, p->name);
    if (f->since_ns || access(path, R_OK) != 0)
        return feed_records(p, f->since_ns, e);
    return load_statistics(p, path, e);
}

/* 1: there is no log any more, or not yet. */
static int open_log(const char *path, struct log_file **out, struct error *e)
{
    for (int tries = 0; tries < 2; tries++) { /* it may be made between two looks */
        if (log_open(path, out, e) == 0)
            return 0;
        if (!log_is_made(path))
            return 1;
    }
    return -1;
}

/* path: of the log; folder: where its statistics and kept records lie. 1: as open_log says. */
static int add_log(struct run *r, const char *path, const char *folder, const struct run_filter *f,
                   struct error *e)
{
    const char *slash = strrchr(path, '/');
    struct run_process *p = GROW(r->processes, r->process_count);
    int rc;

    if (!p)
        return no_memory(path, e);
    if ((rc = open_log(path, &p->log, e))) {
        r->process_count--;
        return rc;
    }
    p->name = strdup(slash ? slash + 1 : path);
    if (!p->name)
        return no_memory(path, e);
    if (is_log_file_name(p->name))
        p->name[strlen(p->name) - strlen(NCCLSHIM_LOG_SUFFIX)] = '\0';
    return load_process(p, folder, f, e);
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* A log that its collector has not taken over is read where it lives; the folder has but a copy. */
static int load_log(struct run *r, const char *folder, const struct loglist *live, const char *path,
                    const struct run_filter *f, struct error *e)
{
    const char *name = strrchr(path, '/') + 1;

    for (size_t i = 0; i < live->count; i++)
        if (!strcmp(strrchr(live->paths[i], '/') + 1, name) &&
            add_log(r, live->paths[i], folder, f, e) == 0)
            return 0;
    return add_log(r, path, folder, f, e);
}

/* Of a process that the collector had not saved when we looked; it may have, since. */
static int load_unsaved(struct run *r, const char *folder, const char *path,
                        const struct run_filter *f, struct error *e)
{
    char saved[4096 + 256];
    int rc = add_log(r, path, folder, f, e);

    if (rc != 1)
        return rc;
    snprintf(saved, sizeof(saved), "%s%s", folder, strrchr(path, '/'));
    return add_log(r, saved, folder, f, e);
}

static int load_logs(struct run *r, const char *folder, const struct loglist *own,
                     const struct loglist *live, const struct run_filter *f, struct error *e)
{
    for (size_t i = 0; i < own->count; i++)
        if (load_log(r, folder, live, own->paths[i], f, e) < 0)
            return -1;
    for (size_t i = 0; i < live->count; i++)
        if (!loglist_has(own, strrchr(live->paths[i], '/') + 1) &&
            load_unsaved(r, folder, live->paths[i], f, e) < 0)
            return -1;
    return 0;
}

/* *ended_ns: when its collecting ended, 0 = not yet. */
static int load_folder(struct run *r, const char *folder, const struct run_filter *f,
                       uint64_t *ended_ns, struct error *e)
{
    struct loglist own = {0}, live = {0};
    struct run_json j;
    int rc = run_json_read(folder, &j, e);

    /* The living first: what a collector takes over meanwhile is then in both. */
    if (rc == 0 && j.log_dir)
        loglist_read(j.log_dir, false, &live); /* gone with the last process: nothing is missing */
    if (rc == 0 && loglist_read(folder, r->live, &own) < 0)
        rc = error_set(e, folder, 0, "can't open the run: %s", strerror(errno));
    if (rc == 0)
        rc = load_logs(r, folder, &own, &live, f, e);
    *ended_ns = j.ended_ns;
    run_json_take(r, &j);
    loglist_free(&own);
    loglist_free(&live);
    return rc;
}

/* When processes ran; one that was killed, at most until its collecting ended. */
static void span_of(const struct run_process *p, uint32_t count, uint64_t ended_ns, uint64_t *first,
                    uint64_t *last)
{
    uint64_t killed = ended_ns ? ended_ns : UINT64_MAX;

    *first = UINT64_MAX;
    *last = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct ncclshim_log_header *h = &p[i].log->head;
        uint64_t end = h->closed_ns ? h->closed_ns : killed;

        *first = h->created_ns < *first ? h->created_ns : *first;
        *last = end > *last ? end : *last;
    }
}

/*
 * A run on several nodes, each of which has its own run folder below this one. Nodes of one run all
 * run at some moment; the turns of `ab`, and runs of other days, do not.
 */
static int load_nodes(struct run *r, const struct run_filter *f, struct error *e)
{
    uint64_t ended, first, last, last_start = 0, first_end = UINT64_MAX;
    struct loglist nodes;
    int rc = run_json_nodes(r->path, &nodes, e);

    for (size_t i = 0; i < nodes.count && rc == 0; i++) {
        uint32_t before = r->process_count;

        rc = load_folder(r, nodes.paths[i], f, &ended, e);
        if (rc < 0 || r->process_count == before)
            continue;
        span_of(r->processes + before, r->process_count - before, ended, &first, &last);
        last_start = first > last_start ? first : last_start;
        first_end = last < first_end ? last : first_end;
        if (last_start > first_end)
            rc = error_set(e, r->path, 0,
                           "holds %zu runs, and they are not the nodes of one, which run at the "
                           "same time: name one of them, such as %s",
                           nodes.count, nodes.paths[nodes.count - 1]);
    }
    loglist_free(&nodes);
    return rc;
}

static int load_folders(struct run *r, const struct run_filter *f, struct error *e)
{
    uint64_t ended;
    int rc = load_folder(r, r->path, f, &ended, e);

    if (rc == 0 && r->process_count == 0 && !r->live)
        rc = load_nodes(r, f, e);
    if (rc == 0 && r->process_count == 0)
        rc = error_set(e, r->path, 0,
                       "holds no log (*" NCCLSHIM_LOG_SUFFIX "): no process of that run made an "
                       "NCCL call under the shim, or this is not a run folder");
    return rc;
}

static int load_file(struct run *r, const struct run_filter *f, struct error *e)
{
    const char *slash = strrchr(r->path, '/');
    char *folder = slash ? strndup(r->path, (size_t)(slash - r->path)) : strdup(".");
    int rc;

    if (!folder)
        return no_memory(r->path, e);
    rc = add_log(r, r->path, folder[0] ? folder : "/", f, e);
    free(folder);
    return rc ? -1 : 0;
}

int run_load(struct run *r, const struct run_filter *f, struct error *e)
{
    struct stat st;

    if (stat(r->path, &st) < 0)
        return error_set(e, r->path, 0, "%s", strerror(errno));
    return S_ISDIR(st.st_mode) ? load_folders(r, f, e) : load_file(r, f, e);
}
