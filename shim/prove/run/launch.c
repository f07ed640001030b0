/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/paths.h"
#include "shim/prove/run/elf_facts.h"
#include "shim/prove/run/signals.h"

#ifndef NCCLSHIM_LIBDIR
#define NCCLSHIM_LIBDIR "/usr/local/lib"
#endif
#define SHIM_NAME "libncclshim.so"

/* ---- the program ----------------------------------------------------------------------------- */

static bool can_run(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As execvp looks for it. */
static int find_program(struct launch *l, struct error *e)
{
    const char *name = l->command[0], *path = getenv("PATH"), *end;
    size_t size = sizeof(l->program);

    if (strchr(name, '/')) {
        snprintf(l->program, size, "%s", name);
        if (can_run(name))
            return 0;
        return error_set(e, name, 0, "the command can't be run: %s",
                         access(name, F_OK) < 0 ? "no such file" : "it is not an executable file");
    }
    for (path = path ? path : "/bin:/usr/bin"; *path || path[-1] == ':'; path = end + 1) {
        end = strchrnul(path, ':');
        snprintf(l->program, size, "%.*s%s%s", (int)(end - path), path, end > path ? "/" : "",
                 name);
        if (can_run(l->program))
            return 0;
        if (!*end)
            break;
    }
    return error_set(e, name, 0, "there is no such command in PATH");
}

/* ---- the shared object ----------------------------------------------------------------------- */

static int check_shim(const char *path, struct error *e)
{
    struct elf_facts f;

    if (elf_read(path, &f) < 0)
        return error_set(e, path, 0, "can't read the shared object: %s", strerror(errno));
    if (!f.elf || !f.ours || !f.shared)
        return error_set(e, path, 0, "not a 64-bit shared object for this processor");
    if (strpbrk(path, " \t\n:"))
        return error_set(e, path, 0,
                         "the loader splits LD_PRELOAD at blanks and colons, and this "
                         "path has one: move the installation to a path without");
    return 0;
}

/* Beside the command; as installed beside it; where it was installed. */
static int find_shim(struct launch *l, struct error *e)
{
    static const char *const beside[] = {SHIM_NAME, "../lib/ncclshim/" SHIM_NAME,
                                         "../lib/" SHIM_NAME};
    char self[LAUNCH_PATH_MAX], path[LAUNCH_PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[n > 0 ? n : 0] = '\0';
    if ((slash = strrchr(self, '/')))
        slash[1] = '\0';
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", self, beside[i]);
        if (realpath(path, l->shim))
            return check_shim(l->shim, e);
    }
    if (realpath(NCCLSHIM_LIBDIR "/ncclshim/" SHIM_NAME, l->shim))
        return check_shim(l->shim, e);
    return error_set(e, self, 0,
                     SHIM_NAME " is not in this folder, nor in ../lib/ncclshim or " NCCLSHIM_LIBDIR
                               "/ncclshim: build or install it");
}

/* ---- LD_PRELOAD ------------------------------------------------------------------------------ */

static bool is_sanitizer(const char *entry)
{
    const char *slash = strrchr(entry, '/'), *name = slash ? slash + 1 : entry;

    return !strncmp(name, "libasan.so", 10) || !strncmp(name, "libclang_rt.asan", 16);
}

static bool is_shim(const char *entry)
{
    const char *slash = strrchr(entry, '/');

    return !strcmp(slash ? slash + 1 : entry, SHIM_NAME);
}

char *preload_with(const char *list, const char *shim)
{
    static bool (*const kinds[])(const char *) = {is_sanitizer, is_shim};
    size_t size = (list ? strlen(list) : 0) + strlen(shim) + 3;
    char *result = calloc(1, size), *copy, *save = NULL;

    /* Three passes over the list: sanitizers, the shim itself, the others. */
    for (int pass = 0; result && pass < 3; pass++) {
        if (pass == 1) {
            strcat(strcat(result, result[0] ? ":" : ""), shim);
            continue;
        }
        copy = strdup(list ? list : "");
        for (char *p = copy ? strtok_r(copy, " :", &save) : NULL; p;
             p = strtok_r(NULL, " :", &save))
            if (pass == 0 ? kinds[0](p) : !kinds[0](p) && !kinds[1](p))
                strcat(strcat(result, result[0] ? ":" : ""), p);
        free(copy);
    }
    return result;
}

/* A program that links the sanitizer's runtime ends at once unless that comes before the shim. */
static int check_sanitizer(const struct launch *l, struct error *e)
{
    struct elf_facts f;

    /* One that is in the list stands first, before the shim. */
    if (elf_read(l->program, &f) < 0 || !f.asan[0] || strncmp(l->preload, l->shim, strlen(l->shim)))
        return 0;
    return error_set(e, l->program, 0,
                     "it is built with AddressSanitizer, whose runtime must be "
                     "loaded first: put the path of %s into LD_PRELOAD "
                     "(gcc -print-file-name=libasan.so tells it)",
                     f.asan);
}

/* ---- all together ---------------------------------------------------------------------------- */

int launch_prepare(struct launch *l, char *const *command, struct error *e)
{
    memset(l, 0, sizeof(*l));
    l->command = command;
    if (find_program(l, e) < 0 || find_shim(l, e) < 0)
        return -1;
    l->preload = preload_with(getenv("LD_PRELOAD"), l->shim);
    if (!l->preload)
        return error_set(e, NULL, 0, "out of memory");
    if (check_sanitizer(l, e) < 0) {
        launch_free(l);
        return -1;
    }
    return 0;
}

void launch_free(struct launch *l)
{
    free(l->preload);
    l->preload = NULL;
}

int launch_environment(const struct launch *l, struct error *e)
{
    if (setenv("LD_PRELOAD", l->preload, 1) < 0 || setenv("NCCLSHIM_PROFILE", l->profile, 1) < 0 ||
        setenv("NCCLSHIM_LOG_DIR", l->log_dir, 1) < 0 ||
        (l->strict && setenv("NCCLSHIM_STRICT", "1", 1) < 0))
        return error_set(e, NULL, 0, "out of memory");
    return 0;
}

int launch_exec(const struct launch *l, struct error *e)
{
    if (launch_environment(l, e) < 0)
        return -1;
    execvp(l->command[0], l->command);
    return error_set(e, l->command[0], 0, "the command can't be run: %s", strerror(errno));
}

/*
 * In the child: say through the pipe what went wrong; the pipe closes by itself when all is well.
 */
static void become_command(const struct launch *l, const struct signal_state *before, int report)
{
    struct error e;

    signals_restore(before);
    launch_exec(l, &e);
    if (write(report, &e, sizeof(e)) < 0)
        _exit(126);
    _exit(127);
}

pid_t launch_child(const struct launch *l, const struct signal_state *before, struct error *e)
{
    int report[2];
    pid_t pid;
    ssize_t n;

    if (pipe2(report, O_CLOEXEC) < 0)
        return error_set(e, NULL, 0, "can't start the command: %s", strerror(errno));
    pid = fork();
    if (pid == 0)
        become_command(l, before, report[1]);
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        return error_set(e, NULL, 0, "can't start the command: %s", strerror(errno));
    }
    do
        n = read(report[0], e, sizeof(*e));
    while (n < 0 && errno == EINTR);
    close(report[0]);
    return n == (ssize_t)sizeof(*e) ? -1 : pid;
}

/* ---- the folder for the logs ----------------------------------------------------------------- */

int private_log_dir(const char *base, char *buf, size_t size, struct error *e)
{
    int base_fd = log_dir_open(base, true, e), fd;
    unsigned number;
    char name[32];

    if (base_fd < 0)
        return -1;
    for (int i = 0; i < 100; i++) {
        if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
            number = (unsigned)getpid() * 100u + (unsigned)i;
        snprintf(name, sizeof(name), "run-%08x", number);
        if (mkdirat(base_fd, name, 0700) == 0)
            break;
        if (errno != EEXIST) {
            close(base_fd);
            return error_set(e, base, 0,
                             "can't make a folder for the logs: %s; name another place "
                             "with --log-dir",
                             strerror(errno));
        }
    }
    fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close(base_fd);
    /* The server may change its folder before its workers write: they need the full path. */
    if (fd < 0 || !realpath(base, buf) || strlen(buf) + strlen(name) + 2 > size) {
        if (fd >= 0)
            close(fd);
        return error_set(e, base, 0, "can't open the folder for the logs, or its name is too long");
    }
    snprintf(buf + strlen(buf), size - strlen(buf), "/%s", name);
    return fd;
}
