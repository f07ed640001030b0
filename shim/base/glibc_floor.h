/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler reads this before every file of the shared object (-include), so that an object built
 * on a new system still loads in a container with an old glibc: 2.17, the first one on AArch64.
 *
 *  - dlopen and its kin moved from libdl.so.2 into libc.so.6 with 2.34, under new versions. The old
 *    versions are in both, so those are asked for. libdl.so.2 is not named as needed: with 2.34 and later it
 *    is empty, and loading it would cost every process under the shim a dozen system calls. Before, it is
 *    there in every process that can have an NCCL; in others these functions are NULL (weak).
 *  - stat and fstat are functions since 2.33. Before, the header made them calls of __xstat and
 *    __fxstat, which are there still.
 *  - With _GNU_SOURCE, headers of 2.38 and later make strtol a function that also reads 0b101 and
 *    exists there only. The variable's name was changed in 2.41.
 *
 * A test asks the built object (test/e2e/test_hardening.py).
 */
#ifndef NCCLSHIM_BASE_GLIBC_FLOOR_H
#define NCCLSHIM_BASE_GLIBC_FLOOR_H

#include <features.h>
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* A sanitizer has functions of these names, without versions: the linker can't bring both together. */
#ifdef NCCLSHIM_SANITIZED
#define HAS_DLOPEN true
#else

#if defined(__x86_64__)
#define GLIBC_FIRST "GLIBC_2.2.5"
#define GLIBC_FIRST_DLADDR1 "GLIBC_2.3.3"
#define GLIBC_STAT_VERSION 1 /* how struct stat is laid out: as the kernel does it */
#elif defined(__aarch64__)
#define GLIBC_FIRST "GLIBC_2.17"
#define GLIBC_FIRST_DLADDR1 GLIBC_FIRST
#define GLIBC_STAT_VERSION 0
#endif

/* Of a function that a file does not use, nothing comes into its object. */
#define FIRST_OF(name, version) __asm__(".symver " #name ", " #name "@" version)
FIRST_OF(__xstat, GLIBC_FIRST);
FIRST_OF(__fxstat, GLIBC_FIRST);

#if __GLIBC_PREREQ(2, 34)
FIRST_OF(dlopen, GLIBC_FIRST);
FIRST_OF(dlclose, GLIBC_FIRST);
FIRST_OF(dladdr, GLIBC_FIRST);
FIRST_OF(dladdr1, GLIBC_FIRST_DLADDR1);
FIRST_OF(dlvsym, GLIBC_FIRST);
#pragma weak dlopen
#pragma weak dlclose
#pragma weak dladdr
#pragma weak dladdr1
#pragma weak dlvsym
#define HAS_DLOPEN (dlopen != NULL)
#else
#define HAS_DLOPEN true /* on an old glibc libdl.so.2 is needed by name */
#endif

int __xstat(int version, const char *path, struct stat *st);
int __fxstat(int version, int fd, struct stat *st);
#define stat(path, st) __xstat(GLIBC_STAT_VERSION, path, st)
#define fstat(fd, st) __fxstat(GLIBC_STAT_VERSION, fd, st)

#endif
#endif
