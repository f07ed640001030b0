/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inheritance: key by key, what a profile says itself goes before what it inherits. Its rules and
 * named sections come first; an inherited [comm NAME] whose label it has too is refined in place,
 * and an inherited rule or section that its own leave nothing to is dropped.
 *
 * allow_unsafe is not inherited: who reads one file must see there that it accepts danger.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/profile/reader.h"

static bool has_env(const struct env_setting *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i].name, name))
            return true;
    return false;
}

/* Move what `to` lacks; what it has is freed. */
static int merge_env(struct env_setting **to, size_t *to_count, struct env_setting *from,
                     size_t from_count)
{
    size_t own = *to_count;

    for (size_t i = 0; i < from_count; i++) {
        struct env_setting *s = NULL;
        if (!has_env(*to, own, from[i].name)) {
            s = GROW(*to, *to_count);
            if (!s)
                return -1;
            *s = from[i];
        } else {
            env_setting_free(&from[i]);
        }
        memset(&from[i], 0, sizeof(from[i]));
    }
    return 0;
}

static void merge_range(int *min, int *max, int base_min, int base_max)
{
    if (*min == 0 && *max == INT_MAX) {
        *min = base_min;
        *max = base_max;
    }
}

static void merge_text(char **to, char **from)
{
    if (!*to) {
        *to = *from;
        *from = NULL;
    }
}

static void merge_condition(struct comm_condition *to, struct comm_condition *from)
{
    merge_range(&to->ranks_min, &to->ranks_max, from->ranks_min, from->ranks_max);
    merge_range(&to->nodes_min, &to->nodes_max, from->nodes_min, from->nodes_max);
    merge_range(&to->index_min, &to->index_max, from->index_min, from->index_max);
    merge_text(&to->name, &from->name);
    merge_text(&to->parent, &from->parent);
}

/* Same label: the section's own keys go before. `from` is left empty but for its label. */
static int refine_comm(struct comm_section *to, struct comm_section *from)
{
    for (int i = 0; i < CONFIG_FIELD_COUNT; i++) {
        if (to->set & 1u << i || !(from->set & 1u << i))
            continue;
        to->set |= 1u << i;
        to->number[i] = from->number[i];
        to->text[i] = from->text[i];
        from->text[i] = NULL;
        to->places[i] = from->places[i];
    }
    merge_condition(&to->when, &from->when);
    to->conditions |= from->conditions;
    return merge_env(&to->env, &to->env_count, from->env, from->env_count);
}

static struct comm_section *same_label(struct profile *p, size_t count, const char *label)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(p->comm[i].label, label))
            return &p->comm[i];
    return NULL;
}

const struct comm_section *comm_section_covered(const struct profile *p,
                                                const struct comm_section *s)
{
    for (const struct comm_section *o = p->comm; *s->label && o < p->comm + p->comm_count; o++) {
        if (o == s)
            return NULL;
        if (*o->label && condition_covers(&o->when, &s->when))
            return o;
    }
    return NULL;
}

static int append_comm(struct profile *p, struct comm_section *from)
{
    struct comm_section *s;

    if (comm_section_covered(p, from)) {
        comm_section_free(from);
        memset(from, 0, sizeof(*from));
        return 0;
    }
    s = GROW(p->comm, p->comm_count);
    if (!s)
        return -1;
    *s = *from;
    memset(from, 0, sizeof(*from));
    if (!*s->label) { /* [comm] is the first */
        struct comm_section base = *s;
        memmove(p->comm + 1, p->comm, (p->comm_count - 1) * sizeof(*p->comm));
        p->comm[0] = base;
    }
    return 0;
}

static int merge_comm(struct profile *p, struct profile *base)
{
    size_t own = p->comm_count;

    /* Refine first: whether an inherited section is of use depends on what ours have become. */
    for (size_t i = 0; i < base->comm_count; i++) {
        struct comm_section *from = &base->comm[i];
        struct comm_section *to = same_label(p, own, from->label);
        if (to && refine_comm(to, from))
            return -1;
        if (to) {
            comm_section_free(from);
            memset(from, 0, sizeof(*from));
        }
    }
    for (size_t i = 0; i < base->comm_count; i++)
        if (base->comm[i].label && append_comm(p, &base->comm[i]))
            return -1;
    base->comm_count = 0;
    return 0;
}

static int merge_tune(struct profile *p, struct profile *base)
{
    for (size_t i = 0; i < base->tune_count; i++) {
        struct tune_rule *t = GROW(p->tune, p->tune_count);
        if (!t)
            return -1;
        *t = base->tune[i];
        memset(&base->tune[i], 0, sizeof(*t));
        if (tune_rule_shadowed(p, t)) {
            tune_rule_free(t);
            p->tune_count--;
        }
    }
    base->tune_count = 0;
    return 0;
}

static void merge_log(struct profile *p, const struct profile *base)
{
    struct log_options *to = &p->log;
    const struct log_options *from = &base->log;
    uint32_t take = from->set & ~to->set;

    if (take & LOG_SET_SAMPLE)
        to->sample = from->sample;
    if (take & LOG_SET_CAPACITY)
        to->capacity = from->capacity;
    if (take & LOG_SET_MIN_BYTES)
        to->min_bytes = from->min_bytes;
    if (take & LOG_SET_EAGER)
        to->eager = from->eager;
    if (take & LOG_SET_CAPTURED)
        to->captured = from->captured;
    if (take & LOG_SET_OPS)
        to->ops = from->ops;
    for (int i = 0; i < LOG_KEY_COUNT; i++)
        if (take & 1u << i)
            p->log_places[i] = base->log_places[i];
    to->set |= take;
}

static int move_strings(char ***to, size_t *to_count, char **from, size_t *from_count)
{
    while (*from_count) {
        char **slot = GROW(*to, *to_count);
        if (!slot)
            return -1;
        *slot = from[0];
        memmove(from, from + 1, --*from_count * sizeof(*from));
    }
    return 0;
}

static int merge_inherits(struct profile *p, struct profile *base)
{
    char **slot = GROW(p->inherits, p->inherits_count);

    if (!slot)
        return -1;
    *slot = base->name;
    base->name = NULL;
    return move_strings(&p->inherits, &p->inherits_count, base->inherits, &base->inherits_count);
}

int profile_merge(struct profile *p, struct profile *base)
{
    if (move_strings(&p->files, &p->files_count, base->files, &base->files_count) ||
        move_strings(&p->allow_unknown, &p->allow_unknown_count, base->allow_unknown,
                     &base->allow_unknown_count) ||
        merge_env(&p->env, &p->env_count, base->env, base->env_count) || merge_comm(p, base) ||
        merge_tune(p, base) || merge_inherits(p, base))
        return -1;
    base->env_count = 0;
    merge_log(p, base);
    if (!p->nccl.text) {
        p->nccl = base->nccl;
        p->nccl_place = base->nccl_place;
        base->nccl.text = NULL;
    }
    return 0;
}
