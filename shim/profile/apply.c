/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/apply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/digest.h"

/*
 * The mark: entries `NAME=DIGEST` or `NAME=DIGEST/OLD`, joined by commas. DIGEST is FNV-1a 64 of
 * the value in hex; OLD is the user's value with every byte but letters, digits and _.- as %XX.
 */
struct mark {
    char *name;
    uint64_t digest;
    char *old; /* NULL: the user had none */
};

struct marks {
    struct mark *list;
    size_t count;
    char *text; /* what the list points into */
};

static uint64_t digest_text(const char *s)
{
    return digest_bytes(DIGEST_START, s, strlen(s));
}

const char *env_lookup(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; env && *env; env++)
        if (!strncmp(*env, name, n) && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* In place; what is not %XX stays, so a mark that somebody edited does no harm. */
static void percent_decode(char *s)
{
    char *to = s;

    for (; *s; s++) {
        int high, low;
        if (s[0] == '%' && (high = hex_digit(s[1])) >= 0 && (low = hex_digit(s[2])) >= 0) {
            *to++ = (char)(high * 16 + low);
            s += 2;
        } else {
            *to++ = *s;
        }
    }
    *to = '\0';
}

static void percent_encode(FILE *out, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("_.-", c))
            fputc(c, out);
        else
            fprintf(out, "%%%02X", c);
    }
}

static bool parse_mark(char *text, struct mark *m)
{
    char *equals = strchr(text, '='), *end;

    if (!equals || equals == text)
        return false;
    *equals = '\0';
    m->name = text;
    m->digest = strtoull(equals + 1, &end, 16);
    if (end != equals + 17)
        return false;
    m->old = *end == '/' ? end + 1 : NULL;
    if (m->old)
        percent_decode(m->old);
    return true;
}

static int read_marks(const char *text, struct marks *out)
{
    size_t n = 1;
    char *save = NULL;

    memset(out, 0, sizeof(*out));
    if (!text || !*text)
        return 0;
    for (const char *c = text; *c; c++)
        n += *c == ',';
    out->list = calloc(n, sizeof(*out->list));
    out->text = strdup(text);
    if (!out->list || !out->text)
        return -1;
    for (char *part = strtok_r(out->text, ",", &save); part; part = strtok_r(NULL, ",", &save))
        if (parse_mark(part, &out->list[out->count]))
            out->count++;
    return 0;
}

/* The mark of a variable that still holds what a constructor of ours set; else NULL. */
static const struct mark *ours(const struct marks *marks, const char *name, const char *now)
{
    for (size_t i = 0; now && i < marks->count; i++)
        if (!strcmp(marks->list[i].name, name) && marks->list[i].digest == digest_text(now))
            return &marks->list[i];
    return NULL;
}

static void decide(const struct env_setting *s, const char *now, const struct mark *m,
                   struct env_plan_entry *out)
{
    const char *user = m ? m->old : now;

    out->name = s->name;
    out->value = s->value;
    out->old = user;
    out->setting = s;
    if (user && !s->override) {
        out->origin = NCCLSHIM_ORIGIN_USER;
        out->action = m ? ENV_SET : ENV_KEEP; /* with a mark: give back what a parent replaced */
        if (m)
            out->value = user;
    } else {
        out->origin = s->override ? NCCLSHIM_ORIGIN_OVERRIDE : NCCLSHIM_ORIGIN_PROFILE;
        out->action = now && !strcmp(now, s->value) ? ENV_KEEP : ENV_SET;
    }
    out->set = out->action == ENV_SET;
}

/* A parent's profile set this one and ours says nothing of it: back to the user's state. */
static void take_back(const struct mark *m, struct env_plan_entry *out)
{
    memset(out, 0, sizeof(*out));
    out->name = m->name;
    out->value = m->old;
    out->old = m->old;
    out->origin = NCCLSHIM_ORIGIN_USER;
    out->action = m->old ? ENV_SET : ENV_UNSET;
    out->set = m->old != NULL;
}

static bool asks_for(const struct profile *p, const char *name)
{
    for (size_t i = 0; i < p->env_count; i++)
        if (!strcmp(p->env[i].name, name))
            return true;
    return false;
}

static char *write_mark(const struct env_plan *plan)
{
    char *text = NULL;
    size_t size;
    const char *comma = "";
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    for (size_t i = 0; i < plan->count; i++) {
        const struct env_plan_entry *e = &plan->entries[i];
        if (!e->setting || e->origin == NCCLSHIM_ORIGIN_USER)
            continue;
        fprintf(out, "%s%s=%016" PRIx64, comma, e->name, digest_text(e->value));
        if (e->old) {
            fputc('/', out);
            percent_encode(out, e->old);
        }
        comma = ",";
    }
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    if (!*text) {
        free(text);
        text = NULL;
    }
    return text;
}

int profile_env_plan(const struct profile *p, char *const *env, struct env_plan *out)
{
    struct marks marks;

    memset(out, 0, sizeof(*out));
    if (read_marks(env_lookup(env, PROFILE_MARK_VARIABLE), &marks))
        goto no_memory;
    out->entries = calloc(p->env_count + marks.count + 1, sizeof(*out->entries));
    if (!out->entries)
        goto no_memory;
    for (size_t i = 0; i < p->env_count; i++) {
        const char *now = env_lookup(env, p->env[i].name);
        decide(&p->env[i], now, ours(&marks, p->env[i].name, now), &out->entries[out->count++]);
    }
    for (size_t i = 0; i < marks.count; i++) {
        const struct mark *m = &marks.list[i];
        if (!asks_for(p, m->name) && ours(&marks, m->name, env_lookup(env, m->name)) == m)
            take_back(m, &out->entries[out->count++]);
    }
    out->storage = marks.text;
    free(marks.list);
    out->mark = write_mark(out);
    return 0;

no_memory:
    free(marks.list);
    free(marks.text);
    free(out->entries);
    memset(out, 0, sizeof(*out));
    return -1;
}

void env_plan_free(struct env_plan *plan)
{
    free(plan->entries);
    free(plan->mark);
    free(plan->storage);
    memset(plan, 0, sizeof(*plan));
}
