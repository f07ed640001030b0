/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/digest.h"
#include "shim/base/replace.h"
#include "shim/stats/histfile.h"
#include "shim/stats/histfile_layout.h"

struct buffer {
    uint8_t *p;
    size_t n, cap;
    bool failed; /* memory was out: checked once, at the end */
};

static void put(struct buffer *b, const void *data, size_t bytes)
{
    if (b->failed)
        return;
    if (b->n + bytes > b->cap) {
        size_t cap = 2 * b->cap + bytes + 4096;
        uint8_t *p = realloc(b->p, cap);
        if (!p) {
            b->failed = true;
            return;
        }
        b->p = p;
        b->cap = cap;
    }
    memcpy(b->p + b->n, data, bytes);
    b->n += bytes;
}

static void put_hist(struct buffer *b, const struct hist *h)
{
    struct histfile_hist head = {h->count, h->sum, h->min, h->max, 0, 0};
    size_t at = b->n;

    put(b, &head, sizeof(head));
    for (unsigned o = 0; o < HIST_OCTAVES; o++)
        for (unsigned i = 0; h->octave[o] && i < HIST_BUCKETS; i++)
            if (h->octave[o][i]) {
                struct histfile_bucket bucket = {(uint16_t)o, (uint16_t)i, h->octave[o][i]};
                put(b, &bucket, sizeof(bucket));
                head.buckets++;
            }
    if (!b->failed)
        memcpy(b->p + at, &head, sizeof(head));
}

static bool site_met(const struct site_accum *s)
{
    return s->ns.count || s->runs_max;
}

static void put_sites(struct buffer *b, const struct accum *a)
{
    for (uint32_t i = 0; i < a->site_cap; i++) {
        const struct site_accum *s = &a->sites[i];
        struct histfile_site head = {i, 0, s->first_start_ns, s->last_end_ns, s->runs_max};

        if (!site_met(s))
            continue;
        put(b, &head, sizeof(head));
        put_hist(b, &s->ns);
        put_hist(b, &s->gap_ns);
    }
}

static void put_passes(struct buffer *b, const struct accum *a)
{
    for (uint32_t i = 0; i < a->pass_count; i++) {
        const struct pass_accum *p = &a->passes[i];
        struct histfile_pass head = {.capture = p->capture,
                                     .ring = p->ring,
                                     .calls = p->calls,
                                     .run = p->run,
                                     .seen = p->seen,
                                     .start_ns = p->start_ns,
                                     .end_ns = p->end_ns,
                                     .sum_ns = p->sum_ns,
                                     .last_start_ns = p->last_start_ns,
                                     .incomplete = p->incomplete};

        put(b, &head, sizeof(head));
        put_hist(b, &p->pass_ns);
        put_hist(b, &p->comm_ns);
        put_hist(b, &p->period_ns);
    }
}

static void put_gaps(struct buffer *b, const struct accum *a)
{
    const uint64_t *slot = a->last_end.slots;

    for (uint32_t i = 0; i < a->last_end.cap; i++, slot += 2)
        if (slot[0]) {
            struct histfile_gap g = {(uint32_t)(slot[0] - 1), (uint32_t)((slot[0] - 1) >> 32),
                                     slot[1]};
            put(b, &g, sizeof(g));
        }
}

static void put_head(struct buffer *b, const struct accum *a, const struct histfile *h)
{
    struct timespec now;
    struct histfile_head head = {.version = HISTFILE_VERSION,
                                 .byte_order = HISTFILE_BYTE_ORDER,
                                 .pid = h->pid,
                                 .final = h->final,
                                 .start_ticks = h->start_ticks,
                                 .pid_ns = h->pid_ns,
                                 .created_ns = h->created_ns,
                                 .kept_bytes = h->kept_bytes,
                                 .records = a->records,
                                 .bad = a->bad,
                                 .lost = a->lost,
                                 .torn = a->torn,
                                 .rings = h->ring_count,
                                 .gaps = a->last_end.used,
                                 .passes = a->pass_count};

    clock_gettime(CLOCK_REALTIME, &now);
    head.written_ns = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
    memcpy(head.magic, HISTFILE_MAGIC, sizeof(head.magic));
    memcpy(head.boot_id, h->boot_id, sizeof(head.boot_id));
    for (uint32_t i = 0; i < a->site_cap; i++)
        head.sites += site_met(&a->sites[i]);
    put(b, &head, sizeof(head));
    for (uint32_t i = 0; i < h->ring_count; i++) {
        const struct ring_cursor *c = &h->rings[i].cursor;
        struct histfile_cursor cursor = {h->rings[i].number, 0, c->next, c->lost, c->torn};
        put(b, &cursor, sizeof(cursor));
    }
}

static int replace_file(int dirfd, const char *name, const struct buffer *b, struct error *e)
{
    struct replacement r;

    if (replace_begin(&r, dirfd, name) == 0 &&
        replace_end(&r, write_all(r.fd, b->p, b->n) == 0) == 0)
        return 0;
    return error_set(e, name, 0, "can't write the statistics: %s", strerror(errno));
}

int histfile_save(int dirfd, const char *name, const struct accum *a, const struct histfile *h,
                  struct error *e)
{
    struct buffer b = {0};
    uint64_t total, digest;
    int rc;

    put_head(&b, a, h);
    put_gaps(&b, a);
    put_sites(&b, a);
    put_passes(&b, a);
    total = b.n + sizeof(digest);
    if (!b.failed) {
        memcpy(b.p + offsetof(struct histfile_head, file_bytes), &total, sizeof(total));
        digest = digest_bytes(DIGEST_START, b.p, b.n);
        put(&b, &digest, sizeof(digest));
    }
    if (b.failed)
        rc = error_set(e, name, 0, "out of memory for the statistics");
    else
        rc = replace_file(dirfd, name, &b, e);
    free(b.p);
    return rc;
}
