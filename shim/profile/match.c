/* SPDX-License-Identifier: Apache-2.0 */
/* Which section a communicator gets, which rule a call gets. */
#include "shim/profile/reader.h"

const struct comm_section *profile_comm_base(const struct profile *p)
{
    return p->comm_count && !*p->comm[0].label ? &p->comm[0] : NULL;
}

const struct comm_section *profile_comm_match(const struct profile *p, const struct comm_facts *f)
{
    for (size_t i = 0; i < p->comm_count; i++)
        if (*p->comm[i].label && condition_holds(&p->comm[i].when, f))
            return &p->comm[i];
    return NULL;
}

const struct tune_rule *profile_tune_match(const struct profile *p, int op, uint64_t bytes,
                                           const struct comm_facts *f)
{
    for (size_t i = 0; i < p->tune_count; i++) {
        const struct tune_rule *t = &p->tune[i];
        if (t->op == op && bytes >= t->bytes_min && bytes <= t->bytes_max &&
            condition_holds(&t->when, f))
            return t;
    }
    return NULL;
}

/*
 * Walk up from the rule's lower bound through the rules before it: each step must be covered by one
 * that holds wherever this one does.
 */
const struct tune_rule *tune_rule_shadowed(const struct profile *p, const struct tune_rule *rule)
{
    const struct tune_rule *first = NULL;
    uint64_t from = rule->bytes_min;

    for (const struct tune_rule *t = p->tune; t < rule;) {
        if (t->op != rule->op || from < t->bytes_min || from > t->bytes_max ||
            !condition_covers(&t->when, &rule->when)) {
            t++;
            continue;
        }
        first = first ? first : t;
        if (t->bytes_max >= rule->bytes_max)
            return first;
        from = t->bytes_max + 1;
        t = p->tune;
    }
    return NULL;
}
