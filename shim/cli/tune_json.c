/* SPDX-License-Identifier: Apache-2.0 */
/* The keys are a contract with users' scripts: docs/tune.md. */
#include <math.h>

#include "shim/base/names.h"
#include "shim/cli/tune_show.h"
#include "shim/show/json.h"

static json_t *rows_json(const struct tune *t)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < t->work.row_count; i++) {
        const struct tune_row *r = &t->work.rows[i];
        const struct tune_proof_row *p = &t->proof[i];
        json_t *j =
            json_pack("{s:s, s:I, s:s, s:s, s:f}", "op", r->op, "bytes", (json_int_t)r->bytes,
                      "how", r->graph ? "graph" : "eager", "comm", r->comm, "share", r->share);
        if (p->before.known) {
            json_object_set_new(j, "default_ns", json_integer(llround(exp(p->before.log_ns))));
            json_object_set_new(j, "winner_ns", json_integer(llround(exp(p->after.log_ns))));
            json_object_set_new(j, "verdict", json_string(verdict_key(p->verdict)));
            json_object_set_new(j, "difference", json_difference(&p->difference));
        }
        json_array_append_new(rows, j);
    }
    return rows;
}

static json_t *settings_json(const struct tune *t)
{
    json_t *list = json_array();

    for (size_t i = 0; i < t->space.setting_count; i++)
        if (t->search.best.value[i] >= 0)
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:s}", "name", t->space.settings[i].name, "value",
                                t->space.settings[i].values[t->search.best.value[i]], "needs",
                                t->space.settings[i].needs == SPACE_PROCESS ? "process"
                                                                            : "communicator"));
    return list;
}

static json_t *rules_json(const struct tune *t)
{
    json_t *list = json_array();
    char text[96];

    for (size_t i = 0; i < t->work.class_count; i++)
        if (!tune_choice_empty(&t->search.best.rule[i]))
            json_array_append_new(
                list,
                json_pack("{s:s, s:I, s:s, s:s}", "op", op_name((unsigned)t->work.classes[i].op),
                          "bytes", (json_int_t)t->work.classes[i].bytes, "rule",
                          tune_choice_text(&t->search.best.rule[i], text, sizeof(text)), "needs",
                          "capture"));
    return list;
}

static json_t *dropped_json(const struct tune *t)
{
    json_t *list = json_array();
    char text[1024];

    for (size_t i = 0; i < t->all.count; i++)
        if (t->all.trials[i]->end != TUNE_GOOD)
            json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "candidate",
                                                  candidate_text(&t->all.trials[i]->c, &t->space,
                                                                 &t->work, text, sizeof(text)),
                                                  "end", tune_end_key(t->all.trials[i]->end), "why",
                                                  t->all.trials[i]->why));
    return list;
}

static json_t *look_json(const struct machine_look *l)
{
    json_t *gpus = json_array(), *others = json_array();

    for (size_t i = 0; i < l->gpu_count; i++)
        json_array_append_new(gpus, json_pack("{s:i, s:i, s:i}", "sm_mhz", (int)l->gpus[i].sm_mhz,
                                              "memory_mhz", (int)l->gpus[i].memory_mhz, "celsius",
                                              (int)l->gpus[i].celsius));
    for (size_t i = 0; i < l->other_count; i++)
        json_array_append_new(others, json_integer(l->others[i]));
    return json_pack("{s:f, s:b, s:o, s:o}", "load_1min", l->load, "nvml", l->nvml, "gpus", gpus,
                     "other_pids", others);
}

json_t *tune_json(const struct tune *t)
{
    json_t *notes = json_array(), *j;

    for (size_t i = 0; i < t->note_count; i++)
        json_array_append_new(notes, json_string(t->notes[i]));
    j = json_pack("{s:i, s:b, s:s, s:s, s:s, s:i, s:s, s:s, s:f, s:i, s:i, s:b}", "version", 1,
                  "simulated", t->simulated, "folder", t->folder.path, "nccl", t->nccl, "gpu",
                  t->gpu, "ranks", t->ranks, "placement", t->placement, "workload", t->source,
                  "spent_s", (double)tune_spent(t) / 1e9, "benches", (int)t->all.count, "reused",
                  (int)t->reused, "out_of_time", t->search.out_of_time);
    if (!j) {
        json_decref(notes);
        return NULL;
    }
    json_object_set_new(j, "better", json_boolean(t->proven));
    json_object_set_new(j, "verdict", json_string(t->verdict));
    json_object_set_new(j, "settings", settings_json(t));
    json_object_set_new(j, "rules", rules_json(t));
    json_object_set_new(j, "dropped", dropped_json(t));
    json_object_set_new(j, "proof_runs", json_integer(2 * (json_int_t)t->proof_runs));
    json_object_set_new(j, "what_counts", json_difference(&t->whole));
    json_object_set_new(j, "rows", rows_json(t));
    json_object_set_new(j, "profile", t->profile[0] ? json_string(t->profile) : json_null());
    json_object_set_new(j, "written", t->written[0] ? json_string(t->written) : json_null());
    json_object_set_new(j, "notes", notes);
    json_object_set_new(j, "before", look_json(&t->machine.before));
    json_object_set_new(j, "after", look_json(&t->machine.after));
    return j;
}
