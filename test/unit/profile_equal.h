/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are two profiles the same in what they do? Names, places, texts as written and digests do not
 * count. For the round trip: what is loaded, written and loaded again must be equal to itself.
 */
#ifndef TEST_PROFILE_EQUAL_H
#define TEST_PROFILE_EQUAL_H

#include <string.h>

#include "shim/profile/profile.h"

static inline bool same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && !strcmp(a, b));
}

static inline bool same_condition(const struct comm_condition *a, const struct comm_condition *b)
{
    return a->ranks_min == b->ranks_min && a->ranks_max == b->ranks_max &&
           a->nodes_min == b->nodes_min && a->nodes_max == b->nodes_max &&
           a->index_min == b->index_min && a->index_max == b->index_max &&
           same_text(a->name, b->name) && same_text(a->parent, b->parent);
}

/* Order counts only within [env] and within [env override]: a later one never beats an earlier. */
static inline bool same_env(const struct env_setting *a, size_t na, const struct env_setting *b,
                            size_t nb)
{
    if (na != nb)
        return false;
    for (size_t i = 0; i < na; i++) {
        size_t k = 0;
        while (k < nb && strcmp(a[i].name, b[k].name))
            k++;
        if (k == nb || strcmp(a[i].value, b[k].value) || a[i].override != b[k].override)
            return false;
    }
    return true;
}

static inline bool same_comm(const struct comm_section *a, const struct comm_section *b)
{
    if (strcmp(a->label, b->label) || a->set != b->set || !same_condition(&a->when, &b->when))
        return false;
    for (int i = 0; i < CONFIG_FIELD_COUNT; i++)
        if (a->set & 1u << i &&
            (a->number[i] != b->number[i] || !same_text(a->text[i], b->text[i])))
            return false;
    return same_env(a->env, a->env_count, b->env, b->env_count);
}

static inline bool same_rule(const struct tune_rule *a, const struct tune_rule *b)
{
    return a->op == b->op && a->bytes_min == b->bytes_min && a->bytes_max == b->bytes_max &&
           a->algo == b->algo && a->proto == b->proto && a->channels == b->channels &&
           a->chunk_bytes == b->chunk_bytes && same_condition(&a->when, &b->when);
}

static inline bool same_profile(const struct profile *a, const struct profile *b)
{
    if (strcmp(a->description, b->description) || a->nccl.least != b->nccl.least ||
        a->nccl.most != b->nccl.most || a->allow_unsafe != b->allow_unsafe ||
        !same_env(a->env, a->env_count, b->env, b->env_count) || a->comm_count != b->comm_count ||
        a->tune_count != b->tune_count)
        return false;
    for (size_t i = 0; i < a->comm_count; i++)
        if (!same_comm(&a->comm[i], &b->comm[i]))
            return false;
    for (size_t i = 0; i < a->tune_count; i++)
        if (!same_rule(&a->tune[i], &b->tune[i]))
            return false;
    return a->log.sample == b->log.sample && a->log.capacity == b->log.capacity &&
           a->log.min_bytes == b->log.min_bytes && a->log.eager == b->log.eager &&
           a->log.captured == b->log.captured && a->log.ops == b->log.ops &&
           a->log.set == b->log.set;
}

#endif
