/* SPDX-License-Identifier: Apache-2.0 */
/* The keys are a contract with users' scripts: docs/ab.md. */
#include "shim/cli/ab_show.h"
#include "shim/show/compare_show.h"
#include "shim/show/json.h"

/* As verdict_key, in the words of a metric. */
static const char *metric_key(enum verdict v)
{
    return v == VERDICT_FASTER    ? "better"
           : v == VERDICT_SLOWER  ? "worse"
           : v == VERDICT_UNKNOWN ? "too_few_rounds"
                                  : verdict_key(v);
}

static json_t *sides_json(const struct ab_result *r)
{
    json_t *sides = json_array();

    for (size_t s = 0; s < r->o.sides; s++) {
        json_t *values = json_array(), *runs = json_array();
        for (size_t i = 0; r->has_metric && i < r->o.rounds; i++)
            json_array_append_new(values, json_real(r->values[s][i].value));
        for (size_t i = 0; i < r->turn_count; i++)
            if (r->turns[i].side == s)
                json_array_append_new(runs, json_text(r->turns[i].run_dir));
        json_array_append_new(
            sides, json_pack("{s:o, s:o, s:o, s:o}", "label", json_text(r->labels[s]), "profile",
                             json_text(r->o.profiles[s]), "values", values, "runs", runs));
    }
    return sides;
}

static json_t *metric_json(const struct ab_result *r)
{
    json_t *against = json_array();

    if (!r->has_metric) {
        json_decref(against);
        return json_null();
    }
    for (size_t s = 1; s < r->o.sides; s++) {
        const struct metric_test *t = &r->tests[s];
        json_array_append_new(against, json_pack("{s:i, s:s, s:o}", "side", (int)s, "verdict",
                                                 metric_key(t->verdict), "difference",
                                                 json_difference(&t->difference)));
    }
    return json_pack("{s:o, s:o, s:b, s:o}", "label", json_text(r->metric.label), "regex",
                     json_text(r->o.metric), "lower_is_better", r->o.lower, "against_first",
                     against);
}

static json_t *order_json(const struct ab_result *r)
{
    json_t *order = json_array();

    for (size_t i = 0; i < r->turn_count; i++)
        json_array_append_new(order, json_integer((json_int_t)r->turns[i].side));
    return order;
}

json_t *ab_json(const struct ab_result *r)
{
    const struct setting_changes none = {0};
    json_t *verdicts = json_array();

    for (size_t s = 1; s < r->o.sides; s++)
        json_array_append_new(verdicts, json_string(r->has_metric ? metric_key(ab_verdict(r, s))
                                                                  : verdict_key(ab_verdict(r, s))));
    return json_pack("{s:i, s:b, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "version", 1,
                     "simulated", r->simulated, "folder", json_text(r->folder.path), "rounds",
                     (int)r->o.rounds, "order", order_json(r), "sides", sides_json(r), "metric",
                     metric_json(r), "calls",
                     r->has_calls ? compare_json(&r->calls, &none) : json_null(), "no_calls",
                     r->no_calls[0] ? json_text(r->no_calls) : json_null(), "verdicts", verdicts);
}
