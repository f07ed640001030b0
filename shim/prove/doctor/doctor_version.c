/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/prove/doctor/doctor_nccl.h"

#define MARK "NCCL version "
#define BLOCK (1u << 20)
#define SECTIONS_MAX 4096u /* more has no library of a linker */

static bool get(int fd, void *out, size_t bytes, uint64_t offset)
{
    return offset <= INT64_MAX && pread(fd, out, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool take_version(const char *at, const char *end, char buf[VERSION_TEXT_MAX])
{
    size_t n = 0;

    while (at + n < end && n + 1 < VERSION_TEXT_MAX && at[n] && strchr("0123456789.", at[n])) {
        buf[n] = at[n];
        n++;
    }
    buf[n] = '\0';
    /* Where the data ends in the middle of it, "2.28.9" would be read as 2.28. */
    if (at + n < end && version_parse(buf, NULL))
        return true;
    buf[0] = '\0';
    return false;
}

/* Blocks overlap, so that a text across a border is found. */
static bool scan(int fd, uint64_t offset, uint64_t bytes, char buf[VERSION_TEXT_MAX])
{
    char *block = malloc(BLOCK);
    const size_t overlap = sizeof(MARK) + VERSION_TEXT_MAX;
    bool found = false;

    while (block && !found && bytes > 0) {
        ssize_t n = pread(fd, block, bytes < BLOCK ? bytes : BLOCK, (off_t)offset);
        const char *at = block, *end = block + (n > 0 ? n : 0);
        if (n <= 0)
            break;
        while (!found && (at = memmem(at, (size_t)(end - at), MARK, sizeof(MARK) - 1))) {
            at += sizeof(MARK) - 1;
            found = take_version(at, end, buf);
        }
        if ((uint64_t)n >= bytes || (size_t)n <= overlap)
            break;
        offset += (uint64_t)n - overlap;
        bytes -= (uint64_t)n - overlap;
    }
    free(block);
    return found;
}

/* GPU code is most of such a file; the text stands in .rodata. */
static bool scan_rodata(int fd, uint64_t size, char buf[VERSION_TEXT_MAX])
{
    Elf64_Ehdr h;
    Elf64_Shdr names, s;
    char name[8];

    if (!get(fd, &h, sizeof(h), 0) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
        h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_shentsize != sizeof(s) ||
        h.e_shnum > SECTIONS_MAX || h.e_shstrndx >= h.e_shnum ||
        !get(fd, &names, sizeof(names), h.e_shoff + (uint64_t)h.e_shstrndx * sizeof(s)))
        return false;
    for (unsigned i = 0; i < h.e_shnum; i++) {
        if (!get(fd, &s, sizeof(s), h.e_shoff + i * sizeof(s)) || s.sh_type != SHT_PROGBITS ||
            !get(fd, name, sizeof(name), names.sh_offset + s.sh_name) ||
            memcmp(name, ".rodata", 8) != 0 || s.sh_offset > size || s.sh_size > size - s.sh_offset)
            continue;
        if (scan(fd, s.sh_offset, s.sh_size, buf))
            return true;
    }
    return false;
}

bool doctor_nccl_version(const char *path, char buf[VERSION_TEXT_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    bool found;

    buf[0] = '\0';
    found = size > 0 && (scan_rodata(fd, (uint64_t)size, buf) || scan(fd, 0, (uint64_t)size, buf));
    if (fd >= 0)
        close(fd);
    return found;
}
