/* SPDX-License-Identifier: Apache-2.0 */
/* One file: its sections and keys to their readers, errors and duplicates. */
#include "shim/profile/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/base/names.h"
#include "shim/profile/ini.h"
#include "shim/profile/source.h"

#define KEYS_MAX 4096 /* of one file; a profile is written by a person */
#define ENV_SECTION 0 /* [env] and [env override] are one where names must differ */
#define HEADERS (-1)

int reader_error(struct reader *r, int line, const char *fmt, ...)
{
    struct error e;
    char text[sizeof(e.text)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    error_set(&e, r->file, line, "%s", text);
    if (!r->errors++ && r->e && !r->e->text[0])
        *r->e = e;
    if (!r->report)
        return -1;
    r->report(r->user, &e);
    return 0;
}

int reader_no_memory(struct reader *r)
{
    reader_error(r, 0, "out of memory");
    return -1;
}

int reader_clean(struct reader *r, const char *key, const char *raw, bool comments, int line,
                 struct clean_value *out)
{
    char why[160];

    if (!value_clean(raw, comments, out, why, sizeof(why)))
        return 0;
    return reader_error(r, line, "%s: %s", key, why) ? -1 : 1;
}

/* Note a name; 1 when this section has it already (told). */
static int see(struct reader *r, int section, const char *name, int line)
{
    struct seen_name *s;

    for (size_t i = 0; i < r->seen_count; i++)
        if (r->seen[i].section == section && !strcmp(r->seen[i].name, name))
            return reader_error(r, line,
                                section == HEADERS ? "a second [%s]; the first is in line %d"
                                                   : "%s is given twice; the first is in line %d",
                                name, r->seen[i].line)
                       ? -1
                       : 1;
    if (r->seen_count >= KEYS_MAX) {
        reader_error(r, line, "more than %d keys; this is no profile", KEYS_MAX);
        return -1;
    }
    s = GROW(r->seen, r->seen_count);
    if (!s || !(s->name = strdup(name)))
        return reader_no_memory(r);
    s->section = section;
    s->line = line;
    return 0;
}

static int end_section(struct reader *r)
{
    if (r->kind == SECTION_COMM)
        section_comm_end(r);
    return r->kind == SECTION_TUNE ? section_tune_end(r) : 0;
}

static const char *const section_names[] = {
#define X(sym, text, label) text,
    NCCLSHIM_PROFILE_SECTIONS(X)
#undef X
        NULL};
static const bool section_labels[] = {
#define X(sym, text, label) label,
    NCCLSHIM_PROFILE_SECTIONS(X)
#undef X
};

/* `comm tp` -> SECTION_COMM and label "tp". Blanks between the words count once. */
static enum section_kind section_of(const char *name, char *label, size_t size)
{
    *label = '\0';
    for (int i = 0; section_names[i]; i++) {
        size_t n = strlen(section_names[i]);
        if (!strcmp(name, section_names[i]))
            return (enum section_kind)i;
        if (section_labels[i] && !strncmp(name, section_names[i], n) &&
            (name[n] == ' ' || name[n] == '\t')) {
            snprintf(label, size, "%s", name + n + strspn(name + n, " \t"));
            return (enum section_kind)i;
        }
    }
    if (!strncmp(name, "env", 3) && (name[3] == ' ' || name[3] == '\t') &&
        !strcmp(name + 3 + strspn(name + 3, " \t"), "override"))
        return SECTION_OVERRIDE;
    return SECTION_UNKNOWN;
}

/* The nearest name is told; of a name with a label, that of the word in front. */
static int refuse_section(struct reader *r, const char *name, int line)
{
    const char *near = nearest_name(name, section_names), *label = "";
    char word[SOURCE_NAME_MAX + 1];

    if (!near) {
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, " \t"), name);
        near = nearest_name(word, section_names);
        label = near ? " ..." : "";
    }
    return reader_error(r, line, "no section is called [%s]%s%s%s%s", name,
                        near ? "; did you mean [" : "", near ? near : "", label, near ? "]?" : "");
}

static int on_section(void *user, const char *name, int line)
{
    struct reader *r = user;
    char full[80];

    if (end_section(r))
        return -1;
    r->kind = section_of(name, r->label, sizeof(r->label));
    r->section++;
    r->section_line = line;
    r->conditions = 0;
    if (r->kind == SECTION_UNKNOWN)
        return refuse_section(r, name, line);
    snprintf(full, sizeof(full), "%s%s%s", section_names[r->kind], *r->label ? " " : "", r->label);
    if (see(r, HEADERS, full, line) < 0)
        return -1;
    if (r->kind == SECTION_COMM)
        return section_comm_start(r, line);
    return r->kind == SECTION_TUNE ? section_tune_start(r, line) : 0;
}

static int on_key(void *user, const char *key, const char *raw, int line)
{
    static int (*const readers[])(struct reader *, const char *, const char *, int) = {
        [SECTION_PROFILE] = section_profile_key, [SECTION_ENV] = section_env_key,
        [SECTION_OVERRIDE] = section_env_key,    [SECTION_COMM] = section_comm_key,
        [SECTION_TUNE] = section_tune_key,       [SECTION_LOG] = section_log_key,
    };
    struct reader *r = user;
    bool env = r->kind == SECTION_ENV || r->kind == SECTION_OVERRIDE;
    int rc;

    if (r->kind == SECTION_UNKNOWN)
        return 0;
    rc = see(r, env ? ENV_SECTION : r->section, key, line);
    if (rc)
        return rc < 0 ? -1 : 0;
    return readers[r->kind](r, key, raw, line);
}

/* [comm] is the first of the sections, wherever it stands. */
static void comm_base_first(struct profile *p)
{
    for (size_t i = 1; i < p->comm_count; i++)
        if (!*p->comm[i].label) {
            struct comm_section base = p->comm[i];
            memmove(p->comm + 1, p->comm, i * sizeof(*p->comm));
            p->comm[0] = base;
        }
}

void reader_free(struct reader *r)
{
    for (size_t i = 0; i < r->seen_count; i++)
        free(r->seen[i].name);
    free(r->seen);
    free(r->inherit);
    condition_free(&r->when);
}

static bool any_key(const struct reader *r)
{
    for (size_t i = 0; i < r->seen_count; i++)
        if (r->seen[i].section != HEADERS)
            return true;
    return false;
}

/* The sections of one file. Anything but memory is told through reader_error. */
int reader_run(struct reader *r, const char *bytes, size_t size)
{
    struct ini_events events = {on_section, on_key, r};
    struct error e;

    if (source_check(bytes, size, r->file, &e)) {
        reader_error(r, e.line, "%s", e.text);
        return -1;
    }
    if (ini_walk(bytes, size, &events) || end_section(r) || section_env_finish(r))
        return r->errors ? -1 : reader_no_memory(r);
    if (!r->errors && !any_key(r))
        reader_error(r, 0, "no key in this file; is it the right one?");
    comm_base_first(r->p);
    return r->errors ? -1 : 0;
}
