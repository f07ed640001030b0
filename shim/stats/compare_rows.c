/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/compare_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/base/names.h"
#include "shim/stats/samples.h"

/* ---- rows ------------------------------------------------------------------------------------ */

static bool same_kind(const struct compare_row *c, const struct run_comm *comm,
                      const struct run_row *r)
{
    return c->op == r->op && c->bytes == r->bytes && c->dtype == r->dtype &&
           c->captured == r->captured && c->ranks == comm->ranks && !strcmp(c->comm, comm->name);
}

static int new_values(struct compare *c, struct compare_row *row)
{
    row->values = calloc(c->side_count, sizeof(*row->values));
    row->median = calloc(c->side_count, sizeof(*row->median));
    row->p99 = calloc(c->side_count, sizeof(*row->p99));
    for (size_t s = 0; row->values && s < c->side_count; s++) {
        struct compare_value *v = &row->values[s];
        hist_init(&v->ns);
        v->algo = v->proto = NCCLSHIM_NO_CHOICE;
        v->medians = calloc(c->sides[s].run_count, sizeof(*v->medians));
        v->p99s = calloc(c->sides[s].run_count, sizeof(*v->p99s));
        if (!v->medians || !v->p99s)
            return -1;
    }
    return row->values && row->median && row->p99 ? 0 : -1;
}

static struct compare_row *row_for(struct compare *c, const struct run_comm *comm,
                                   const struct run_row *r)
{
    struct compare_row *row;

    for (size_t i = 0; i < c->row_count; i++)
        if (same_kind(&c->rows[i], comm, r))
            return &c->rows[i];
    row = GROW(c->rows, c->row_count);
    if (!row)
        return NULL;
    snprintf(row->comm, sizeof(row->comm), "%s", comm->name);
    row->named = comm->named;
    row->ranks = comm->ranks;
    row->op = r->op;
    row->bytes = r->bytes;
    row->dtype = r->dtype;
    row->captured = r->captured;
    return new_values(c, row) < 0 ? NULL : row;
}

/* ---- one run --------------------------------------------------------------------------------- */

/* What a run has for one row of the comparison; several of its rows where NCCL chose differently.
 */
struct gathered {
    struct hist ns;
    struct sample *samples;
    size_t count;
};

static int by_start(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;

    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static int take_samples(struct gathered *g, const struct row_samples *from)
{
    struct sample *more;

    if (!from->count)
        return 0;
    more = realloc(g->samples, (g->count + from->count) * sizeof(*more));
    if (!more)
        return -1;
    memcpy(more + g->count, from->samples, from->count * sizeof(*more));
    g->samples = more;
    g->count += from->count;
    qsort(g->samples, g->count, sizeof(*more), by_start);
    return 0;
}

static struct estimate estimate_of(const struct gathered *g, const uint64_t *in_time,
                                   const uint64_t *sorted, double q)
{
    struct estimate e = estimate_quantile(in_time, sorted, g->count, q);

    if (!g->count)
        return estimate_from_hist(&g->ns, q);
    return g->count == g->ns.count ? e : estimate_moved(e, &g->ns, q);
}

static int estimate_row(struct compare_value *v, size_t run, const struct gathered *g)
{
    uint64_t *in_time = malloc((g->count + 1) * sizeof(*in_time));
    uint64_t *sorted = malloc((g->count + 1) * sizeof(*sorted));

    if (!in_time || !sorted) {
        free(in_time);
        free(sorted);
        return -1;
    }
    for (size_t i = 0; i < g->count; i++)
        in_time[i] = sorted[i] = g->samples[i].ns;
    if (g->count)
        qsort(sorted, g->count, sizeof(*sorted), by_size);
    v->medians[run] = estimate_of(g, in_time, sorted, 0.5);
    v->p99s[run] = estimate_of(g, in_time, sorted, 0.99);
    free(in_time);
    free(sorted);
    return 0;
}

static int take_row(struct compare_value *v, struct gathered *g, const struct run_row *row,
                    const struct row_samples *samples)
{
    v->issued += row->issued;
    v->timed += row->timed;
    v->total_ns += row->ns.sum;
    if (row->issued > v->choice_calls) {
        v->choice_calls = row->issued;
        v->algo = row->algo;
        v->proto = row->proto;
        v->channels = row->channels;
    }
    if (!hist_merge(&v->ns, &row->ns) || !hist_merge(&g->ns, &row->ns))
        return -1;
    return take_samples(g, samples);
}

static int gather_run(struct compare *c, size_t side, size_t run, struct error *e)
{
    const struct run *r = c->sides[side].runs[run];
    struct row_samples *samples;
    struct gathered *all;
    size_t room;
    int rc = 0;

    if (samples_gather(r, &samples, e) < 0)
        return -1;
    room = c->row_count + r->row_count + 1;
    all = calloc(room, sizeof(*all));
    for (uint32_t i = 0; all && i < room; i++)
        hist_init(&all[i].ns);
    for (uint32_t i = 0; all && i < r->row_count && rc == 0; i++) {
        const struct run_row *row = &r->rows[i];
        struct compare_row *to;
        if (row->part) /* has no time of its own */
            continue;
        to = row_for(c, &r->comms[row->comm], row);
        if (!to || take_row(&to->values[side], &all[to - c->rows], row, &samples[i]) < 0)
            rc = -1;
    }
    for (size_t i = 0; all && i < c->row_count && rc == 0; i++)
        rc = estimate_row(&c->rows[i].values[side], run, &all[i]);
    for (size_t i = 0; all && i < room; i++) {
        hist_free(&all[i].ns);
        free(all[i].samples);
    }
    samples_free(samples, r);
    if (!all || rc < 0)
        rc = error_set(e, r->path, 0, "out of memory");
    free(all);
    return rc;
}

int compare_gather(struct compare *c, struct error *e)
{
    for (size_t s = 0; s < c->side_count; s++)
        for (size_t k = 0; k < c->sides[s].run_count; k++)
            if (gather_run(c, s, k, e) < 0)
                return -1;
    for (size_t i = 0; i < c->row_count; i++)
        for (size_t s = 0; s < c->side_count; s++) {
            struct compare_value *v = &c->rows[i].values[s];
            v->median = estimate_of_runs(v->medians, c->sides[s].run_count);
            v->p99 = estimate_of_runs(v->p99s, c->sides[s].run_count);
        }
    return 0;
}
