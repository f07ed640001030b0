/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of a user's own behind ours (plugin_behind.c), and a profiler's events for it. */
#ifndef TEST_PLUGIN_BEHIND_LOAD_H
#define TEST_PLUGIN_BEHIND_LOAD_H

#include "test/unit/test_plugin_help.h"

#include <dlfcn.h>

#include "shim/base/names.h"
#include "shim/plugin/plugin.h"
#include "shim/plugin/profiler.h"
#include "test/unit/plugin_behind.h"

static char path[512];
static struct behind_seen *seen;

static inline void put_behind(const char *variable, const char *plugin)
{
    void *handle;

    snprintf(path, sizeof(path), "%s/%s.so", BEHIND_DIR, plugin);
    handle = dlopen(path, RTLD_NOW);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(1);
    }
    seen = real_dlsym(handle, "behind_seen");
    CHECK(seen);
    setenv(variable, path, 1);
}

static inline void *profile_begin(const struct profiler_table *t, int version, int *mask)
{
    void *context = NULL;
    ncclResult_t r = version >= 5   ? t->init.v5(&context, 0x99, mask, "tp", 3, 8, 5, NULL)
                     : version == 4 ? t->init.v4(&context, mask, "tp", 0x99, 3, 8, 5, NULL)
                                    : t->init.v1(&context, mask);
    CHECK_INT(r, ncclSuccess);
    CHECK(context);
    return context;
}

static inline struct profiler_event_v5 event(uint64_t type)
{
    struct profiler_event_v5 e;

    memset(&e, 0, sizeof(e));
    e.head.type_v5 = type;
    e.head.parent = &path[1];
    if (type == PROFILER_COLL)
        e.coll = (struct profiler_coll_v5){
            {.func = "AllReduce", .algo = "RING", .proto = "LL", .channels = 3}, &path[2]};
    return e;
}

static inline void *send(const struct profiler_table *t, void *context, uint64_t type)
{
    struct profiler_event_v5 e = event(type);
    void *handle = &e;

    CHECK_INT(t->start(context, &handle, &e), ncclSuccess);
    return handle;
}

#endif
