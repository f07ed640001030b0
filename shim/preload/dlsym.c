/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym, for the sake of programs that open NCCL themselves (vLLM and SGLang by ctypes, JAX, XGBoost)
 * and look its functions up on the handle: a preloaded symbol is never asked there.
 *
 * The one dangerous trick of this project, so it is kept narrow and alone:
 *  - Only names that begin with "nccl" are looked at. Everything else leaves by a jump to the real
 *    dlsym with the stack as it was, because glibc takes the return address for the caller, and
 *    with it the meaning of RTLD_NEXT and the search path (a test looks at the machine code).
 *    That is why the entry is written in assembly: a compiler may or may not make a tail call.
 *  - RTLD_DEFAULT leaves by the same jump: the search passes the preloaded objects first anyway.
 *  - A look-up on a handle is done by the real dlsym on that handle. Only when it finds something,
 *    and that lies in an NCCL, the wrapper of that very copy is handed out. What the handle does
 *    not have, it does not have with us either. `pncclX` always stays with the library.
 *  - dlopen is never defined: that would break the RPATH of its callers.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/preload/elf_symbol.h"
#include "shim/preload/real.h"

void *(*ncclshim_real_dlsym)(void *handle, const char *name);
bool ncclshim_dlsym_off; /* NCCLSHIM_DLSYM=0, set by the constructor */

/* A sanitizer's start-up looks functions up through us before its shadow memory exists. */
#define BEFORE_SANITIZERS __attribute__((no_sanitize("address", "undefined", "thread")))

void *ncclshim_find_dlsym(void);
void *ncclshim_dlsym_nccl(void *handle, const char *name, void *caller);

/* Versions of glibc's dlsym: 2.34 moved it into libc; before, the port's first version. */
static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.27"};

/*
 * The next dlsym in the order of loading: that of libc, or of another preloaded library that has one
 * too (vGPU libraries do, to see CUDA's names) and must go on seeing its callers. A look-up with a
 * version would pass it over. Only objects from the program's start are walked, so none goes away.
 */
BEFORE_SANITIZERS static void *next_dlsym(void)
{
    struct link_map *m = _r_debug.r_map;

    while (m && m->l_ld != _DYNAMIC)
        m = m->l_next;
    for (m = m ? m->l_next : NULL; m; m = m->l_next) {
        void *p = elf_symbol(m->l_addr, m->l_ld, "dlsym");
        if (p)
            return p;
    }
    return NULL;
}

BEFORE_SANITIZERS void *ncclshim_find_dlsym(void)
{
    void *p = next_dlsym();

    for (size_t i = 0; !p && i < sizeof(versions) / sizeof(versions[0]); i++)
        p = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (!p)
        abort(); /* no libc has no dlsym; going on would be a jump to nowhere */
    ncclshim_real_dlsym = (void *(*)(void *, const char *))p;
    return p;
}

BEFORE_SANITIZERS void *real_dlsym(void *handle, const char *name)
{
    if (!ncclshim_real_dlsym)
        ncclshim_find_dlsym();
    return ncclshim_real_dlsym(handle, name);
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    testq %rdi, %rdi\n" /* RTLD_DEFAULT */
        "    je 1f\n"
        "    testq %rsi, %rsi\n"
        "    je 1f\n"
        "    cmpb $110, (%rsi)\n" /* n */
        "    jne 1f\n"
        "    cmpb $99, 1(%rsi)\n" /* c */
        "    jne 1f\n"
        "    cmpb $99, 2(%rsi)\n" /* c */
        "    jne 1f\n"
        "    cmpb $108, 3(%rsi)\n" /* l */
        "    jne 1f\n"
        "    movq (%rsp), %rdx\n"
        "    jmp ncclshim_dlsym_nccl\n"
        "1:  movq ncclshim_real_dlsym(%rip), %rax\n"
        "    testq %rax, %rax\n"
        "    je 2f\n"
        "    jmp *%rax\n"
        "2:  pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call ncclshim_find_dlsym\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    jmp *%rax\n"
        "    .cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        "    .cfi_startproc\n"
        "    hint #34\n" /* bti c */
        "    cbz x0, 1f\n"
        "    cbz x1, 1f\n"
        "    ldrb w9, [x1]\n"
        "    cmp w9, #110\n"
        "    b.ne 1f\n"
        "    ldrb w9, [x1, #1]\n"
        "    cmp w9, #99\n"
        "    b.ne 1f\n"
        "    ldrb w9, [x1, #2]\n"
        "    cmp w9, #99\n"
        "    b.ne 1f\n"
        "    ldrb w9, [x1, #3]\n"
        "    cmp w9, #108\n"
        "    b.ne 1f\n"
        "    mov x2, x30\n"
        "    b ncclshim_dlsym_nccl\n"
        "1:  adrp x16, ncclshim_real_dlsym\n"
        "    ldr x16, [x16, #:lo12:ncclshim_real_dlsym]\n"
        "    cbz x16, 2f\n"
        "    br x16\n"
        "2:  stp x0, x1, [sp, #-32]!\n"
        "    .cfi_adjust_cfa_offset 32\n"
        "    str x30, [sp, #16]\n"
        "    .cfi_rel_offset x30, 16\n"
        "    bl ncclshim_find_dlsym\n"
        "    mov x16, x0\n"
        "    ldr x30, [sp, #16]\n"
        "    ldp x0, x1, [sp], #32\n"
        "    .cfi_adjust_cfa_offset -32\n"
        "    br x16\n"
        "    .cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#else
#error "ncclshim's dlsym is written for x86-64 and AArch64"
#endif

static struct link_map *map_at(const void *address)
{
    struct link_map *map = NULL;
    Dl_info info;

    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* The walk of RTLD_NEXT: the first object behind `from` that defines the name. */
struct walk {
    const struct link_map *from;
    const char *name;
    bool behind;
    void *found;
};

static int look_behind(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct walk *w = arg;

    (void)size;
    if (!w->behind) {
        w->behind = info->dlpi_addr == w->from->l_addr && !strcmp(info->dlpi_name, w->from->l_name);
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum && !w->found; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            w->found = elf_symbol(info->dlpi_addr,
                                  (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr), w->name);
    return w->found != NULL;
}

/*
 * RTLD_NEXT for an nccl name. The real dlsym would take us for the caller, so the order of loading
 * is walked by hand (under the loader's own lock: no object goes away meanwhile), else what the
 * caller's own dependencies have, which may have been loaded before it.
 */
static void *next_after(struct link_map *from, const char *name)
{
    struct walk w = {.from = from, .name = name};
    void *handle, *p;

    dl_iterate_phdr(look_behind, &w);
    if (w.found)
        return w.found;
    handle = dlopen(from->l_name[0] ? from->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    p = handle ? real_dlsym(handle, name) : NULL;
    if (handle)
        dlclose(handle);
    return p && map_at(p) != from ? p : NULL;
}

void *ncclshim_dlsym_nccl(void *handle, const char *name, void *caller)
{
    struct link_map *from = handle == RTLD_NEXT ? map_at(caller) : NULL;
    struct nccl_lib *lib;
    void *p;
    int fn;

    p = from ? next_after(from, name) : real_dlsym(handle, name);
    if (!p || ncclshim_dlsym_off)
        return p;
    /* Another interposer asks for what lies behind itself: its callers came through us already. */
    if (from && elf_symbol(from->l_addr, from->l_ld, name))
        return p;
    fn = fn_number(name);
    lib = fn >= 0 ? lib_of_address(p) : NULL;
    return lib ? lib_entry(lib, (enum nccl_fn)fn) : p;
}
