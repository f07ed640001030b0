/* SPDX-License-Identifier: Apache-2.0 */
/* The keys are a contract with `tune` and with users' scripts: docs/bench.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shim/profile/version.h"
#include "shim/cli/bench_show.h"
#include "shim/show/json.h"

static json_t *whole(double v)
{
    return json_integer((json_int_t)llround(v));
}

/* Per repeat, in the order of time: number i of every row and of the pass is of the same round. */
static json_t *samples(const struct bench_result *b, uint32_t measure)
{
    const double *v = bench_share_samples(b->share, measure);
    json_t *a = json_array();

    for (uint32_t i = 0; b->share->out.timed && i < b->share->set.repeats; i++)
        json_array_append_new(a, whole(v[i]));
    return a;
}

static void set_times(json_t *j, const struct bench_ci *ci)
{
    json_object_set_new(j, "median_ns", whole(ci->median));
    json_object_set_new(j, "ci_low_ns", whole(ci->low));
    json_object_set_new(j, "ci_high_ns", whole(ci->high));
}

static void set_optional(json_t *j, const char *key, double v)
{
    json_object_set_new(j, key, v > 0 ? whole(v) : json_null());
}

static json_t *row_json(const struct bench_result *b, uint32_t i)
{
    const struct bench_row *row = &b->plan.rows[i];
    const struct bench_row_result *x = &b->rows[i];
    const struct workload_step *s = &b->w.steps[row->step];
    json_t *j = json_object();

    json_object_set_new(j, "op", json_string(bench_row_op(b, i)));
    json_object_set_new(j, "bytes", json_integer((json_int_t)row->bytes));
    json_object_set_new(j, "count", json_integer((json_int_t)s->count));
    json_object_set_new(j, "type", json_string(dtype_name(s->dtype)));
    json_object_set_new(
        j, "redop", workload_op_reduces(s->op) ? json_string(redop_name(s->redop)) : json_null());
    json_object_set_new(j, "how", json_string(row->graph ? "graph" : "eager"));
    json_object_set_new(j, "comm", json_text(b->w.comms[s->comm].name));
    json_object_set_new(j, "in_place", json_boolean(s->in_place));
    json_object_set_new(j, "steps", json_integer(row->steps));
    json_object_set_new(j, "calls", json_integer(b->plan.units[row->unit].calls));
    json_object_set_new(j, "weight", json_integer((json_int_t)row->weight));
    set_times(j, &x->ns);
    set_optional(j, "p99_ns", x->p99_ns);
    json_object_set_new(j, "p99_from", x->p99_from ? json_string(x->p99_from) : json_null());
    set_optional(j, "event_p50_ns", x->event_p50_ns);
    set_optional(j, "stamp_p50_ns", x->stamp_p50_ns);
    set_optional(j, "stamp_p99_ns", x->stamp_p99_ns);
    json_object_set_new(j, "samples_ns", samples(b, i));
    json_object_set_new(j, "algbw_gbps", json_real(bench_algbw(b, i, x->ns.median)));
    json_object_set_new(j, "busbw_gbps", json_real(bench_busbw(b, i, x->ns.median)));
    json_object_set_new(j, "wrong", json_integer((json_int_t)x->wrong));
    return j;
}

static json_t *pass_json(const struct bench_result *b)
{
    json_t *j = json_object();

    if (!b->plan.turn_count) {
        json_decref(j);
        return json_null();
    }
    json_object_set_new(j, "calls", json_integer((json_int_t)b->plan.pass_calls));
    set_times(j, &b->pass);
    json_object_set_new(j, "samples_ns", samples(b, b->plan.row_count));
    return j;
}

static json_t *env_json(const struct bench_result *b)
{
    json_t *j = json_object();

    for (const char *p = b->share->out.env, *end; *p && (end = strchr(p, '\n')); p = end + 1) {
        const char *equals = memchr(p, '=', (size_t)(end - p));
        char name[256], *value;

        if (!equals || equals - p >= (long)sizeof(name))
            continue;
        memcpy(name, p, (size_t)(equals - p));
        name[equals - p] = '\0';
        value = strndup(equals + 1, (size_t)(end - equals - 1));
        json_object_set_new(j, name, value ? json_text(value) : json_null());
        free(value);
    }
    return j;
}

static json_t *error_json(const struct bench_result *b)
{
    static const char *const kinds[] = {[RANKS_WRONG] = "wrong", [RANKS_HUNG] = "hang",
                                        [RANKS_FAILED] = "failed", [RANKS_STOPPED] = "stopped"};
    json_t *j = json_object();

    if (b->ranks.end == RANKS_GOOD) {
        json_decref(j);
        return json_null();
    }
    json_object_set_new(j, "kind", json_string(kinds[b->ranks.end]));
    json_object_set_new(j, "text", json_text(b->ranks.error.text));
    return j;
}

static json_t *nccl_json(const struct bench_result *b)
{
    char text[VERSION_TEXT_MAX];
    int v = b->share->out.nccl;

    return v ? json_string(version_text(v, text, sizeof(text))) : json_null();
}

json_t *bench_json(const struct bench_result *b)
{
    const struct bench_outcome *out = &b->share->out;
    json_t *j = json_object(), *rows = json_array();

    json_object_set_new(j, "version", json_integer(1));
    json_object_set_new(j, "simulated", json_boolean(out->simulated));
    json_object_set_new(j, "nccl", nccl_json(b));
    json_object_set_new(j, "ranks", json_integer(b->share->set.ranks));
    json_object_set_new(j, "placement", json_string(b->placement));
    json_object_set_new(j, "gpu", out->gpu[0] ? json_text(out->gpu) : json_null());
    json_object_set_new(j, "driver", out->driver ? json_integer(out->driver) : json_null());
    json_object_set_new(j, "profile", json_text(b->profile));
    json_object_set_new(j, "profile_path",
                        b->profile_path[0] ? json_text(b->profile_path) : json_null());
    json_object_set_new(j, "workload", json_text(b->w.source));
    json_object_set_new(j, "recorded_ranks", b->w.ranks ? json_integer(b->w.ranks) : json_null());
    json_object_set_new(j, "left_out", b->w.left_out[0] ? json_text(b->w.left_out) : json_null());
    json_object_set_new(j, "checked", json_integer((json_int_t)out->checked));
    json_object_set_new(j, "stamps", json_boolean(b->stamps));
    json_object_set_new(j, "no_stamps", b->no_stamps[0] ? json_text(b->no_stamps) : json_null());
    json_object_set_new(j, "started_ns", json_integer((json_int_t)b->started_ns));
    json_object_set_new(j, "ended_ns", json_integer((json_int_t)b->ended_ns));
    json_object_set_new(j, "error", error_json(b));
    for (uint32_t i = 0; out->filled && i < b->plan.row_count; i++)
        json_array_append_new(rows, row_json(b, i));
    json_object_set_new(j, "rows", rows);
    json_object_set_new(j, "pass", out->timed ? pass_json(b) : json_null());
    json_object_set_new(j, "env", env_json(b));
    return j;
}
