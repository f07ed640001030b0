/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/base/names.h"
#include "shim/cli/judged.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/profile/load.h"
#include "shim/profile/source.h"
#include "shim/profile/version.h"
#include "shim/show/json.h"

extern char **environ;

static void on_error(void *user, const struct error *e)
{
    struct place place = {e->file, e->line};

    finding_add(user, SEVERITY_ERROR, "", "", &place, NCCLSHIM_ORIGIN_PROFILE, "", "%s", e->text);
}

/* Is there such a file? What is wrong inside of it is a finding; that it is missing is not. */
static int there_is(const char *name, struct error *e)
{
    char path[PATH_MAX], *bytes;
    size_t n = strlen(name), size;

    if (!*name || !strcmp(name, "none"))
        return 0;
    if (!strchr(name, '/') && !(n > 4 && !strcmp(name + n - 4, ".ini"))) {
        if (profile_find(name, path, sizeof(path), e))
            return -1;
        name = path;
    }
    if (source_read(name, &bytes, &size, e))
        return -1;
    free(bytes);
    return 0;
}

/* The file that NCCL_CONF_FILE names: the shell's word goes before the profile's. */
static int read_conf(const struct profile *p, struct conf_files *conf)
{
    const char *named = getenv("NCCL_CONF_FILE");

    for (size_t i = 0; i < p->env_count; i++)
        if (!strcmp(p->env[i].name, "NCCL_CONF_FILE") && (!named || p->env[i].override))
            named = p->env[i].value;
    return conf_read(named, getenv("HOME"), CONF_SYSTEM, conf);
}

int judged_load(const char *name, bool env, int version, struct judged *out, struct error *e)
{
    memset(out, 0, sizeof(*out));
    if (there_is(name, e))
        return -1;
    if (profile_read(name, &out->p, on_error, &out->findings))
        return out->findings.out_of_memory ? error_set(e, name, 0, "out of memory") : 0;
    if ((env && read_conf(out->p, &out->conf)) ||
        settings_merge(out->p, env ? environ : NULL, env ? &out->conf : NULL, &out->settings))
        return error_set(e, name, 0, "out of memory");
    check_settings(out->p, &out->settings, env ? &out->conf : NULL, version, &out->findings);
    return out->findings.out_of_memory ? error_set(e, name, 0, "out of memory") : 0;
}

void judged_free(struct judged *j)
{
    findings_free(&j->findings);
    settings_free(&j->settings);
    conf_free(&j->conf);
    profile_free(j->p);
}

size_t judged_count(const struct judged *j, enum severity severity)
{
    size_t n = 0;

    for (size_t i = 0; i < j->findings.count; i++)
        n += j->findings.list[i].severity == severity;
    return n;
}

size_t judged_bad(const struct judged *j)
{
    size_t n = 0;

    for (size_t i = 0; i < j->findings.count; i++)
        n += j->findings.list[i].severity >= SEVERITY_DANGER && !j->findings.list[i].allowed;
    return n;
}

/* "NCCL version 2.28.9+cuda13.0" stands in every libnccl as text. */
static int version_in(const char *bytes, size_t size)
{
    static const char mark[] = "NCCL version ";
    const char *c = bytes, *end = bytes + size;

    while ((c = memmem(c, (size_t)(end - c), mark, sizeof(mark) - 1))) {
        char text[VERSION_TEXT_MAX];
        size_t n = 0;
        int code;
        c += sizeof(mark) - 1;
        while (c + n < end && n + 1 < sizeof(text) && strchr("0123456789.", c[n]) && c[n]) {
            text[n] = c[n];
            n++;
        }
        text[n] = '\0';
        code = version_parse(text, NULL);
        if (code)
            return code;
    }
    return 0;
}

static int version_of_file(const char *path, struct error *e)
{
    FILE *in = fopen(path, "re");
    char *bytes = NULL;
    long size = 0;
    int code = 0;

    if (!in) {
        error_set(e, path, 0,
                  "can't be opened; --nccl takes a version (2.28.9) or a library's path");
        return 0;
    }
    if (!fseek(in, 0, SEEK_END) && (size = ftell(in)) > 0 && !fseek(in, 0, SEEK_SET))
        bytes = malloc((size_t)size);
    if (bytes && fread(bytes, 1, (size_t)size, in) == (size_t)size)
        code = version_in(bytes, (size_t)size);
    free(bytes);
    fclose(in);
    if (!code)
        error_set(e, path, 0, "no NCCL version stands in this file; name it: --nccl 2.28.9");
    return code;
}

int take_nccl(void *version, const char *value, struct error *e)
{
    int last, *to = version;

    *to = version_parse(value, &last) ? last : version_of_file(value, e);
    return *to ? 0 : -1;
}

json_t *place_json(const struct place *place, json_t *into)
{
    if (place->file && *place->file) {
        json_object_set_new(into, "file", json_string(place->file));
        json_object_set_new(into, "line", json_integer(place->line));
    }
    return into;
}

json_t *finding_json(const struct finding *f)
{
    json_t *o = json_object();
    struct place place = {f->file, f->line};

    json_object_set_new(o, "severity", json_string(severity_name(f->severity)));
    if (f->severity == SEVERITY_DANGER)
        json_object_set_new(o, "allowed", json_boolean(f->allowed));
    if (*f->subject)
        json_object_set_new(o, "subject", json_text(f->subject));
    if (*f->section)
        json_object_set_new(o, "section", json_text(f->section));
    place_json(&place, o);
    json_object_set_new(o, "origin", json_string(origin_name(f->origin)));
    json_object_set_new(o, "reason", json_text(f->reason));
    if (*f->advice)
        json_object_set_new(o, "advice", json_text(f->advice));
    return o;
}
