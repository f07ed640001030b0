/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/base/grow.h"
#include "shim/prove/doctor/doctor_nccl.h"
#include "shim/show/json.h"

#define LIBRARIES_MAX 64 /* more copies than that tell nothing new */

struct search {
    struct doctor_libraries *all;
    const char *root, *how;
};

bool doctor_is_nccl_name(const char *base)
{
    static const char *const plugins[] = {"libnccl-net", "libnccl-tuner", "libnccl-profiler",
                                          "libnccl-env", "libnccl-gin",   "libnccl-mixed"};

    for (size_t i = 0; i < sizeof(plugins) / sizeof(plugins[0]); i++)
        if (!strncmp(base, plugins[i], strlen(plugins[i])))
            return false;
    return (!strncmp(base, "libnccl.so", 10) || !strncmp(base, "libnccl-", 8)) &&
           strstr(base, ".so") != NULL;
}

/* `path` as the machine has it, without the root. */
static void add(void *user, const char *path)
{
    struct search *s = user;
    struct doctor_libraries *all = s->all;
    struct doctor_library *more;
    char full[DOCTOR_PATH];
    struct stat st;

    if (stat(doctor_path(full, s->root, "%s", path), &st) != 0 || !S_ISREG(st.st_mode) ||
        all->count == LIBRARIES_MAX)
        return;
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].dev == st.st_dev && all->list[i].ino == st.st_ino)
            return;
    more = GROW(all->list, all->count);
    if (!more)
        return;
    *more = (struct doctor_library){
        .path = strdup(path), .how = s->how, .dev = st.st_dev, .ino = st.st_ino};
    if (more->path)
        doctor_nccl_version(full, more->version);
    else
        all->count--;
}

static void add_glob(struct search *s, const char *pattern)
{
    char full[DOCTOR_PATH];
    size_t skip = strlen(s->root);
    glob_t g;

    if (glob(doctor_path(full, s->root, "%s", pattern), GLOB_NOSORT, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc; i++)
            add(s, g.gl_pathv[i] + skip);
        globfree(&g);
    }
}

/* NAME in each folder of a list with colons. */
static void add_list(struct search *s, const char *list, const char *name)
{
    char path[DOCTOR_PATH];

    while (list && *list) {
        size_t n = strcspn(list, ":;");
        if (n && snprintf(path, sizeof(path), "%.*s/%s", (int)n, list, name) < (int)sizeof(path))
            add(s, path);
        list += n + (list[n] != '\0');
    }
}

static void add_below(struct search *s, const char *prefix)
{
    static const char *const places[] = {
        "lib/python3*/site-packages",
        "lib/python3*/dist-packages",
        "lib64/python3*/site-packages",
        "local/lib/python3*/dist-packages",
        "versions/*/lib/python3*/site-packages" /* pyenv */,
    };
    char pattern[DOCTOR_PATH];

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (snprintf(pattern, sizeof(pattern), "%s/%s/nvidia/nccl/lib/libnccl.so*", prefix,
                     places[i]) < (int)sizeof(pattern))
            add_glob(s, pattern);
        if (snprintf(pattern, sizeof(pattern), "%s/%s/torch/lib/libnccl*.so*", prefix, places[i]) <
            (int)sizeof(pattern))
            add_glob(s, pattern);
    }
}

/* The prefix of the python3 that PATH finds (a virtual environment's, too), and what its link leads
 * to. */
static void add_python(struct search *s, const struct doctor_env *env)
{
    const char *path = doctor_getenv(env, "PATH"), *home = doctor_getenv(env, "HOME");
    const char *const prefixes[] = {doctor_getenv(env, "VIRTUAL_ENV"),
                                    doctor_getenv(env, "CONDA_PREFIX")};
    char full[DOCTOR_PATH], real[PATH_MAX], pattern[DOCTOR_PATH];
    size_t skip = strlen(s->root);
    struct stat st;

    for (size_t i = 0; i < 2; i++)
        if (prefixes[i] && *prefixes[i] == '/')
            add_below(s, prefixes[i]);
    for (size_t n; path && *path; path += n + (path[n] != '\0')) {
        n = strcspn(path, ":");
        doctor_path(full, s->root, "%.*s/python3", (int)n, path);
        if (*path != '/' || stat(full, &st) != 0)
            continue;
        snprintf(pattern, sizeof(pattern), "%.*s/..", (int)n, path);
        add_below(s, pattern);
        if (realpath(full, real) && strrchr(real, '/')) {
            *strrchr(real, '/') = '\0';
            /* /proc/PID/root leads to "/": then no root stands before it any more. */
            if (snprintf(pattern, sizeof(pattern), "%s/..",
                         strncmp(real, s->root, skip) ? real : real + skip) < (int)sizeof(pattern))
                add_below(s, pattern);
        }
        break;
    }
    if (home && *home == '/' &&
        snprintf(pattern, sizeof(pattern), "%s/.local", home) < (int)sizeof(pattern))
        add_below(s, pattern);
}

void doctor_nccl_find(struct doctor_libraries *all, const char *root, const struct doctor_env *env)
{
    static const char *const named[] = {"NCCLSHIM_NCCL", "VLLM_NCCL_SO_PATH",
                                        "SGLANG_NCCL_SO_PATH"};
    static const char *const homes[] = {"NCCL_HOME", "CUDA_HOME", "CUDA_PATH"};
    struct search s = {.all = all, .root = root};
    char path[DOCTOR_PATH];
    const char *value;

    memset(all, 0, sizeof(*all));
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        s.how = named[i];
        if ((value = doctor_getenv(env, named[i])) && *value == '/')
            add(&s, value);
    }
    s.how = "LD_LIBRARY_PATH";
    add_list(&s, doctor_getenv(env, "LD_LIBRARY_PATH"), "libnccl.so.2");
    s.how = "ld.so.cache";
    doctor_ldcache(root, "libnccl.so.2", add, &s);
    s.how = "Python";
    add_python(&s, env);
    for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++) {
        s.how = homes[i];
        value = doctor_getenv(env, homes[i]);
        if (value && *value == '/' &&
            snprintf(path, sizeof(path), "%s/lib:%s/lib64", value, value) < (int)sizeof(path))
            add_list(&s, path, "libnccl.so.2");
    }
    s.how = "CUDA";
    add_glob(&s, "/usr/local/cuda*/lib64/libnccl.so.2");
    add_glob(&s, "/usr/local/cuda*/lib/libnccl.so.2");
    add_glob(&s, "/usr/local/cuda*/targets/*/lib/libnccl.so.2");
}

void doctor_libraries_free(struct doctor_libraries *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->list[i].path);
    free(all->list);
    memset(all, 0, sizeof(*all));
}

static void add_facts(struct doctor_finding *f, const struct doctor_libraries *all)
{
    json_t *list = json_array();

    for (size_t i = 0; i < all->count; i++) {
        const struct doctor_library *b = &all->list[i];
        json_array_append_new(
            list, json_pack("{s:o,s:o,s:s}", "path", json_text(b->path), "version",
                            json_text(b->version[0] ? b->version : NULL), "found_by", b->how));
    }
    doctor_fact(f, "libraries", list);
}

void doctor_nccl_judge(struct doctor_list *l, const struct doctor_libraries *all)
{
    struct doctor_line s = {0};
    struct doctor_finding *f;

    for (size_t i = 0; i < all->count; i++)
        doctor_say_next(&s, ", ", "%s %s (%s)",
                        all->list[i].version[0] ? all->list[i].version : "version unknown",
                        all->list[i].path, all->list[i].how);
    if (all->count == 0) {
        f = doctor_add(l, DOCTOR_UNKNOWN, "nccl", "no NCCL is found on this machine");
        doctor_advise(f, "a server may carry one inside (static), or have it where only it looks: "
                         "ncclshim doctor --pid PID");
    } else if (all->count == 1) {
        f = doctor_add(l, DOCTOR_OK, "nccl", "one NCCL on this machine: %s", s.text);
    } else {
        f = doctor_add(l, DOCTOR_WARN, "nccl", "%zu NCCL libraries on this machine: %s", all->count,
                       s.text);
        doctor_advise(f, "which one a server takes depends on how it opens it; `ncclshim report` "
                         "names the one in use, and "
                         "--pid shows what a process has mapped");
    }
    add_facts(f, all);
}
