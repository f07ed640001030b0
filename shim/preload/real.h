/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real NCCL, or the real ones: a process may hold several copies (PyTorch's and one that a
 * server opened by path), and a communicator belongs to the copy that made it. Each copy has a
 * number, its own function table and its own entry points (wrap.c), so that a look-up through a
 * handle leads back to the copy that was asked.
 *
 * Any thread; no locks of ours. A copy, once known, is kept from being unmapped: a program that
 * closes NCCL and opens it again gets the same one.
 */
#ifndef NCCLSHIM_PRELOAD_REAL_H
#define NCCLSHIM_PRELOAD_REAL_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "shim/preload/nccl_api.h"

#define LIB_MAX 4 /* copies of NCCL in one process; further ones are left alone */

struct nccl_lib {
    _Atomic(struct link_map *) map; /* also its dlopen handle */
    _Atomic int version;            /* 0 = not asked yet */
    _Atomic int noted;              /* it is in the log */
    _Atomic(void *) fn[FN_COUNT];
};

/*
 * The copy that a caller bound at link time reaches: an already loaded libnccl.so.2 (also one that
 * was opened RTLD_LOCAL), else an object that carries NCCL statically, else the file that
 * NCCLSHIM_NCCL names. NULL when there is none; said once on stderr.
 */
struct nccl_lib *lib_default(void);

/* The same as far as it is loaded, without a word when there is none. */
struct nccl_lib *lib_loaded(void);

/*
 * Is there any NCCL in the process? Asks nothing of the loader, which would go through its search path
 * and open the file that it finds there only to see that it is not loaded.
 */
bool libs_any_mapped(void);

/* The copy that holds an address, or NULL when it lies in none. */
struct nccl_lib *lib_of_address(const void *address);

/* The real function (pncclX, else ncclX); NULL when this copy has none. */
void *lib_fn(struct nccl_lib *lib, enum nccl_fn fn);

/* Version code (22809); 0 when it can't be learnt. Calls ncclGetVersion once. */
int lib_version(struct nccl_lib *lib);

int lib_number(const struct nccl_lib *lib);
struct nccl_lib *lib_by_number(int n);
/* A forked child has a log of its own, in which no copy is told of yet. */
void libs_forget_notes(void);

const char *lib_path(const struct nccl_lib *lib);

/* Number of a function by its whole name ("ncclAllReduce"), or -1; and back. */
int fn_number(const char *name);
const char *fn_name(enum nccl_fn fn);

/* The wrapper that stands for `fn` of this copy. */
void *lib_entry(const struct nccl_lib *lib, enum nccl_fn fn);

/* glibc's dlsym (or that of whoever interposes behind us). */
extern void *(*ncclshim_real_dlsym)(void *handle, const char *name);
void *real_dlsym(void *handle, const char *name);

#endif
