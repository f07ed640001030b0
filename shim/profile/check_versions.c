/* SPDX-License-Identifier: Apache-2.0 */
/* What the NCCL in question does not have yet, or no more; and NCCL's own files. */
#include <string.h>

#include "shim/profile/conf.h"
#include "shim/profile/judge.h"
#include "shim/profile/version.h"

static void wanted_version(const struct judge *j)
{
    const struct version_range *r = &j->p->nccl;
    char is[VERSION_TEXT_MAX];

    if (r->text && (j->version < r->least || j->version > r->most))
        finding_add(j->out, SEVERITY_ERROR, "nccl", "", &j->p->nccl_place, NCCLSHIM_ORIGIN_PROFILE,
                    "take another NCCL or another profile",
                    "the profile is for NCCL %s, this is %s", r->text,
                    version_text(j->version, is, sizeof(is)));
}

static void variable_version(const struct judge *j, const struct setting *s)
{
    const struct nccl_var *v = nccl_var_find(s->name);
    char is[VERSION_TEXT_MAX], other[VERSION_TEXT_MAX];
    bool later;

    if (!v || nccl_var_in(v, j->version) || (j->version > NCCL_VERSION_NEWEST && !v->last))
        return;
    later = j->version < v->first;
    ON_SETTING(j, SEVERITY_WARN, s, "",
               "no effect: NCCL %s does not read it, %s is the %s that is known to",
               version_text(j->version, is, sizeof(is)),
               version_text(later ? v->first : v->last, other, sizeof(other)),
               later ? "first" : "last");
}

static void section_version(const struct judge *j, const struct comm_section *c)
{
    char is[VERSION_TEXT_MAX], since[VERSION_TEXT_MAX];

    version_text(j->version, is, sizeof(is));
    for (int i = 0; i < CONFIG_FIELD_COUNT; i++)
        if (c->set & 1u << i && j->version < config_fields[i].since)
            finding_add(j->out, SEVERITY_WARN, config_fields[i].key, c->label, &c->places[i],
                        NCCLSHIM_ORIGIN_COMM, "",
                        "no effect: NCCL %s has no such setting of a communicator, it came with %s",
                        is, version_text(config_fields[i].since, since, sizeof(since)));
    for (size_t i = 0; j->version < 22807 && i < c->env_count; i++)
        finding_add(
            j->out, SEVERITY_WARN, c->env[i].name, c->label, &c->env[i].place, NCCLSHIM_ORIGIN_COMM,
            "put it into [env] if it may hold for all communicators",
            "no effect: NCCL before 2.28.7 has no way to answer one communicator differently");
}

static void old_levels(const struct judge *j, const struct setting *s)
{
    if (j->version < 2600 && (s->value[0] < '0' || s->value[0] > '9'))
        ON_SETTING(j, SEVERITY_WARN, s, "write the old number",
                   "NCCL before 2.6 reads a number: 0 of this, "
                   "which switches peer access off");
}

void check_versions(const struct judge *j)
{
    const struct setting *level = settings_find(j->s, "NCCL_P2P_LEVEL");

    if (!j->version)
        return;
    wanted_version(j);
    if (level)
        old_levels(j, level);
    for (size_t i = 0; i < j->s->count; i++)
        variable_version(j, &j->s->list[i]);
    for (size_t i = 0; i < j->p->comm_count; i++)
        section_version(j, &j->p->comm[i]);
}

/* ---- NCCL's own files ------------------------------------------------------------------------ */

static void conf_line(const struct judge *j, const char *path, const struct conf_line *l)
{
    size_t n = strlen(l->name);
    struct place place = {path, l->line};
    const struct setting *s;

    if (l->name[n - 1] == ' ' || l->name[n - 1] == '\t' || *l->name == ' ' || *l->name == '\t') {
        finding_add(
            j->out, SEVERITY_WARN, l->name, "", &place, NCCLSHIM_ORIGIN_CONF,
            "remove the blanks around '='",
            "the blank belongs to the variable's name, which no NCCL reads: the line does nothing");
        return;
    }
    s = settings_find(j->s, l->name);
    if (!s || (s->origin == NCCLSHIM_ORIGIN_CONF && s->place.line == l->line &&
               !strcmp(s->place.file, path)))
        return;
    finding_add(j->out, strcmp(s->value, l->value) ? SEVERITY_WARN : SEVERITY_HINT, l->name, "",
                &place, NCCLSHIM_ORIGIN_CONF, "", "overridden: %s %s %s", l->value,
                strcmp(s->value, l->value) ? "loses against" : "is also what is set by",
                from_profile(s)                     ? "the profile"
                : s->origin == NCCLSHIM_ORIGIN_USER ? "the shell"
                                                    : "a line or file before it");
}

void check_conf(const struct judge *j)
{
    for (size_t i = 0; j->conf && i < j->conf->count; i++)
        for (size_t k = 0; k < j->conf->files[i].count; k++)
            conf_line(j, j->conf->files[i].path, &j->conf->files[i].lines[k]);
}
