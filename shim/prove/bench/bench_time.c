/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timing by the GPU's clock: a pair of events around so many plays of one measure (a row, or the
 * pass) that they take about batch_ns. One more play goes before them, so that the GPU is at work
 * when the first event comes by: how long the host takes to launch the first graph and to notice
 * the end of the last is no part of any call, and is several per cent of a batch of small calls.
 * All ranks start together, and the slowest rank's time counts. The measures take turns, repeat
 * after repeat, so that whatever drifts (clocks, temperature, other load) falls on all alike.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/prove/bench/bench_ci.h"
#include "shim/prove/bench/bench_rank.h"

#define BATCH_MAX 1000u
#define SIMULATED_HEAD_NS 4000000u /* a turn of the host's scheduler */

static uint64_t realtime(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t measures(const struct bench_rank *r)
{
    return r->plan.row_count + (r->plan.turn_count > 0);
}

/* ---- playing --------------------------------------------------------------------------------- */

/*
 * Eager calls and graphs of one communicator are never in the stream together: with
 * NCCL_GRAPH_MIXING_SUPPORT=0 that would not be allowed, and servers wait for their results anyway.
 */
static int play_pass(struct bench_rank *r)
{
    bool graph = r->plan.units[r->plan.turns[0].unit].graph;

    for (uint32_t i = 0; i < r->plan.turn_count; i++) {
        const struct bench_turn *t = &r->plan.turns[i];

        if (r->plan.units[t->unit].graph != graph && bench_sync(r) < 0)
            return -1;
        graph = r->plan.units[t->unit].graph;
        for (uint32_t k = 0; k < t->times; k++)
            if (bench_play_unit(r, t->unit) < 0)
                return -1;
    }
    return graph != r->plan.units[r->plan.turns[0].unit].graph ? bench_sync(r) : 0;
}

static int play(struct bench_rank *r, uint32_t measure)
{
    return measure < r->plan.row_count ? bench_play_unit(r, r->plan.rows[measure].unit)
                                       : play_pass(r);
}

static int play_batch(struct bench_rank *r, uint32_t measure)
{
    for (uint32_t b = 0; b < r->batch[measure]; b++)
        if (play(r, measure) < 0)
            return -1;
    return 0;
}

/* Nanoseconds of a batch. */
static int time_batch(struct bench_rank *r, uint32_t measure, double *ns)
{
    float ms = 0;

    /* The simulated GPUs take the host's processors from the ranks: those get a head start. */
    if (r->simulated && bench_spin(r, SIMULATED_HEAD_NS) < 0)
        return -1;
    if (play(r, measure) < 0)
        return -1;
    GPUAPI_CU(r->e, event_record(r->span[0], r->stream));
    if (play_batch(r, measure) < 0)
        return -1;
    GPUAPI_CU(r->e, event_record(r->span[1], r->stream));
    if (bench_sync(r) < 0)
        return -1;
    GPUAPI_CU(r->e, event_elapsed(&ms, r->span[0], r->span[1]));
    *ns = (double)ms * 1e6;
    return 0;
}

/* One sample: nanoseconds a call, of the pass nanoseconds a pass. */
static int sample(struct bench_rank *r, uint32_t measure, double *ns)
{
    double parts = r->batch[measure];

    if (measure < r->plan.row_count)
        parts *= r->plan.units[r->plan.rows[measure].unit].calls;
    if (bench_meet_align(&r->meet, r->e) < 0 || time_batch(r, measure, ns) < 0)
        return -1;
    *ns /= parts;
    return 0;
}

static void say(struct bench_rank *r, uint32_t measure, const char *what)
{
    const struct bench_row *row = &r->plan.rows[measure];
    const struct workload_step *s;

    if (measure >= r->plan.row_count) {
        bench_rank_at(r, "the pass, %s", what);
        return;
    }
    s = &r->w.steps[row->step];
    bench_rank_at(r, "%s of %llu bytes, %s, %s", op_name(s->op), (unsigned long long)row->bytes,
                  row->graph ? "graph" : "eager", what);
}

/* ---- warm-up --------------------------------------------------------------------------------- */

/* So many plays that a sample takes about batch_ns; the same on every rank, by the slowest. */
static int choose_batch(struct bench_rank *r, uint32_t measure, double ns)
{
    double all[WORKLOAD_RANKS], slowest = 1;

    if (measure < r->plan.row_count)
        ns *= r->plan.units[r->plan.rows[measure].unit].calls;
    if (bench_meet_exchange(&r->meet, &ns, sizeof(ns), all, r->e) < 0)
        return -1;
    for (int q = 0; q < r->meet.ranks; q++)
        slowest = all[q] > slowest ? all[q] : slowest;
    ns = ceil((double)r->set->batch_ns / slowest);
    r->batch[measure] = ns < 1 || r->simulated ? 1 : ns > BATCH_MAX ? BATCH_MAX : (uint32_t)ns;
    return 0;
}

int bench_warm_up(struct bench_rank *r)
{
    double ns = 0;

    for (uint32_t m = 0; m < measures(r); m++) {
        r->batch[m] = 1;
        say(r, m, "warm-up");
        for (uint32_t i = 0; i < r->set->warmup; i++)
            if (sample(r, m, &ns) < 0)
                return -1;
        if (choose_batch(r, m, ns) < 0)
            return -1;
    }
    if (r->rank == 0)
        r->share->out.warm_ns = realtime();
    return 0;
}

/* ---- timing ---------------------------------------------------------------------------------- */

/* The slowest rank's samples, on every rank. */
static int gather_samples(struct bench_rank *r)
{
    size_t bytes = (size_t)r->set->repeats * sizeof(double);
    double *all = malloc(bytes * (size_t)r->meet.ranks);
    int rc = all ? 0 : error_set(r->e, NULL, 0, "out of memory");

    for (uint32_t m = 0; m < measures(r) && rc == 0; m++) {
        double *mine = r->samples + (size_t)m * r->set->repeats;

        rc = bench_meet_exchange(&r->meet, mine, bytes, all, r->e);
        for (size_t i = 0; rc == 0 && i < (size_t)r->set->repeats * (size_t)r->meet.ranks; i++)
            if (all[i] > mine[i % r->set->repeats])
                mine[i % r->set->repeats] = all[i];
    }
    free(all);
    return rc;
}

int bench_time_all(struct bench_rank *r)
{
    for (uint32_t i = 0; i < r->set->repeats; i++)
        for (uint32_t m = 0; m < measures(r); m++) {
            say(r, m, "timing");
            if (sample(r, m, &r->samples[(size_t)m * r->set->repeats + i]) < 0)
                return -1;
        }
    bench_rank_at(r, "bringing the times together");
    return gather_samples(r);
}

/* ---- event pairs ----------------------------------------------------------------------------- */

static int time_by_events(struct bench_rank *r, const struct bench_row *row, double out[2])
{
    const struct bench_unit *u = &r->plan.units[row->unit];
    double ns[BENCH_EVENT_CALLS];
    uint32_t n = 0;
    float ms;

    if (bench_meet_align(&r->meet, r->e) < 0)
        return -1;
    for (uint32_t i = 0; i < u->count && n < r->event_count / 2; i++) {
        const struct bench_op *o = &r->plan.ops[u->first + i];
        bool grouped = row->steps > 1;

        if (!grouped || o->opens)
            GPUAPI_CU(r->e, event_record(r->events[2 * n], r->stream));
        if (bench_issue_op(r, o) < 0)
            return -1;
        if (!grouped || o->closes) {
            GPUAPI_CU(r->e, event_record(r->events[2 * n + 1], r->stream));
            n++;
        }
    }
    if (bench_sync(r) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        GPUAPI_CU(r->e, event_elapsed(&ms, r->events[2 * i], r->events[2 * i + 1]));
        ns[i] = (double)ms * 1e6;
    }
    out[0] = bench_quantile(ns, n, 0.5);
    out[1] = bench_quantile(ns, n, 0.99);
    return 0;
}

int bench_time_events(struct bench_rank *r)
{
    double all[2 * WORKLOAD_RANKS];

    for (uint32_t i = 0; i < r->plan.row_count; i++) {
        double *mine = &r->gpu_ns[2 * i];

        if (r->plan.rows[i].graph)
            continue;
        say(r, i, "timing by events");
        if (time_by_events(r, &r->plan.rows[i], mine) < 0 ||
            bench_meet_exchange(&r->meet, mine, 2 * sizeof(double), all, r->e) < 0)
            return -1;
        for (int q = 0; q < 2 * r->meet.ranks; q++)
            if (all[q] > mine[q % 2])
                mine[q % 2] = all[q];
    }
    return 0;
}
