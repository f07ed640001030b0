/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/elf_facts.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#error "a 64-bit processor that NCCL runs on"
#endif

#define HEADERS_MAX 128 /* of one file; more is no program of a compiler */

static bool get(int fd, void *out, size_t bytes, uint64_t offset)
{
    return offset <= INT64_MAX && pread(fd, out, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Where an address of the file, as the loader would map it, lies in it. */
static uint64_t offset_of(const Elf64_Phdr *p, unsigned n, uint64_t address)
{
    for (unsigned i = 0; i < n; i++)
        if (p[i].p_type == PT_LOAD && address >= p[i].p_vaddr &&
            address - p[i].p_vaddr < p[i].p_filesz)
            return p[i].p_offset + (address - p[i].p_vaddr);
    return UINT64_MAX;
}

static void note_needed(int fd, uint64_t name_offset, struct elf_facts *f)
{
    char name[64] = "";

    if (name_offset > INT64_MAX || pread(fd, name, sizeof(name) - 1, (off_t)name_offset) <= 0)
        return;
    if (!strncmp(name, "libasan.so", 10) || !strncmp(name, "libclang_rt.asan", 16))
        snprintf(f->asan, sizeof(f->asan), "%s", name);
}

static void read_dynamic(int fd, const Elf64_Phdr *p, unsigned n, const Elf64_Phdr *dynamic,
                         struct elf_facts *f)
{
    uint64_t strings = UINT64_MAX;
    Elf64_Dyn d;

    for (int pass = 0; pass < 2; pass++)
        for (uint64_t at = 0; at < dynamic->p_filesz; at += sizeof(d)) {
            if (!get(fd, &d, sizeof(d), dynamic->p_offset + at) || d.d_tag == DT_NULL)
                break;
            if (pass == 0 && d.d_tag == DT_STRTAB)
                strings = offset_of(p, n, d.d_un.d_ptr);
            if (pass == 1 && d.d_tag == DT_NEEDED && strings != UINT64_MAX)
                note_needed(fd, strings + d.d_un.d_val, f);
        }
}

static void read_elf(int fd, struct elf_facts *f)
{
    Elf64_Phdr p[HEADERS_MAX];
    Elf64_Ehdr h;

    if (!get(fd, &h, sizeof(h), 0) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    f->elf = true;
    f->ours = h.e_ident[EI_CLASS] == ELFCLASS64 && h.e_machine == OUR_MACHINE;
    f->shared = h.e_type == ET_DYN;
    if (!f->ours || h.e_phentsize != sizeof(p[0]) || h.e_phnum > HEADERS_MAX ||
        !get(fd, p, h.e_phnum * sizeof(p[0]), h.e_phoff))
        return;
    for (unsigned i = 0; i < h.e_phnum; i++) {
        if (p[i].p_type == PT_INTERP)
            f->dynamic = true;
        if (p[i].p_type == PT_DYNAMIC)
            read_dynamic(fd, p, h.e_phnum, &p[i], f);
    }
}

int elf_read(const char *path, struct elf_facts *f)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    memset(f, 0, sizeof(*f));
    if (fd < 0)
        return -1;
    read_elf(fd, f);
    close(fd);
    return 0;
}
