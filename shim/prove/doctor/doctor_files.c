/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/doctor/doctor_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *doctor_path(char buf[DOCTOR_PATH], const char *root, const char *fmt, ...)
{
    int n = snprintf(buf, DOCTOR_PATH, "%s", root);
    va_list args;

    if (n < 0 || n >= DOCTOR_PATH)
        n = 0;
    va_start(args, fmt);
    vsnprintf(buf + n, DOCTOR_PATH - (size_t)n, fmt, args);
    va_end(args);
    return buf;
}

char *doctor_slurp(const char *path, size_t most, size_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;
    size_t n = 0, room = 0;
    char *buf = NULL, *more;
    ssize_t got = 1;

    if (fd < 0)
        return NULL;
    while (got > 0 && n < most) {
        if (n + 1 >= room) {
            room = room ? room * 2 : 4096;
            more = realloc(buf, room);
            if (!more)
                break;
            buf = more;
        }
        got = read(fd, buf + n, room - n - 1 < most - n ? room - n - 1 : most - n);
        if (got > 0)
            n += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    }
    err = errno;
    close(fd);
    if (!buf || (got < 0 && n == 0)) {
        free(buf);
        errno = err;
        return NULL;
    }
    buf[n] = '\0';
    if (bytes)
        *bytes = n;
    return buf;
}

bool doctor_line_of(const char *path, char *buf, size_t size)
{
    char *text = doctor_slurp(path, size - 1, NULL);

    buf[0] = '\0';
    if (!text)
        return false;
    text[strcspn(text, "\n")] = '\0';
    snprintf(buf, size, "%s", text);
    free(text);
    return true;
}

const char *doctor_getenv(const struct doctor_env *env, const char *name)
{
    size_t length = strlen(name);

    if (!env->block)
        return getenv(name);
    for (const char *s = env->block; s < env->block + env->size; s += strlen(s) + 1)
        if (!strncmp(s, name, length) && s[length] == '=')
            return s + length + 1;
    return NULL;
}

const char *doctor_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool doctor_list_has(const char *list, const char *separators, const char *want)
{
    size_t length = strlen(want);

    while (list && *list) {
        size_t n = strcspn(list, separators);
        if (n >= length && !memcmp(list + n - length, want, length) &&
            (n == length || list[n - length - 1] == '/'))
            return true;
        list += n + (list[n] != '\0');
    }
    return false;
}

bool doctor_has_entries(const char *root, const char *path)
{
    char full[DOCTOR_PATH];
    DIR *d = opendir(doctor_path(full, root, "%s", path));
    struct dirent *e = NULL;

    while (d && (e = readdir(d)) && e->d_name[0] == '.')
        ;
    if (d)
        closedir(d);
    return e != NULL;
}
