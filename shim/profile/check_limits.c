/* SPDX-License-Identifier: Apache-2.0 */
/* Channels and CTAs, and what beats the settings of a communicator. */
#include <string.h>

#include "shim/profile/judge.h"

/* NCCL_MIN_NCHANNELS, or its old name. */
static const struct setting *either(const struct judge *j, const char *name, const char *old)
{
    const struct setting *s = settings_find(j->s, name);

    return s ? s : settings_find(j->s, old);
}

static void min_above_max(const struct judge *j)
{
    const struct setting *min = either(j, "NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS");
    const struct setting *max = either(j, "NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS");
    const struct setting *min_ctas = settings_find(j->s, "NCCL_MIN_CTAS");
    const struct setting *max_ctas = settings_find(j->s, "NCCL_MAX_CTAS");
    long long a = setting_number(min, -2), b = setting_number(max, -2);

    if (a > 0 && b > 0 && a > b)
        ON_SETTING(j, SEVERITY_ERROR, min, "make them agree",
                   "at least %lld channels, but %s says at most %lld: the minimum wins in NCCL", a,
                   max->name, b);
    a = setting_number(min_ctas, -2);
    b = setting_number(max_ctas, -2);
    if (a > 0 && b > 0 && a > b)
        ON_SETTING(
            j, SEVERITY_ERROR, min_ctas, "make them agree",
            "at least %lld CTAs, but NCCL_MAX_CTAS says at most %lld: the maximum wins in NCCL", a,
            b);
    a = setting_number(settings_find(j->s, "NCCL_MIN_P2P_NCHANNELS"), -2);
    b = setting_number(settings_find(j->s, "NCCL_MAX_P2P_NCHANNELS"), -2);
    if (a > 0 && b > 0 && a > b)
        ON_SETTING(j, SEVERITY_ERROR, settings_find(j->s, "NCCL_MIN_P2P_NCHANNELS"),
                   "make them agree", "more than NCCL_MAX_P2P_NCHANNELS (%lld)", b);
}

static void caps_are_not_for_all(const struct judge *j)
{
    const struct setting *caps[] = {either(j, "NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS"),
                                    settings_find(j->s, "NCCL_MAX_CTAS")};

    for (int i = 0; i < 2; i++)
        if (caps[i] && !settings_find(j->s, "NCCL_MAX_P2P_NCHANNELS"))
            ON_SETTING(j, SEVERITY_HINT, caps[i],
                       "for these there are NCCL_MAX_P2P_NCHANNELS and NCCL_NVLS_NCHANNELS",
                       "no cap for send/recv (and so for all-to-all) or for NVLS");
}

/* ---- sections -------------------------------------------------------------------------------- */

static bool gives(const struct comm_section *c, int field)
{
    return c && c->set & 1u << field;
}

/* The environment goes before the config, in NCCL, for every field that has a variable. */
static void variable_wins(const struct judge *j, const struct comm_section *c, int i)
{
    const struct setting *s = settings_find(j->s, config_fields[i].variable);
    bool same;

    if (!s || !*s->value)
        return;
    same = config_fields[i].text ? !strcmp(s->value, c->text[i]) : setting_number(s, 0) == c->number[i];
    if (same)
        finding_add(j->out, SEVERITY_HINT, config_fields[i].key, c->label, &c->places[i],
                    NCCLSHIM_ORIGIN_COMM, "", "%s = %s is set as well and would win", s->name,
                    s->value);
    else
        finding_add(j->out, SEVERITY_WARN, config_fields[i].key, c->label, &c->places[i],
                    NCCLSHIM_ORIGIN_COMM,
                    from_profile(s) ? "take the variable out of the profile"
                                    : "unset the variable where the server is started",
                    "no effect: %s = %s is set and wins in NCCL", s->name, s->value);
}

static int effective(const struct judge *j, const struct comm_section *c, int field)
{
    const struct comm_section *base = profile_comm_base(j->p);

    return gives(c, field) ? c->number[field] : gives(base, field) ? base->number[field] : 0;
}

static void section_limits(const struct judge *j, const struct comm_section *c)
{
    long long min = setting_number(either(j, "NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS"), 0);
    long long max = setting_number(either(j, "NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS"), 64);
    int least = effective(j, c, CONFIG_MIN_CTAS), most = effective(j, c, CONFIG_MAX_CTAS);
    int at = gives(c, CONFIG_MIN_CTAS) ? CONFIG_MIN_CTAS : CONFIG_MAX_CTAS;

    if (!gives(c, CONFIG_MIN_CTAS) && !gives(c, CONFIG_MAX_CTAS))
        return;
    if (least && most && least > most)
        finding_add(j->out, SEVERITY_ERROR, config_fields[at].key, c->label, &c->places[at],
                    NCCLSHIM_ORIGIN_COMM, "make them agree",
                    "min_ctas = %d is above max_ctas = %d: NCCL refuses to make the communicator",
                    least, most);
    if (gives(c, CONFIG_MAX_CTAS) && min > most)
        finding_add(j->out, SEVERITY_WARN, "max_ctas", c->label, &c->places[CONFIG_MAX_CTAS],
                    NCCLSHIM_ORIGIN_COMM, "lower NCCL_MIN_NCHANNELS",
                    "NCCL_MIN_NCHANNELS = %lld is above it and wins in NCCL", min);
    if (gives(c, CONFIG_MIN_CTAS) && max > 0 && max < least)
        finding_add(j->out, SEVERITY_WARN, "min_ctas", c->label, &c->places[CONFIG_MIN_CTAS],
                    NCCLSHIM_ORIGIN_COMM, "raise NCCL_MAX_NCHANNELS",
                    "it is above NCCL_MAX_NCHANNELS = %lld, and the minimum wins in NCCL", max);
}

static void graph_use(const struct judge *j, const struct comm_section *c)
{
    if (gives(c, CONFIG_GRAPH_USAGE_MODE) && c->number[CONFIG_GRAPH_USAGE_MODE] < 2)
        finding_add(
            j->out, SEVERITY_WARN, "graph_usage_mode", c->label,
            &c->places[CONFIG_GRAPH_USAGE_MODE], NCCLSHIM_ORIGIN_COMM,
            "`ncclshim report` shows which communicators are used both ways",
            "on a condition: the communicator is not in two graphs at once, and not used eagerly "
            "while a graph that uses it runs; else it hangs or gives wrong data");
}

/* The same thing by a field and by a variable of the same section. */
static void both_ways(const struct judge *j, const struct comm_section *c, int i)
{
    for (size_t k = 0; k < c->env_count; k++)
        if (!strcmp(c->env[k].name, config_fields[i].variable))
            finding_add(j->out, SEVERITY_WARN, config_fields[i].key, c->label, &c->places[i],
                        NCCLSHIM_ORIGIN_COMM, "keep one of the two",
                        "no effect: %s in the same section wins in NCCL", c->env[k].name);
}

void check_limits(const struct judge *j)
{
    min_above_max(j);
    caps_are_not_for_all(j);
    for (size_t n = 0; n < j->p->comm_count; n++) {
        const struct comm_section *c = &j->p->comm[n];
        for (int i = 0; i < CONFIG_FIELD_COUNT; i++)
            if (gives(c, i)) {
                variable_wins(j, c, i);
                both_ways(j, c, i);
            }
        section_limits(j, c);
        graph_use(j, c);
    }
}
