/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's libraries: which there are on the machine, and what their own strings say they are. */
#ifndef NCCLSHIM_PROVE_DOCTOR_NCCL_H
#define NCCLSHIM_PROVE_DOCTOR_NCCL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/prove/doctor/doctor_files.h"
#include "shim/prove/doctor/doctor_list.h"
#include "shim/profile/version.h"

/*
 * The version that stands as text in a file that holds NCCL ("NCCL version 2.28.9+cuda13.0"): its
 * read-only data first, else all of it; never loaded. "2.28.9" in buf, or false and "".
 */
bool doctor_nccl_version(const char *path, char buf[VERSION_TEXT_MAX]);

struct doctor_library {
    char *path;      /* without the root */
    const char *how; /* static: how it would be found */
    dev_t dev;
    ino_t ino;
    char version[VERSION_TEXT_MAX]; /* "" = its strings do not tell */
};

struct doctor_libraries {
    struct doctor_library *list;
    size_t count;
};

/*
 * Where a library could come from: LD_LIBRARY_PATH, the loader's cache, Python's site-packages,
 * CUDA's folders, variables that name one. Each file once, whatever its names. `env` of the server
 * or ours.
 */
void doctor_nccl_find(struct doctor_libraries *all, const char *root, const struct doctor_env *env);
void doctor_libraries_free(struct doctor_libraries *all);
void doctor_nccl_judge(struct doctor_list *l, const struct doctor_libraries *all);

/*
 * Call `found` with the path of every entry of ROOT/etc/ld.so.cache with that name (for 64-bit
 * programs of any processor).
 */
void doctor_ldcache(const char *root, const char *name, void (*found)(void *user, const char *path),
                    void *user);

/* Plugins of NCCL: variables that name one, and files that NCCL would load by itself. */
void doctor_plugins_judge(struct doctor_list *l, const char *root, const struct doctor_env *env);
/* NCCL's own configuration files. */
void doctor_conf_judge(struct doctor_list *l, const char *root, const struct doctor_env *env);

/* Is this the name of an NCCL library (libnccl.so.2, libnccl-pr2127.so.2.30.3), and of no plugin?
 */
bool doctor_is_nccl_name(const char *base);

#endif
