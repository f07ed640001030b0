/* SPDX-License-Identifier: Apache-2.0 */
/* [comm] and [comm NAME]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/base/names.h"
#include "shim/profile/reader.h"

int section_comm_start(struct reader *r, int line)
{
    struct comm_section *s = GROW(r->p->comm, r->p->comm_count);

    if (!s)
        return reader_no_memory(r);
    condition_any(&s->when);
    s->label = strdup(r->label);
    s->place = (struct place){r->file, line};
    return s->label ? 0 : reader_no_memory(r);
}

static int refuse_key(struct reader *r, const char *key, int line)
{
    const char *words[CONFIG_FIELD_COUNT + 6] = {"ranks", "name", "parent", "nodes", "index"};
    const char *near;

    if (!strcmp(key, "blocking"))
        return reader_error(r, line,
                            "blocking is no setting: whether the program waits or polls "
                            "is its own choice");
    if (!strcmp(key, "comm_name"))
        return reader_error(r, line,
                            "a communicator's name is the program's; `name` is the "
                            "condition on it");
    for (int i = 0; i < CONFIG_FIELD_COUNT; i++)
        words[5 + i] = config_fields[i].key;
    near = nearest_name(key, words);
    return reader_error(r, line, "[comm] has no key '%s'%s%s%s", key,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int set_field(struct reader *r, struct comm_section *s, int n, const char *raw, int line)
{
    const struct config_field_facts *f = &config_fields[n];
    struct clean_value v;
    int rc = reader_clean(r, f->key, raw, true, line, &v);

    if (rc)
        return rc > 0 ? 0 : rc;
    s->set |= 1u << n;
    s->places[n] = (struct place){r->file, line};
    if (f->text) {
        s->text[n] = v.text;
        return *v.text ? 0 : reader_error(r, line, "%s is empty; leave the line out", f->key);
    }
    if (value_int(v.text, f->least, f->most, &s->number[n]))
        rc = reader_error(r, line, "%s = %s: write a number from %d to %d", f->key, v.text,
                          f->least, f->most);
    free(v.text);
    return rc;
}

int section_comm_key(struct reader *r, const char *key, const char *raw, int line)
{
    struct comm_section *s = &r->p->comm[r->p->comm_count - 1];
    int rc;

    if (!strncmp(key, "NCCL_", 5))
        return env_setting_add(r, &s->env, &s->env_count, key, raw, line);
    for (int i = 0; i < CONFIG_FIELD_COUNT; i++)
        if (!strcmp(key, config_fields[i].key))
            return set_field(r, s, i, raw, line);
    if (*s->label) {
        rc = condition_key(r, &s->when, key, raw, line);
        return rc == 1 ? refuse_key(r, key, line) : rc;
    }
    if (!strcmp(key, "ranks") || !strcmp(key, "name") || !strcmp(key, "parent") ||
        !strcmp(key, "nodes") || !strcmp(key, "index"))
        return reader_error(r, line,
                            "%s is a condition, and [comm] is for all communicators; "
                            "start a section with a name: [comm small]",
                            key);
    return refuse_key(r, key, line);
}

void section_comm_end(struct reader *r)
{
    r->p->comm[r->p->comm_count - 1].conditions = r->conditions > 0;
}

/* At the end of all, since an inherited section of the same label may lend its conditions. */
int section_comm_finish(struct reader *r)
{
    for (size_t i = 0; i < r->p->comm_count; i++) {
        const struct comm_section *s = &r->p->comm[i];
        const struct comm_section *by;
        int rc = 0;
        if (!*s->label || s->place.file != r->file)
            continue;
        if (!s->conditions)
            rc = reader_error(r, s->place.line,
                              "[comm %s] has no condition (ranks, name, parent, "
                              "nodes, index); what is for all communicators "
                              "stands in [comm]",
                              s->label);
        else if ((by = comm_section_covered(r->p, s)))
            rc = reader_error(r, s->place.line,
                              "[comm %s] is never used: [comm %s] before it takes "
                              "every communicator that it could; put the "
                              "narrower one first",
                              s->label, by->label);
        if (rc)
            return -1;
    }
    return r->errors ? -1 : 0;
}
