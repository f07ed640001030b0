/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites of all processes, gathered into rows: one for each kind of call. */
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/stats/run.h"

/* ---- finding a row by its key ---------------------------------------------------------------- */

struct row_index {
    uint32_t *slots; /* row index + 1; 0 = empty */
    uint32_t size;   /* a power of two */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdull;
}

static uint64_t row_hash(const struct run_row *k)
{
    uint64_t h = mix(k->comm, k->bytes);

    h = mix(h, (uint64_t)k->op | (uint64_t)k->dtype << 8 | (uint64_t)k->algo << 16 |
                   (uint64_t)k->proto << 24 | (uint64_t)k->captured << 32 |
                   (uint64_t)k->part << 33);
    return h ^ h >> 32;
}

static bool same_row(const struct run_row *a, const struct run_row *b)
{
    return a->comm == b->comm && a->op == b->op && a->bytes == b->bytes && a->dtype == b->dtype &&
           a->captured == b->captured && a->part == b->part && a->algo == b->algo &&
           a->proto == b->proto;
}

static int index_grow(struct row_index *x, const struct run *r)
{
    uint32_t size = x->size ? x->size * 2 : 256;
    uint32_t *slots = calloc(size, sizeof(*slots));

    if (!slots)
        return -1;
    for (uint32_t i = 0; i < r->row_count; i++) {
        uint32_t at = (uint32_t)row_hash(&r->rows[i]) & (size - 1);
        while (slots[at])
            at = (at + 1) & (size - 1);
        slots[at] = i + 1;
    }
    free(x->slots);
    x->slots = slots;
    x->size = size;
    return 0;
}

static struct run_row *new_row(struct run *r, const struct run_row *key)
{
    struct run_row *more = GROW(r->rows, r->row_count);

    if (!more)
        return NULL;
    *more = *key;
    hist_init(&more->ns);
    hist_init(&more->gap_ns);
    hist_init(&more->wait.transfer);
    more->rank_ns = calloc(r->comms[key->comm].member_count + 1, sizeof(*more->rank_ns));
    if (!more->rank_ns) {
        r->row_count--;
        return NULL;
    }
    for (uint32_t i = 0; i < r->comms[key->comm].member_count; i++)
        hist_init(&more->rank_ns[i]);
    return more;
}

static struct run_row *row_for(struct run *r, struct row_index *x, const struct run_row *key)
{
    uint32_t at;

    if (r->row_count * 2 >= x->size && index_grow(x, r) < 0)
        return NULL;
    at = (uint32_t)row_hash(key) & (x->size - 1);
    for (; x->slots[at]; at = (at + 1) & (x->size - 1))
        if (same_row(&r->rows[x->slots[at] - 1], key))
            return &r->rows[x->slots[at] - 1];
    if (!new_row(r, key))
        return NULL;
    x->slots[at] = r->row_count;
    return &r->rows[r->row_count - 1];
}

/* ---- what the user asked to see -------------------------------------------------------------- */

static bool wanted(const struct run *r, const struct run_filter *f, const struct ncclshim_site *s,
                   uint32_t comm, int32_t rank)
{
    if (f->op >= 0 && s->op != f->op)
        return false;
    if (f->bytes_high && ((int64_t)s->bytes < f->bytes_low || (int64_t)s->bytes > f->bytes_high))
        return false;
    if (f->comm && strcmp(f->comm, r->comms[comm].name))
        return false;
    if (f->rank >= 0 && rank != f->rank)
        return false;
    return f->captured < 0 || f->captured == !!(s->flags & NCCLSHIM_SITE_CAPTURED);
}

/* ---- counting -------------------------------------------------------------------------------- */

/*
 * A captured call without stamps leaves no trace of its replays; the timed calls of the same
 * capture ran exactly as often.
 */
struct capture_runs {
    uint64_t *runs; /* by capture number */
    uint32_t size;
};

static int count_captures(struct capture_runs *c, const struct run_process *p)
{
    const struct log_file *f = p->log;

    c->size = 0;
    for (uint32_t i = 0; i < f->site_count; i++)
        /* captures are numbered from 1 as they begin, so a number above that of sites is damage */
        if (f->sites[i].capture >= c->size && f->sites[i].capture <= f->site_count + 1000000u)
            c->size = f->sites[i].capture + 1;
    c->runs = calloc(c->size + 1ull, sizeof(*c->runs));
    if (!c->runs)
        return -1;
    for (uint32_t i = 0; i < f->site_count && i < p->acc.site_cap; i++) {
        uint32_t n = f->sites[i].capture;
        if (n && n < c->size && c->runs[n] < p->acc.sites[i].runs_max)
            c->runs[n] = p->acc.sites[i].runs_max;
    }
    return 0;
}

static void count_site(struct run_row *row, const struct run_process *p,
                       const struct capture_runs *c, const struct ncclshim_site *s,
                       const struct site_accum *a)
{
    uint64_t timed = a ? a->ns.count : 0, ran = a ? a->runs_max : 0, stamped, gone;

    if (s->flags & NCCLSHIM_SITE_CAPTURED) {
        uint64_t runs = s->capture < c->size ? c->runs[s->capture] : 0;
        row->issued += runs;
        stamped = s->flags & NCCLSHIM_SITE_TIMED ? runs : 0;
    } else {
        row->issued += s->issued;
        stamped = s->stamped;
    }
    if (stamped < timed)
        stamped = timed; /* the host counts after it queued, so a live log can be one behind */
    /* What ran after the last record we saw is on its way; what is missing before it, is lost. */
    if (ran > stamped)
        ran = stamped;
    if (ran == 0 && p->acc.lost)
        ran = stamped; /* a site whose every record was overwritten */
    gone = ran > timed ? ran - timed : 0;
    row->stamped += stamped;
    row->timed += timed;
    row->lost += gone;
    row->unfinished += stamped - timed - gone;
}

static int add_site(struct run *r, struct row_index *x, const struct run_filter *f,
                    uint32_t process, const struct capture_runs *c, uint32_t site)
{
    struct run_process *p = &r->processes[process];
    const struct ncclshim_site *s = &p->log->sites[site];
    const struct site_accum *a = site < p->acc.site_cap ? &p->acc.sites[site] : NULL;
    struct run_row key = {0}, *row;
    uint32_t comm, member;

    p->row_of[site] = RUN_NONE;
    if (!s->state || s->comm >= p->log->comm_count || (comm = p->comm_of[s->comm]) == RUN_NONE)
        return 0;
    member = run_member_of(&r->comms[comm], process, s->comm);
    if (!wanted(r, f, s, comm, r->comms[comm].members[member].rank))
        return 0;
    key.comm = comm;
    key.op = s->op;
    key.dtype = s->dtype;
    key.bytes = s->bytes;
    key.algo = s->algo;
    key.proto = s->proto;
    key.channels = s->channels;
    key.warps = s->warps;
    key.captured = s->flags & NCCLSHIM_SITE_CAPTURED;
    key.part = s->flags & NCCLSHIM_SITE_PART;
    if (!(row = row_for(r, x, &key)))
        return -1;
    p->row_of[site] = (uint32_t)(row - r->rows);
    if (s->channels && s->channels != row->channels) {
        row->mixed_channels |= row->channels != 0;
        row->channels = s->channels > row->channels ? s->channels : row->channels;
    }
    row->sites++;
    count_site(row, p, c, s, a);
    if (!a)
        return 0;
    if (!hist_merge(&row->ns, &a->ns) || !hist_merge(&row->gap_ns, &a->gap_ns) ||
        !hist_merge(&row->rank_ns[member], &a->ns))
        return -1;
    return 0;
}

static int sort_rows(struct run *r);

int run_gather_rows(struct run *r, const struct run_filter *f)
{
    struct row_index x = {0};
    int rc = 0;

    for (uint32_t i = 0; i < r->process_count && rc == 0; i++) {
        struct run_process *p = &r->processes[i];
        struct capture_runs c = {0};
        p->row_of = malloc((p->log->site_count + 1) * sizeof(*p->row_of));
        if (!p->row_of || count_captures(&c, p) < 0)
            rc = -1;
        for (uint32_t s = 0; s < p->log->site_count && rc == 0; s++)
            rc = add_site(r, &x, f, i, &c, s);
        free(c.runs);
    }
    free(x.slots);
    return rc == 0 ? sort_rows(r) : -1;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int by_comm_and_time(const void *a, const void *b)
{
    const struct run_row *x = a, *y = b;

    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->ns.sum != y->ns.sum)
        return x->ns.sum > y->ns.sum ? -1 : 1;
    return x->issued > y->issued ? -1 : x->issued < y->issued;
}

static int sort_rows(struct run *r)
{
    uint32_t *new_place = run_sort(r->rows, r->row_count, sizeof(*r->rows), by_comm_and_time);

    if (!new_place)
        return -1;
    for (uint32_t i = 0; i < r->process_count; i++)
        for (uint32_t s = 0; s < r->processes[i].log->site_count; s++)
            if (r->processes[i].row_of[s] != RUN_NONE)
                r->processes[i].row_of[s] = new_place[r->processes[i].row_of[s]];
    free(new_place);
    return 0;
}
