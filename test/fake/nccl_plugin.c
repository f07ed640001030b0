/* SPDX-License-Identifier: Apache-2.0 */
/* Where NCCL looks for a plugin: by the value of the variable, or under the default name. */
#include "test/fake/nccl_fake.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name, *prefix;
    unsigned long subsystem;
} kinds[] = {
    [PLUGIN_ENV] = {"ENV", "libnccl-env", NCCL_INIT | NCCL_ENV},
    [PLUGIN_TUNER] = {"TUNER", "libnccl-tuner", NCCL_INIT | NCCL_TUNING},
    [PLUGIN_PROFILER] = {"PROFILER", "libnccl-profiler", NCCL_INIT},
};
static char *paths[3];

static void *try_open(const char *name)
{
    /* A case-insensitive prefix of the word is enough: even "S" means the program itself. */
    if (!strncasecmp(name, "STATIC_PLUGIN", strlen(name)))
        return dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static void *opened(enum fake_plugin type, void *lib)
{
    struct link_map *map = NULL;
    if (!dlinfo(lib, RTLD_DI_LINKMAP, &map) && map) {
        free(paths[type]);
        paths[type] = strdup(map->l_name);
    }
    return lib;
}

void *fake_plugin_open(enum fake_plugin type, const char *value)
{
    char name[255], second[300] = "";
    bool given = value && *value;
    if (given)
        snprintf(name, sizeof(name), "%s", value);
    else
        snprintf(name, sizeof(name), "%s.so", kinds[type].prefix);
    void *lib = try_open(name);
    if (lib)
        return opened(type, lib);
    const char *why = dlerror();
    bool absent = why && strstr(why, "No such file or directory");
    if (!absent)
        INFO(kinds[type].subsystem, "%s/Plugin: %s: %s", kinds[type].name, name, why ? why : "");
    size_t n = strlen(name);
    bool lib_form = !strncmp(name, "lib", 3) && n >= 3 && !strcmp(name + n - 3, ".so");
    if (given && !strchr(name, '/') && !lib_form) {
        snprintf(second, sizeof(second), "%s-%s.so", kinds[type].prefix, name);
        lib = try_open(second);
        if (lib)
            return opened(type, lib);
        why = dlerror();
        if (!why || !strstr(why, "No such file or directory"))
            INFO(kinds[type].subsystem, "%s/Plugin: %s: %s", kinds[type].name, second,
                 why ? why : "");
    }
    if (absent)
        INFO(kinds[type].subsystem, "%s/Plugin: Could not find: %s%s%s", kinds[type].name, name,
             second[0] ? " " : "", second);
    return NULL;
}

void fake_plugin_close(enum fake_plugin type, void *lib)
{
    (void)type;
    if (lib)
        dlclose(lib);
}

const char *fake_plugin_path(enum fake_plugin type)
{
    return paths[type] ? paths[type] : "";
}

void *fake_plugin_symbol(void *lib, const char *name)
{
    return dlsym(lib, name);
}
