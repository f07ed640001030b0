/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define BATCH 8192u /* records; 256 KiB */

struct records {
    const struct run_process *p;
    /* from the rings */
    uint32_t at; /* ring being read */
    struct ring_cursor *cursors;
    /* from the kept file */
    FILE *file;
    ZSTD_DStream *zstd;
    uint8_t *packed;
    size_t packed_size;
    ZSTD_inBuffer in;
    size_t filled; /* bytes in buf */
    size_t taken;  /* records of buf already handed out */
    bool ended;

    struct ncclshim_record buf[BATCH];
};

uint32_t ring_of_site(const struct run_process *p, uint32_t site)
{
    const struct log_file *f = p->log;
    uint32_t comm;

    if (site >= f->site_count)
        return RUN_NONE;
    comm = f->sites[site].comm;
    if (comm >= f->comm_count || f->comms[comm].ring < 0)
        return RUN_NONE;
    return (uint32_t)f->comms[comm].ring;
}

static struct records *records_new(const struct run_process *p)
{
    struct records *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->p = p;
    r->cursors = calloc(p->log->ring_count + 1, sizeof(*r->cursors));
    if (!r->cursors) {
        free(r);
        return NULL;
    }
    return r;
}

static int open_kept(struct records *r, struct error *e)
{
    const char *path = r->p->records_path;

    r->file = fopen(path, "rbe");
    if (!r->file)
        return error_set(e, path, 0, "can't open the kept records: %m");
    r->zstd = ZSTD_createDStream();
    r->packed_size = ZSTD_DStreamInSize();
    r->packed = malloc(r->packed_size);
    if (!r->zstd || !r->packed)
        return error_set(e, path, 0, "out of memory");
    return 0;
}

int records_open(const struct run_process *p, struct records **out, struct error *e)
{
    struct records *r = records_new(p);

    *out = NULL;
    if (!r)
        return error_set(e, p->log->path, 0, "out of memory");
    if (p->records_path && open_kept(r, e) < 0) {
        records_close(r);
        return -1;
    }
    *out = r;
    return 0;
}

int records_open_newest(const struct run_process *p, uint64_t newest, struct records **out,
                        struct error *e)
{
    struct records *r = records_new(p);

    *out = NULL;
    if (!r)
        return error_set(e, p->log->path, 0, "out of memory");
    for (uint32_t i = 0; i < p->log->ring_count; i++) {
        uint64_t total = 0;
        if (ring_total(p->log, &p->log->rings[i], &total, e) < 0) {
            records_close(r);
            return -1;
        }
        if (total > newest)
            r->cursors[i].next = total - newest;
    }
    *out = r;
    return 0;
}

void records_close(struct records *r)
{
    if (!r)
        return;
    if (r->file)
        fclose(r->file);
    ZSTD_freeDStream(r->zstd);
    free(r->packed);
    free(r->cursors);
    free(r);
}

void records_losses(const struct records *r, uint64_t *lost, uint64_t *torn)
{
    *lost = *torn = 0;
    for (uint32_t i = 0; i < r->p->log->ring_count; i++) {
        *lost += r->cursors[i].lost;
        *torn += r->cursors[i].torn;
    }
}

static long next_of_rings(struct records *r, const struct ncclshim_record **batch, uint32_t *ring,
                          struct error *e)
{
    struct log_file *f = r->p->log;

    for (; r->at < f->ring_count; r->at++) {
        long n = ring_read(f, &f->rings[r->at], &r->cursors[r->at], r->buf, BATCH, !r->p->lives, e);
        if (n < 0)
            return -1;
        if (n > 0) {
            *batch = r->buf;
            *ring = f->rings[r->at].number;
            return n;
        }
    }
    return 0;
}

/* Unpack until buf is full or the file ends. */
static int fill_from_file(struct records *r, struct error *e)
{
    const char *path = r->p->records_path;
    ZSTD_outBuffer out = {r->buf, sizeof(r->buf), 0};
    size_t left;

    r->taken = 0;
    while (out.pos < out.size && !r->ended) {
        if (r->in.pos == r->in.size) {
            r->in.size = fread(r->packed, 1, r->packed_size, r->file);
            r->in.src = r->packed;
            r->in.pos = 0;
            if (r->in.size == 0) {
                if (ferror(r->file))
                    return error_set(e, path, 0, "can't read the kept records: %m");
                r->ended = true; /* cut in the middle of a frame too: what is whole is good */
                break;
            }
        }
        left = ZSTD_decompressStream(r->zstd, &out, &r->in);
        if (ZSTD_isError(left))
            return error_set(e, path, 0, "the kept records are damaged: %s",
                             ZSTD_getErrorName(left));
    }
    r->filled = out.pos;
    return 0;
}

static long next_of_file(struct records *r, const struct ncclshim_record **batch, uint32_t *ring,
                         struct error *e)
{
    size_t n, end;

    if (r->taken >= r->filled / sizeof(r->buf[0])) {
        if (r->ended)
            return 0;
        if (fill_from_file(r, e) < 0)
            return -1;
        if (r->filled < sizeof(r->buf[0]))
            return 0;
    }
    n = r->filled / sizeof(r->buf[0]);
    *batch = r->buf + r->taken;
    *ring = ring_of_site(r->p, r->buf[r->taken].site);
    end = r->taken + 1;
    if (r->p->log->ring_count <= 1) /* the usual case needs no look at each record */
        end = n;
    while (end < n && ring_of_site(r->p, r->buf[end].site) == *ring)
        end++;
    n = end - r->taken;
    r->taken = end;
    return (long)n;
}

long records_next(struct records *r, const struct ncclshim_record **batch, uint32_t *ring,
                  struct error *e)
{
    return r->file ? next_of_file(r, batch, ring, e) : next_of_rings(r, batch, ring, e);
}
