/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/bench/bench_plan.h"

#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"

#define PLACE_ALIGN 512u

uint32_t bench_call_end(const struct workload *w, uint32_t step)
{
    uint32_t end = step + 1;

    if (w->steps[step].group)
        while (end < w->step_count && w->steps[end].group == w->steps[step].group &&
               w->steps[end].graph == w->steps[step].graph)
            end++;
    return end;
}

/* ---- units ----------------------------------------------------------------------------------- */

static uint64_t placed(uint64_t *used, uint64_t bytes)
{
    uint64_t at = *used;

    *used += (bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
    return at;
}

static struct bench_unit *add_unit(struct bench_plan *p, bool graph)
{
    struct bench_unit *u = GROW(p->units, p->unit_count);

    if (u)
        *u = (struct bench_unit){.graph = graph, .first = p->op_count};
    return u;
}

/* One call (a step or a group) more in the last unit. Every call has buffers of its own. */
static int add_call(struct bench_plan *p, const struct workload *w, int ranks, uint32_t step,
                    bool gaps, uint64_t *used)
{
    struct bench_unit *u = &p->units[p->unit_count - 1];
    uint32_t end = bench_call_end(w, step);

    for (uint32_t i = step; i < end; i++) {
        const struct workload_step *s = &w->steps[i];
        struct bench_op *o = GROW(p->ops, p->op_count);
        int n = workload_comm_ranks(&w->comms[s->comm], ranks);

        if (!o)
            return -1;
        *o = (struct bench_op){.step = i, .call = u->count, .opens = end - step > 1 && i == step,
                               .closes = end - step > 1 && i + 1 == end,
                               .gap_ns = gaps ? s->gap_ns : 0};
        o->send_at = placed(used, s->in_place ? workload_bytes(s, n) : workload_send_bytes(s, n));
        o->recv_at = s->in_place ? o->send_at : placed(used, workload_recv_bytes(s, n));
        u->count++;
    }
    u->calls++;
    if (*used > p->arena_bytes)
        p->arena_bytes = *used;
    return 0;
}

static uint64_t call_memory(const struct workload *w, int ranks, uint32_t step)
{
    uint64_t sum = 0;

    for (uint32_t i = step; i < bench_call_end(w, step); i++) {
        const struct workload_step *s = &w->steps[i];
        int n = workload_comm_ranks(&w->comms[s->comm], ranks);

        sum += s->in_place ? workload_bytes(s, n)
                           : workload_send_bytes(s, n) + workload_recv_bytes(s, n);
    }
    return sum;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool same_kind(const struct workload *w, const struct bench_row *row, uint32_t step)
{
    const struct workload_step *a = &w->steps[row->step], *b = &w->steps[step];

    if (row->graph != (b->graph != 0) || row->steps != bench_call_end(w, step) - step)
        return false;
    for (uint32_t i = 0; i < row->steps; i++)
        if (!workload_same_call(&a[i], &b[i]))
            return false;
    return true;
}

static int fill_row_unit(struct bench_plan *p, const struct workload *w,
                         const struct bench_plan_options *o, struct bench_row *row)
{
    uint64_t memory = call_memory(w, o->ranks, row->step), used = 0;
    uint32_t calls = o->calls;

    if (!calls) {
        calls = memory ? (uint32_t)(BENCH_ARENA / memory < BENCH_CALLS ? BENCH_ARENA / memory
                                                                       : BENCH_CALLS)
                       : BENCH_CALLS;
        if (calls < 2)
            calls = 2;
    }
    row->unit = p->unit_count;
    if (!add_unit(p, row->graph))
        return -1;
    while (calls--)
        if (add_call(p, w, o->ranks, row->step, false, &used) < 0)
            return -1;
    return 0;
}

static int make_rows(struct bench_plan *p, const struct workload *w,
                     const struct bench_plan_options *o)
{
    for (uint32_t step = 0, end; step < w->step_count; step = end) {
        struct bench_row *row = NULL;

        end = bench_call_end(w, step);
        for (uint32_t r = 0; r < p->row_count && !row; r++)
            if (same_kind(w, &p->rows[r], step))
                row = &p->rows[r];
        if (!row) {
            row = GROW(p->rows, p->row_count);
            if (!row)
                return -1;
            row->step = step;
            row->steps = end - step;
            row->graph = w->steps[step].graph != 0;
            for (uint32_t i = step; i < end; i++)
                row->bytes += workload_bytes(
                    &w->steps[i], workload_comm_ranks(&w->comms[w->steps[i].comm], o->ranks));
        }
        row->weight += w->steps[step].runs;
    }
    for (uint32_t r = 0; r < p->row_count; r++)
        if (fill_row_unit(p, w, o, &p->rows[r]) < 0)
            return -1;
    return 0;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* Rounded; what is rarer than an eighth of the most frequent does not come in a pass. */
static uint32_t times_of(uint64_t runs, uint64_t most)
{
    return (uint32_t)((BENCH_PASS_TIMES * runs + most / 2) / most);
}

static int add_turn(struct bench_plan *p, uint32_t unit, uint32_t times)
{
    struct bench_turn *t = GROW(p->turns, p->turn_count);

    if (!t)
        return -1;
    *t = (struct bench_turn){.unit = unit, .times = times};
    p->pass_calls += (uint64_t)times * p->units[unit].calls;
    return 0;
}

/*

 * The block (a graph, or one eager call) that begins at `step`, as a unit and a turn; where it

 * ends.

 */
static int64_t add_block(struct bench_plan *p, const struct workload *w, int ranks, uint32_t step,
                         uint32_t times)
{
    const struct workload_step *s = &w->steps[step];
    uint64_t used = 0;
    uint32_t end = step;

    if (times && !add_unit(p, s->graph != 0))
        return -1;
    do {
        if (times && add_call(p, w, ranks, end, true, &used) < 0)
            return -1;
        end = bench_call_end(w, end);
    } while (s->graph && end < w->step_count && w->steps[end].graph == s->graph);
    if (times && add_turn(p, p->unit_count - 1, times) < 0)
        return -1;
    return end;
}

static int make_pass(struct bench_plan *p, const struct workload *w, int ranks)
{
    uint64_t most = 1;
    int64_t end;

    for (uint32_t i = 0; i < w->step_count; i++)
        if (w->steps[i].runs > most)
            most = w->steps[i].runs;
    for (uint32_t step = 0; step < w->step_count; step = (uint32_t)end) {
        end = add_block(p, w, ranks, step, times_of(w->steps[step].runs, most));
        if (end < 0)
            return -1;
    }
    return 0;
}

int bench_plan_make(struct bench_plan *p, const struct workload *w,
                    const struct bench_plan_options *o, struct error *e)
{
    int rc = workload_check(w, o->ranks, e);

    memset(p, 0, sizeof(*p));
    if (rc < 0)
        return rc;
    if (o->rows)
        rc = make_rows(p, w, o);
    if (rc == 0 && o->pass && w->sequence)
        rc = make_pass(p, w, o->ranks);
    if (rc < 0) {
        bench_plan_free(p);
        return error_set(e, NULL, 0, "out of memory for a workload of %u steps", w->step_count);
    }
    return 0;
}

void bench_plan_free(struct bench_plan *p)
{
    free(p->ops);
    free(p->units);
    free(p->rows);
    free(p->turns);
    memset(p, 0, sizeof(*p));
}
