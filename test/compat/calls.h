/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client does with NCCL, apart from how it found NCCL's functions: each way in (linked, looked
 * up on a handle, in the global scope, behind another library, by ctypes) fills one table and hands
 * it over. Only functions that every version since 2.8 has.
 *
 * Results go to stdout, one "key value" line each; a fault ends the program with exit code 1 and a
 * line on stderr.
 */
#ifndef NCCLSHIM_TEST_COMPAT_CALLS_H
#define NCCLSHIM_TEST_COMPAT_CALLS_H

#include <nccl.h>
#include <stdbool.h>

#define CALLS(X)       \
    X(GetVersion)      \
    X(GetUniqueId)     \
    X(GetErrorString)  \
    X(GroupStart)      \
    X(GroupEnd)        \
    X(CommInitRank)    \
    X(CommCount)       \
    X(CommUserRank)    \
    X(AllReduce)       \
    X(CommDestroy)

struct calls {
#define X(name) __typeof__(nccl##name) *name;
    CALLS(X)
#undef X
};

/* The functions as the user of this macro is bound to them at link time. */
#define CALLS_LINKED_ONE(name) .name = nccl##name,
#define CALLS_LINKED {CALLS(CALLS_LINKED_ONE)}

/* Fill by a look-up of each name; a name that is not found ends the program. */
void calls_find(struct calls *c, void *(*find)(const char *name));

/*
 * Prints "shim N" (how many of the functions lie in libncclshim.so) and "elsewhere NAME FILE" for each
 * of the others.
 */
void calls_where(const struct calls *c);

/* Prints "found NAME" for each of these names (separated by commas) that the look-up finds. */
void calls_absent(const char *names, void *(*find)(const char *name));

/* "version N", "id good", "group good", "error TEXT": as far as NCCL goes without a GPU. */
void calls_without_gpu(const struct calls *c);

/*
 * Two ranks, a thread and a GPU each: a communicator from each of the `copies` tables, `rounds`
 * all-reduces on each, eager ones and ones in groups that are open in all copies at once, in turn.
 * Sums are checked. Prints "sums good".
 */
void calls_with_gpus(const struct calls *const *c, int copies, int rounds);

/* The usual client: where, then without GPUs, then with (COMPAT_ROUNDS in the environment > 0). */
void calls_main(const struct calls *const *c, int copies);

#endif
