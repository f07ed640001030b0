/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/show_profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/base/size.h"
#include "shim/profile/write.h"

const struct finding *note_on(const struct judged *j, const char *subject, const char *section)
{
    const struct finding *worst = NULL;

    for (size_t i = 0; i < j->findings.count; i++) {
        const struct finding *f = &j->findings.list[i];
        if (!strcmp(f->subject, subject) && !strcmp(f->section, section) &&
            f->origin != NCCLSHIM_ORIGIN_CONF && (!worst || f->severity > worst->severity))
            worst = f;
    }
    return worst;
}

char *condition_text(const struct comm_condition *c)
{
    char *text = NULL, *to;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return strdup("");
    condition_write(c, "", out);
    fclose(out);
    to = text;
    for (char *from = text; *from; from++)
        *to++ = *from == '\n' ? ',' : *from;
    if (to > text)
        to--;
    *to = '\0';
    return text;
}

char *rule_text(const struct tune_rule *t)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return strdup("");
    tune_rule_write(t, out);
    fclose(out);
    return text;
}

/* `  left    where   note`, the left column as wide as its widest. */
static void row(FILE *out, int width, const char *left, const char *from, const struct place *place,
                const struct finding *note, const char *else_note)
{
    char where[600] = "";

    if (place && place->file && *place->file)
        snprintf(where, sizeof(where), "%s:%d", place->file, place->line);
    fprintf(out, "  %-*s  %-*s%s", width, left, *from ? 10 : 0, from, where);
    if (note)
        fprintf(out, "\n  %*s    %s: %s", width, "", severity_name(note->severity), note->reason);
    else if (*else_note)
        fprintf(out, "\n  %*s    %s", width, "", else_note);
    fputc('\n', out);
}

static void head(const struct judged *j, FILE *out)
{
    const struct profile *p = j->p;

    fprintf(out, "profile %s%s%s%s\n", p->name, *p->path ? "  (" : "", p->path,
            *p->path ? ")" : "  (built in: log only, no setting is touched)");
    if (*p->description)
        fprintf(out, "  %s\n", p->description);
    for (size_t i = 0; i < p->inherits_count; i++)
        fprintf(out, "  inherits from %s  (%s)\n", p->inherits[i], p->files[i + 1]);
    if (p->nccl.text)
        fprintf(out, "  for NCCL %s\n", p->nccl.text);
    if (p->allow_unsafe)
        fputs("  allow_unsafe = yes: settings that can give wrong data or hang are accepted\n",
              out);
}

static void describe(const struct setting *s, char *buf, size_t size)
{
    *buf = '\0';
    if (s->profile_lost)
        snprintf(buf, size, "kept: the profile asks for %s", s->asked->value);
    else if (s->asked && strcmp(s->asked->raw, s->value) && s->origin != NCCLSHIM_ORIGIN_USER)
        snprintf(buf, size, "written as %s", s->asked->raw);
}

static void environment(const struct judged *j, FILE *out)
{
    int width = 0;

    for (size_t i = 0; i < j->settings.count; i++) {
        int n = (int)(strlen(j->settings.list[i].name) + strlen(j->settings.list[i].value)) + 3;
        width = n > width && n < 60 ? n : width;
    }
    if (j->settings.count)
        fputs("\nenvironment\n", out);
    for (size_t i = 0; i < j->settings.count; i++) {
        const struct setting *s = &j->settings.list[i];
        char left[4200], note[256];
        snprintf(left, sizeof(left), "%s = %s", s->name, s->value);
        describe(s, note, sizeof(note));
        row(out, width, left, origin_name(s->origin), &s->place,
            s->profile_lost ? NULL : note_on(j, s->name, ""), note);
    }
}

static void one_section(const struct judged *j, const struct comm_section *c, FILE *out)
{
    char *when = condition_text(&c->when), left[512], value[32];

    fprintf(out, "\n[comm%s%s]%s%s\n", *c->label ? " " : "", c->label,
            *when ? "  communicators with " : "  all communicators", when);
    free(when);
    for (int i = 0; i < CONFIG_FIELD_COUNT; i++)
        if (c->set & 1u << i) {
            snprintf(left, sizeof(left), "%s = %s", config_fields[i].key,
                     config_field_value(c, i, value, sizeof(value)));
            row(out, 34, left, "comm", &c->places[i], note_on(j, config_fields[i].key, c->label), "");
        }
    for (size_t i = 0; i < c->env_count; i++) {
        snprintf(left, sizeof(left), "%s = %s", c->env[i].name, c->env[i].value);
        row(out, 34, left, "comm", &c->env[i].place, note_on(j, c->env[i].name, c->label), "");
    }
}

static void rules(const struct judged *j, FILE *out)
{
    for (size_t i = 0; i < j->p->tune_count; i++) {
        const struct tune_rule *t = &j->p->tune[i];
        char *text = rule_text(t), *when = condition_text(&t->when);
        if (!i || strcmp(t->label, t[-1].label))
            fprintf(out, "\n[tune%s%s]%s%s, the first that covers a call counts\n",
                    *t->label ? " " : "", t->label,
                    *when ? "  communicators with " : "  all communicators", when);
        row(out, 44, text, "", &t->place, note_on(j, t->text, t->label), "");
        free(text);
        free(when);
    }
}

static void log_options(const struct profile *p, FILE *out)
{
    const struct log_options *log = &p->log;
    char size[SIZE_TEXT_MAX];

    if (!log->set)
        return;
    fprintf(out, "\n[log]\n  one call in %" PRIu32 " is timed, %s records", log->sample,
            size_text(log->capacity, size, sizeof(size)));
    if (log->min_bytes)
        fprintf(out, ", from %s bytes on", size_text(log->min_bytes, size, sizeof(size)));
    fprintf(out, "%s%s\n", log->eager ? "" : ", no eager calls",
            log->captured ? "" : ", no captured calls");
    if (log->set & LOG_SET_OPS) {
        fputs("  only", out);
        for (unsigned i = 0; i < OP_COUNT; i++)
            if (log->ops & 1u << i)
                fprintf(out, " %s", op_name(i));
        fputc('\n', out);
    }
}

static void conf_notes(const struct judged *j, FILE *out)
{
    bool any = false;

    for (size_t i = 0; i < j->findings.count; i++) {
        const struct finding *f = &j->findings.list[i];
        if (f->origin != NCCLSHIM_ORIGIN_CONF)
            continue;
        fprintf(out, "%s  %s:%d: %s: %s: %s\n", any ? "" : "\nNCCL's own files\n", f->file, f->line,
                severity_name(f->severity), f->subject, f->reason);
        any = true;
    }
}

void show_profile_text(const struct judged *j, FILE *out)
{
    head(j, out);
    environment(j, out);
    for (size_t i = 0; i < j->p->comm_count; i++)
        one_section(j, &j->p->comm[i], out);
    rules(j, out);
    log_options(j->p, out);
    conf_notes(j, out);
}
