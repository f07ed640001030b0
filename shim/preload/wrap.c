/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/wrap.h"

#include "shim/preload/say.h"

#define EXPORT __attribute__((visibility("default")))

void *real_for(struct nccl_lib *lib, enum nccl_fn fn, ncclResult_t *why)
{
    void *p = lib ? lib_fn(lib, fn) : NULL;
    int version;

    if (__builtin_expect(p != NULL, 1))
        return p;
    *why = ncclSystemError;
    if (lib) {
        version = lib_version(lib);
        *why = ncclInvalidUsage;
        say_once(SAY_NO_FN, "the program calls %s, which NCCL %d.%d.%d (%s) does not have",
                 fn_name(fn), version / 10000, version / 100 % 100, version % 100, lib_path(lib));
    }
    return NULL;
}

/*
 * Did the program call us, or NCCL itself? NCCL calls some of its own exported names, which lead
 * here as well, also when the program went round us. Its call sites are few; the last one is kept,
 * so that such a program does not pay for a search at each of its collectives.
 */
static void note_caller(const void *caller)
{
    static _Atomic(const void *) own;

    if (atomic_load_explicit(&own, memory_order_relaxed) == caller)
        return;
    if (lib_of_address(caller))
        atomic_store_explicit(&own, caller, memory_order_relaxed);
    else
        atomic_store_explicit(&shim_was_called, 1, memory_order_relaxed);
}

#define CALLED                                                                                     \
    do {                                                                                           \
        if (__builtin_expect(!atomic_load_explicit(&shim_was_called, memory_order_relaxed), 0))    \
            note_caller(__builtin_return_address(0));                                              \
    } while (0)

/* ---- what is only handed on ------------------------------------------------------------------- */

#define X(name, since, comm_arg, params, args)                                                     \
    static ncclResult_t own_##name(struct nccl_lib *lib, UNBRACKET params)                         \
    {                                                                                              \
        void *of = (void *)(comm_arg);                                                         \
        ncclResult_t why;                                                                          \
        name##_fn fn = (name##_fn)real_for(lib_for(lib, of ? comm_find(of) : NULL),        \
                                           FN_##name, &why);                                       \
        return fn ? fn args : why;                                                                 \
    }
NCCLSHIM_API_PASS(X)
#undef X

#define X(name, since, comm_arg, params, args)                                                     \
    static const char *own_##name(struct nccl_lib *lib, UNBRACKET params)                          \
    {                                                                                              \
        void *of = (void *)(comm_arg);                                                         \
        ncclResult_t why;                                                                          \
        name##_fn fn = (name##_fn)real_for(lib_for(lib, of ? comm_find(of) : NULL),        \
                                           FN_##name, &why);                                       \
        return fn ? fn args : "ncclshim: this NCCL has no such function";                          \
    }
NCCLSHIM_API_TEXT(X)
#undef X

/* ---- the exported names: for callers that bound at link time ---------------------------------- */

#define X(name, since, params, args)                                                               \
    EXPORT ncclResult_t nccl##name params;                                                         \
    EXPORT ncclResult_t nccl##name params                                                          \
    {                                                                                              \
        CALLED;                                                                                    \
        return own_##name(NULL, UNBRACKET args);                                                   \
    }
NCCLSHIM_API_OWN(X)
#undef X
#define X(name, since)                                                                             \
    EXPORT ncclResult_t nccl##name(void);                                                          \
    EXPORT ncclResult_t nccl##name(void)                                                           \
    {                                                                                              \
        CALLED;                                                                                    \
        return own_##name(NULL);                                                                   \
    }
NCCLSHIM_API_OWN0(X)
#undef X
#define X(name, since, comm_arg, params, args)                                                     \
    EXPORT ncclResult_t nccl##name params;                                                         \
    EXPORT ncclResult_t nccl##name params                                                          \
    {                                                                                              \
        CALLED;                                                                                    \
        return own_##name(NULL, UNBRACKET args);                                                   \
    }
NCCLSHIM_API_PASS(X)
#undef X
#define X(name, since, comm_arg, params, args)                                                     \
    EXPORT const char *nccl##name params;                                                          \
    EXPORT const char *nccl##name params                                                           \
    {                                                                                              \
        CALLED;                                                                                    \
        return own_##name(NULL, UNBRACKET args);                                                   \
    }
NCCLSHIM_API_TEXT(X)
#undef X

/* ---- the entries of each copy: what a look-up on its handle gives ------------------------------ */

#define ENTRY(n, ret, name, params, args)                                                          \
    static ret lib##n##_##name params                                                              \
    {                                                                                              \
        CALLED;                                                                                    \
        return own_##name(lib_by_number(n), UNBRACKET args);                                       \
    }
#define ENTRY0(n, name)                                                                            \
    static ncclResult_t lib##n##_##name(void)                                                      \
    {                                                                                              \
        CALLED;                                                                                    \
        return own_##name(lib_by_number(n));                                                       \
    }
#define OWN_ENTRIES(name, since, params, args)                                                     \
    ENTRY(0, ncclResult_t, name, params, args)                                                     \
    ENTRY(1, ncclResult_t, name, params, args)                                                     \
    ENTRY(2, ncclResult_t, name, params, args)                                                     \
    ENTRY(3, ncclResult_t, name, params, args)
#define OWN0_ENTRIES(name, since) ENTRY0(0, name) ENTRY0(1, name) ENTRY0(2, name) ENTRY0(3, name)
#define PASS_ENTRIES(name, since, comm_arg, params, args) OWN_ENTRIES(name, since, params, args)
#define TEXT_ENTRIES(name, since, comm_arg, params, args)                                          \
    ENTRY(0, const char *, name, params, args)                                                     \
    ENTRY(1, const char *, name, params, args)                                                     \
    ENTRY(2, const char *, name, params, args)                                                     \
    ENTRY(3, const char *, name, params, args)

NCCLSHIM_API_OWN(OWN_ENTRIES)
NCCLSHIM_API_OWN0(OWN0_ENTRIES)
NCCLSHIM_API_PASS(PASS_ENTRIES)
NCCLSHIM_API_TEXT(TEXT_ENTRIES)

_Static_assert(LIB_MAX == 4, "one set of entries for each copy");

#define SLOT(name, ...)                                                                            \
    [FN_##name] = {(void *)lib0_##name, (void *)lib1_##name, (void *)lib2_##name,                  \
                   (void *)lib3_##name},
static void *const entries[FN_COUNT][LIB_MAX] = {
    NCCLSHIM_API_OWN(SLOT) NCCLSHIM_API_OWN0(SLOT) NCCLSHIM_API_PASS(SLOT) NCCLSHIM_API_TEXT(SLOT)};

void *lib_entry(const struct nccl_lib *lib, enum nccl_fn fn)
{
    return entries[fn][lib_number(lib)];
}
