/* SPDX-License-Identifier: Apache-2.0 */
/* Where profiles lie, and which one a name means. */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/grow.h"
#include "shim/base/names.h"
#include "shim/profile/profile.h"
#include "shim/profile/reader.h"

struct folders {
    char **list; /* NULL-terminated, also when one more could not be added */
    size_t count; /* without the NULL */
};

static int add_folder(struct folders *f, const char *dir, size_t n, const char *rest)
{
    char **list = realloc(f->list, (f->count + 2) * sizeof(*list));

    if (!list)
        return -1;
    f->list = list;
    list[f->count] = list[f->count + 1] = NULL;
    if (asprintf(&list[f->count], "%.*s%s", (int)n, dir, rest) < 0) {
        list[f->count] = NULL;
        return -1;
    }
    f->count++;
    return 0;
}

static int add_list(struct folders *f, const char *list)
{
    while (list && *list) {
        size_t n = strcspn(list, ":");
        if (n && add_folder(f, list, n, ""))
            return -1;
        list += n + (list[n] == ':');
    }
    return 0;
}

static int add_config(struct folders *f)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && *config)
        return add_folder(f, config, strlen(config), "/ncclshim/profiles");
    if (home && *home)
        return add_folder(f, home, strlen(home), "/.config/ncclshim/profiles");
    return 0;
}

static int in_main_program(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        ElfW(Addr) from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && *(ElfW(Addr) *)user >= from &&
            *(ElfW(Addr) *)user < from + info->dlpi_phdr[i].p_memsz)
            return 1;
    }
    return 2; /* the main program is the first; ask for no other */
}

/* Real path of the file this code lies in: the command, or the shared object. 0 or -1. */
static int own_path(char *buf)
{
    Dl_info info;
    ElfW(Addr) here = (ElfW(Addr)) & own_path;
    ssize_t n;

    if (dl_iterate_phdr(in_main_program, &here) == 1) {
        n = readlink("/proc/self/exe", buf, PATH_MAX - 1);
        if (n > 0) {
            buf[n] = '\0';
            return 0;
        }
    }
    if (!dladdr((void *)here, &info) || !info.dli_fname)
        return -1;
    return realpath(info.dli_fname, buf) ? 0 : -1;
}

/* Length of PREFIX in PREFIX/bin/..., PREFIX/lib/...; 0 when there is no such folder. */
static size_t prefix_length(const char *path)
{
    static const char *const folders[] = {"/bin/", "/lib/", "/lib64/"};
    size_t length = 0;

    for (int i = 0; i < 3; i++)
        for (const char *c = path; (c = strstr(c, folders[i])); c++)
            if ((size_t)(c - path) > length)
                length = (size_t)(c - path);
    return length;
}

/*
 * PREFIX/bin/ncclshim, PREFIX/lib/.../libncclshim.so -> PREFIX/share; all in one folder -> its
 * profiles/; SRC/build/... -> SRC/profiles.
 */
static int add_own(struct folders *f)
{
    char path[PATH_MAX], *slash;
    size_t prefix;

    if (own_path(path))
        return 0;
    prefix = prefix_length(path);
    if (prefix && add_folder(f, path, prefix, "/share/ncclshim/profiles"))
        return -1;
    for (int up = 0; up < 2; up++) {
        slash = strrchr(path, '/');
        if (!slash)
            return 0;
        *slash = '\0';
        if (add_folder(f, path, strlen(path), "/profiles"))
            return -1;
    }
    return 0;
}

char **profile_path(void)
{
    struct folders f = {NULL, 0};

    if (add_list(&f, getenv("NCCLSHIM_PROFILE_PATH")) || add_config(&f) ||
        add_list(&f, "/etc/ncclshim/profiles") || add_own(&f)) {
        profile_path_free(f.list);
        return NULL;
    }
    return f.list;
}

void profile_path_free(char **dirs)
{
    for (char **d = dirs; d && *d; d++)
        free(*d);
    free(dirs);
}

/* ---- all there are --------------------------------------------------------------------------- */

static int ini_file(const struct dirent *d)
{
    size_t n = strlen(d->d_name);

    return n > 4 && d->d_name[0] != '.' && !strcmp(d->d_name + n - 4, ".ini");
}

static bool named(const struct profile_entry *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i].name, name))
            return true;
    return false;
}

static int list_folder(const char *dir, struct profile_entry **list, size_t *count)
{
    struct dirent **found;
    int n = scandir(dir, &found, ini_file, alphasort), rc = 0;

    for (int i = 0; i < n; i++) {
        size_t len = strlen(found[i]->d_name) - 4;
        struct profile_entry *e = rc ? NULL : GROW(*list, *count);
        if (e) {
            e->name = strndup(found[i]->d_name, len);
            if (asprintf(&e->path, "%s/%s", dir, found[i]->d_name) < 0)
                e->path = NULL;
        }
        if (!e || !e->name || !e->path)
            rc = -1;
        else
            e->shadowed = named(*list, *count - 1, e->name);
        free(found[i]);
    }
    if (n >= 0)
        free(found);
    return rc;
}

int profile_list(struct profile_entry **out, size_t *count)
{
    char **dirs = profile_path();
    int rc = dirs ? 0 : -1;

    *out = NULL;
    *count = 0;
    for (char **d = dirs; !rc && d && *d; d++)
        rc = list_folder(*d, out, count);
    profile_path_free(dirs);
    if (rc) {
        profile_list_free(*out, *count);
        *out = NULL;
        *count = 0;
    }
    return rc;
}

void profile_list_free(struct profile_entry *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(list[i].name);
        free(list[i].path);
    }
    free(list);
}

/* ---- one by name ----------------------------------------------------------------------------- */

static int not_found(const char *name, char **dirs, struct error *e)
{
    struct profile_entry *list;
    size_t count, used = 0;
    char looked[512] = "";
    const char *near = NULL;

    for (char **d = dirs; *d && used < sizeof(looked); d++)
        used +=
            (size_t)snprintf(looked + used, sizeof(looked) - used, "%s%s", used ? ", " : "", *d);
    if (!profile_list(&list, &count)) {
        const char **names = calloc(count + 2, sizeof(*names));
        for (size_t i = 0; names && i < count; i++)
            names[i] = list[i].name;
        if (names) {
            names[count] = "none";
            near = nearest_name(name, names);
        }
        error_set(e, "", 0, "no profile is called '%s'%s%s%s; looked in %s", name,
                  near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", looked);
        free(names);
        profile_list_free(list, count);
    }
    return -1;
}

int profile_find(const char *name, char *buf, size_t size, struct error *e)
{
    char **dirs = profile_path();
    int rc = -1;

    if (!dirs)
        return error_set(e, "", 0, "out of memory");
    for (char **d = dirs; rc && *d; d++)
        if (snprintf(buf, size, "%s/%s.ini", *d, name) < (int)size && !access(buf, F_OK))
            rc = 0;
    if (rc)
        not_found(name, dirs, e);
    profile_path_free(dirs);
    return rc;
}
