/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/doctor/doctor_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"

struct doctor_finding *doctor_add(struct doctor_list *l, enum doctor_level level, const char *topic,
                                  const char *fmt, ...)
{
    struct doctor_finding *f = GROW(l->list, l->count);
    va_list args;
    int n;

    if (!f) {
        l->broken = true;
        return NULL;
    }
    *f = (struct doctor_finding){.level = level, .topic = topic};
    va_start(args, fmt);
    n = vasprintf(&f->text, fmt, args);
    va_end(args);
    if (n < 0) {
        l->count--;
        l->broken = true;
        return NULL;
    }
    return f;
}

void doctor_advise(struct doctor_finding *f, const char *fmt, ...)
{
    va_list args;

    if (!f)
        return;
    free(f->advice);
    va_start(args, fmt);
    if (vasprintf(&f->advice, fmt, args) < 0)
        f->advice = NULL;
    va_end(args);
}

void doctor_fact(struct doctor_finding *f, const char *key, json_t *value)
{
    if (f && !f->facts)
        f->facts = json_object();
    if (!f || !f->facts)
        json_decref(value);
    else
        json_object_set_new(f->facts, key, value);
}

size_t doctor_count(const struct doctor_list *l, enum doctor_level level)
{
    size_t n = 0;

    for (size_t i = 0; i < l->count; i++)
        n += l->list[i].level == level;
    return n;
}

const char *doctor_level_name(enum doctor_level level)
{
    static const char *const names[] = {"ok", "unknown", "warn", "bad"};

    return names[level];
}

void doctor_list_free(struct doctor_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->list[i].text);
        free(l->list[i].advice);
        json_decref(l->list[i].facts);
    }
    free(l->list);
    *l = (struct doctor_list){0};
}

static void say(struct doctor_line *s, const char *fmt, va_list args)
{
    int n = vsnprintf(s->text + s->n, sizeof(s->text) - s->n, fmt, args);

    if (n > 0)
        s->n += (size_t)n;
    if (s->n >= sizeof(s->text))
        s->n = sizeof(s->text) - 1;
}

void doctor_say(struct doctor_line *s, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(s, fmt, args);
    va_end(args);
}

void doctor_say_next(struct doctor_line *s, const char *between, const char *fmt, ...)
{
    va_list args;

    if (s->n)
        doctor_say(s, "%s", between);
    va_start(args, fmt);
    say(s, fmt, args);
    va_end(args);
}
