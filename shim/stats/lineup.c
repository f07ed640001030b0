/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/lineup.h"

#include <stdlib.h>
#include <string.h>

static int by_key(const void *a, const void *b)
{
    const struct lineup_event *x = a, *y = b;

    return x->key < y->key ? -1 : x->key > y->key;
}

static int match(struct lineup *l)
{
    size_t *pos = calloc(l->ranks, sizeof(*pos));

    l->at = malloc((l->lanes[0].count + 1) * l->ranks * sizeof(*l->at));
    if (!pos || !l->at) {
        free(pos);
        return -1;
    }
    for (size_t i = 0; i < l->lanes[0].count; i++) {
        uint64_t key = l->lanes[0].events[i].key;
        uint32_t *row = l->at + l->calls * l->ranks, k;
        row[0] = (uint32_t)i;
        for (k = 1; k < l->ranks; k++) {
            const struct lineup_lane *lane = &l->lanes[k];
            while (pos[k] < lane->count && lane->events[pos[k]].key < key)
                pos[k]++;
            if (pos[k] == lane->count || lane->events[pos[k]].key != key)
                break;
            row[k] = (uint32_t)pos[k];
        }
        l->calls += k == l->ranks;
    }
    free(pos);
    return 0;
}

int lineup_find(struct lineup *l)
{
    for (uint32_t k = 0; k < l->ranks; k++)
        if (l->lanes[k].count)
            qsort(l->lanes[k].events, l->lanes[k].count, sizeof(struct lineup_event), by_key);
    return match(l);
}

const struct lineup_event *lineup_at(const struct lineup *l, size_t call, uint32_t rank)
{
    return &l->lanes[rank].events[l->at[call * l->ranks + rank]];
}

void lineup_free(struct lineup *l)
{
    for (uint32_t k = 0; l->lanes && k < l->ranks; k++)
        free(l->lanes[k].events);
    free(l->lanes);
    free(l->at);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static bool one_gpu(const struct run_gpu *a, const struct run_gpu *b)
{
    static const uint8_t unknown[16];

    return a && b && memcmp(a->gpu.uuid, unknown, 16) && !memcmp(a->gpu.uuid, b->gpu.uuid, 16);
}

/*
 * Between which bounds rank k's clock must be moved against rank 0's so that none of these calls
 * ends on one of them before it began on the other. False when no shift does.
 */
static bool bounds_of(const struct lineup *l, uint32_t k, size_t from, size_t to, int64_t *low,
                      int64_t *high)
{
    *low = INT64_MIN;
    *high = INT64_MAX;
    for (size_t i = from; i < to; i++) {
        const struct lineup_event *x = lineup_at(l, i, 0), *y = lineup_at(l, i, k);
        if (x->start - y->end > *low)
            *low = x->start - y->end;
        if (x->end - y->start < *high)
            *high = x->end - y->start;
    }
    return *low <= *high;
}

static uint64_t farthest(int64_t shift, int64_t low, int64_t high)
{
    return (uint64_t)(high - shift > shift - low ? high - shift : shift - low);
}

/* On one host the anchors have brought the clocks together: as little more as it takes. */
static bool line_up_near(struct lineup *l, uint32_t k, uint64_t *error)
{
    int64_t low, high, shift;
    const struct run_gpu *a = l->lanes[0].gpu, *b = l->lanes[k].gpu;
    uint64_t anchors = UINT64_MAX, limit;

    if (!bounds_of(l, k, 0, l->calls, &low, &high))
        return false;
    shift = low > 0 ? low : high < 0 ? high : 0;
    *error = 0;
    if (one_gpu(a, b))
        return shift == 0;
    if (a && b && a->clock.known && b->clock.known)
        anchors = clock_error(&a->clock) + clock_error(&b->clock);
    limit = farthest(shift, low, high);
    *error = limit < anchors ? limit : anchors;
    for (size_t i = 0; shift && i < l->lanes[k].count; i++) {
        l->lanes[k].events[i].start += shift;
        l->lanes[k].events[i].end += shift;
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* ---- clocks of other hosts ------------------------------------------------------------------- */

/* Stretches of calls in which two hosts' clocks don't drift apart, and that tell enough. */
#define STRETCH_CALLS 256
#define STRETCH_NS 1000000000
#define STRETCH_LEAST 32

/* By rank 0, whose place comes first. */
static int by_start(const void *a, const void *b, void *lane)
{
    const struct lineup_event *events = ((const struct lineup_lane *)lane)->events;
    const struct lineup_event *x = &events[*(const uint32_t *)a],
                              *y = &events[*(const uint32_t *)b];

    return x->start < y->start ? -1 : x->start > y->start;
}

static size_t stretch_end(const struct lineup *l, size_t from)
{
    int64_t start = lineup_at(l, from, 0)->start;
    size_t to = from + 1;

    while (to < l->calls && to - from < STRETCH_CALLS &&
           lineup_at(l, to, 0)->start - start < STRETCH_NS)
        to++;
    return to;
}

/* Calls that come alone, on an idle server say, can't be lined up. */
static void drop_short_stretches(struct lineup *l)
{
    size_t kept = 0;

    for (size_t from = 0, to; from < l->calls; from = to) {
        to = stretch_end(l, from);
        if (to - from < STRETCH_LEAST)
            continue;
        memmove(l->at + kept * l->ranks, l->at + from * l->ranks,
                (to - from) * l->ranks * sizeof(*l->at));
        kept += to - from;
    }
    l->calls = kept;
}

static uint64_t shortest(const struct lineup *l, size_t from, size_t to)
{
    int64_t least = INT64_MAX;

    for (size_t i = from; i < to; i++)
        for (uint32_t k = 0; k < l->ranks; k++) {
            const struct lineup_event *x = lineup_at(l, i, k);
            least = x->end - x->start < least ? x->end - x->start : least;
        }
    return (uint64_t)least;
}

/*
 * Another host's clock differs by anything, and by a little more each second. So the ends, which
 * are close on all ranks, are brought together (their median), as far as the bounds allow. Between
 * the last rank's start and the last end lies the transfer: ends are no farther apart than that,
 * which is at most what the shortest call took.
 */
static bool line_up_far(struct lineup *l, uint32_t k, uint64_t *error)
{
    int64_t apart[STRETCH_CALLS], low, high, shift;
    uint64_t most;

    *error = 0;
    for (size_t from = 0, to; from < l->calls; from = to) {
        size_t n = (to = stretch_end(l, from)) - from;

        if (!bounds_of(l, k, from, to, &low, &high))
            return false;
        for (size_t i = 0; i < n; i++)
            apart[i] = lineup_at(l, from + i, 0)->end - lineup_at(l, from + i, k)->end;
        qsort(apart, n, sizeof(apart[0]), by_value);
        shift = apart[n / 2] < low ? low : apart[n / 2] > high ? high : apart[n / 2];
        most = shortest(l, from, to);
        if (farthest(shift, low, high) < most)
            most = farthest(shift, low, high);
        *error = most > *error ? most : *error;
        for (size_t i = from; i < to; i++) {
            struct lineup_event *y = &l->lanes[k].events[l->at[i * l->ranks + k]];
            y->start += shift;
            y->end += shift;
        }
    }
    return true;
}

static bool any_far(const struct lineup *l)
{
    for (uint32_t k = 1; k < l->ranks; k++)
        if (l->lanes[k].far)
            return true;
    return false;
}

uint32_t lineup_clocks(struct lineup *l, uint64_t *error_ns)
{
    *error_ns = 0;
    if (any_far(l) && l->calls) {
        qsort_r(l->at, l->calls, l->ranks * sizeof(*l->at), by_start, &l->lanes[0]);
        drop_short_stretches(l);
    }
    for (uint32_t k = 1; k < l->ranks && l->calls; k++) {
        uint64_t error = 0;
        if (!(l->lanes[k].far ? line_up_far : line_up_near)(l, k, &error))
            return k;
        *error_ns = error > *error_ns ? error : *error_ns;
    }
    return 0;
}
