/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader's cache, as glibc 2.2 to today writes it (elf/dl-cache.h): the "1.1" table, alone or
 * behind the old one. Offsets in it count from its own magic word.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/prove/doctor/doctor_nccl.h"

#define MAGIC "glibc-ld.so.cache1.1"
#define CACHE_MAX (64u << 20)
#define FLAG_ELF_LIBC6 0x0003
#define FLAG_TYPE 0x00ff
#define FLAG_REQUIRED 0xff00
#define FLAG_X8664 0x0300
#define FLAG_AARCH64 0x0a00

struct head {
    char magic[20];
    uint32_t count, string_bytes;
    uint32_t flags, extension, unused[3];
};

struct entry {
    int32_t flags;
    uint32_t key, value, os;
    uint64_t hwcap;
};

static const char *text_at(const char *table, size_t n, uint32_t offset)
{
    return offset < n && memchr(table + offset, '\0', n - offset) ? table + offset : "";
}

void doctor_ldcache(const char *root, const char *name, void (*found)(void *user, const char *path),
                    void *user)
{
    char path[DOCTOR_PATH];
    size_t n = 0;
    char *all = doctor_slurp(doctor_path(path, root, "/etc/ld.so.cache"), CACHE_MAX, &n);
    char *table = all ? memmem(all, n, MAGIC, sizeof(MAGIC) - 1) : NULL;
    struct head h;
    struct entry e;

    if (table)
        n -= (size_t)(table - all);
    if (table && n >= sizeof(h)) {
        memcpy(&h, table, sizeof(h));
        for (uint32_t i = 0; i < h.count && (n - sizeof(h)) / sizeof(e) > i; i++) {
            memcpy(&e, table + sizeof(h) + i * sizeof(e), sizeof(e));
            if ((e.flags & FLAG_TYPE) == FLAG_ELF_LIBC6 &&
                ((e.flags & FLAG_REQUIRED) == FLAG_X8664 ||
                 (e.flags & FLAG_REQUIRED) == FLAG_AARCH64) &&
                !strcmp(text_at(table, n, e.key), name))
                found(user, text_at(table, n, e.value));
        }
    }
    free(all);
}
