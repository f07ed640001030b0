/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's environment: conf files, the env plugin, the cache of integer variables. */
#include "test/fake/nccl_fake.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef struct {
    const char *name;
    ncclResult_t (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix);
    ncclResult_t (*finalize)(void);
    const char *(*getEnv)(const char *name);
} env_plugin_v1;
typedef struct {
    const char *name;
    ncclResult_t (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix,
                         ncclDebugLogger_t log);
    ncclResult_t (*finalize)(void);
    const char *(*getEnv)(const char *name);
} env_plugin_v2;

static struct {
    const char *name;
    char kind;
    int64_t otherwise;
    int since, until;
    enum fake_stage stage;
    atomic_bool read;
    bool is_set;
    int64_t value;
} vars[VAR_COUNT] = {
#define KIND_I 'I'
#define KIND_S 'S'
#define KIND_O 'O'
#define VAR_ROW(name, kind, def, since, until, stage) \
    {#name, KIND_##kind, def, since, until, STAGE_##stage, false, false, 0},
    FAKE_VARS(VAR_ROW)};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool ready;
static const char *(*plugin_getenv)(const char *name);
static const env_plugin_v1 *plugin; /* v1 and v2 begin and end alike */
static void *plugin_lib;
static pthread_mutex_t param_lock = PTHREAD_MUTEX_INITIALIZER;
static bool no_cache_all;
static char *no_cache_list;

/* NAME=VALUE lines; no trimming; '#' only as the first character; the environment wins. */
static void read_conf_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    if (!f)
        return;
    while ((len = getline(&line, &size, f)) != -1) {
        if (line[0] == '#')
            continue;
        if (len > 0 && line[len - 1] == '\n')
            line[len - 1] = 0;
        char *eq = strchr(line, '=');
        if (!eq)
            continue;
        char name[1024], value[1024];
        snprintf(name, sizeof(name), "%.*s", (int)(eq - line), line);
        snprintf(value, sizeof(value), "%s", eq + 1);
        setenv(name, value, 0);
    }
    free(line);
    fclose(f);
}

static void read_conf_files(void)
{
    char path[4096];
    const char *user = FAKE_VER >= 22304 ? getenv("NCCL_CONF_FILE") : NULL;
    if (user && *user) {
        read_conf_file(user);
    } else {
        const char *home = NULL;
        struct passwd *pw = getpwuid(getuid());
        /* 2.30 asks HOME, older ones the password file. */
        home = FAKE_VER >= 23003 ? getenv("HOME") : pw ? pw->pw_dir : NULL;
        if (home) {
            snprintf(path, sizeof(path), "%s/.nccl.conf", home);
            read_conf_file(path);
        }
    }
    read_conf_file("/etc/nccl.conf");
}

static const char *plain_getenv(const char *name)
{
    return getenv(name);
}

static void plugin_exit(void)
{
    if (!plugin)
        return;
    INFO(NCCL_INIT | (FAKE_VER >= 23003 ? NCCL_DESTROY : 0), "ENV/Plugin: Closing env plugin %s",
         plugin->name);
    plugin_getenv = plain_getenv;
    if (plugin->finalize)
        plugin->finalize();
    fake_plugin_close(PLUGIN_ENV, plugin_lib);
    plugin = NULL;
}

static void open_plugin(void)
{
    plugin_getenv = plain_getenv;
    if (FAKE_VER < 22807)
        return;
    const char *value = getenv("NCCL_ENV_PLUGIN");
    if (value) {
        INFO(NCCL_ENV, "NCCL_ENV_PLUGIN set by environment to %s", value);
        if (!strcasecmp(value, "none"))
            return;
    }
    plugin_lib = fake_plugin_open(PLUGIN_ENV, value);
    if (!plugin_lib)
        return;
    const env_plugin_v2 *v2 =
        FAKE_VER >= 23007 ? fake_plugin_symbol(plugin_lib, "ncclEnvPlugin_v2") : NULL;
    const env_plugin_v1 *v1 =
        v2 ? (const void *)v2 : fake_plugin_symbol(plugin_lib, "ncclEnvPlugin_v1");
    if (!v1) {
        INFO(NCCL_INIT, "External env plugin %s is unsupported", fake_plugin_path(PLUGIN_ENV));
        fake_plugin_close(PLUGIN_ENV, plugin_lib);
        return;
    }
    INFO(NCCL_INIT, "ENV/Plugin: Using %s (v%d)", v1->name, v2 ? 2 : 1);
    INFO(NCCL_INIT, "Successfully loaded external env plugin %s", fake_plugin_path(PLUGIN_ENV));
    ncclResult_t res = v2 ? v2->init(FAKE_MAJOR, FAKE_MINOR, FAKE_PATCH, "", fake_log)
                          : v1->init(FAKE_MAJOR, FAKE_MINOR, FAKE_PATCH, "");
    if (res != ncclSuccess)
        INFO(NCCL_INIT, "ENV/Plugin: init of %s failed", v1->name);
    plugin = v1;
    plugin_getenv = v1->getEnv;
    atexit(plugin_exit);
}

static void init(void)
{
    read_conf_files();
    open_plugin();
    const char *list = FAKE_VER >= 22907 ? plugin_getenv("NCCL_NO_CACHE") : NULL;
    if (list && *list) {
        no_cache_all = !strcasecmp(list, "ALL");
        no_cache_list = strdup(list);
    }
    atomic_store(&ready, true);
}

void fake_env_init(void)
{
    pthread_once(&once, init);
}

bool fake_env_ready(void)
{
    return atomic_load(&ready);
}

const char *fake_getenv(const char *name)
{
    fake_env_init();
    return plugin_getenv(name);
}

static bool in_this_version(enum fake_var var)
{
    return vars[var].since <= FAKE_VER && FAKE_VER <= vars[var].until;
}

static bool never_cached(const char *name)
{
    if (no_cache_all)
        return true;
    if (!no_cache_list)
        return false;
    size_t n = strlen(name);
    for (const char *p = no_cache_list; (p = strstr(p, name)); p += n)
        if ((p == no_cache_list || p[-1] == ',') && (p[n] == 0 || p[n] == ','))
            return true;
    return false;
}

static void load(enum fake_var var)
{
    const char *text = fake_getenv(vars[var].name);
    vars[var].is_set = false;
    vars[var].value = vars[var].otherwise;
    if (!text || !*text)
        return;
    errno = 0;
    long long v = strtoll(text, NULL, 0); /* no check of what follows the number: "8M" is 8 */
    if (errno) {
        INFO(NCCL_ALL, "Invalid value %s for %s, using default %lld.", text, vars[var].name,
             (long long)vars[var].otherwise);
        return;
    }
    vars[var].value = v;
    vars[var].is_set = true;
    INFO(NCCL_ENV, "%s set by environment to %lld.", vars[var].name, v);
}

int64_t fake_param(enum fake_var var)
{
    if (!in_this_version(var))
        return vars[var].otherwise;
    if (!no_cache_all && !no_cache_list &&
        atomic_load_explicit(&vars[var].read, memory_order_acquire))
        return vars[var].value;
    fake_env_init();
    pthread_mutex_lock(&param_lock);
    if (!atomic_load(&vars[var].read) || never_cached(vars[var].name)) {
        load(var);
        atomic_store(&vars[var].read, true);
    }
    int64_t value = vars[var].value;
    pthread_mutex_unlock(&param_lock);
    return value;
}

bool fake_param_is_set(enum fake_var var)
{
    (void)fake_param(var);
    return in_this_version(var) && vars[var].is_set;
}

const char *fake_string(enum fake_var var)
{
    return in_this_version(var) ? fake_getenv(vars[var].name) : NULL;
}

void fake_ask_stage(enum fake_stage stage)
{
    static atomic_uint
        done; /* one bit a stage: nothing left to ask but what is asked for each time */
    if (stage != STAGE_INIT && (atomic_load_explicit(&done, memory_order_relaxed) & 1u << stage))
        return;
    fake_env_init();
    for (enum fake_var v = 0; v < VAR_COUNT; v++) {
        if (vars[v].stage != stage || !in_this_version(v))
            continue;
        if (vars[v].kind == 'I')
            (void)fake_param(v);
        else if (vars[v].kind == 'O' && v != VAR_NCCL_COMM_ID &&
                 !atomic_exchange(&vars[v].read, true))
            (void)fake_getenv(vars[v].name);
    }
    atomic_fetch_or(&done, 1u << stage);
}

void fake_env_after_fork(void)
{
    pthread_mutex_init(&param_lock, NULL);
}

int64_t fake_knob(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 0) : otherwise;
}
