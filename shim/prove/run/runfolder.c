/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/runfolder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/parents.h"
#include "shim/base/paths.h"

uint64_t wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

uint64_t monotonic_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

/* Programs that only run another file: that one names the run. */
static bool is_interpreter(const char *program)
{
    return !strncmp(program, "python", 6) || !strcmp(program, "bash") || !strcmp(program, "sh") ||
           !strcmp(program, "env");
}

void runfolder_name_of(char *const *command, char *buf, size_t size)
{
    const char *name = base_name(command[0]);
    size_t n = 0;

    for (size_t i = 1; is_interpreter(base_name(command[0])) && command[i]; i++) {
        if (!strcmp(command[i], "-m") && command[i + 1]) {
            name = command[i + 1];
            break;
        }
        if (!strcmp(command[i], "-c"))
            break;
        if (command[i][0] != '-' && !strchr(command[i], '=')) {
            name = base_name(command[i]);
            break;
        }
    }
    for (; name[n] && name[n] != '.' && n < 32 && n + 1 < size; n++)
        buf[n] = strchr("/ \t\n:\\'\"`$&|;<>*?()", name[n]) || (unsigned char)name[n] < 32
                     ? '_'
                     : name[n];
    buf[n] = '\0';
    if (n == 0)
        snprintf(buf, size, "run");
}

static int open_folder(struct runfolder *r, struct error *e)
{
    r->fd = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->fd < 0)
        return error_set(e, r->path, 0, "can't open the run folder: %s", strerror(errno));
    if (faccessat(r->fd, ".", W_OK, 0) < 0) {
        close(r->fd);
        return error_set(e, r->path, 0, "can't write into the run folder: %s", strerror(errno));
    }
    return 0;
}

static bool is_empty(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *entry;
    bool empty = d != NULL;

    while (d && empty && (entry = readdir(d)))
        empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
    if (d)
        closedir(d);
    return empty;
}

static int set_path(struct runfolder *r, const char *path, struct error *e)
{
    int n = snprintf(r->path, sizeof(r->path), "%s", path);

    if (n < 1 || (size_t)n >= sizeof(r->path) - 300)
        return error_set(e, NULL, 0, "the name of the run folder is empty or too long");
    while (n > 1 && r->path[n - 1] == '/')
        r->path[--n] = '\0';
    return 0;
}

/* There or made. */
static int open_given(struct runfolder *r, const char *path, struct error *e)
{
    if (set_path(r, path, e) < 0)
        return -1;
    if (parents_make(r->path) < 0 || (mkdir(r->path, 0777) < 0 && errno != EEXIST))
        return error_set(e, r->path, 0, "can't make the run folder: %s", strerror(errno));
    return open_folder(r, e);
}

static int make_given(struct runfolder *r, const char *path, struct error *e)
{
    if (open_given(r, path, e) < 0)
        return -1;
    if (!is_empty(r->path)) {
        close(r->fd);
        return error_set(e, r->path, 0, "the run folder is not empty: name another one with -o");
    }
    return 0;
}

static int make_dated(struct runfolder *r, char *const *command, struct error *e)
{
    char name[64], stamp[32];
    time_t now = time(NULL);
    struct tm tm;

    if (mkdir(NCCLSHIM_RUNS_DIR, 0777) < 0 && errno != EEXIST)
        return error_set(e, NCCLSHIM_RUNS_DIR, 0,
                         "can't make the folder for runs: %s; name a run "
                         "folder with -o",
                         strerror(errno));
    localtime_r(&now, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%d-%H%M%S", &tm);
    runfolder_name_of(command, name, sizeof(name));
    for (int i = 1; i < 10000; i++) {
        int n = snprintf(r->path, sizeof(r->path), NCCLSHIM_RUNS_DIR "/%s-%s", stamp, name);
        if (i > 1)
            snprintf(r->path + n, sizeof(r->path) - (size_t)n, "-%d", i);
        if (mkdir(r->path, 0777) == 0)
            return open_folder(r, e);
        if (errno != EEXIST)
            break;
    }
    return error_set(e, r->path, 0, "can't make the run folder: %s; name one with -o",
                     strerror(errno));
}

int runfolder_make(struct runfolder *r, const char *path, char *const *command, struct error *e)
{
    return path ? make_given(r, path, e) : make_dated(r, command, e);
}

int runfolder_open(struct runfolder *r, const char *path, struct error *e)
{
    if (open_given(r, path, e) < 0)
        return -1;
    if (faccessat(r->fd, "run.json", F_OK, 0) == 0 || is_empty(r->path))
        return 0;
    close(r->fd);
    return error_set(e, r->path, 0,
                     "the folder is neither empty nor a run folder (it has no "
                     "run.json): name another one with -o");
}
