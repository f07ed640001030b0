/* SPDX-License-Identifier: Apache-2.0 */
/* The environment that NCCL will see: shell, profile, NCCL's own files. */
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/profile/apply.h"
#include "shim/profile/check.h"
#include "shim/profile/conf.h"
#include "shim/profile/reader.h"

const struct setting *settings_find(const struct settings *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->list[i].name, name))
            return &s->list[i];
    return NULL;
}

static struct setting *add(struct settings *s, const char *name, const char *value, int origin)
{
    struct setting *n = GROW(s->list, s->count);

    if (n) {
        n->name = name;
        n->value = value;
        n->origin = origin;
        n->place.file = "";
    }
    return n;
}

static int add_planned(struct settings *s, const struct env_plan_entry *e)
{
    bool lost = e->setting && e->origin == NCCLSHIM_ORIGIN_USER;
    const char *value = lost ? e->old : e->value;
    struct setting *n;

    if (!value) /* a parent's profile set it, this one takes it away */
        return 0;
    n = add(s, e->name, value, e->origin);
    if (!n)
        return -1;
    n->asked = e->setting;
    n->profile_lost = lost && strcmp(e->old, e->setting->value);
    if (e->setting)
        n->place = e->setting->place;
    return 0;
}

static bool planned(const struct env_plan *plan, const char *name, size_t n)
{
    for (size_t i = 0; i < plan->count; i++)
        if (strlen(plan->entries[i].name) == n && !strncmp(plan->entries[i].name, name, n))
            return true;
    return false;
}

/* The shell's NCCL_ variables that the profile says nothing of. */
static int add_shell(struct settings *s, char *const *env)
{
    for (; env && *env; env++) {
        size_t n = strcspn(*env, "=");
        char **name;
        if (strncmp(*env, "NCCL_", 5) || !(*env)[n] || planned(s->plan, *env, n))
            continue;
        name = GROW(s->names, s->names_count);
        if (!name || !(*name = strndup(*env, n)) ||
            !add(s, *name, *env + n + 1, NCCLSHIM_ORIGIN_USER))
            return -1;
    }
    return 0;
}

static int add_conf(struct settings *s, const struct conf_files *conf)
{
    for (size_t i = 0; conf && i < conf->count; i++)
        for (size_t j = 0; j < conf->files[i].count; j++) {
            const struct conf_line *l = &conf->files[i].lines[j];
            struct setting *n;
            /* A blank at a name's end makes it a name that nobody reads. */
            if (settings_find(s, l->name) || strncmp(l->name, "NCCL_", 5) ||
                strpbrk(l->name, " \t"))
                continue;
            n = add(s, l->name, l->value, NCCLSHIM_ORIGIN_CONF);
            if (!n)
                return -1;
            n->place = (struct place){conf->files[i].path, l->line};
        }
    return 0;
}

int settings_merge(const struct profile *p, char *const *env, const struct conf_files *conf,
                   struct settings *out)
{
    int rc;

    memset(out, 0, sizeof(*out));
    out->plan = calloc(1, sizeof(*out->plan));
    rc = !out->plan || profile_env_plan(p, env, out->plan);
    for (size_t i = 0; !rc && i < out->plan->count; i++)
        rc = add_planned(out, &out->plan->entries[i]);
    if (rc || add_shell(out, env) || add_conf(out, conf)) {
        settings_free(out);
        return -1;
    }
    return 0;
}

void settings_free(struct settings *s)
{
    if (s->plan)
        env_plan_free(s->plan);
    for (size_t i = 0; i < s->names_count; i++)
        free(s->names[i]);
    free(s->names);
    free(s->plan);
    free(s->list);
    memset(s, 0, sizeof(*s));
}
