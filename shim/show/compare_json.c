/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for programs. docs/compare.md lists the keys. */

#include "shim/base/names.h"
#include "shim/show/compare_show.h"
#include "shim/show/json.h"

static json_t *json_test(const struct compare_test *t)
{
    return json_pack("{s:s, s:o}", "verdict", verdict_key(t->verdict), "difference",
                     json_difference(&t->difference));
}

static json_t *json_value(const struct compare_value *v)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "issued", json_u64(v->issued), "timed",
        json_u64(v->timed), "total_ns", json_u64(v->total_ns), "time", json_hist(&v->ns),
        "algorithm", v->algo == NCCLSHIM_NO_CHOICE ? json_null() : json_string(algo_name(v->algo)),
        "protocol",
        v->proto == NCCLSHIM_NO_CHOICE ? json_null() : json_string(proto_name(v->proto)),
        "channels", json_known(v->channels));
}

static json_t *json_row(const struct compare *c, const struct compare_row *r)
{
    json_t *values = json_array(), *against = json_array();

    for (size_t s = 0; s < c->side_count; s++)
        json_array_append_new(values, json_value(&r->values[s]));
    for (size_t s = 1; s < c->side_count; s++)
        json_array_append_new(against,
                              json_pack("{s:i, s:o, s:o}", "side", (int)s, "p50",
                                        json_test(&r->median[s]), "p99", json_test(&r->p99[s])));
    return json_pack("{s:o, s:i, s:s, s:o, s:s, s:b, s:f, s:o, s:o}", "communicator",
                     json_text(r->comm), "ranks", (int)r->ranks, "operation", op_name(r->op),
                     "bytes", json_u64(r->bytes), "type", dtype_name(r->dtype), "captured",
                     r->captured, "time_share", r->share, "sides", values, "against_first",
                     against);
}

static json_t *json_side(const struct compare_side *s)
{
    json_t *runs = json_array();

    for (size_t i = 0; i < s->run_count; i++)
        json_array_append_new(runs, json_text(s->runs[i]->path));
    return json_pack(
        "{s:o, s:o, s:o, s:b}", "label", json_text(s->label), "runs", runs, "profile",
        json_text(s->runs[0]->profile && s->runs[0]->profile[0] ? s->runs[0]->profile : "none"),
        "simulated", s->runs[0]->simulated);
}

static json_t *json_whole(const struct compare *c, size_t side)
{
    const struct compare_whole *w = &c->whole[side];
    char text[300];

    return json_pack("{s:i, s:s, s:s, s:i, s:i, s:i, s:i, s:o}", "side", (int)side, "verdict",
                     verdict_key(w->verdict), "text", whole_text(c, side, text, sizeof(text)),
                     "faster", (int)w->faster, "slower", (int)w->slower, "no_difference_shown",
                     (int)w->none, "too_few_calls", (int)w->unknown, "communication_time",
                     json_difference(&w->time));
}

static json_t *json_changes(const struct compare *c, const struct setting_changes *s)
{
    json_t *all = json_array();

    for (size_t i = 0; i < s->count; i++) {
        json_t *values = json_array();
        for (size_t k = 0; k < c->side_count; k++)
            json_array_append_new(values, json_text(s->items[i].values[k]));
        json_array_append_new(
            all, json_pack("{s:o, s:o}", "name", json_text(s->items[i].name), "values", values));
    }
    return all;
}

json_t *compare_json(const struct compare *c, const struct setting_changes *s)
{
    json_t *sides = json_array(), *rows = json_array(), *whole = json_array();

    for (size_t i = 0; i < c->side_count; i++)
        json_array_append_new(sides, json_side(&c->sides[i]));
    for (size_t i = 0; i < c->row_count; i++)
        json_array_append_new(rows, json_row(c, &c->rows[i]));
    for (size_t i = 1; i < c->side_count; i++)
        json_array_append_new(whole, json_whole(c, i));
    return json_pack("{s:i, s:f, s:f, s:o, s:o, s:o, s:o}", "version", 1, "margin", c->margin,
                     "alpha", COMPARE_ALPHA_MEDIAN + COMPARE_ALPHA_P99, "sides", sides, "rows",
                     rows, "settings_that_differ", json_changes(c, s), "whole", whole);
}
