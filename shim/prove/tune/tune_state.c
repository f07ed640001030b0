/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.json: what was measured so far, so that a search can be stopped at any time. Going on runs
 * the same search again; what it asks for and is in here costs no time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/replace.h"
#include "shim/prove/tune/tune.h"

#define STATE_VERSION 1

/* ---- writing -------------------------------------------------------------------------------- */

static json_t *candidate_json(const struct tune *t, const struct candidate *c)
{
    json_t *values = json_array(), *rules = json_array();

    for (size_t i = 0; i < t->space.setting_count; i++)
        json_array_append_new(values, json_integer(c->value[i]));
    for (size_t i = 0; i < t->work.class_count; i++)
        json_array_append_new(rules,
                              json_pack("[i, i, i, I]", (int)c->rule[i].algo, (int)c->rule[i].proto,
                                        (int)c->rule[i].channels, (json_int_t)c->rule[i].chunk));
    return json_pack("{s:o, s:o}", "values", values, "rules", rules);
}

static json_t *trial_json(const struct tune *t, const struct tune_trial *x)
{
    json_t *rows = json_array();
    char text[1024];

    for (size_t i = 0; i < t->work.row_count && x->end == TUNE_GOOD; i++)
        json_array_append_new(rows, json_pack("[f, f]", x->rows[i].log_ns, x->rows[i].se));
    return json_pack("{s:i, s:s, s:o, s:i, s:s, s:s, s:I, s:o}", "kind", (int)x->kind, "text",
                     x->kind == TUNE_PROOF_WINNER
                         ? "winner.ini"
                         : candidate_text(&x->c, &t->space, &t->work, text, sizeof(text)),
                     "candidate", candidate_json(t, &x->c), "nth", (int)x->nth, "end",
                     tune_end_key(x->end), "why", x->why, "took_ns", (json_int_t)x->took_ns, "rows",
                     rows);
}

static json_t *options_json(const struct tune_options *o)
{
    return json_pack("{s:i, s:b, s:b, s:b, s:i, s:i, s:i, s:i, s:I, s:s*}", "ranks", o->ranks,
                     "one_process", o->one_process, "one_gpu", o->one_gpu, "waits_for_graphs",
                     o->waits, "calls", (int)o->calls, "repeats", (int)o->repeats, "timeout_s",
                     (int)o->timeout_s, "proof_runs", (int)o->proof_runs, "budget_ns",
                     (json_int_t)o->budget_ns, "from", o->from);
}

int tune_state_save(const struct tune *t, struct error *e)
{
    json_t *trials = json_array(), *j;
    struct replacement file;
    char path[TUNE_PATH];
    int rc;

    for (size_t i = 0; i < t->all.count; i++)
        json_array_append_new(trials, trial_json(t, t->all.trials[i]));
    j = json_pack("{s:i, s:s, s:b, s:I, s:i, s:o, s:o}", "version", STATE_VERSION, "workload",
                  t->source, "simulated", t->simulated, "spent_ns", (json_int_t)tune_spent(t),
                  "trial", (int)t->trial, "options", options_json(&t->o), "trials", trials);
    if (!j)
        return error_set(e, "tune.json", 0, "out of memory");
    tune_path(t, "tune.json", path, sizeof(path));
    rc = replace_begin_path(&file, path, 0644);
    if (rc == 0)
        rc = replace_end(&file,
                         json_dumpfd(j, file.fd, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0);
    json_decref(j);
    return rc == 0 ? 0 : error_set(e, path, 0, "can't be written: %s", strerror(errno));
}

/* ---- reading -------------------------------------------------------------------------------- */

static void read_candidate(const struct tune *t, const json_t *j, struct candidate *c)
{
    const json_t *values = json_object_get(j, "values"), *rules = json_object_get(j, "rules");

    candidate_init(c);
    for (size_t i = 0; i < t->space.setting_count; i++) {
        json_int_t v = json_integer_value(json_array_get(values, i));
        c->value[i] = v >= 0 && v < (json_int_t)t->space.settings[i].count ? (int8_t)v : -1;
    }
    for (size_t i = 0; i < t->work.class_count; i++) {
        const json_t *r = json_array_get(rules, i);
        c->rule[i].algo = (int8_t)json_integer_value(json_array_get(r, 0));
        c->rule[i].proto = (int8_t)json_integer_value(json_array_get(r, 1));
        c->rule[i].channels = (int16_t)json_integer_value(json_array_get(r, 2));
        c->rule[i].chunk = (uint64_t)json_integer_value(json_array_get(r, 3));
    }
}

static int read_trial(struct tune *t, const json_t *j, struct error *e)
{
    const json_t *rows = json_object_get(j, "rows");
    const char *why = json_string_value(json_object_get(j, "why"));
    int end = tune_end_of_key(json_string_value(json_object_get(j, "end")));
    struct tune_trial x = {.kind = (enum tune_kind)json_integer_value(json_object_get(j, "kind")),
                           .nth = (unsigned)json_integer_value(json_object_get(j, "nth")),
                           .took_ns = (uint64_t)json_integer_value(json_object_get(j, "took_ns"))};

    if (end < 0 || (end == TUNE_GOOD && json_array_size(rows) != t->work.row_count))
        return error_set(e, "tune.json", 0, "a trial in it does not belong to this workload");
    x.end = (enum tune_end)end;
    read_candidate(t, json_object_get(j, "candidate"), &x.c);
    snprintf(x.why, sizeof(x.why), "%s", why ? why : "");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *r = json_array_get(rows, i);
        x.rows[i].log_ns = json_number_value(json_array_get(r, 0));
        x.rows[i].se = json_number_value(json_array_get(r, 1));
    }
    return book_add(&t->loaded, &x) && book_add(&t->all, &x)
               ? 0
               : error_set(e, NULL, 0, "out of memory");
}

static void read_options(struct tune *t, const json_t *o)
{
    t->o.ranks = (int)json_integer_value(json_object_get(o, "ranks"));
    t->o.one_process = json_is_true(json_object_get(o, "one_process"));
    t->o.one_gpu = json_is_true(json_object_get(o, "one_gpu"));
    t->o.waits = json_is_true(json_object_get(o, "waits_for_graphs"));
    t->o.calls = (uint32_t)json_integer_value(json_object_get(o, "calls"));
    t->o.repeats = (uint32_t)json_integer_value(json_object_get(o, "repeats"));
    t->o.timeout_s = (uint32_t)json_integer_value(json_object_get(o, "timeout_s"));
    t->o.proof_runs = (uint32_t)json_integer_value(json_object_get(o, "proof_runs"));
    if (t->o.budget_ns) /* a new one counts from now on */
        t->o.budget_ns += t->spent_ns;
    else
        t->o.budget_ns = (uint64_t)json_integer_value(json_object_get(o, "budget_ns"));
    if (json_is_string(json_object_get(o, "from")) && !t->o.from)
        t->o.from = "the run named in tune.json"; /* only that there was one counts from here on */
}

int tune_state_load(struct tune *t, struct error *e)
{
    char path[TUNE_PATH], first[TUNE_PATH], space[TUNE_PATH];
    json_error_t why;
    json_t *j, *bench;
    int rc = 0;

    tune_path(t, "tune.json", path, sizeof(path));
    tune_path(t, "trials/0001.json", first, sizeof(first));
    tune_path(t, "space.ini", space, sizeof(space));
    j = json_load_file(path, 0, &why);
    if (!j || json_integer_value(json_object_get(j, "version")) != STATE_VERSION) {
        json_decref(j);
        return error_set(e, path, 0, "nothing to go on with is here: %s",
                         j ? "another version wrote it" : why.text);
    }
    t->spent_ns = (uint64_t)json_integer_value(json_object_get(j, "spent_ns"));
    read_options(t, json_object_get(j, "options"));
    snprintf(t->source, sizeof(t->source), "%s",
             json_is_string(json_object_get(j, "workload"))
                 ? json_string_value(json_object_get(j, "workload"))
                 : "?");
    t->trial = (unsigned)json_integer_value(json_object_get(j, "trial"));
    bench = json_load_file(first, 0, &why);
    if (!bench || tune_work_learn(t, bench, e) < 0)
        rc = error_set(e, first, 0, "the first result can't be read again: begin anew");
    json_decref(bench);
    if (rc == 0)
        rc = space_read(&t->space, space, e);
    for (size_t i = 0; rc == 0 && i < json_array_size(json_object_get(j, "trials")); i++)
        rc = read_trial(t, json_array_get(json_object_get(j, "trials"), i), e);
    if (rc == 0 && t->loaded.count)
        t->mean_ns = t->loaded.trials[0]->took_ns;
    json_decref(j);
    return rc;
}
