/* SPDX-License-Identifier: Apache-2.0 */
/* Which run is meant. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/base/paths.h"
#include "shim/stats/loglist.h"
#include "shim/stats/run.h"

static bool holds_logs(const char *folder, bool deep)
{
    struct loglist l;
    bool found;

    loglist_read(folder, deep, &l);
    found = l.count != 0;
    loglist_free(&l);
    return found;
}

static bool has_run_json(const char *folder)
{
    char path[4096 + 256];
    struct stat st;

    snprintf(path, sizeof(path), "%s/run.json", folder);
    return stat(path, &st) == 0;
}

/* Folder names begin with date and time, but -o gives any name: so go by the time of change. */
static char *newest_run(void)
{
    DIR *d = opendir(NCCLSHIM_RUNS_DIR);
    struct dirent *entry;
    struct timespec best = {0, 0};
    char *found = NULL, path[4096];
    struct stat st;

    if (!d)
        return NULL;
    while ((entry = readdir(d))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), NCCLSHIM_RUNS_DIR "/%s", entry->d_name);
        if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
            continue;
        if (!has_run_json(path) && !holds_logs(path, false))
            continue;
        if (found && (st.st_mtim.tv_sec < best.tv_sec ||
                      (st.st_mtim.tv_sec == best.tv_sec && st.st_mtim.tv_nsec <= best.tv_nsec)))
            continue;
        best = st.st_mtim;
        free(found);
        found = strdup(path);
    }
    closedir(d);
    return found;
}

static int find_given(const char *given, char **path, struct error *e)
{
    char below[4096];
    struct stat st;

    if (stat(given, &st) == 0) {
        *path = strdup(given);
        return *path ? 0 : error_set(e, given, 0, "out of memory");
    }
    snprintf(below, sizeof(below), NCCLSHIM_RUNS_DIR "/%s", given);
    if (!strchr(given, '/') && stat(below, &st) == 0) {
        *path = strdup(below);
        return *path ? 0 : error_set(e, given, 0, "out of memory");
    }
    return error_set(e, given, 0,
                     "no such run: give a run folder, a folder of logs, or a log file (%s)",
                     strerror(errno));
}

static int find_run(const char *given, char **path, bool *live, struct error *e)
{
    char folder[4096];

    *live = false;
    *path = NULL;
    if (given)
        return find_given(given, path, e);
    if ((*path = newest_run()))
        return 0;
    if (log_dir_default(folder, sizeof(folder)) == 0 && holds_logs(folder, true)) {
        *live = true;
        *path = strdup(folder);
        return *path ? 0 : error_set(e, folder, 0, "out of memory");
    }
    return error_set(e, "", 0,
                     "no run found: neither below ./" NCCLSHIM_RUNS_DIR " nor live logs in %s; "
                     "start a server with `ncclshim run -- COMMAND`, or name a run",
                     folder);
}

int run_open_given(const char *given, const struct run_filter *filter, struct run **out,
                   struct error *e)
{
    char *path;
    bool live;
    int rc = find_run(given, &path, &live, e);

    if (rc == 0)
        rc = run_open(path, live, filter, out, e);
    free(path);
    return rc;
}
