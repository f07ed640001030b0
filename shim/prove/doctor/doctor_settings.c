/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/profile/conf.h"
#include "shim/prove/doctor/doctor_nccl.h"
#include "shim/show/json.h"

/* ---- plugins -------------------------------------------------------------------------------- */

struct plugins {
    const char *root;
    struct doctor_line *line;
    json_t *facts;
};

static void add_file(void *user, const char *path)
{
    struct plugins *p = user;
    char full[DOCTOR_PATH];
    struct stat st;

    if (stat(doctor_path(full, p->root, "%s", path), &st) != 0)
        return;
    doctor_say_next(p->line, ", ", "%s", path);
    json_array_append_new(p->facts, json_text(path));
}

static void add_files(struct plugins *p, const char *name, const struct doctor_env *env)
{
    const char *list = doctor_getenv(env, "LD_LIBRARY_PATH");
    char path[DOCTOR_PATH];

    doctor_ldcache(p->root, name, add_file, p);
    for (size_t n; list && *list; list += n + (list[n] != '\0')) {
        n = strcspn(list, ":;");
        if (n && snprintf(path, sizeof(path), "%.*s/%s", (int)n, list, name) < (int)sizeof(path))
            add_file(p, path);
    }
}

void doctor_plugins_judge(struct doctor_list *l, const char *root, const struct doctor_env *env)
{
    static const char *const variables[] = {"NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN",
                                            "NCCL_PROFILER_PLUGIN", "NCCL_ENV_PLUGIN",
                                            "NCCL_GIN_PLUGIN"};
    static const char *const files[] = {"libnccl-net.so", "libnccl-tuner.so", "libnccl-profiler.so",
                                        "libnccl-env.so"};
    struct doctor_line s = {0};
    struct plugins p = {.root = root, .line = &s, .facts = json_array()};
    struct doctor_finding *f;

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = doctor_getenv(env, variables[i]);
        if (!value || !strcmp(doctor_base_name(value), "libncclshim.so"))
            continue;
        doctor_say_next(&s, ", ", "%s=%s", variables[i], value);
        json_array_append_new(p.facts, json_text(value));
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        add_files(&p, files[i], env);
    if (s.n)
        f = doctor_add(l, DOCTOR_OK, "plugins",
                       "plugins of NCCL: %s; the shim loads them behind itself", s.text);
    else
        f = doctor_add(l, DOCTOR_OK, "plugins", "no plugin of NCCL is named or found");
    doctor_fact(f, "plugins", p.facts);
}

/* ---- conf files ----------------------------------------------------------------------------- */

/* Blanks in front of '=' become part of the name, and nobody asks for that. */
static bool has_blank(const char *name)
{
    return strpbrk(name, " \t") != NULL;
}

static void judge_file(struct doctor_list *l, const struct conf_file *c, size_t skip)
{
    const char *path = strlen(c->path) > skip ? c->path + skip : c->path;
    struct doctor_line sets = {0}, dead = {0};
    json_t *names = json_array();
    struct doctor_finding *f;

    for (size_t i = 0; i < c->count; i++)
        if (has_blank(c->lines[i].name)) {
            doctor_say_next(&dead, ", ", "line %d", c->lines[i].line);
        } else {
            doctor_say_next(&sets, ", ", "%s=%s", c->lines[i].name, c->lines[i].value);
            json_array_append_new(names, json_text(c->lines[i].name));
        }
    if (sets.n) {
        f = doctor_add(l, DOCTOR_WARN, "conf",
                       "%s sets, where neither the shell nor a profile does: %s", path, sets.text);
        doctor_advise(
            f,
            "what a profile sets goes before it; `ncclshim show PROFILE` lists what is overridden");
    } else {
        f = doctor_add(l, DOCTOR_OK, "conf", "%s sets nothing", path);
    }
    doctor_fact(f, "file", json_text(path));
    doctor_fact(f, "names", names);
    if (dead.n) {
        f = doctor_add(l, DOCTOR_WARN, "conf-blank",
                       "%s, %s: a blank before '=' makes a name that nobody reads", path,
                       dead.text);
        doctor_advise(f, "write NAME=VALUE without blanks");
    }
}

void doctor_conf_judge(struct doctor_list *l, const char *root, const struct doctor_env *env)
{
    const char *named = doctor_getenv(env, "NCCL_CONF_FILE"), *home = doctor_getenv(env, "HOME");
    char a[DOCTOR_PATH], b[DOCTOR_PATH], c[DOCTOR_PATH];
    struct conf_files files;

    if (conf_read(named && *named ? doctor_path(a, root, "%s", named) : NULL,
                  home && *home ? doctor_path(b, root, "%s", home) : NULL,
                  doctor_path(c, root, "%s", CONF_SYSTEM), &files) < 0)
        return;
    for (size_t i = 0; i < files.count; i++)
        judge_file(l, &files.files[i], strlen(root));
    if (files.count == 0)
        doctor_add(l, DOCTOR_OK, "conf", "no configuration file of NCCL stands behind a profile");
    conf_free(&files);
}
