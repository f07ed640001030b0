/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/cli/show_profile.h"
#include "shim/profile/write.h"
#include "shim/show/json.h"

static void set(json_t *o, const char *key, const char *value)
{
    json_object_set_new(o, key, json_text(value));
}

static void set_notes(const struct judged *j, json_t *o, const char *subject, const char *section)
{
    json_t *notes = json_array();

    for (size_t i = 0; i < j->findings.count; i++) {
        const struct finding *f = &j->findings.list[i];
        if (!strcmp(f->subject, subject) && !strcmp(f->section, section))
            json_array_append_new(notes, finding_json(f));
    }
    json_object_set_new(o, "findings", notes);
}

static json_t *setting_json(const struct judged *j, const struct setting *s)
{
    json_t *o = json_object();

    set(o, "name", s->name);
    set(o, "value", s->value);
    set(o, "origin", origin_name(s->origin));
    json_object_set_new(o, "kept", json_boolean(s->profile_lost));
    if (s->asked) {
        set(o, "asked", s->asked->value);
        set(o, "written", s->asked->raw);
    }
    place_json(&s->place, o);
    set_notes(j, o, s->name, "");
    return o;
}

static void set_range(json_t *o, const char *key, int min, int max)
{
    json_t *range;

    if (min == 0 && max == INT_MAX)
        return;
    range = json_object();
    json_object_set_new(range, "min", json_integer(min));
    if (max != INT_MAX)
        json_object_set_new(range, "max", json_integer(max));
    json_object_set_new(o, key, range);
}

static json_t *condition_json(const struct comm_condition *c)
{
    json_t *o = json_object();

    set_range(o, "ranks", c->ranks_min, c->ranks_max);
    set_range(o, "nodes", c->nodes_min, c->nodes_max);
    set_range(o, "index", c->index_min, c->index_max);
    if (c->name)
        set(o, "name", c->name);
    if (c->parent)
        set(o, "parent", c->parent);
    return o;
}

static json_t *section_json(const struct judged *j, const struct comm_section *c)
{
    json_t *o = json_object(), *settings = json_array();
    char value[32];

    set(o, "label", c->label);
    json_object_set_new(o, "when", condition_json(&c->when));
    for (int i = 0; i < CONFIG_FIELD_COUNT; i++)
        if (c->set & 1u << i) {
            json_t *s = json_object();
            set(s, "name", config_fields[i].key);
            set(s, "value", config_field_value(c, i, value, sizeof(value)));
            place_json(&c->places[i], s);
            set_notes(j, s, config_fields[i].key, c->label);
            json_array_append_new(settings, s);
        }
    for (size_t i = 0; i < c->env_count; i++) {
        json_t *s = json_object();
        set(s, "name", c->env[i].name);
        set(s, "value", c->env[i].value);
        place_json(&c->env[i].place, s);
        set_notes(j, s, c->env[i].name, c->label);
        json_array_append_new(settings, s);
    }
    json_object_set_new(o, "settings", settings);
    return o;
}

static json_t *rule_json(const struct judged *j, const struct tune_rule *t)
{
    json_t *o = json_object();
    char *rule = rule_text(t);

    set(o, "rule", rule);
    free(rule);
    set(o, "label", t->label);
    json_object_set_new(o, "when", condition_json(&t->when));
    set(o, "op", op_name((unsigned)t->op));
    json_object_set_new(o, "min_bytes", json_integer((json_int_t)t->bytes_min));
    if (t->bytes_max != UINT64_MAX)
        json_object_set_new(o, "max_bytes", json_integer((json_int_t)t->bytes_max));
    if (t->algo >= 0)
        set(o, "algo", algo_name((unsigned)t->algo));
    if (t->proto >= 0)
        set(o, "proto", proto_name((unsigned)t->proto));
    if (t->channels)
        json_object_set_new(o, "channels", json_integer(t->channels));
    if (t->chunk_bytes)
        json_object_set_new(o, "chunk_bytes", json_integer((json_int_t)t->chunk_bytes));
    place_json(&t->place, o);
    set_notes(j, o, t->text, t->label);
    return o;
}

static json_t *log_json(const struct log_options *log)
{
    json_t *o = json_object(), *ops = json_array();

    json_object_set_new(o, "sample", json_integer(log->sample));
    json_object_set_new(o, "capacity_records", json_integer((json_int_t)log->capacity));
    json_object_set_new(o, "min_bytes", json_integer((json_int_t)log->min_bytes));
    json_object_set_new(o, "eager", json_boolean(log->eager));
    json_object_set_new(o, "captured", json_boolean(log->captured));
    for (unsigned i = 0; i < OP_COUNT; i++)
        if (log->ops & 1u << i)
            json_array_append_new(ops, json_string(op_name(i)));
    json_object_set_new(o, "ops", ops);
    return o;
}

int show_profile_json(const struct judged *j, FILE *out, struct error *e)
{
    const struct profile *p = j->p;
    json_t *root = json_object(), *list = json_array();
    char digest[32];

    set(root, "name", p->name);
    set(root, "path", p->path);
    set(root, "description", p->description);
    for (size_t i = 0; i < p->inherits_count; i++)
        json_array_append_new(list, json_text(p->inherits[i]));
    json_object_set_new(root, "inherits", list);
    if (p->nccl.text)
        set(root, "nccl", p->nccl.text);
    json_object_set_new(root, "allow_unsafe", json_boolean(p->allow_unsafe));
    snprintf(digest, sizeof(digest), "%016" PRIx64, p->digest);
    set(root, "digest", digest);
    json_object_set_new(root, "environment", list = json_array());
    for (size_t i = 0; i < j->settings.count; i++)
        json_array_append_new(list, setting_json(j, &j->settings.list[i]));
    json_object_set_new(root, "comm", list = json_array());
    for (size_t i = 0; i < p->comm_count; i++)
        json_array_append_new(list, section_json(j, &p->comm[i]));
    json_object_set_new(root, "tune", list = json_array());
    for (size_t i = 0; i < p->tune_count; i++)
        json_array_append_new(list, rule_json(j, &p->tune[i]));
    json_object_set_new(root, "log", log_json(&p->log));
    json_object_set_new(root, "findings", list = json_array());
    for (size_t i = 0; i < j->findings.count; i++)
        json_array_append_new(list, finding_json(&j->findings.list[i]));
    return json_print(root, out, e);
}
