/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/real.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/preload/elf_symbol.h"
#include "shim/preload/say.h"

static struct nccl_lib libs[LIB_MAX];
static _Atomic(struct nccl_lib *) default_lib;

/* What lib_fn stores for a function that a copy does not have. */
static char absent;

static const char *const fn_names[FN_COUNT] = {
#define X(name, ...) [FN_##name] = "nccl" #name,
    NCCLSHIM_API_OWN(X) NCCLSHIM_API_OWN0(X) NCCLSHIM_API_PASS(X) NCCLSHIM_API_TEXT(X)
#undef X
};

int fn_number(const char *name)
{
    for (int i = 0; i < FN_COUNT; i++)
        if (!strcmp(fn_names[i], name))
            return i;
    return -1;
}

const char *fn_name(enum nccl_fn fn)
{
    return fn_names[fn];
}

static struct link_map *map_of(const void *address)
{
    struct link_map *map = NULL;
    Dl_info info;

    if (!address || !dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP))
        return NULL;
    return map;
}

/* Compared without a question to the loader: an answer of "unknown" would make us call ourselves. */
static bool is_ours(const struct link_map *map)
{
    return map->l_ld == _DYNAMIC;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Does this object itself define `name`? */
static void *defined_in(struct link_map *map, const char *name)
{
    return elf_symbol(map->l_addr, map->l_ld, name);
}

/*
 * NVIDIA's NCCL by itself or inside another object. AMD's RCCL has the same names, and interposers
 * export some of them: neither is to be taken for NCCL.
 */
static bool is_nccl(struct link_map *map)
{
    const char *base = base_name(map->l_name);

    if (is_ours(map) || !strncmp(base, "librccl", 7))
        return false;
    return defined_in(map, "pncclGetVersion") ||
           (!strncmp(base, "libnccl.so", 10) && defined_in(map, "ncclGetVersion"));
}

/* Keep the object mapped for good: our tables point into it. */
static void pin(struct link_map *map)
{
    if (map->l_name[0])
        (void)dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
}

static struct nccl_lib *lib_of_map(struct link_map *map)
{
    for (int i = 0; i < LIB_MAX; i++) {
        struct link_map *have = atomic_load_explicit(&libs[i].map, memory_order_acquire);
        if (!have && atomic_compare_exchange_strong(&libs[i].map, &have, map)) {
            pin(map);
            return &libs[i];
        }
        if (have == map)
            return &libs[i];
    }
    return NULL;
}

struct nccl_lib *lib_of_address(const void *address)
{
    struct link_map *map = map_of(address);

    if (!map)
        return NULL;
    for (int i = 0; i < LIB_MAX; i++)
        if (atomic_load_explicit(&libs[i].map, memory_order_acquire) == map)
            return &libs[i];
    return is_nccl(map) ? lib_of_map(map) : NULL;
}

/* Called by the loader's walk for its lock alone: no object comes or goes meanwhile. */
static int first_nccl(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct link_map *m = _r_debug.r_map;

    (void)info;
    (void)size;
    while (m && !is_nccl(m))
        m = m->l_next;
    *(struct link_map **)arg = m;
    return 1;
}

/*
 * An object that carries NCCL inside (libtorch_cuda.so, or the program itself). Nothing here needs
 * memory or a file: a call that finds no NCCL fails, and must not for such a reason.
 */
static struct link_map *find_any_nccl(void)
{
    struct link_map *found = NULL;

    dl_iterate_phdr(first_nccl, &found);
    return found;
}

bool libs_any_mapped(void)
{
    return find_any_nccl() != NULL;
}

static struct link_map *find_loaded(void)
{
    struct link_map *map = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);

    return map && is_nccl(map) ? map : find_any_nccl();
}

static struct link_map *find_configured(void)
{
    const char *path = getenv("NCCLSHIM_NCCL");
    struct link_map *map;

    if (path && *path) {
        map = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (map && is_nccl(map))
            return map;
        say_once(SAY_NO_NCCL, "NCCLSHIM_NCCL=%s is no NCCL that can be loaded", path);
        return NULL;
    }
    say_once(SAY_NO_NCCL, "a program called NCCL, but no NCCL is loaded; NCCLSHIM_NCCL=PATH names it");
    return NULL;
}

static struct nccl_lib *make_default(struct link_map *map)
{
    struct nccl_lib *lib = map ? lib_of_map(map) : NULL;

    if (lib)
        atomic_store_explicit(&default_lib, lib, memory_order_release);
    return lib;
}

struct nccl_lib *lib_loaded(void)
{
    struct nccl_lib *lib = atomic_load_explicit(&default_lib, memory_order_acquire);

    return lib ? lib : make_default(find_loaded());
}

struct nccl_lib *lib_default(void)
{
    struct nccl_lib *lib = lib_loaded();

    return lib ? lib : make_default(find_configured());
}

/*
 * Another preloaded interposer of NCCL behind us (NVIDIA's checkpoint shim is one): callers that
 * bound at link time would have reached it first, so the default copy is called through it. Only
 * what LD_PRELOAD names is taken for one: other objects export NCCL's names for reasons of their own.
 */
static struct link_map *interposer_behind(void)
{
    static _Atomic(struct link_map *) found;
    struct link_map *const none = (struct link_map *)&absent; /* looked for, and not there */
    struct link_map *map = atomic_load(&found);
    const char *list = getenv("LD_PRELOAD");
    bool behind = false;
    char name[512];

    if (map)
        return map == none ? NULL : map;
    for (const char *p = list; p && *p && !map; p += strspn(p, ": ")) {
        size_t len = strcspn(p, ": ");
        snprintf(name, sizeof(name), "%.*s", (int)len, p);
        p += len;
        struct link_map *m = len && len < sizeof(name) ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (m && is_ours(m))
            behind = true;
        else if (m && behind && defined_in(m, "ncclCommInitRank") && !is_nccl(m))
            map = m;
    }
    atomic_store(&found, map ? map : none);
    return map;
}

static void *find_fn(struct nccl_lib *lib, enum nccl_fn fn)
{
    struct link_map *map = atomic_load_explicit(&lib->map, memory_order_acquire);
    struct link_map *behind = NULL;
    char strong[64];
    void *p = NULL;

    if (!map)
        return NULL; /* a slot that holds no copy yet */
    /* Asked each time, not read: a handle that went through the interposer must never meet a
     * function that does not, so all functions of a copy are found by the same answer. */
    if (lib == lib_loaded())
        behind = interposer_behind();
    if (behind)
        p = defined_in(behind, fn_names[fn]);
    snprintf(strong, sizeof(strong), "p%s", fn_names[fn]);
    if (!p)
        p = defined_in(map, strong);
    return p ? p : defined_in(map, fn_names[fn]);
}

void *lib_fn(struct nccl_lib *lib, enum nccl_fn fn)
{
    void *p = atomic_load_explicit(&lib->fn[fn], memory_order_acquire);

    if (__builtin_expect(p != NULL, 1))
        return p == &absent ? NULL : p;
    p = find_fn(lib, fn);
    atomic_store_explicit(&lib->fn[fn], p ? p : &absent, memory_order_release);
    return p;
}

int lib_version(struct nccl_lib *lib)
{
    int version = atomic_load_explicit(&lib->version, memory_order_relaxed);
    GetVersion_fn get;

    if (version)
        return version;
    get = (GetVersion_fn)lib_fn(lib, FN_GetVersion);
    if (get && get(&version) == ncclSuccess) {
        /* Up to 2.8 the code was 2.8.4 -> 2804; from 2.9 on 2.9.6 -> 20906. Make it one scale. */
        if (version < 10000)
            version = version / 1000 * 10000 + version % 1000 / 100 * 100 + version % 100;
        atomic_store_explicit(&lib->version, version, memory_order_relaxed);
    }
    return version;
}

int lib_number(const struct nccl_lib *lib)
{
    return (int)(lib - libs);
}

void libs_forget_notes(void)
{
    for (int i = 0; i < LIB_MAX; i++)
        atomic_store(&libs[i].noted, 0);
}

struct nccl_lib *lib_by_number(int n)
{
    return &libs[n];
}

const char *lib_path(const struct nccl_lib *lib)
{
    struct link_map *map = atomic_load_explicit(&lib->map, memory_order_acquire);

    return map->l_name[0] ? map->l_name : "/proc/self/exe";
}
