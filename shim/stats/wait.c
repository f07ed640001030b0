/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/stats/calls.h"
#include "shim/stats/lineup.h"
#include "shim/stats/records.h"

#define TIME_MOST \
    (INT64_MAX / 4) /* ns, the year 2043; more is no time, and sums of some would not fit */

static int lane_add(struct lineup_lane *l, const struct lineup_event *e)
{
    struct lineup_event *more = GROW(l->events, l->count);

    if (!more)
        return -1;
    *more = *e;
    return 0;
}

/* ---- gathering ------------------------------------------------------------------------------- */

/* Where the records of a site go: NULL = nowhere. */
static struct lineup_lane *lane_of(const struct run *r, struct lineup *all,
                                   const struct arrivals *out, uint32_t process, uint32_t site)
{
    const struct run_process *p = &r->processes[process];
    uint32_t comm, member;

    if (!op_synchronises(p->log->sites[site].op) || p->log->sites[site].comm >= p->log->comm_count)
        return NULL;
    comm = p->comm_of[p->log->sites[site].comm];
    if (comm == RUN_NONE || out[comm].why_not[0])
        return NULL;
    member = run_member_of(&r->comms[comm], process, p->log->sites[site].comm);
    return member == RUN_NONE ? NULL : &all[comm].lanes[member];
}

static int gather_process(const struct run *r, struct lineup *all, const struct arrivals *out,
                          uint32_t process, struct error *e)
{
    const struct run_process *p = &r->processes[process];
    const struct ncclshim_record *batch;
    struct records *records = NULL;
    struct lineup_lane **lanes = calloc(p->log->site_count + 1, sizeof(*lanes));
    uint64_t *keys = call_keys(p);
    uint32_t ring;
    long n = 0;
    int rc = 0;

    if (!lanes || !keys)
        rc = error_set(e, p->log->path, 0, "out of memory");
    for (uint32_t i = 0; rc == 0 && i < p->log->site_count; i++)
        lanes[i] = lane_of(r, all, out, process, i);
    if (rc == 0)
        rc = records_open_newest(p, WAIT_NEWEST, &records, e);
    while (rc == 0 && (n = records_next(records, &batch, &ring, e)) > 0) {
        const struct run_gpu *gpu = run_gpu_of(p, ring);
        for (long i = 0; i < n && rc == 0; i++) {
            const struct ncclshim_record *rec = &batch[i];
            struct lineup_event event;
            if (rec->site >= p->log->site_count || !lanes[rec->site] || rec->end_ns < rec->start_ns)
                continue;
            event.key = call_key(keys[rec->site], rec->run);
            event.start = (int64_t)(gpu ? clock_host(&gpu->clock, rec->start_ns) : rec->start_ns);
            if (event.start < 0 || event.start > TIME_MOST ||
                rec->end_ns - rec->start_ns > TIME_MOST)
                continue;
            event.end = event.start + (int64_t)(rec->end_ns - rec->start_ns);
            event.row = p->row_of[rec->site];
            lanes[rec->site]->gpu = gpu;
            if (lane_add(lanes[rec->site], &event) < 0)
                rc = error_set(e, p->log->path, 0, "out of memory");
        }
    }
    records_close(records);
    free(lanes);
    free(keys);
    return n < 0 ? -1 : rc;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int measure_call(struct run *r, const struct lineup *l, size_t call, struct arrivals *a)
{
    int64_t first = INT64_MAX, last = INT64_MIN, second = INT64_MIN, end = INT64_MIN;
    struct run_row *row = NULL;
    uint32_t latest = 0;

    for (uint32_t k = 0; k < l->ranks; k++) {
        const struct lineup_event *x = lineup_at(l, call, k);
        if (x->start > last) {
            second = last;
            last = x->start;
            latest = k;
        } else if (x->start > second) {
            second = x->start;
        }
        first = x->start < first ? x->start : first;
        end = x->end > end ? x->end : end;
        if (x->row != RUN_NONE)
            row = &r->rows[x->row];
    }
    if (!row)
        return 0;
    a->calls++;
    row->wait.calls++;
    if ((uint64_t)(last - second) > a->clock_error_ns) {
        a->decided++;
        a->ranks[latest].last++;
    }
    for (uint32_t k = 0; k < l->ranks; k++) {
        const struct lineup_event *x = lineup_at(l, call, k);
        uint64_t busy = (uint64_t)(x->end - x->start), wait = (uint64_t)(last - x->start);
        wait = wait < busy ? wait : busy;
        row->wait.wait_ns += wait;
        row->wait.busy_ns += busy;
        a->ranks[k].wait_ns += wait;
        a->ranks[k].busy_ns += busy;
        if (!hist_add(&a->ranks[k].late_ns, (uint64_t)(x->start - first)))
            return -1;
    }
    return hist_add(&row->wait.transfer, end > last ? (uint64_t)(end - last) : 0) ? 0 : -1;
}

static int measure_comm(struct run *r, struct lineup *l, struct arrivals *a)
{
    uint32_t rank;

    if (lineup_find(l) < 0)
        return -1;
    if (!l->calls) {
        snprintf(a->why_not, sizeof(a->why_not), "no call is on record on every rank");
        return 0;
    }
    rank = lineup_clocks(l, &a->clock_error_ns);
    if (rank)
        snprintf(a->why_not, sizeof(a->why_not),
                 "the clocks of ranks 0 and %u contradict each other, or their calls differ", rank);
    else if (!l->calls)
        snprintf(
            a->why_not, sizeof(a->why_not),
            "its ranks are on several hosts, and its calls too far apart to compare the clocks");
    if (a->why_not[0])
        return 0;
    for (size_t i = 0; i < l->calls; i++)
        if (measure_call(r, l, i, a) < 0)
            return -1;
    return 0;
}

/* The reason why a communicator can't be measured, before any record is read. */
static void look_for_reasons(const struct run_comm *c, char *why, size_t size)
{
    if (c->ranks < 2) {
        snprintf(why, size, "it has one rank");
        return;
    }
    if (c->member_count != (uint32_t)c->ranks) {
        snprintf(why, size, "%u of its %d ranks are in this run", c->member_count, c->ranks);
        return;
    }
    for (uint32_t i = 0; i < c->member_count; i++) {
        if (c->members[i].entry->ring < 0) {
            snprintf(why, size, "rank %d is counted, not timed", c->members[i].rank);
            return;
        }
    }
}

void wait_free(struct arrivals *a, const struct run *r)
{
    for (uint32_t i = 0; a && i < r->comm_count; i++) {
        for (uint32_t k = 0; a[i].ranks && k < r->comms[i].member_count; k++)
            hist_free(&a[i].ranks[k].late_ns);
        free(a[i].ranks);
    }
    free(a);
}

/* Does member k run where the first one does? */
static bool one_host(const struct run *r, const struct run_comm *c, uint32_t k)
{
    const struct ncclshim_log_header *a = &r->processes[c->members[0].process].log->head;
    const struct ncclshim_log_header *b = &r->processes[c->members[k].process].log->head;

    return !strncmp(a->boot_id, b->boot_id, sizeof(a->boot_id));
}

static int prepare(const struct run *r, struct lineup *all, struct arrivals *a)
{
    for (uint32_t i = 0; i < r->comm_count; i++) {
        uint32_t members = r->comms[i].member_count;
        all[i].ranks = members;
        all[i].lanes = calloc(members + 1, sizeof(*all[i].lanes));
        a[i].ranks = calloc(members + 1, sizeof(*a[i].ranks));
        if (!all[i].lanes || !a[i].ranks)
            return -1;
        for (uint32_t k = 0; k < members; k++) {
            hist_init(&a[i].ranks[k].late_ns);
            all[i].lanes[k].far = !one_host(r, &r->comms[i], k);
        }
        look_for_reasons(&r->comms[i], a[i].why_not, sizeof(a[i].why_not));
    }
    return 0;
}

int wait_measure(struct run *r, struct arrivals **out, struct error *e)
{
    struct arrivals *a = calloc(r->comm_count + 1, sizeof(*a));
    struct lineup *all = calloc(r->comm_count + 1, sizeof(*all));
    int rc = a && all && prepare(r, all, a) == 0 ? 0 : error_set(e, r->path, 0, "out of memory");

    for (uint32_t i = 0; i < r->process_count && rc == 0; i++)
        rc = gather_process(r, all, a, i, e);
    for (uint32_t i = 0; i < r->comm_count && rc == 0; i++)
        if (!a[i].why_not[0] && measure_comm(r, &all[i], &a[i]) < 0)
            rc = error_set(e, r->path, 0, "out of memory");
    for (uint32_t i = 0; all && i < r->comm_count; i++)
        lineup_free(&all[i]);
    free(all);
    if (rc < 0) {
        if (a)
            wait_free(a, r);
        a = NULL;
    }
    *out = a;
    return rc;
}
