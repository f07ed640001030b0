/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/digest.h"
#include "shim/profile/apply.h"

extern char **environ;

/*
 * The doors. The bare name is found by SONAME where the shim is preloaded, in every version of NCCL
 * (2.27 takes no path there), and simply fails to open where a child kept the variable but lost the
 * preload.
 */
#define DOOR "libncclshim.so"
static const struct door {
    const char *variable; /* NCCL's */
    const char *behind;   /* ours: what the user had there, to be loaded behind the shim */
} doors[] = {
    {"NCCL_PROFILER_PLUGIN", "NCCLSHIM_BEHIND_PROFILER"},
    {"NCCL_ENV_PLUGIN", "NCCLSHIM_BEHIND_ENV"},
    {"NCCL_TUNER_PLUGIN", "NCCLSHIM_BEHIND_TUNER"},
};
enum { DOOR_PROFILER, DOOR_ENV, DOOR_TUNER, DOOR_COUNT };

/* What was in force when the constructor had done its work. Written once, read from any thread. */
static struct setting {
    char *name, *value;
    int origin;
} *known;
static size_t known_count;

static void open_door(const struct door *d)
{
    const char *have = getenv(d->variable);

    if (have && !strcmp(have, DOOR))
        return; /* a parent's constructor did it */
    if (have && *have)
        setenv(d->behind, have, 1);
    setenv(d->variable, DOOR, 1);
}

/* A parent may have had a profile with rules, and this process none. */
static void close_door(const struct door *d)
{
    const char *have = getenv(d->variable), *behind;

    if (!have || strcmp(have, DOOR))
        return;
    behind = getenv(d->behind);
    if (behind)
        setenv(d->variable, behind, 1);
    else
        unsetenv(d->variable);
    unsetenv(d->behind);
}

static bool has_comm_env(const struct profile *p)
{
    for (size_t i = 0; i < p->comm_count; i++)
        if (p->comm[i].env_count)
            return true;
    return false;
}

static bool is_door(const char *name)
{
    for (int i = 0; i < DOOR_COUNT; i++)
        if (!strcmp(name, doors[i].variable))
            return true;
    return false;
}

static int origin_in_plan(const struct env_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->count; i++)
        if (!strcmp(plan->entries[i].name, name) && plan->entries[i].setting)
            return plan->entries[i].origin;
    return is_door(name) ? NCCLSHIM_ORIGIN_SHIM : NCCLSHIM_ORIGIN_USER;
}

/* Names that images and build tools use and NCCL does not read. */
static bool is_of_the_image(const char *entry)
{
    return !strncmp(entry, "NCCL_VERSION=", 13) || !strncmp(entry, "NCCL_HOME=", 10) ||
           !strncmp(entry, "NCCL_ROOT=", 10);
}

static bool is_setting(const char *entry, const struct env_plan *plan)
{
    size_t len = strcspn(entry, "=");

    if (is_of_the_image(entry))
        return false;

    if (!strncmp(entry, "NCCL_", 5))
        return true;
    for (size_t i = 0; i < plan->count; i++)
        if (strlen(plan->entries[i].name) == len && !strncmp(plan->entries[i].name, entry, len))
            return true;
    return false;
}

static void remember(const struct env_plan *plan)
{
    size_t n = 0;

    for (char **e = environ; *e; e++)
        n += is_setting(*e, plan);
    known = n ? calloc(n, sizeof(*known)) : NULL;
    for (char **e = environ; *e && known && known_count < n; e++) {
        const char *eq = strchr(*e, '=');
        struct setting *s = &known[known_count];
        if (!eq || !is_setting(*e, plan))
            continue;
        s->name = strndup(*e, (size_t)(eq - *e));
        s->value = strdup(eq + 1);
        if (!s->name || !s->value)
            return;
        s->origin = origin_in_plan(plan, s->name);
        known_count++;
    }
}

bool settings_apply(const struct profile *p, bool log_wanted)
{
    struct env_plan plan;

    if (profile_env_plan(p, environ, &plan))
        return false;
    for (size_t i = 0; i < plan.count; i++) {
        const struct env_plan_entry *e = &plan.entries[i];
        if (e->action == ENV_SET)
            setenv(e->name, e->value, 1);
        else if (e->action == ENV_UNSET)
            unsetenv(e->name);
    }
    if (plan.mark)
        setenv(PROFILE_MARK_VARIABLE, plan.mark, 1);
    else if (getenv(PROFILE_MARK_VARIABLE))
        unsetenv(PROFILE_MARK_VARIABLE);
    (log_wanted ? open_door : close_door)(&doors[DOOR_PROFILER]);
    (log_wanted || has_comm_env(p) ? open_door : close_door)(&doors[DOOR_ENV]);
    (p->tune_count ? open_door : close_door)(&doors[DOOR_TUNER]);
    remember(&plan);
    env_plan_free(&plan);
    return true;
}

static void note_one(struct log_writer *log, const char *name, const char *value, int origin)
{
    size_t name_bytes = strlen(name) + 1, value_bytes = strlen(value) + 1;
    char text[1024];

    if (name_bytes + value_bytes > sizeof(text)) {
        if (name_bytes >= sizeof(text) - 1)
            return;
        value_bytes = sizeof(text) - name_bytes;
    }
    memcpy(text, name, name_bytes);
    memcpy(text + name_bytes, value, value_bytes);
    text[name_bytes + value_bytes - 1] = '\0';
    log_note(log, NCCLSHIM_NOTE_SETTING, (uint32_t)origin, 0, 0, NULL, 0, text,
             name_bytes + value_bytes);
}

static const struct setting *find_known(const char *name, size_t len)
{
    for (size_t i = 0; i < known_count; i++)
        if (strlen(known[i].name) == len && !strncmp(known[i].name, name, len))
            return &known[i];
    return NULL;
}

/*
 * Variables that may well differ between the ranks of one communicator. All others must not:
 * NCCL does not compare them, and ranks that disagree hang or fail with truncated messages.
 */
static const char *const per_rank[] = {
    "NCCL_DEBUG",       "NCCL_DEBUG_FILE",  "NCCL_DEBUG_SUBSYS", "NCCL_HOSTID",
    "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA",    "NCCL_COMM_ID",      "NCCL_TOPO_DUMP_FILE",
    "NCCL_GRAPH_DUMP_FILE", "NCCL_CONF_FILE",
};

static bool counts_for_digest(const char *entry)
{
    size_t len = strcspn(entry, "=");

    if (strncmp(entry, "NCCL_", 5) || is_of_the_image(entry))
        return false;
    for (size_t i = 0; i < sizeof(per_rank) / sizeof(per_rank[0]); i++)
        if (strlen(per_rank[i]) == len && !strncmp(per_rank[i], entry, len))
            return false;
    for (int i = 0; i < DOOR_COUNT; i++)
        if (strlen(doors[i].variable) == len && !strncmp(doors[i].variable, entry, len))
            return false;
    return true;
}

/* A sum, so that the order of the environment does not matter. */
uint64_t settings_digest(void)
{
    uint64_t sum = DIGEST_START;

    for (char **e = environ; e && *e; e++)
        if (counts_for_digest(*e))
            sum += digest_bytes(DIGEST_START, *e, strlen(*e));
    return sum;
}

void settings_note(struct log_writer *log)
{
    for (char **e = environ; e && *e; e++) {
        const char *eq = strchr(*e, '=');
        const struct setting *k;
        char name[128];
        size_t len = eq ? (size_t)(eq - *e) : 0;
        if (!len || len >= sizeof(name))
            continue;
        k = find_known(*e, len);
        if (!k && (strncmp(*e, "NCCL_", 5) || is_of_the_image(*e)))
            continue;
        memcpy(name, *e, len);
        name[len] = '\0';
        note_one(log, name, eq + 1,
                 k && !strcmp(k->value, eq + 1) ? k->origin : NCCLSHIM_ORIGIN_PROGRAM);
    }
    log->head->settings_digest = settings_digest();
}
