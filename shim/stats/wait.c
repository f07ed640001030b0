/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/stats/calls.h"
#include "shim/stats/records.h"

struct event {
    uint64_t key;
    int64_t start, end; /* host clock */
    uint32_t row;
};

/* The events of one rank. */
struct lane {
    struct event *events;
    size_t count;
    const struct run_gpu *gpu;
};

struct lanes {
    struct lane *lane; /* by member */
};

static int lane_add(struct lane *l, const struct event *e)
{
    struct event *more = GROW(l->events, l->count);

    if (!more)
        return -1;
    *more = *e;
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    return x->key < y->key ? -1 : x->key > y->key;
}

/* ---- gathering ------------------------------------------------------------------------------- */

/* Where the records of a site go: NULL = nowhere. */
static struct lane *lane_of(const struct run *r, struct lanes *all, const struct arrivals *out,
                            uint32_t process, uint32_t site)
{
    const struct run_process *p = &r->processes[process];
    uint32_t comm, member;

    if (!op_synchronises(p->log->sites[site].op) || p->log->sites[site].comm >= p->log->comm_count)
        return NULL;
    comm = p->comm_of[p->log->sites[site].comm];
    if (comm == RUN_NONE || out[comm].why_not[0])
        return NULL;
    member = run_member_of(&r->comms[comm], process, p->log->sites[site].comm);
    return member == RUN_NONE ? NULL : &all[comm].lane[member];
}

static int gather_process(const struct run *r, struct lanes *all, const struct arrivals *out,
                          uint32_t process, struct error *e)
{
    const struct run_process *p = &r->processes[process];
    const struct ncclshim_record *batch;
    struct records *records = NULL;
    struct lane **lanes = calloc(p->log->site_count + 1, sizeof(*lanes));
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
            struct event event;
            if (rec->site >= p->log->site_count || !lanes[rec->site] || rec->end_ns < rec->start_ns)
                continue;
            event.key = call_key(keys[rec->site], rec->run);
            event.start = (int64_t)(gpu ? clock_host(&gpu->clock, rec->start_ns) : rec->start_ns);
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

/* ---- lining up ------------------------------------------------------------------------------- */

/* Events of one call on all ranks: indices into the lanes, ranks side by side. */
struct matches {
    uint32_t *at;
    size_t count;
};

static int match(const struct lanes *l, uint32_t ranks, struct matches *m)
{
    size_t *pos = calloc(ranks, sizeof(*pos));

    m->count = 0;
    m->at = malloc((l->lane[0].count + 1) * ranks * sizeof(*m->at));
    if (!pos || !m->at) {
        free(pos);
        return -1;
    }
    for (size_t i = 0; i < l->lane[0].count; i++) {
        uint64_t key = l->lane[0].events[i].key;
        uint32_t *row = m->at + m->count * ranks, k;
        row[0] = (uint32_t)i;
        for (k = 1; k < ranks; k++) {
            const struct lane *lane = &l->lane[k];
            while (pos[k] < lane->count && lane->events[pos[k]].key < key)
                pos[k]++;
            if (pos[k] == lane->count || lane->events[pos[k]].key != key)
                break;
            row[k] = (uint32_t)pos[k];
        }
        m->count += k == ranks;
    }
    free(pos);
    return 0;
}

static const struct event *event_of(const struct lanes *l, const struct matches *m, uint32_t ranks,
                                    size_t call, uint32_t rank)
{
    return &l->lane[rank].events[m->at[call * ranks + rank]];
}

static bool one_gpu(const struct run_gpu *a, const struct run_gpu *b)
{
    static const uint8_t unknown[16];

    return a && b && memcmp(a->gpu.uuid, unknown, 16) && !memcmp(a->gpu.uuid, b->gpu.uuid, 16);
}

/*
 * By how much rank k's clock must be moved against rank 0's so that no call ends on one of them
 * before it began on the other. Returns false when no shift does.
 */
static bool shift_of(const struct lanes *l, const struct matches *m, uint32_t ranks, uint32_t k,
                     int64_t *shift, uint64_t *error)
{
    int64_t low = INT64_MIN, high = INT64_MAX, limit;
    const struct run_gpu *a = l->lane[0].gpu, *b = l->lane[k].gpu;
    uint64_t anchors = UINT64_MAX;

    for (size_t i = 0; i < m->count; i++) {
        const struct event *x = event_of(l, m, ranks, i, 0), *y = event_of(l, m, ranks, i, k);
        if (x->start - y->end > low)
            low = x->start - y->end;
        if (x->end - y->start < high)
            high = x->end - y->start;
    }
    if (low > high)
        return false;
    *shift = low > 0 ? low : high < 0 ? high : 0;
    *error = 0;
    if (one_gpu(a, b))
        return *shift == 0;
    if (a && b && a->clock.known && b->clock.known)
        anchors = clock_error(&a->clock) + clock_error(&b->clock);
    limit = high - *shift > *shift - low ? high - *shift : *shift - low;
    *error = (uint64_t)limit < anchors ? (uint64_t)limit : anchors;
    return true;
}

static int line_up(const struct lanes *l, const struct matches *m, uint32_t ranks,
                   struct arrivals *a)
{
    for (uint32_t k = 1; k < ranks; k++) {
        int64_t shift;
        uint64_t error;
        if (!shift_of(l, m, ranks, k, &shift, &error)) {
            snprintf(a->why_not, sizeof(a->why_not),
                     "the clocks of ranks 0 and %u contradict each other, or their calls differ",
                     k);
            return 0;
        }
        for (size_t i = 0; shift && i < l->lane[k].count; i++) {
            l->lane[k].events[i].start += shift;
            l->lane[k].events[i].end += shift;
        }
        if (error > a->clock_error_ns)
            a->clock_error_ns = error;
    }
    return 1;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int measure_call(struct run *r, const struct lanes *l, const struct matches *m,
                        uint32_t ranks, size_t call, struct arrivals *a)
{
    int64_t first = INT64_MAX, last = INT64_MIN, second = INT64_MIN, end = INT64_MIN;
    struct run_row *row = NULL;
    uint32_t latest = 0;

    for (uint32_t k = 0; k < ranks; k++) {
        const struct event *x = event_of(l, m, ranks, call, k);
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
    for (uint32_t k = 0; k < ranks; k++) {
        const struct event *x = event_of(l, m, ranks, call, k);
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

static int measure_comm(struct run *r, uint32_t comm, const struct lanes *l, struct arrivals *a)
{
    uint32_t ranks = r->comms[comm].member_count;
    struct matches m = {0};
    int rc = 0;

    for (uint32_t k = 0; k < ranks; k++)
        if (l->lane[k].count)
            qsort(l->lane[k].events, l->lane[k].count, sizeof(struct event), by_key);
    if (match(l, ranks, &m) < 0) {
        free(m.at);
        return -1;
    }
    if (!m.count)
        snprintf(a->why_not, sizeof(a->why_not), "no call is on record on every rank");
    else if (line_up(l, &m, ranks, a))
        for (size_t i = 0; i < m.count && rc == 0; i++)
            rc = measure_call(r, l, &m, ranks, i, a);
    free(m.at);
    return rc;
}

/* The reason why a communicator can't be measured, before any record is read. */
static void look_for_reasons(const struct run *r, const struct run_comm *c, char *why, size_t size)
{
    const struct ncclshim_log_header *home = &r->processes[c->members[0].process].log->head;

    if (c->ranks < 2) {
        snprintf(why, size, "it has one rank");
        return;
    }
    if (c->member_count != (uint32_t)c->ranks) {
        snprintf(why, size, "%u of its %d ranks are in this run", c->member_count, c->ranks);
        return;
    }
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct ncclshim_log_header *h = &r->processes[c->members[i].process].log->head;
        if (c->members[i].entry->ring < 0) {
            snprintf(why, size, "rank %d is counted, not timed", c->members[i].rank);
            return;
        }
        if (strncmp(h->boot_id, home->boot_id, sizeof(h->boot_id))) {
            snprintf(why, size, "its ranks are on several hosts, whose clocks differ");
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

static void free_lanes(struct lanes *all, const struct run *r)
{
    for (uint32_t i = 0; all && i < r->comm_count; i++) {
        for (uint32_t k = 0; all[i].lane && k < r->comms[i].member_count; k++)
            free(all[i].lane[k].events);
        free(all[i].lane);
    }
    free(all);
}

static int prepare(const struct run *r, struct lanes *all, struct arrivals *a)
{
    for (uint32_t i = 0; i < r->comm_count; i++) {
        uint32_t members = r->comms[i].member_count;
        all[i].lane = calloc(members + 1, sizeof(*all[i].lane));
        a[i].ranks = calloc(members + 1, sizeof(*a[i].ranks));
        if (!all[i].lane || !a[i].ranks)
            return -1;
        for (uint32_t k = 0; k < members; k++)
            hist_init(&a[i].ranks[k].late_ns);
        look_for_reasons(r, &r->comms[i], a[i].why_not, sizeof(a[i].why_not));
    }
    return 0;
}

int wait_measure(struct run *r, struct arrivals **out, struct error *e)
{
    struct arrivals *a = calloc(r->comm_count + 1, sizeof(*a));
    struct lanes *all = calloc(r->comm_count + 1, sizeof(*all));
    int rc = a && all && prepare(r, all, a) == 0 ? 0 : error_set(e, r->path, 0, "out of memory");

    for (uint32_t i = 0; i < r->process_count && rc == 0; i++)
        rc = gather_process(r, all, a, i, e);
    for (uint32_t i = 0; i < r->comm_count && rc == 0; i++)
        if (!a[i].why_not[0] && measure_comm(r, i, &all[i], &a[i]) < 0)
            rc = error_set(e, r->path, 0, "out of memory");
    free_lanes(all, r);
    if (rc < 0) {
        if (a)
            wait_free(a, r);
        a = NULL;
    }
    *out = a;
    return rc;
}
