/* SPDX-License-Identifier: Apache-2.0 */
/* Replays of captured graphs: the forward passes, like graphs of all ranks put together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/digest.h"
#include "shim/base/grow.h"
#include "shim/stats/run.h"

/* One captured call as it counts for likeness. */
struct part {
    uint32_t ring, capture;
    uint32_t comm; /* of the run */
    uint8_t op;
    uint64_t bytes;
};

static int by_capture(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    if (x->ring != y->ring)
        return x->ring < y->ring ? -1 : 1;
    if (x->capture != y->capture)
        return x->capture < y->capture ? -1 : 1;
    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->op != y->op)
        return x->op < y->op ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static struct part *captured_calls(const struct run_process *p, size_t *count)
{
    struct part *parts = malloc((p->log->site_count + 1) * sizeof(*parts));

    *count = 0;
    for (uint32_t i = 0; parts && i < p->log->site_count; i++) {
        const struct ncclshim_site *s = &p->log->sites[i];
        if (!s->state || !(s->flags & NCCLSHIM_SITE_TIMED) || !s->capture ||
            s->comm >= p->log->comm_count || p->log->comms[s->comm].ring < 0 ||
            p->comm_of[s->comm] == RUN_NONE)
            continue;
        parts[(*count)++] = (struct part){(uint32_t)p->log->comms[s->comm].ring, s->capture,
                                          p->comm_of[s->comm], s->op, s->bytes};
    }
    if (parts)
        qsort(parts, *count, sizeof(*parts), by_capture);
    return parts;
}

/* What a graph is for us: how many calls of which size, on which communicators, in any order. */
static void describe(struct run_pass *pass, const struct part *parts, size_t n)
{
    size_t from = 0;

    pass->key = DIGEST_START;
    pass->like = 0;
    for (size_t i = 0; i < n; i++) {
        pass->key = digest_bytes(pass->key, &parts[i].comm, sizeof(parts[i].comm));
        pass->key = digest_bytes(pass->key, &parts[i].op, sizeof(parts[i].op));
        pass->key = digest_bytes(pass->key, &parts[i].bytes, sizeof(parts[i].bytes));
        if (i + 1 < n && parts[i + 1].comm == parts[from].comm &&
            parts[i + 1].op == parts[from].op && parts[i + 1].bytes == parts[from].bytes)
            continue;
        if (i + 1 - from > pass->like) {
            pass->like = (uint32_t)(i + 1 - from);
            pass->op = parts[from].op;
            pass->bytes = parts[from].bytes;
        }
        from = i + 1;
    }
}

static struct run_pass *pass_for(struct run *r, const struct run_pass *like)
{
    struct run_pass *more;

    for (uint32_t i = 0; i < r->pass_count; i++)
        if (r->passes[i].key == like->key)
            return &r->passes[i];
    more = GROW(r->passes, r->pass_count);
    if (!more)
        return NULL;
    *more = *like;
    hist_init(&more->pass_ns);
    hist_init(&more->comm_ns);
    hist_init(&more->period_ns);
    return more;
}

/* Replays and graphs are counted on each rank (process and ring) alone; the largest count is told.
 */
struct tally {
    uint64_t key, passes;
    uint32_t ring, graphs;
};

static int tally_add(struct tally **all, size_t *count, const struct pass_accum *a, uint64_t key)
{
    struct tally *more;

    for (size_t i = 0; i < *count; i++)
        if ((*all)[i].key == key && (*all)[i].ring == a->ring) {
            (*all)[i].passes += a->pass_ns.count;
            (*all)[i].graphs++;
            return 0;
        }
    more = GROW(*all, *count);
    if (!more)
        return -1;
    *more = (struct tally){key, a->pass_ns.count, a->ring, 1};
    return 0;
}

static void tally_to_run(struct run *r, const struct tally *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < r->pass_count; k++) {
            struct run_pass *p = &r->passes[k];
            if (p->key != all[i].key)
                continue;
            if (p->passes < all[i].passes)
                p->passes = all[i].passes;
            if (p->graphs < all[i].graphs)
                p->graphs = all[i].graphs;
        }
}

static int gather_process(struct run *r, const struct run_process *p)
{
    struct tally *tallies = NULL;
    size_t count, tally_count = 0;
    struct part *parts = captured_calls(p, &count);
    int rc = parts ? 0 : -1;

    for (uint32_t i = 0; i < p->acc.pass_count && rc == 0; i++) {
        const struct pass_accum *a = &p->acc.passes[i];
        struct run_pass like = {0}, *pass;
        size_t from = 0, to;
        if (!a->pass_ns.count)
            continue;
        while (from < count && (parts[from].ring != a->ring || parts[from].capture != a->capture))
            from++;
        for (to = from; to < count && parts[to].ring == a->ring && parts[to].capture == a->capture;)
            to++;
        describe(&like, parts + from, to - from);
        like.calls = a->calls;
        if (!(pass = pass_for(r, &like)) || !hist_merge(&pass->pass_ns, &a->pass_ns) ||
            !hist_merge(&pass->comm_ns, &a->comm_ns) ||
            !hist_merge(&pass->period_ns, &a->period_ns) ||
            tally_add(&tallies, &tally_count, a, like.key) < 0)
            rc = -1;
    }
    if (rc == 0)
        tally_to_run(r, tallies, tally_count);
    free(tallies);
    free(parts);
    return rc;
}

static int by_total(const void *a, const void *b)
{
    const struct run_pass *x = a, *y = b;

    if (x->pass_ns.sum != y->pass_ns.sum)
        return x->pass_ns.sum > y->pass_ns.sum ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

int run_gather_passes(struct run *r)
{
    for (uint32_t i = 0; i < r->process_count; i++)
        if (gather_process(r, &r->processes[i]) < 0)
            return -1;
    if (r->pass_count) /* qsort must not be given a null pointer */
        qsort(r->passes, r->pass_count, sizeof(*r->passes), by_total);
    return 0;
}
