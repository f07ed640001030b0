/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a loaded object itself define a name? dlsym on its link_map can't tell: glibc gives a search
 * list to the objects that were passed to dlopen, not to those that came as their dependencies, and
 * crashes on the others. So the object's own tables are read. No lock, no loader call, any thread, as
 * long as the object stays mapped.
 */
#ifndef NCCLSHIM_PRELOAD_ELF_SYMBOL_H
#define NCCLSHIM_PRELOAD_ELF_SYMBOL_H

#include <link.h>

/* Address of the symbol, or NULL. Functions that are chosen at load time (ifunc) are not found. */
void *elf_symbol(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *name);

#endif
