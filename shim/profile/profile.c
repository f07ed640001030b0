/* SPDX-License-Identifier: Apache-2.0 */
/* A profile's memory. */
#include "shim/profile/profile.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/profile/reader.h"

struct profile *profile_new(void)
{
    struct profile *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->nccl.most = INT_MAX;
    p->log.sample = LOG_SAMPLE_DEFAULT;
    p->log.capacity = LOG_CAPACITY_DEFAULT;
    p->log.eager = p->log.captured = true;
    p->log.ops = (1u << OP_COUNT) - 1;
    return p;
}

void env_setting_free(struct env_setting *s)
{
    free(s->name);
    free(s->value);
    free(s->raw);
}

void comm_section_free(struct comm_section *s)
{
    for (int i = 0; i < CONFIG_FIELD_COUNT; i++)
        free(s->text[i]);
    for (size_t i = 0; i < s->env_count; i++)
        env_setting_free(&s->env[i]);
    condition_free(&s->when);
    free(s->env);
    free(s->label);
}

void tune_rule_free(struct tune_rule *t)
{
    condition_free(&t->when);
    free(t->label);
    free(t->text);
}

static void free_strings(char **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

void profile_free(struct profile *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->env_count; i++)
        env_setting_free(&p->env[i]);
    for (size_t i = 0; i < p->comm_count; i++)
        comm_section_free(&p->comm[i]);
    for (size_t i = 0; i < p->tune_count; i++)
        tune_rule_free(&p->tune[i]);
    free_strings(p->inherits, p->inherits_count);
    free_strings(p->allow_unknown, p->allow_unknown_count);
    free_strings(p->files, p->files_count);
    free(p->env);
    free(p->comm);
    free(p->tune);
    free(p->nccl.text);
    free(p->description);
    free(p->name);
    free(p->path);
    free(p);
}
