/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/base/size.h"
#include "shim/profile/nccl_vars.h"
#include "shim/profile/profile.h"
#include "shim/prove/tune/space.h"

#define FILE_MAX 65536

enum section { NO_SECTION, ENV, COMM, TUNE };

struct reader {
    struct tune_space *s;
    const char *file;
    int line;
    enum section section;
    struct error *e;
};

#define REFUSE(r, ...) error_set((r)->e, (r)->file, (r)->line, __VA_ARGS__)

/* ---- one value ------------------------------------------------------------------------------ */

/* As part of a profile: what that refuses, for its form or as a danger, is refused here. */
static int check_value(struct reader *r, const struct space_setting *x, const char *value)
{
    char text[256];
    struct profile *p;
    struct error e;
    int n =
        snprintf(text, sizeof(text), "%s\n%s = %s\n", x->comm ? "[comm]" : "[env]", x->name, value);

    if (profile_parse(text, (size_t)n, r->file, &p, &e) < 0)
        return REFUSE(r, "%s", e.text);
    profile_free(p);
    return 0;
}

static int add_value(struct reader *r, struct space_setting *x, const char *word)
{
    if (x->count == SPACE_VALUES)
        return REFUSE(r, "%s has more than %d values", x->name, SPACE_VALUES);
    if (strlen(word) >= SPACE_TEXT)
        return REFUSE(r, "the value '%.40s...' is too long", word);
    for (size_t i = 0; i < x->count; i++)
        if (!strcmp(x->values[i], word))
            return REFUSE(r, "%s has the value %s twice", x->name, word);
    if (check_value(r, x, word) < 0)
        return -1;
    strcpy(x->values[x->count++], word);
    return 0;
}

static int add_setting(struct reader *r, const char *key, char *value)
{
    const struct nccl_var *v = nccl_var_find(key);
    struct space_setting *x = &r->s->settings[r->s->setting_count];
    char *save = NULL;

    if (r->s->setting_count == SPACE_SETTINGS)
        return REFUSE(r, "more than %d settings", SPACE_SETTINGS);
    for (size_t i = 0; i < r->s->setting_count; i++)
        if (!strcmp(r->s->settings[i].name, key))
            return REFUSE(r, "%s stands here a second time", key);
    if (strlen(key) >= SPACE_TEXT)
        return REFUSE(r, "the name '%.40s...' is too long", key);
    if (!strcmp(key, "NCCL_ALGO") || !strcmp(key, "NCCL_PROTO"))
        return REFUSE(r,
                      "%s holds for every size; list words under algorithm and protocol in [tune], "
                      "which are tried for each size by itself",
                      key);
    memset(x, 0, sizeof(*x));
    strcpy(x->name, key);
    x->comm = r->section == COMM;
    x->needs = x->comm || (v && nccl_var_per_comm(v)) ? SPACE_COMMUNICATOR : SPACE_PROCESS;
    for (char *w = strtok_r(value, " \t", &save); w; w = strtok_r(NULL, " \t", &save))
        if (add_value(r, x, w) < 0)
            return -1;
    r->s->setting_count++;
    return 0;
}

/* ---- rules ---------------------------------------------------------------------------------- */

static int read_names(struct reader *r, const char *key, char *value, bool algos)
{
    char *save = NULL;
    uint32_t *set = algos ? &r->s->algos : &r->s->protos;

    if (*set)
        return REFUSE(r, "%s stands here a second time", key);
    for (char *w = strtok_r(value, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        int n = algos ? algo_parse(w) : proto_parse(w);
        if (n < 0)
            return REFUSE(r, "'%s' is no %s that NCCL knows", w, key);
        *set |= 1u << n;
    }
    return 0;
}

static int read_numbers(struct reader *r, const char *key, char *value)
{
    bool chunk = key[1] == 'h' && key[2] == 'u';
    size_t *count = chunk ? &r->s->chunk_count : &r->s->channel_count;
    char *save = NULL;

    if (*count)
        return REFUSE(r, "%s stands here a second time", key);
    for (char *w = strtok_r(value, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        uint64_t n;
        if (*count == SPACE_VALUES)
            return REFUSE(r, "%s has more than %d values", key, SPACE_VALUES);
        if (size_parse(w, &n) < 0 || n < 1 || n > (chunk ? 1u << 30 : 64u))
            return REFUSE(r,
                          chunk ? "chunk: '%s' is no size like 128K, up to 1G"
                                : "channels: '%s' is no number from 1 to 64",
                          w);
        if (chunk)
            r->s->chunks[(*count)++] = n;
        else
            r->s->channels[(*count)++] = (int)n;
    }
    return 0;
}

static int tune_key(struct reader *r, const char *key, char *value)
{
    static const char *const keys[] = {"algorithm", "protocol", "channels", "chunk", NULL};
    const char *near = nearest_name(key, keys);

    if (!strcmp(key, "algorithm") || !strcmp(key, "protocol"))
        return read_names(r, key, value, key[0] == 'a');
    if (!strcmp(key, "channels") || !strcmp(key, "chunk"))
        return read_numbers(r, key, value);
    return REFUSE(r,
                  "[tune] of a space has algorithm, protocol, channels and chunk, not '%s'%s%s%s",
                  key, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* ---- lines ---------------------------------------------------------------------------------- */

static int read_section(struct reader *r, const char *text)
{
    r->section = !strcmp(text, "[env]")    ? ENV
                 : !strcmp(text, "[comm]") ? COMM
                 : !strcmp(text, "[tune]") ? TUNE
                                           : NO_SECTION;
    return r->section
               ? 0
               : REFUSE(r, "'%s' is no section of a space; those are [env], [comm] and [tune]",
                        text);
}

static char *trim(char *text)
{
    size_t n;

    while (isspace((unsigned char)*text))
        text++;
    for (n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

static int read_line(struct reader *r, char *line)
{
    char *text = trim(line), *equals, *key, *value;

    if (!*text || *text == ';' || *text == '#')
        return 0;
    if (*text == '[')
        return read_section(r, text);
    equals = strchr(text, '=');
    if (!equals)
        return REFUSE(r, "'%.60s' is no line of a space; write NAME = VALUE VALUE...", text);
    *equals = '\0';
    key = trim(text);
    value = trim(equals + 1);
    if (!*key || !*value)
        return REFUSE(r, "'%s' has no %s", *key ? key : "=", *key ? "values" : "name");
    if (r->section == NO_SECTION)
        return REFUSE(r, "'%s' stands before any section; [env], [comm] or [tune] comes first",
                      key);
    return r->section == TUNE ? tune_key(r, key, value) : add_setting(r, key, value);
}

int space_parse(struct tune_space *s, const char *text, const char *file, struct error *e)
{
    struct reader r = {.s = s, .file = file, .e = e};
    char *copy = strdup(text), *line, *rest = copy;
    int rc = copy ? 0 : error_set(e, file, 0, "out of memory");

    memset(s, 0, sizeof(*s));
    while (rc == 0 && (line = strsep(&rest, "\n"))) {
        r.line++;
        rc = read_line(&r, line);
    }
    free(copy);
    if (rc == 0 && !s->setting_count && !s->algos && !s->protos && !s->channel_count &&
        !s->chunk_count)
        rc = error_set(e, file, 0, "holds nothing to try");
    return rc;
}

int space_read(struct tune_space *s, const char *path, struct error *e)
{
    FILE *in = fopen(path, "re");
    char *text = in ? calloc(1, FILE_MAX + 1) : NULL;
    size_t n;
    int rc;

    if (!in || !text) {
        if (in)
            fclose(in);
        return error_set(e, path, 0, "can't be read: %s", strerror(errno));
    }
    n = fread(text, 1, FILE_MAX, in);
    rc = n == FILE_MAX || strlen(text) != n
             ? error_set(e, path, 0, "is no space: too long, or a zero byte in it")
             : space_parse(s, text, path, e);
    fclose(in);
    free(text);
    return rc;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void write_settings(const struct tune_space *s, bool comm, FILE *out)
{
    bool any = false;

    for (size_t i = 0; i < s->setting_count; i++) {
        const struct space_setting *x = &s->settings[i];
        if (x->comm != comm)
            continue;
        fprintf(out, "%s%s =", any ? "" : comm ? "[comm]\n" : "[env]\n", x->name);
        any = true;
        for (size_t k = 0; k < x->count; k++)
            fprintf(out, " %s", x->values[k]);
        fputc('\n', out);
    }
}

static void write_names(const char *key, uint32_t set, const char *(*name)(unsigned), FILE *out)
{
    if (!set)
        return;
    fprintf(out, "%s =", key);
    for (unsigned i = 0; i < 32; i++)
        if (set & 1u << i)
            fprintf(out, " %s", name(i));
    fputc('\n', out);
}

void space_write(const struct tune_space *s, FILE *out)
{
    char size[SIZE_TEXT_MAX];

    write_settings(s, false, out);
    write_settings(s, true, out);
    fputs("[tune]\n", out);
    write_names("algorithm", s->algos, algo_name, out);
    write_names("protocol", s->protos, proto_name, out);
    if (s->channel_count)
        fputs("channels =", out);
    for (size_t i = 0; i < s->channel_count; i++)
        fprintf(out, " %d%s", s->channels[i], i + 1 == s->channel_count ? "\n" : "");
    if (s->chunk_count)
        fputs("chunk =", out);
    for (size_t i = 0; i < s->chunk_count; i++)
        fprintf(out, " %s%s", size_text(s->chunks[i], size, sizeof(size)),
                i + 1 == s->chunk_count ? "\n" : "");
}
