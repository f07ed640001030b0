/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/loglist.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/base/grow.h"
#include "shim/base/paths.h"

#define RUN_PREFIX "run-" /* of the private folders that `ncclshim run` makes */

int loglist_add(struct loglist *l, const char *folder, const char *name)
{
    char **path = GROW(l->paths, l->count);

    if (!path)
        return -1;
    if (asprintf(path, "%s/%s", folder, name) < 0) {
        l->count--;
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

static bool is_run_folder(const char *folder, const char *name)
{
    char path[4096 + 256];
    struct stat st;

    if (strncmp(name, RUN_PREFIX, strlen(RUN_PREFIX)))
        return false;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode); /* a link is not followed */
}

static int add_all(const char *folder, bool deep, struct loglist *l)
{
    DIR *d = opendir(folder);
    struct dirent *entry;
    int rc = 0;

    if (!d)
        return -1;
    while (rc == 0 && (entry = readdir(d))) {
        char below[4096 + 256];
        if (is_log_file_name(entry->d_name)) {
            rc = loglist_add(l, folder, entry->d_name);
        } else if (deep && is_run_folder(folder, entry->d_name)) {
            snprintf(below, sizeof(below), "%s/%s", folder, entry->d_name);
            add_all(below, false, l); /* one that goes away meanwhile is no loss */
        }
    }
    closedir(d);
    return rc;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void loglist_sort(struct loglist *l)
{
    if (l->count)
        qsort(l->paths, l->count, sizeof(*l->paths), by_path);
}

int loglist_read(const char *folder, bool deep, struct loglist *l)
{
    int rc;

    l->paths = NULL;
    l->count = 0;
    rc = add_all(folder, deep, l);
    loglist_sort(l);
    return rc;
}

bool loglist_has(const struct loglist *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(strrchr(l->paths[i], '/') + 1, name))
            return true;
    return false;
}

void loglist_free(struct loglist *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->paths[i]);
    free(l->paths);
    l->paths = NULL;
    l->count = 0;
}
