/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfaults.so: makes the n-th call of one function fail, of those that libncclshim.so makes, and
 * of no other. Preloaded behind the shim, so that the loader runs its constructor before the
 * shim's; that constructor takes the shim's own table of addresses (its GOT) and puts a wrapper
 * before each function that can fail. The CUDA driver's functions are wrapped when the shim looks
 * them up. What the server, NCCL and the driver call themselves goes past all this.
 *
 *   NCCLSHIM_FAULTS=FUNCTION:NTH:HOW  HOW: an errno's name, `short`, a CUDA error's number, or
 *                                     `missing` (the driver lacks the function); `!` behind it: the
 *                                     work is done all the same. NTH+: from the NTH call on.
 *                                     FUNCTION `cu*`: any call of the driver, counted together.
 *   NCCLSHIM_FAULTS_LIST=FILE         at exit: a line "FUNCTION CALLS HOW..." for each function;
 *                                     "FUNCTION unknown" when faults.h has no word on it
 *
 * The wrappers hand on twelve machine words, whatever the function takes: enough for
 * cuLaunchKernel, and right on x86-64 and AArch64, where integers and pointers go the same way.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/faults/faults.h"

#define PLACES 128
#define WORDS \
    long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l
#define GIVEN a, b, c, d, e, f, g, h, i, j, k, l

struct place {
    const char *name;
    void *real;
    enum kind kind;
    const char *hows; /* NULL: faults.h does not know it */
    bool cuda;
    _Atomic long calls;
};

static struct place places[PLACES];
static _Atomic int place_count;
static _Atomic long cuda_calls;
static void *(*true_dlsym)(void *, const char *);

static const struct {
    const char *name;
    enum kind kind;
    const char *hows;
} known[] = {
#define X(name, kind, hows) {#name, kind, hows},
    FAULTS_LIBC(X)
#undef X
};

static const struct {
    const char *name;
    int number;
} errors[] = {
#define E(name)     \
    {               \
#name, name \
    }
    E(EACCES), E(EAGAIN), E(EBADF),  E(EEXIST),       E(EINTR),     E(EINVAL), E(EIO),
    E(ELOOP),  E(EMFILE), E(ENFILE), E(ENAMETOOLONG), E(ENOENT),    E(ENOMEM), E(ENOSPC),
    E(ENOSYS), E(EPERM),  E(EPIPE),  E(EOPNOTSUPP),   E(EOVERFLOW), E(EROFS),
#undef E
};

/* ---- what is asked for ------------------------------------------------------------------------
 */

static struct {
    char function[64];
    long nth;
    bool onward, done_anyway, is_short, is_missing;
    int number;
} fault;

static int error_number(const char *how)
{
    for (size_t n = 0; n < sizeof(errors) / sizeof(errors[0]); n++)
        if (!strcmp(errors[n].name, how))
            return errors[n].number;
    return atoi(how);
}

static void read_fault(void)
{
    const char *text = getenv("NCCLSHIM_FAULTS");
    char how[32] = "", nth[16] = "";

    if (!text || !*text)
        return;
    if (sscanf(text, "%63[^:]:%15[^:]:%31s", fault.function, nth, how) != 3)
        _exit(99);
    fault.nth = atol(nth);
    fault.onward = strchr(nth, '+') != NULL;
    if (how[strlen(how) - 1] == '!') {
        fault.done_anyway = true;
        how[strlen(how) - 1] = '\0';
    }
    fault.is_short = !strcmp(how, "short");
    fault.is_missing = !strcmp(how, "missing");
    fault.number = error_number(how);
    if (fault.nth < 1 || (!fault.number && !fault.is_short && !fault.is_missing))
        _exit(99);
}

static bool is_due(long call)
{
    return call == fault.nth || (fault.onward && call > fault.nth);
}

static bool must_fail(struct place *p)
{
    long call = atomic_fetch_add(&p->calls, 1) + 1;
    long of_all = p->cuda ? atomic_fetch_add(&cuda_calls, 1) + 1 : 0;

    if (!fault.nth || fault.is_missing)
        return false;
    if (p->cuda && !strcmp(fault.function, "cu*"))
        return is_due(of_all);
    return !strcmp(fault.function, p->name) && is_due(call);
}

/* ---- wrappers ---------------------------------------------------------------------------------
 */

static long failure(const struct place *p)
{
    if (p->cuda || p->kind == GIVES_ERRNO)
        return fault.number;
    errno = fault.number;
    return p->kind == GIVES_MINUS ? -1 : 0;
}

static inline long wrapped(int number, WORDS)
{
    struct place *p = &places[number];
    long (*real)(WORDS) = (long (*)(WORDS))p->real;

    if (!must_fail(p))
        return real(GIVEN);
    if (fault.is_short)
        return real(a, b, 1, d, e, f, g, h, i, j, k, l);
    if (fault.done_anyway)
        real(GIVEN);
    return failure(p);
}

#define EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define ALL(X)                                                                                 \
    EIGHT(X, 00)                                                                               \
    EIGHT(X, 01) EIGHT(X, 02) EIGHT(X, 03) EIGHT(X, 04) EIGHT(X, 05) EIGHT(X, 06) EIGHT(X, 07) \
        EIGHT(X, 010) EIGHT(X, 011) EIGHT(X, 012) EIGHT(X, 013) EIGHT(X, 014) EIGHT(X, 015)    \
            EIGHT(X, 016) EIGHT(X, 017)

/* Numbers are octal: eight by eight. */
#define X(n)                       \
    static long wrapper_##n(WORDS) \
    {                              \
        return wrapped(n, GIVEN);  \
    }
ALL(X)
#undef X
static long (*const wrappers[PLACES])(WORDS) = {
#define X(n) [n] = wrapper_##n,
    ALL(X)
#undef X
};

static bool in_list(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = list; (p = strstr(p, name)); p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
            return true;
    return false;
}

static struct place *add_place(const char *name, void *real)
{
    int number = atomic_fetch_add(&place_count, 1);
    struct place *p = &places[number];

    if (number >= PLACES)
        _exit(98);
    p->name = name;
    p->real = real;
    for (size_t n = 0; n < sizeof(known) / sizeof(known[0]); n++)
        if (!strcmp(known[n].name, name)) {
            p->kind = known[n].kind;
            p->hows = known[n].hows;
        }
    return p;
}

static void *wrapper_of(const struct place *p)
{
    return (void *)wrappers[p - places];
}

/* ---- the driver's functions -------------------------------------------------------------------
 */

static const char *shim_from, *shim_to; /* addresses of its code */

static const char *cuda_hows(const char *name)
{
    if (!strcmp(name, "cuCtxPopCurrent_v2"))
        return "999! 201! missing";
    if (in_list(FAULTS_CUDA_UNDO, name))
        return "999 999! 700! missing";
    if (strstr(name, "ModuleLoad"))
        return "2 222 218 999 missing";
    return "2 700 801 999 missing";
}

static void *cuda_function(void *handle, const char *name)
{
    void *real = true_dlsym(handle, name);
    struct place *p;

    if (!real || (fault.is_missing && !strcmp(fault.function, name)))
        return NULL;
    for (int n = 0; n < atomic_load(&place_count); n++)
        if (!strcmp(places[n].name, name))
            return wrapper_of(&places[n]);
    p = add_place(name, real);
    p->cuda = true;
    p->hows = cuda_hows(name);
    return wrapper_of(p);
}

static void find_true_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};

    for (int n = 0; n < 3 && !true_dlsym; n++)
        true_dlsym = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", versions[n]);
    if (!true_dlsym)
        _exit(96);
}

/*
 * The shim takes the next dlsym behind itself for the real one: this. Others come here by its jump;
 * for them this is one jump more (built with -O2), so that the real one sees the same caller.
 */
__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name)
{
    const char *caller = __builtin_return_address(0);

    if (!true_dlsym)
        find_true_dlsym();
    if (caller >= shim_from && caller < shim_to && name[0] == 'c' && name[1] == 'u')
        return cuda_function(handle, name);
    return true_dlsym(handle, name);
}

/* ---- the shim's table of addresses ------------------------------------------------------------
 */

static void put(void **slot, void *value)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)slot & ~(page - 1);

    /* Sealed by the loader (RELRO) before any constructor runs. */
    if (mprotect((void *)from, page, PROT_READ | PROT_WRITE) != 0)
        _exit(97);
    *slot = value;
}

static void take(void **slot, const char *name)
{
    struct place *p;

    if (in_list(FAULTS_NONE, name) || !*slot)
        return;
    for (int n = 0; n < atomic_load(&place_count); n++)
        if (!strcmp(places[n].name, name)) {
            put(slot, wrapper_of(&places[n]));
            return;
        }
    p = add_place(name, *slot);
    if (p->hows)
        put(slot, wrapper_of(p));
}

#if defined(__x86_64__)
#define IS_ADDRESS(type) \
    ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_ADDRESS(type) \
    ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#endif

static uintptr_t entry(const ElfW(Dyn) * dynamic, ElfW(Sxword) tag)
{
    for (; dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == tag)
            return dynamic->d_un.d_ptr;
    return 0;
}

static void take_table(ElfW(Addr) base, const ElfW(Dyn) * dynamic, ElfW(Sxword) table,
                       ElfW(Sxword) bytes)
{
    const ElfW(Sym) *symbols = (const void *)entry(dynamic, DT_SYMTAB);
    const char *names = (const void *)entry(dynamic, DT_STRTAB);
    const ElfW(Rela) *r = (const void *)entry(dynamic, table);

    for (size_t n = 0; r && n < entry(dynamic, bytes) / sizeof(*r); n++) {
        const ElfW(Sym) *s = &symbols[ELF64_R_SYM(r[n].r_info)];
        int type = ELF64_ST_TYPE(s->st_info);
        if (IS_ADDRESS(ELF64_R_TYPE(r[n].r_info)) && s->st_shndx == SHN_UNDEF &&
            (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE))
            take((void **)(base + r[n].r_offset), names + s->st_name);
    }
}

static int take_shim(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *slash = strrchr(info->dlpi_name, '/');

    (void)size;
    (void)arg;
    if (strcmp(slash ? slash + 1 : info->dlpi_name, "libncclshim.so"))
        return 0;
    for (int n = 0; n < info->dlpi_phnum; n++)
        if (info->dlpi_phdr[n].p_type == PT_LOAD && (info->dlpi_phdr[n].p_flags & PF_X)) {
            shim_from = (const char *)(info->dlpi_addr + info->dlpi_phdr[n].p_vaddr);
            shim_to = shim_from + info->dlpi_phdr[n].p_memsz;
        }
    for (int n = 0; n < info->dlpi_phnum; n++)
        if (info->dlpi_phdr[n].p_type == PT_DYNAMIC) {
            const ElfW(Dyn) *dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[n].p_vaddr);
            take_table(info->dlpi_addr, dynamic, DT_JMPREL, DT_PLTRELSZ);
            take_table(info->dlpi_addr, dynamic, DT_RELA, DT_RELASZ);
        }
    return 1;
}

__attribute__((constructor)) static void start(void)
{
    read_fault();
    dl_iterate_phdr(take_shim, NULL);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("NCCLSHIM_FAULTS_LIST");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

    for (int n = 0; fd >= 0 && n < atomic_load(&place_count); n++) {
        const struct place *p = &places[n];
        if (p->hows)
            dprintf(fd, "%s %ld %s\n", p->name, atomic_load(&p->calls), p->hows);
        else
            dprintf(fd, "%s unknown\n", p->name);
    }
    if (fd >= 0)
        close(fd);
}
