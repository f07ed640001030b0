/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/profile/judge.h"
#include "shim/profile/reader.h"

static const char *const severity_text[] = {
#define X(sym, text) text,
    NCCLSHIM_SEVERITIES(X)
#undef X
};

const char *severity_name(enum severity s)
{
    return severity_text[s];
}

void finding_add(struct findings *out, enum severity severity, const char *subject,
                 const char *section, const struct place *place, int origin, const char *advice,
                 const char *fmt, ...)
{
    struct finding *f = GROW(out->list, out->count);
    va_list ap;

    if (!f) {
        out->out_of_memory = true;
        return;
    }
    f->severity = severity;
    f->origin = origin;
    f->subject = strdup(subject);
    f->section = strdup(section);
    f->file = strdup(place && place->file ? place->file : "");
    f->line = place ? place->line : 0;
    f->advice = strdup(advice);
    va_start(ap, fmt);
    if (vasprintf(&f->reason, fmt, ap) < 0)
        f->reason = NULL;
    va_end(ap);
    if (!f->subject || !f->section || !f->file || !f->advice || !f->reason)
        out->out_of_memory = true;
}

void findings_free(struct findings *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->list[i].subject);
        free(f->list[i].section);
        free(f->list[i].file);
        free(f->list[i].reason);
        free(f->list[i].advice);
    }
    free(f->list);
    memset(f, 0, sizeof(*f));
}

long long setting_number(const struct setting *s, long long missing)
{
    return s && *s->value ? strtoll(s->value, NULL, 0) : missing;
}

bool older_than(const struct judge *j, int version)
{
    return j->version ? j->version < version : j->p->nccl.most < version;
}

/* The profile's own file, those it inherits from, others, no file. */
static size_t file_rank(const struct profile *p, const char *file)
{
    for (size_t i = 0; i < p->files_count; i++)
        if (!strcmp(p->files[i], file))
            return i;
    return *file ? p->files_count : p->files_count + 1;
}

static bool before(const struct profile *p, const struct finding *a, const struct finding *b)
{
    size_t ra = file_rank(p, a->file), rb = file_rank(p, b->file);

    if (ra != rb)
        return ra < rb;
    if (a->line != b->line)
        return a->line < b->line;
    return a->severity > b->severity;
}

/* Insertion: stable, and there are a handful. */
static void sort(const struct profile *p, struct findings *f, size_t from)
{
    for (size_t i = from + 1; i < f->count; i++) {
        struct finding moved = f->list[i];
        size_t j = i;
        for (; j > from && before(p, &moved, &f->list[j - 1]); j--)
            f->list[j] = f->list[j - 1];
        f->list[j] = moved;
    }
}

void check_settings(const struct profile *p, const struct settings *s,
                    const struct conf_files *conf, int version, struct findings *out)
{
    struct judge j = {p, s, conf, version, out};
    size_t from = out->count;

    check_values(&j);
    check_choices(&j);
    check_limits(&j);
    check_versions(&j);
    check_conf(&j);
    for (size_t i = from; i < out->count; i++)
        out->list[i].allowed = out->list[i].severity == SEVERITY_DANGER && p->allow_unsafe;
    if (!out->out_of_memory)
        sort(p, out, from);
}

static int refuse(const struct finding *f, struct error *e)
{
    bool danger = f->severity == SEVERITY_DANGER;

    return error_set(e, f->file, f->line, "%s%s%s%s%s%s", f->subject, *f->subject ? ": " : "",
                     f->reason, *f->advice ? "; " : "", f->advice,
                     danger ? " (or write allow_unsafe = yes in [profile])" : "");
}

int check_alone(const struct profile *p, struct error *e)
{
    struct settings s;
    struct findings f = {NULL, 0, false};
    int rc = 0;

    if (settings_merge(p, NULL, NULL, &s))
        return error_set(e, p->path, 0, "out of memory");
    check_settings(p, &s, NULL, 0, &f);
    if (f.out_of_memory)
        rc = error_set(e, p->path, 0, "out of memory");
    for (size_t i = 0; !rc && i < f.count; i++)
        if (f.list[i].severity >= SEVERITY_DANGER && !f.list[i].allowed)
            rc = refuse(&f.list[i], e);
    findings_free(&f);
    settings_free(&s);
    return rc;
}
