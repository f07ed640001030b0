/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/commenv.h"

#include <stdio.h>
#include <string.h>

static __thread const struct comm_section *named __attribute__((tls_model("initial-exec")));
static __thread bool active __attribute__((tls_model("initial-exec")));

static const char *find(const struct comm_section *s, const char *name)
{
    for (size_t i = 0; s && i < s->env_count; i++)
        if (!strcmp(s->env[i].name, name))
            return s->env[i].value;
    return NULL;
}

static bool has_any(const struct comm_section *s)
{
    return s && s->env_count > 0;
}

static void note(const struct birth *b, const struct comm_section *s)
{
    struct log_writer *log = shim_log_if_open();
    char text[512];

    for (size_t i = 0; log && b->comm && b->comm->entry && s && i < s->env_count; i++) {
        int n = snprintf(text, sizeof(text), "%s=%s", s->env[i].name, s->env[i].value);
        if (n > 0 && (size_t)n < sizeof(text))
            log_note(log, NCCLSHIM_NOTE_COMM_TEXT, b->comm->number, NCCLSHIM_COMM_SETTING, 0, NULL,
                     0, text, (size_t)n + 1);
    }
}

void comm_env_begin(struct birth *b, bool grouped)
{
    const struct comm_section *base = profile_comm_base(shim.profile);
    bool reachable = !grouped && b->comm && !b->comm->nonblocking &&
                     lib_version(b->comm->lib) >= 22807;

    if (!has_any(base) && !has_any(b->section))
        return;
    if (!reachable) {
        if (b->comm && b->comm->entry && shim_log_if_open()) {
            atomic_fetch_or((_Atomic uint32_t *)&b->comm->entry->flags, NCCLSHIM_COMM_CONFIG_LOST);
            log_warn(shim_log_if_open(), (int)b->comm->number,
                     "the NCCL_ variables of its [comm] section could not be given: that takes an "
                     "init outside a group, a blocking communicator, and NCCL 2.28.7 or later");
        }
        return;
    }
    named = b->section;
    active = true;
    note(b, base);
    note(b, b->section);
}

void comm_env_end(void)
{
    active = false;
    named = NULL;
}

const char *comm_env_get(const char *name)
{
    const char *value;

    if (!active)
        return NULL;
    value = find(named, name);
    return value ? value : find(profile_comm_base(shim.profile), name);
}
