/* SPDX-License-Identifier: Apache-2.0 */
/* The little that must be known of a program or library before it is started or preloaded. */
#ifndef NCCLSHIM_PROVE_ELF_FACTS_H
#define NCCLSHIM_PROVE_ELF_FACTS_H

#include <stdbool.h>
#include <stddef.h>

struct elf_facts {
    bool elf;      /* it is an ELF file at all (a script is none) */
    bool ours;     /* 64 bits, and for this processor */
    bool shared;   /* ET_DYN: a library, or a position-independent program */
    bool dynamic;  /* has a dynamic section: the loader will see LD_PRELOAD */
    char asan[64]; /* the AddressSanitizer runtime it asks for; "" = none */
};

/* 0, or -1 when the file can't be opened (errno). */
int elf_read(const char *path, struct elf_facts *f);

#endif
