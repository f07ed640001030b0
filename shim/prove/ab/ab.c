/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/ab/ab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/profile/profile.h"
#include "shim/prove/run/offspring.h"
#include "shim/prove/ab/ready.h"
#include "shim/prove/ab/turns.h"

/* ---- before the first turn ------------------------------------------------------------------ */

/* All profiles are read now: a bad one must not show after an hour of turns. */
static int name_sides(struct ab_result *r, struct error *e)
{
    for (size_t i = 0; i < r->o.sides; i++) {
        struct profile *p;
        size_t same = 1;

        if (profile_load(r->o.profiles[i], &p, e) < 0)
            return -1;
        for (size_t k = 0; k < i; k++)
            same += !strncmp(r->labels[k], p->name, strlen(p->name)) &&
                    (!r->labels[k][strlen(p->name)] || r->labels[k][strlen(p->name)] == '#');
        snprintf(r->labels[i], sizeof(r->labels[i]), same > 1 ? "%.48s#%zu" : "%.48s", p->name,
                 same);
        profile_free(p);
    }
    return 0;
}

static int make_folder(struct ab_result *r, struct error *e)
{
    char name[64], word[80];
    char *command[] = {word, NULL};

    runfolder_name_of(r->o.command, name, sizeof(name));
    snprintf(word, sizeof(word), "ab-%s", name);
    return runfolder_make(&r->folder, r->o.out_dir, command, e);
}

static int plan_turns(struct ab_result *r, struct error *e)
{
    r->turn_count = r->o.sides * r->o.rounds;
    r->turns = calloc(r->turn_count, sizeof(*r->turns));
    if (!r->turns)
        return error_set(e, NULL, 0, "out of memory");
    for (size_t i = 0; i < r->turn_count; i++) {
        struct ab_turn *t = &r->turns[i];
        t->side = turns_abba(i, r->o.sides);
        t->round = i / r->o.sides;
        snprintf(t->run_dir, sizeof(t->run_dir), "%s/%02zu-%s", r->folder.path, i + 1,
                 r->labels[t->side]);
        snprintf(t->output, sizeof(t->output), "%s/%02zu-%s.out", r->folder.path, i + 1,
                 r->labels[t->side]);
        if (r->o.load)
            snprintf(t->load, sizeof(t->load), "%s/%02zu-%s.load", r->folder.path, i + 1,
                     r->labels[t->side]);
    }
    for (size_t s = 0; s < r->o.sides; s++) {
        r->values[s] = calloc(r->o.rounds, sizeof(*r->values[s]));
        if (!r->values[s])
            return error_set(e, NULL, 0, "out of memory");
    }
    return 0;
}

/* ---- turns ---------------------------------------------------------------------------------- */

static void tell_turn(const struct ab_result *r, size_t turn, uint64_t spent_ns)
{
    const struct ab_turn *t = &r->turns[turn];
    char line[320], value[80] = "", rest[96] = "";
    size_t left = r->turn_count - turn - 1;
    double seconds = (double)spent_ns / 1e9 / (double)(turn + 1) * (double)left;

    if (!r->o.progress)
        return;
    if (r->has_metric)
        snprintf(value, sizeof(value), "%g %s", t->metric.value, r->metric.label);
    else
        snprintf(value, sizeof(value), "%.1f s", (double)t->took_ns / 1e9);
    if (left && seconds >= 90)
        snprintf(rest, sizeof(rest), "   %zu of %zu to go, about %.0f minutes", left, r->turn_count,
                 seconds / 60);
    else if (left)
        snprintf(rest, sizeof(rest), "   %zu of %zu to go, about %.0f s", left, r->turn_count,
                 seconds);
    snprintf(line, sizeof(line), "[%zu/%zu] %-20s %s%s", turn + 1, r->turn_count,
             r->labels[t->side], value, rest);
    r->o.progress(r->o.user, line);
}

static int take_turns(struct ab_result *r, struct nursery *n, struct ready *ready, struct error *e)
{
    uint64_t begin = monotonic_ns();

    for (size_t i = 0; i < r->turn_count; i++) {
        if (ab_take_turn(r, n, ready, i, e) < 0)
            return -1;
        r->values[r->turns[i].side][r->turns[i].round] = r->turns[i].metric;
        tell_turn(r, i, monotonic_ns() - begin);
    }
    return 0;
}

static int take_all(struct ab_result *r, struct error *e)
{
    struct nursery n;
    struct ready ready;
    int rc;

    if (r->o.ready && ready_init(&ready, r->o.ready, e) < 0)
        return -1;
    nursery_open(&n);
    rc = take_turns(r, &n, r->o.ready ? &ready : NULL, e);
    nursery_close(&n);
    if (r->o.ready)
        ready_free(&ready);
    return rc;
}

/* ---- comparing ------------------------------------------------------------------------------ */

static int open_runs(struct ab_result *r, struct error *e)
{
    const struct run_filter all = RUN_FILTER_ALL;

    for (size_t i = 0; i < r->turn_count; i++) {
        struct compare_side *s = &r->compared[r->turns[i].side];

        if (!s->runs)
            s->runs = calloc(r->o.rounds, sizeof(*s->runs));
        s->label = r->labels[r->turns[i].side];
        if (!s->runs)
            return error_set(e, NULL, 0, "out of memory");
        if (run_open(r->turns[i].run_dir, false, &all, &s->runs[s->run_count], e) < 0)
            return -1;
        r->simulated |= s->runs[s->run_count++]->simulated;
    }
    return 0;
}

/* A command without NCCL calls still has its metric. */
static void compare_calls(struct ab_result *r)
{
    struct error e = {0};

    if (open_runs(r, &e) == 0 &&
        compare_make(r->compared, r->o.sides, r->o.margin, &r->calls, &e) == 0)
        r->has_calls = r->calls.row_count > 0;
    if (!r->has_calls)
        snprintf(r->no_calls, sizeof(r->no_calls), "%s",
                 e.text[0] ? e.text : "no call of NCCL was seen");
}

static int conclude(struct ab_result *r, struct error *e)
{
    compare_calls(r);
    if (!r->has_metric)
        return r->has_calls
                   ? 0
                   : error_set(e, r->folder.path, 0,
                               "nothing to compare: %s, and no --metric was given", r->no_calls);
    for (size_t s = 1; s < r->o.sides; s++)
        metric_compare(r->values[0], r->values[s], r->o.rounds, r->o.margin, &r->tests[s]);
    return metric_judge(r->tests + 1, r->o.sides - 1, r->o.lower) < 0
               ? error_set(e, NULL, 0, "out of memory")
               : 0;
}

enum verdict ab_verdict(const struct ab_result *r, size_t side)
{
    return r->has_metric ? r->tests[side].verdict : r->calls.whole[side].verdict;
}

bool ab_slower_by(const struct ab_result *r, size_t side, double share)
{
    const struct metric_test *t = &r->tests[side];
    double worse = r->o.lower ? t->difference.change : -t->difference.change;

    if (r->has_metric && t->verdict == VERDICT_SLOWER && worse > share)
        return true;
    return r->has_calls && compare_slower_by(&r->calls, side, share);
}

/* ---- the whole ------------------------------------------------------------------------------ */

int ab_run(struct ab_result *r, const struct ab_options *o, struct error *e)
{
    memset(r, 0, sizeof(*r));
    r->o = *o;
    r->folder.fd = -1;
    if (name_sides(r, e) < 0)
        return -1;
    if (o->metric && metric_init(&r->metric, o->metric, o->lower, e) < 0)
        return -1;
    r->has_metric = o->metric != NULL;
    if (make_folder(r, e) < 0 || plan_turns(r, e) < 0 || take_all(r, e) < 0)
        return -1;
    return conclude(r, e);
}

void ab_free(struct ab_result *r)
{
    compare_free(&r->calls);
    for (size_t s = 0; s < AB_SIDES; s++) {
        for (size_t i = 0; i < r->compared[s].run_count; i++)
            run_free(r->compared[s].runs[i]);
        free(r->compared[s].runs);
        free(r->values[s]);
    }
    if (r->has_metric)
        metric_free(&r->metric);
    if (r->folder.fd >= 0)
        close(r->folder.fd);
    free(r->turns);
}
