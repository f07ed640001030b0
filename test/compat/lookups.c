/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups that are none of our business, from the program and from a library with a RUNPATH: each
 * prints where the address lies, as object and offset. Run with and without the shim, in every order
 * of preloads, the output must not change by a byte.
 *
 * Built three times: the program, -DLIBRARY (lookups_lib.so, which finds lookups_private.so by its
 * RUNPATH) and -DPRIVATE (lookups_private.so; also preloaded, it is "another library" that defines
 * malloc_usable_size and asks for the next one).
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(PRIVATE)

size_t malloc_usable_size(void *p);
void lookups_private(void);
int lookups_shared_name = 2;

size_t malloc_usable_size(void *p)
{
    static size_t (*next)(void *);

    if (!next)
        next = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    return next ? next(p) : 0;
}

#define SELF "private"
#define ENTRY lookups_private
#elif defined(LIBRARY)
void lookups_library(void);
int lookups_shared_name = 1;
#define SELF "library"
#define ENTRY lookups_library
#else
int lookups_shared_name;
#define SELF "program"
#define ENTRY lookups_program
void lookups_program(void);
#endif

static void tell(const char *how, const char *name, void *p)
{
    Dl_info info = {.dli_fname = "", .dli_fbase = p};
    const char *slash;

    if (p)
        dladdr(p, &info);
    slash = strrchr(info.dli_fname, '/');
    printf(SELF " %s %s: %s+%lx %s\n", how, name, slash ? slash + 1 : info.dli_fname,
           (unsigned long)((char *)p - (char *)info.dli_fbase), p ? "" : dlerror());
}

static const char *const names[] = {
    "malloc", "malloc_usable_size", "puts", "pthread_create", "lookups_shared_name", "n", "nc", "ncc",
    "no_such_name", "nccX", "", "cuInit", "dlopen", "dlvsym", "environ",
};

void ENTRY(void)
{
    void *self = dlopen(NULL, RTLD_NOW), *libc = dlopen("libc.so.6", RTLD_NOW);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *n = names[i];
        void *volatile p = dlsym(RTLD_DEFAULT, n);
        tell("default", n, p);
        p = dlsym(RTLD_NEXT, n);
        tell("next", n, p);
        p = dlsym(self, n);
        tell("program's handle", n, p);
        p = dlsym(libc, n);
        tell("libc's handle", n, p);
        p = dlvsym(RTLD_NEXT, n, "GLIBC_2.2.5");
        tell("version of next", n, p);
    }
    /* The caller's RUNPATH, and a name that is nowhere. */
    void *found = dlopen("lookups_private.so", RTLD_NOW);
    printf(SELF " opens lookups_private.so: %s\n", found ? "found" : "not found");
    if (found)
        tell("private's handle", "lookups_shared_name", dlsym(found, "lookups_shared_name"));
}

#if !defined(PRIVATE) && !defined(LIBRARY)
int main(int argc, char **argv)
{
    void *library, *private;
    void (*run)(void);

    lookups_program(); /* before the library is there: what it loads is then found by its name alone */
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    run = library ? (void (*)(void))dlsym(library, "lookups_library") : NULL;
    if (!run)
        return 1;
    run();
    private = dlsym(library, "lookups_private");
    printf("private through the library: %s\n", private ? "found" : "not found");
    return 0;
}
#endif
