/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/run_settings.h"

#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"

static struct run_setting *setting_for(struct run_settings *s, const struct run *r, const char *name)
{
    struct run_setting *more;

    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->items[i].name, name))
            return &s->items[i];
    more = GROW(s->items, s->count);
    if (!more)
        return NULL;
    more->name = strdup(name);
    more->by_process = calloc(r->process_count + 1, sizeof(*more->by_process));
    if (!more->name || !more->by_process) {
        free(more->name);
        free(more->by_process);
        s->count--;
        return NULL;
    }
    return more;
}

/* Split "NAME \0 value \0". */
static const char *value_in(const char *text, size_t length)
{
    size_t name = strlen(text);

    return name + 1 <= length ? text + name + 1 : "";
}

static int take_settings(struct run_settings *s, const struct run *r, uint32_t process)
{
    const struct log_file *f = r->processes[process].log;
    const struct ncclshim_note *n = NULL;
    char text[8192];

    while ((n = log_note_next(f, n))) {
        struct run_setting_value *v;
        struct run_setting *item;
        size_t length;
        if (n->type != NCCLSHIM_NOTE_SETTING || n->a == NCCLSHIM_ORIGIN_SHIM)
            continue;
        length = log_note_text(n, 0, text, sizeof(text));
        if (!(item = setting_for(s, r, text)))
            return -1;
        v = &item->by_process[process];
        free(v->value); /* the last note about a name is the one in force */
        v->value = strdup(value_in(text, length));
        v->origin = (uint8_t)n->a;
        v->lost = n->b != 0;
        if (!v->value)
            return -1;
    }
    return 0;
}

static int take_asked(struct run_settings *s, const struct run *r, uint32_t process)
{
    const struct log_file *f = r->processes[process].log;
    const struct ncclshim_note *n = NULL;
    char text[8192];
    bool any = false;

    while ((n = log_note_next(f, n))) {
        struct run_setting *item = NULL;
        size_t length;
        if (n->type != NCCLSHIM_NOTE_ASKED)
            continue;
        any = true;
        if (n->a == NCCLSHIM_ORIGIN_COMM) /* an answer for one communicator alone: told there */
            continue;
        length = log_note_text(n, 0, text, sizeof(text));
        for (size_t i = 0; i < s->count && !item; i++)
            if (!strcmp(s->items[i].name, text))
                item = &s->items[i];
        if (!item)
            continue;
        item->read = SETTING_READ;
        if (n->b && item->by_process[process].value &&
            strcmp(item->by_process[process].value, value_in(text, length))) {
            free(item->by_process[process].got);
            item->by_process[process].got = strdup(value_in(text, length));
        }
    }
    for (size_t i = 0; any && i < s->count; i++)
        if (s->items[i].read == SETTING_READ_UNKNOWN && s->items[i].by_process[process].value)
            s->items[i].read = SETTING_NOT_READ;
    return 0;
}

bool run_setting_same(const struct run_setting_value *a, const struct run_setting_value *b)
{
    if (!a->value || !b->value)
        return a->value == b->value;
    return !strcmp(a->value, b->value);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct run_setting *)a)->name, ((const struct run_setting *)b)->name);
}

/*
 * Variables that name a rank differ by nature and steer nothing; all others that differ can make
 * ranks disagree about a collective.
 */
static bool differs_by_nature(const char *name)
{
    return !strcmp(name, "NCCL_DEBUG_FILE") || !strcmp(name, "NCCL_HOSTID");
}

int run_settings_gather(const struct run *r, struct run_settings *s)
{
    memset(s, 0, sizeof(*s));
    for (uint32_t i = 0; i < r->process_count; i++)
        if (take_settings(s, r, i) < 0)
            return -1;
    for (uint32_t i = 0; i < r->process_count; i++)
        if (take_asked(s, r, i) < 0)
            return -1;
    for (size_t k = 0; k < s->count; k++) {
        struct run_setting *item = &s->items[k];
        for (uint32_t i = 1; i < r->process_count; i++)
            item->differs |= !run_setting_same(&item->by_process[0], &item->by_process[i]);
        if (differs_by_nature(item->name))
            item->differs = false;
        s->differ |= item->differs;
    }
    for (uint32_t i = 1; i < r->process_count; i++) {
        uint64_t a = r->processes[0].log->head.settings_digest,
                 b = r->processes[i].log->head.settings_digest;
        s->digests_differ |= a && b && a != b;
    }
    if (s->count)
        qsort(s->items, s->count, sizeof(*s->items), by_name);
    return 0;
}

void run_settings_free(struct run_settings *s, const struct run *r)
{
    for (size_t k = 0; k < s->count; k++) {
        for (uint32_t i = 0; i < r->process_count; i++) {
            free(s->items[k].by_process[i].value);
            free(s->items[k].by_process[i].got);
        }
        free(s->items[k].by_process);
        free(s->items[k].name);
    }
    free(s->items);
    memset(s, 0, sizeof(*s));
}

const struct run_setting_value *run_setting_usual(const struct run_setting *s, const struct run *r)
{
    uint32_t best = 0, best_count = 0;

    for (uint32_t i = 0; i < r->process_count; i++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < r->process_count; k++)
            count += run_setting_same(&s->by_process[i], &s->by_process[k]);
        if (count > best_count) {
            best = i;
            best_count = count;
        }
    }
    return s->by_process[best].value ? &s->by_process[best] : NULL;
}

const struct run_setting *run_setting_named(const struct run_settings *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->items[i].name, name))
            return &s->items[i];
    return NULL;
}
