/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/elf_symbol.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of this also runs while a sanitizer's own start-up looks functions up, before it is there. */
#define BEFORE_SANITIZERS __attribute__((no_sanitize("address", "undefined", "thread")))

struct tables {
    ElfW(Addr) base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash, *sysv_hash;
};

/* glibc makes addresses of these offsets where the section can be written to, and only there. */
BEFORE_SANITIZERS static const void *place(ElfW(Addr) base, ElfW(Addr) ptr)
{
    return (const void *)(ptr < base ? base + ptr : ptr);
}

BEFORE_SANITIZERS static bool read_tables(struct tables *t, ElfW(Addr) base,
                                          const ElfW(Dyn) * dynamic)
{
    *t = (struct tables){.base = base};
    for (const ElfW(Dyn) *d = dynamic; d && d->d_tag != DT_NULL; d++) {
        const void *p = place(base, d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            t->symbols = p;
        else if (d->d_tag == DT_STRTAB)
            t->strings = p;
        else if (d->d_tag == DT_GNU_HASH)
            t->gnu_hash = p;
        else if (d->d_tag == DT_HASH)
            t->sysv_hash = p;
    }
    return t->symbols && t->strings;
}

/* Not strcmp: a sanitizer would answer for it. */
BEFORE_SANITIZERS static bool same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

BEFORE_SANITIZERS static void *matches(const struct tables *t, uint32_t i, const char *name)
{
    const ElfW(Sym) *s = &t->symbols[i];
    unsigned type = s->st_info & 0xf, bind = s->st_info >> 4;

    if (s->st_shndx == SHN_UNDEF || !s->st_value || (bind != STB_GLOBAL && bind != STB_WEAK) ||
        (type != STT_FUNC && type != STT_NOTYPE && type != STT_OBJECT) ||
        !same(t->strings + s->st_name, name))
        return NULL;
    return (void *)(t->base + s->st_value);
}

BEFORE_SANITIZERS static void *by_gnu_hash(const struct tables *t, const char *name)
{
    uint32_t buckets = t->gnu_hash[0], first = t->gnu_hash[1], bloom_words = t->gnu_hash[2];
    const uint32_t *bucket =
        t->gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    uint32_t hash = 5381, i;

    for (const char *p = name; *p; p++)
        hash = hash * 33 + (unsigned char)*p;
    i = buckets ? bucket[hash % buckets] : 0;
    for (; i >= first && i; i++) {
        uint32_t h = chain[i - first];
        void *p = (h | 1) == (hash | 1) ? matches(t, i, name) : NULL;
        if (p)
            return p;
        if (h & 1) /* the last of its chain */
            break;
    }
    return NULL;
}

BEFORE_SANITIZERS void *elf_symbol(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *name)
{
    struct tables t;

    if (!read_tables(&t, base, dynamic))
        return NULL;
    if (t.gnu_hash)
        return by_gnu_hash(&t, name);
    for (uint32_t i = 1; t.sysv_hash && i < t.sysv_hash[1]; i++) {
        void *p = matches(&t, i, name);
        if (p)
            return p;
    }
    return NULL;
}
