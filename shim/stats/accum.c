/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/accum.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int accum_init(struct accum *a)
{
    memset(a, 0, sizeof(*a));
    a->calls_counted = UINT32_MAX;
    return 0;
}

static void free_site(struct site_accum *s)
{
    hist_free(&s->ns);
    hist_free(&s->gap_ns);
}

static void free_pass(struct pass_accum *p)
{
    hist_free(&p->pass_ns);
    hist_free(&p->comm_ns);
    hist_free(&p->period_ns);
}

void accum_free(struct accum *a)
{
    for (uint32_t i = 0; i < a->site_cap; i++)
        free_site(&a->sites[i]);
    for (uint32_t i = 0; i < a->pass_count; i++)
        free_pass(&a->passes[i]);
    free(a->sites);
    free(a->passes);
    map_free(&a->last_end);
    map_free(&a->calls);
    memset(a, 0, sizeof(*a));
    a->calls_counted = UINT32_MAX;
}

/* The array grows with the sites that were really met, not with the table. */
int accum_reserve(struct accum *a, uint32_t site)
{
    uint64_t cap = a->site_cap + (uint64_t)a->site_cap / 4;
    struct site_accum *sites;

    if (site < a->site_cap)
        return 0;
    if (cap < (uint64_t)site + 1)
        cap = (uint64_t)site + 1;
    sites = realloc(a->sites, cap * sizeof(*sites));
    if (!sites)
        return -1;
    a->sites = sites;
    memset(sites + a->site_cap, 0, (cap - a->site_cap) * sizeof(*sites));
    for (uint64_t i = a->site_cap; i < cap; i++) {
        hist_init(&sites[i].ns);
        hist_init(&sites[i].gap_ns);
    }
    a->site_cap = (uint32_t)cap;
    return 0;
}

static bool timed_capture(const struct ncclshim_site *s)
{
    const uint8_t both = NCCLSHIM_SITE_CAPTURED | NCCLSHIM_SITE_TIMED;

    return s->state && s->capture && (s->flags & both) == both;
}

/*
 * How many timed calls each capture has. Counted again when the table has grown, and while it has
 * entries that are not yet published: a capture may still have been under way when it was read.
 */
static int count_calls(struct accum *a, const struct ncclshim_site *sites, uint32_t site_count)
{
    bool settled = true;
    uint64_t *calls;

    map_free(&a->calls);
    for (uint32_t i = 0; i < site_count; i++) {
        settled = settled && sites[i].state;
        if (!timed_capture(&sites[i]))
            continue;
        calls = map_at(&a->calls, sites[i].capture);
        if (!calls)
            return -1;
        ++*calls;
    }
    for (uint32_t i = 0; i < a->pass_count; i++) {
        calls = map_find(&a->calls, a->passes[i].capture);
        a->passes[i].calls = calls ? (uint32_t)*calls : 0;
    }
    a->calls_counted = settled ? site_count : UINT32_MAX;
    return 0;
}

static int pass_order(const struct pass_accum *p, uint32_t ring, uint32_t capture)
{
    if (p->ring != ring)
        return p->ring < ring ? -1 : 1;
    return p->capture < capture ? -1 : p->capture > capture;
}

static struct pass_accum *insert_pass(struct accum *a, uint32_t at, uint32_t ring, uint32_t capture)
{
    uint64_t *calls = map_find(&a->calls, capture);
    struct pass_accum *p;

    if (a->pass_count == a->pass_cap) {
        uint32_t cap = a->pass_cap ? 2 * a->pass_cap : 16;
        p = realloc(a->passes, cap * sizeof(*p));
        if (!p)
            return NULL;
        a->passes = p;
        a->pass_cap = cap;
    }
    p = &a->passes[at];
    memmove(p + 1, p, (a->pass_count - at) * sizeof(*p));
    a->pass_count++;
    memset(p, 0, sizeof(*p));
    p->ring = ring;
    p->capture = capture;
    p->calls = calls ? (uint32_t)*calls : 0;
    hist_init(&p->pass_ns);
    hist_init(&p->comm_ns);
    hist_init(&p->period_ns);
    return p;
}

static struct pass_accum *pass_at(struct accum *a, uint32_t ring, uint32_t capture)
{
    uint32_t low = 0, high = a->pass_count, middle;
    int order;

    while (low < high) {
        middle = low + (high - low) / 2;
        order = pass_order(&a->passes[middle], ring, capture);
        if (order == 0)
            return &a->passes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return insert_pass(a, low, ring, capture);
}

/* End the replay under way; it counts when all its calls were seen. */
static void close_pass(struct pass_accum *p)
{
    if (p->seen == 0)
        return;
    if (p->seen == p->calls) {
        hist_add(&p->pass_ns, p->end_ns - p->start_ns);
        hist_add(&p->comm_ns, p->sum_ns);
        if (p->last_start_ns && p->start_ns >= p->last_start_ns)
            hist_add(&p->period_ns, p->start_ns - p->last_start_ns);
        p->last_start_ns = p->start_ns;
    } else {
        p->incomplete++;
        p->last_start_ns = 0;
    }
    p->seen = 0;
}

static void feed_pass(struct pass_accum *p, const struct ncclshim_record *r)
{
    if (p->seen && p->run != r->run)
        close_pass(p);
    if (p->seen == 0) {
        if (r->run != p->run + 1)
            p->last_start_ns = 0; /* a replay between was lost: no period from the one before */
        p->run = r->run;
        p->start_ns = r->start_ns;
        p->end_ns = r->end_ns;
        p->sum_ns = 0;
    }
    p->seen++;
    p->sum_ns += r->end_ns - r->start_ns;
    if (r->start_ns < p->start_ns)
        p->start_ns = r->start_ns;
    if (r->end_ns > p->end_ns)
        p->end_ns = r->end_ns;
    if (p->seen == p->calls) /* a live reader sees it now, not at the next replay */
        close_pass(p);
}

/* Run numbers have 32 bits in a record: carry them on from the largest seen. */
static void note_run(struct site_accum *s, uint32_t run)
{
    int32_t ahead;

    if (s->runs_max == 0) {
        s->runs_max = (uint64_t)run + 1;
        return;
    }
    ahead = (int32_t)(run - (uint32_t)(s->runs_max - 1));
    if (ahead > 0)
        s->runs_max += (uint32_t)ahead;
}

static void feed_site(struct site_accum *s, const struct ncclshim_record *r, uint64_t *last_end)
{
    hist_add(&s->ns, r->end_ns - r->start_ns);
    /* A call that began before the last one ended (two streams) has no gap before it: 0. */
    if (*last_end)
        hist_add(&s->gap_ns, r->start_ns > *last_end ? r->start_ns - *last_end : 0);
    if (r->end_ns > *last_end)
        *last_end = r->end_ns;
    if (s->first_start_ns == 0)
        s->first_start_ns = r->start_ns;
    if (r->end_ns > s->last_end_ns)
        s->last_end_ns = r->end_ns;
    note_run(s, r->run);
}

/* What the last record looked up; the next one mostly needs the same. */
struct lookup {
    uint64_t *last_end;
    uint32_t comm;
    struct pass_accum *pass;
};

static int feed_one(struct accum *a, uint32_t ring, const struct ncclshim_record *r,
                    const struct ncclshim_site *site, struct lookup *l)
{
    if (!l->last_end || l->comm != site->comm) {
        /* Ring numbers are small: the key can't be the one that the map keeps for itself. */
        l->last_end = map_at(&a->last_end, (uint64_t)(ring & 0xffff) << 32 | site->comm);
        l->comm = site->comm;
        if (!l->last_end)
            return -1;
    }
    feed_site(&a->sites[r->site], r, l->last_end);
    if (!timed_capture(site))
        return 0;
    if (!l->pass || l->pass->capture != site->capture)
        l->pass = pass_at(a, ring, site->capture);
    if (!l->pass)
        return -1;
    feed_pass(l->pass, r);
    return 0;
}

#define AHEAD 6 /* records: far enough to hide memory, near enough to still be in cache when used \
                 */

static inline void prefetch(const struct accum *a, const struct ncclshim_record *r,
                            const struct ncclshim_site *sites, uint32_t site_count)
{
    if (r->site >= site_count || r->site >= a->site_cap)
        return;
    __builtin_prefetch(&sites[r->site]);
    __builtin_prefetch(&a->sites[r->site].ns, 1);
    __builtin_prefetch(&a->sites[r->site].gap_ns, 1);
    __builtin_prefetch(&a->sites[r->site].first_start_ns, 1);
}

int accum_feed(struct accum *a, uint32_t ring, const struct ncclshim_record *r, size_t n,
               const struct ncclshim_site *sites, uint32_t site_count)
{
    struct lookup l = {0};

    if (n && a->calls_counted != site_count && count_calls(a, sites, site_count) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            prefetch(a, &r[i + AHEAD], sites, site_count);
        a->records++;
        if (r[i].site >= site_count || !sites[r[i].site].state || r[i].end_ns < r[i].start_ns) {
            a->bad++;
            continue;
        }
        if (r[i].site >= a->site_cap && accum_reserve(a, r[i].site) < 0)
            return -1;
        if (feed_one(a, ring, &r[i], &sites[r[i].site], &l) < 0)
            return -1;
    }
    return 0;
}

void accum_break(struct accum *a, uint32_t ring)
{
    for (uint32_t i = 0; i < a->pass_count; i++)
        if (a->passes[i].ring == ring) {
            close_pass(&a->passes[i]);
            a->passes[i].last_start_ns = 0;
        }
    for (uint32_t i = 0; i < a->last_end.cap; i++)
        if (a->last_end.slots[2 * i] && (a->last_end.slots[2 * i] - 1) >> 32 == (ring & 0xffff))
            a->last_end.slots[2 * i + 1] = 0;
}

void accum_finish(struct accum *a)
{
    for (uint32_t i = 0; i < a->pass_count; i++)
        close_pass(&a->passes[i]);
}
