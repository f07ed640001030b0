/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: way handle|default LIBRARY          looked up on its handle, in the global scope
 *        way two LIBRARY LIBRARY             two copies, both by handle
 *        way plugin|deep PLUGIN              a library linked to NCCL, opened with local scope; and
 *                                            with RTLD_DEEPBIND
 *        way through PLUGIN                  on the handle of a library that is linked to NCCL
 *        way next PLUGIN                     by dlsym(RTLD_NEXT) of such a library
 *        way strong LIBRARY                  pncclX by handle
 *        way reopen LIBRARY                  used, closed and opened again
 *        way closed-first LIBRARY            closed before the first call, then opened again
 *
 * Not linked to NCCL. COMPAT_ABSENT: names that must not be found; see calls.h for the output.
 */
#include "test/compat/calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static void *open_or_die(const char *path, int flags)
{
    void *handle = dlopen(path, flags);

    if (!handle) {
        fprintf(stderr, "client: %s\n", dlerror());
        exit(1);
    }
    return handle;
}

static void *by_handle(const char *name)
{
    void *volatile found = dlsym(library, name);

    return found;
}

static void *by_default(const char *name)
{
    void *volatile found = dlsym(RTLD_DEFAULT, name);

    return found;
}

static void *by_strong_name(const char *name)
{
    char strong[128];

    snprintf(strong, sizeof(strong), "p%s", name);
    return by_handle(strong);
}

static void use(void *(*find)(const char *name))
{
    struct calls c;
    const struct calls *const one[] = {&c};

    calls_find(&c, find);
    if (find != by_default)
        calls_absent(getenv("COMPAT_ABSENT"), find);
    calls_main(one, 1);
}

static void two(const char *first, const char *second)
{
    struct calls a, b;
    const struct calls *const both[] = {&a, &b};

    library = open_or_die(first, RTLD_NOW | RTLD_LOCAL);
    calls_find(&a, by_handle);
    calls_absent(getenv("COMPAT_ABSENT"), by_handle);
    library = open_or_die(second, RTLD_NOW | RTLD_LOCAL);
    calls_find(&b, by_handle);
    calls_main(both, 2);
}

static void from_plugin(const char *path, int flags, bool next)
{
    void *plugin = open_or_die(path, flags);
    void (*run)(void) = (void (*)(void))dlsym(plugin, "plugin_main");
    void *(*find)(const char *) = (void *(*)(const char *))dlsym(plugin, "plugin_next");

    if (next)
        use(find);
    else
        run();
}

static void reopen(const char *path, bool called)
{
    for (int i = 0; i < 3; i++) {
        library = open_or_die(path, RTLD_NOW | RTLD_LOCAL);
        if (called || i)
            use(by_handle);
        dlclose(library);
    }
}

int main(int argc, char **argv)
{
    const char *way = argc > 2 ? argv[1] : "";

    if (!strcmp(way, "handle") || !strcmp(way, "through") || !strcmp(way, "strong")) {
        library = open_or_die(argv[2], RTLD_NOW | RTLD_LOCAL);
        use(way[0] == 's' ? by_strong_name : by_handle);
    } else if (!strcmp(way, "default")) {
        library = open_or_die(argv[2], RTLD_NOW | RTLD_GLOBAL);
        use(by_default);
    } else if (!strcmp(way, "two") && argc > 3) {
        two(argv[2], argv[3]);
    } else if (!strcmp(way, "plugin") || !strcmp(way, "deep") || !strcmp(way, "next")) {
        from_plugin(argv[2], RTLD_NOW | RTLD_LOCAL | (way[0] == 'd' ? RTLD_DEEPBIND : 0), way[0] == 'n');
    } else if (!strcmp(way, "reopen") || !strcmp(way, "closed-first")) {
        reopen(argv[2], way[0] == 'r');
    } else {
        fprintf(stderr, "usage: way WAY LIBRARY [LIBRARY]\n");
        return 2;
    }
    return 0;
}
