/* SPDX-License-Identifier: Apache-2.0 */
/* Which communicators of which processes are one and the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/stats/run.h"

/* Two ranks of one communicator never have the same number: then it is another one that looks
 * alike. */
static bool has_rank(const struct run_comm *c, int32_t rank)
{
    for (uint32_t i = 0; i < c->member_count; i++)
        if (c->members[i].rank == rank)
            return true;
    return false;
}

static bool same_comm(const struct run_comm *c, const struct ncclshim_comm *entry)
{
    if (c->ranks != entry->ranks)
        return false;
    if (c->hash && entry->hash)
        return c->hash == entry->hash && !has_rank(c, entry->rank);
    return c->id_digest && c->id_digest == entry->id_digest && !has_rank(c, entry->rank);
}

static struct run_comm *comm_for(struct run *r, const struct ncclshim_comm *entry, uint32_t *index)
{
    struct run_comm *more;

    /* The newest first: a communicator made anew from the same id is matched in order. */
    for (uint32_t i = r->comm_count; i-- > 0;)
        if (same_comm(&r->comms[i], entry)) {
            *index = i;
            return &r->comms[i];
        }
    *index = r->comm_count;
    more = GROW(r->comms, r->comm_count);
    if (!more)
        return NULL;
    more->ranks = entry->ranks;
    more->nodes = entry->nodes;
    more->counted = true;
    return more;
}

static int add_member(struct run_comm *c, uint32_t process, uint32_t number,
                      struct ncclshim_comm *entry)
{
    struct run_member *more = GROW(c->members, c->member_count);

    if (!more)
        return -1;
    *more = (struct run_member){process, number, entry->rank, entry};
    if (!c->hash)
        c->hash = entry->hash;
    if (!c->id_digest)
        c->id_digest = entry->id_digest;
    if (!c->named && entry->name[0]) {
        snprintf(c->name, sizeof(c->name), "%.*s", (int)sizeof(entry->name), entry->name);
        c->named = true;
    }
    if (c->nodes < entry->nodes)
        c->nodes = entry->nodes;
    c->flags |= entry->flags;
    c->timed |= entry->ring >= 0;
    c->counted &= (entry->flags & NCCLSHIM_COMM_COUNTED) != 0;
    c->wrapped_calls += entry->wrapped_calls;
    c->missed_calls += entry->missed_calls;
    c->failed_calls += entry->failed_calls;
    return 0;
}

static int by_rank(const void *a, const void *b)
{
    const struct run_member *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

uint32_t run_member_of(const struct run_comm *c, uint32_t process, uint32_t comm)
{
    for (uint32_t i = 0; i < c->member_count; i++)
        if (c->members[i].process == process && c->members[i].comm == comm)
            return i;
    return RUN_NONE;
}

static int by_total(const void *a, const void *b)
{
    const struct run_comm *x = a, *y = b;

    return x->total_ns > y->total_ns ? -1 : x->total_ns < y->total_ns;
}

static void sum_times(struct run *r)
{
    for (uint32_t i = 0; i < r->process_count; i++) {
        struct run_process *p = &r->processes[i];
        for (uint32_t s = 0; s < p->log->site_count && s < p->acc.site_cap; s++) {
            uint32_t comm = p->log->sites[s].comm;
            if (comm < p->log->comm_count && p->comm_of[comm] != RUN_NONE)
                r->comms[p->comm_of[comm]].total_ns += p->acc.sites[s].ns.sum;
        }
    }
}

/* Largest time first, and everything that points at a communicator moved along. */
static int sort_comms(struct run *r)
{
    uint32_t *new_place = run_sort(r->comms, r->comm_count, sizeof(*r->comms), by_total);

    if (!new_place)
        return -1;
    for (uint32_t i = 0; i < r->process_count; i++)
        for (uint32_t k = 0; k < r->processes[i].log->comm_count; k++)
            if (r->processes[i].comm_of[k] != RUN_NONE)
                r->processes[i].comm_of[k] = new_place[r->processes[i].comm_of[k]];
    free(new_place);
    return 0;
}

int run_match_comms(struct run *r)
{
    for (uint32_t i = 0; i < r->process_count; i++) {
        struct run_process *p = &r->processes[i];
        p->comm_of = malloc((p->log->comm_count + 1) * sizeof(*p->comm_of));
        if (!p->comm_of)
            return -1;
        for (uint32_t k = 0; k < p->log->comm_count; k++) {
            struct ncclshim_comm *entry = &p->log->comms[k];
            struct run_comm *c;
            p->comm_of[k] = RUN_NONE;
            if (entry->state == NCCLSHIM_COMM_FREE)
                continue;
            if (!(c = comm_for(r, entry, &p->comm_of[k])) || add_member(c, i, k, entry) < 0)
                return -1;
        }
    }
    for (uint32_t i = 0; i < r->comm_count; i++) {
        struct run_comm *c = &r->comms[i];
        if (!c->named)
            snprintf(c->name, sizeof(c->name), "%u", i + 1);
        r->missed_calls += c->missed_calls;
        qsort(c->members, c->member_count, sizeof(*c->members), by_rank);
    }
    sum_times(r);
    return sort_comms(r);
}
