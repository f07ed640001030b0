/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's own configuration files (initEnvFunc, misc/param.cc, 2.23 to 2.30.7): the file that
 * NCCL_CONF_FILE names, or else .nccl.conf in the home directory (2.28: that of the passwd entry,
 * 2.30: $HOME), then /etc/nccl.conf. Each line NAME=VALUE is set where the environment has no such
 * name yet, so what the shell or a profile says goes before, without a word. No blanks are removed:
 * "NCCL_ALGO = Ring" sets a variable whose name ends in a blank, which nobody reads.
 */
#ifndef NCCLSHIM_PROFILE_CONF_H
#define NCCLSHIM_PROFILE_CONF_H

#include <stdbool.h>
#include <stddef.h>

struct conf_line {
    char *name;  /* as it stands in front of '=', blanks and all */
    char *value; /* what follows, up to the end of the line */
    int line;
};

struct conf_file {
    char *path;
    struct conf_line *lines;
    size_t count;
};

struct conf_files {
    struct conf_file files[2];
    size_t count; /* of those that are there */
};

/*
 * Read the files that NCCL would read. `conf_file` is the value of NCCL_CONF_FILE (NULL or "" =
 * unset), `home` the home directory (NULL = none), `system` the path of the system's file. Files
 * that are missing are left out. 0, or -1 when memory is out.
 */
int conf_read(const char *conf_file, const char *home, const char *system, struct conf_files *out);
void conf_free(struct conf_files *c);

#define CONF_SYSTEM "/etc/nccl.conf"

#endif
