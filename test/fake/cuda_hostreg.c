/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May this range of the process be registered? The kernel pins pages for the driver; it does so for
 * anonymous memory and tmpfs, and refuses shared mappings of files on a disk file system.
 */
#include "test/fake/cuda_sim.h"

#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#ifndef HUGETLBFS_MAGIC
#define HUGETLBFS_MAGIC 0x958458f6
#endif

struct mapping {
    uint64_t start, end;
    char rights[5];
    char path[4096];
};

static bool parse(char *line, struct mapping *mapping)
{
    unsigned long long start, end;
    int at = 0;
    if (sscanf(line, "%llx-%llx %4s %*x %*x:%*x %*u %n", &start, &end, mapping->rights, &at) < 3) {
        return false;
    }
    mapping->start = start;
    mapping->end = end;
    line[strcspn(line, "\n")] = '\0';
    snprintf(mapping->path, sizeof mapping->path, "%s", line + at);
    return true;
}

/* Is the file of a shared mapping in memory? Of a deleted file, its folder has to tell. */
static bool is_in_memory(const struct mapping *mapping)
{
    char path[4096];
    struct statfs fs;
    snprintf(path, sizeof path, "%s", mapping->path);
    char *deleted = strstr(path, " (deleted)");
    if (path[0] != '/' || strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "/SYSV", 5) == 0 ||
        strncmp(path, "/dev/zero", 9) == 0) {
        return true;
    }
    if (deleted != NULL) {
        *deleted = '\0';
        char *slash = strrchr(path, '/');
        slash[slash == path] = '\0';
    }
    if (statfs(path, &fs) != 0) {
        return false;
    }
    return fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC;
}

CUresult hostreg_check(uint64_t base, uint64_t end, bool read_only)
{
    static __thread char line[8192];
    struct mapping mapping;
    uint64_t reached = base & ~UINT64_C(4095);
    CUresult result = CUDA_SUCCESS;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    while (reached < end && result == CUDA_SUCCESS && fgets(line, sizeof line, maps) != NULL) {
        if (!parse(line, &mapping) || mapping.end <= reached) {
            continue;
        }
        bool shared = mapping.rights[3] == 's';
        if (mapping.start > reached || mapping.rights[0] != 'r' ||
            (mapping.rights[1] != 'w' && !read_only) ||
            (shared && !read_only && !is_in_memory(&mapping))) {
            result = CUDA_ERROR_INVALID_VALUE;
        }
        reached = mapping.end;
    }
    fclose(maps);
    return reached < end ? CUDA_ERROR_INVALID_VALUE : result;
}
