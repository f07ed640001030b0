/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/plugin/behind.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shim/plugin/plugin.h"
#include "shim/preload/real.h"

#define NAME_MAX_BYTES 255 /* NCCL cuts the name of a plugin there */

static const struct {
    const char *variable;
    const char *prefix; /* of file names */
    bool in_net_plugin; /* looked for in the network plugin's library as well */
} kinds[BEHIND_KINDS] = {
    [BEHIND_ENV] = {"NCCLSHIM_BEHIND_ENV", "libnccl-env", false},
    [BEHIND_PROFILER] = {"NCCLSHIM_BEHIND_PROFILER", "libnccl-profiler", true},
    [BEHIND_TUNER] = {"NCCLSHIM_BEHIND_TUNER", "libnccl-tuner", true},
};

static struct behind {
    pthread_mutex_t lock; /* NCCL's init calls alone come here, never a collective */
    bool opened;
    void *handle; /* NULL = nothing could be opened */
    bool global;  /* the program and its global scope, where our own tables are found as well */
    char name[NAME_MAX_BYTES];
} all[BEHIND_KINDS] = {
    {.lock = PTHREAD_MUTEX_INITIALIZER},
    {.lock = PTHREAD_MUTEX_INITIALIZER},
    {.lock = PTHREAD_MUTEX_INITIALIZER},
};

/* NCCL takes any beginning of this word, in any case, for the program itself. */
static bool means_program(const char *name)
{
    return *name && !strncasecmp(name, "STATIC_PLUGIN", strlen(name));
}

static bool is_library_name(const char *name)
{
    size_t n = strlen(name);

    return strchr(name, '/') ||
           (n >= 3 && !strncmp(name, "lib", 3) && !strcmp(name + n - 3, ".so"));
}

/* NAME, then PREFIX-NAME.so; with RTLD_NOLOAD only what is loaded already. */
static void *open_named(const char *name, const char *prefix, int flags)
{
    char file[NAME_MAX_BYTES + 32];
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | flags);

    if (handle || is_library_name(name))
        return handle;
    snprintf(file, sizeof(file), "%s-%s.so", prefix, name);
    return dlopen(file, RTLD_NOW | RTLD_LOCAL | flags);
}

/* The network plugin's library, which NCCL has opened by now if it exists. */
static void *open_net_plugin(void)
{
    const char *list = getenv("NCCL_NET_PLUGIN");
    char copy[1024], *save = NULL;
    void *handle = NULL;

    if (!list)
        return dlopen("libnccl-net.so", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!strcasecmp(list, "none"))
        return NULL;
    snprintf(copy, sizeof(copy), "%s", list);
    for (char *n = strtok_r(copy, ",", &save); n && !handle; n = strtok_r(NULL, ",", &save))
        if (!means_program(n))
            handle = open_named(n, "libnccl-net", RTLD_NOLOAD);
    return handle;
}

static void open_behind(enum behind_kind kind)
{
    struct behind *b = &all[kind];
    const char *name = b->name[0] ? b->name : getenv(kinds[kind].variable);
    char file[64];

    if (name && !strcasecmp(name, "none"))
        return;
    if (name && means_program(name)) {
        b->handle = dlopen(NULL, RTLD_NOW);
        b->global = true;
        return;
    }
    snprintf(file, sizeof(file), "%s.so", kinds[kind].prefix);
    b->handle = name && *name ? open_named(name, kinds[kind].prefix, 0)
                              : dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!b->handle && kinds[kind].in_net_plugin)
        b->handle = open_net_plugin();
}

static bool is_our_own(const void *table)
{
    static const void *const ours[] = {
        &ncclEnvPlugin_v1,   &ncclEnvPlugin_v2,   &ncclProfiler_v1,    &ncclProfiler_v2,
        &ncclProfiler_v3,    &ncclProfiler_v4,    &ncclProfiler_v5,    &ncclProfiler_v6,
        &ncclTunerPlugin_v2, &ncclTunerPlugin_v3, &ncclTunerPlugin_v4, &ncclTunerPlugin_v5,
        &ncclTunerPlugin_v6,
    };

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (table == ours[i])
            return true;
    return false;
}

static const void *find(const struct behind *b, const char *symbol)
{
    const void *table = real_dlsym(b->handle, symbol);

    /* In the global scope ours may hide another one behind it. */
    if (table && is_our_own(table) && b->global)
        table = real_dlsym(RTLD_NEXT, symbol);
    return table && !is_our_own(table) ? table : NULL;
}

const void *behind_table(enum behind_kind kind, const char *prefix, int newest, int oldest,
                         int *version)
{
    struct behind *b = &all[kind];
    const void *table = NULL;
    char symbol[48];

    pthread_mutex_lock(&b->lock);
    if (!b->opened) {
        open_behind(kind);
        b->opened = true;
    }
    pthread_mutex_unlock(&b->lock);
    for (int v = newest; b->handle && v >= oldest && !table; v--) {
        snprintf(symbol, sizeof(symbol), "%s_v%d", prefix, v);
        table = find(b, symbol);
        *version = v;
    }
    return table;
}

void behind_name_from_env(enum behind_kind kind, const char *name)
{
    struct behind *b = &all[kind];

    pthread_mutex_lock(&b->lock);
    if (!b->opened)
        snprintf(b->name, sizeof(b->name), "%s", name);
    pthread_mutex_unlock(&b->lock);
}
