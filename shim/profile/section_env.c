/* SPDX-License-Identifier: Apache-2.0 */
/* [env], [env override], and the variables in [comm] sections. */
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/profile/env_value.h"
#include "shim/profile/reader.h"

int env_setting_add(struct reader *r, struct env_setting **list, size_t *count, const char *key,
                    const char *raw, int line)
{
    struct env_setting *s = GROW(*list, *count);

    if (!s)
        return reader_no_memory(r);
    s->name = strdup(key);
    s->raw = strdup(raw);
    s->place = (struct place){r->file, line};
    return s->name && s->raw ? 0 : reader_no_memory(r);
}

int section_env_key(struct reader *r, const char *key, const char *raw, int line)
{
    if (env_setting_add(r, &r->p->env, &r->p->env_count, key, raw, line))
        return -1;
    r->p->env[r->p->env_count - 1].override = r->kind == SECTION_OVERRIDE;
    return 0;
}

static bool allowed_unknown(const struct profile *p, const char *name)
{
    for (size_t i = 0; i < p->allow_unknown_count; i++)
        if (!strcmp(p->allow_unknown[i], name))
            return true;
    return false;
}

static int refuse_name(struct reader *r, const struct env_setting *s)
{
    const char *near = nccl_var_nearest(s->name);

    if (!strncmp(s->name, "LD_", 3) || !strcmp(s->name, "PATH") ||
        !strncmp(s->name, "NCCLSHIM_", 9))
        return reader_error(r, s->place.line,
                            "%s is never a profile's to set; set it where the "
                            "server is started",
                            s->name);
    if (near)
        return reader_error(r, s->place.line,
                            "no NCCL reads '%s'; did you mean '%s'? (If it is "
                            "meant: allow_unknown = %s in [profile])",
                            s->name, near, s->name);
    if (!strncmp(s->name, "NCCL_", 5))
        return reader_error(r, s->place.line,
                            "no NCCL reads '%s'; if a newer one or a plugin "
                            "does, write allow_unknown = %s in [profile]",
                            s->name, s->name);
    return reader_error(r, s->place.line,
                        "'%s' is no NCCL variable; if it is meant, write "
                        "allow_unknown = %s in [profile]",
                        s->name, s->name);
}

/* A name that the table lacks: meant by the profile, its value goes through as it is. */
static int judge_unknown(struct reader *r, struct env_setting *s, const struct clean_value *v)
{
    if (!allowed_unknown(r->p, s->name))
        return refuse_name(r, s);
    if (!v->quoted && value_has_comment(v->text))
        return reader_error(r, s->place.line,
                            "%s: is what follows the blank a comment? In this "
                            "section a comment stands on a line of its own; "
                            "quote the value if it belongs to it",
                            s->name);
    s->value = strdup(v->text);
    return s->value ? 0 : reader_no_memory(r);
}

static int judge(struct reader *r, struct env_setting *s, bool in_comm)
{
    const struct nccl_var *var = nccl_var_find(s->name);
    struct clean_value v;
    char why[512];
    int rc = reader_clean(r, s->name, s->raw, false, s->place.line, &v);

    if (rc)
        return rc > 0 ? 0 : rc;
    if (in_comm && var && !nccl_var_per_comm(var))
        rc = reader_error(r, s->place.line,
                          "%s is read %s, not for each communicator; it belongs "
                          "in [env]",
                          s->name, nccl_var_when_text(var));
    else if (in_comm && !var)
        rc = refuse_name(r, s);
    else if (!var)
        rc = judge_unknown(r, s, &v);
    else if (env_value_convert(var, &v, &s->value, why, sizeof(why)))
        rc = reader_error(r, s->place.line, "%s = '%.80s': %s", s->name, v.text, why);
    free(v.text);
    return rc;
}

int section_env_finish(struct reader *r)
{
    struct profile *p = r->p;

    for (size_t i = 0; i < p->env_count; i++)
        if (judge(r, &p->env[i], false))
            return -1;
    for (size_t i = 0; i < p->comm_count; i++)
        for (size_t j = 0; j < p->comm[i].env_count; j++)
            if (judge(r, &p->comm[i].env[j], true))
                return -1;
    return 0;
}
