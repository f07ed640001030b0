/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/base/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/ncclshim/log.h"

int log_dir_default(char *buf, size_t size)
{
    const char *given = getenv("NCCLSHIM_LOG_DIR");
    int n;

    if (given && given[0])
        n = snprintf(buf, size, "%s", given);
    else
        n = snprintf(buf, size, "/dev/shm/ncclshim-%u", (unsigned)geteuid());
    return n < 0 || (size_t)n >= size ? -1 : 0;
}

static int open_error(const char *path, int err, struct error *e)
{
    if (err == ELOOP || err == ENOTDIR)
        return error_set(e, path, 0,
                         "not a folder (a symbolic link is not followed): remove it, "
                         "or name another one in NCCLSHIM_LOG_DIR");
    return error_set(e, path, 0, "can't open the log folder: %s", strerror(err));
}

static int check_private(int fd, const char *path, bool create, struct error *e)
{
    bool in_shm = !strncmp(path, "/dev/shm/", 9);
    struct stat st;

    if (fstat(fd, &st) < 0)
        return open_error(path, errno, e);
    if (in_shm && st.st_uid != geteuid() && (create || geteuid() != 0))
        return error_set(e, path, 0,
                         "the log folder belongs to user %u, not to you: name another "
                         "one in NCCLSHIM_LOG_DIR",
                         (unsigned)st.st_uid);
    if (in_shm ? (st.st_mode & 022) != 0 : (st.st_mode & 022) && !(st.st_mode & S_ISVTX))
        return error_set(e, path, 0, "others can write to the log folder (mode %04o): chmod 700 it",
                         (unsigned)(st.st_mode & 07777));
    return 0;
}

int log_dir_open(const char *path, bool create, struct error *e)
{
    char plain[4096];
    size_t n = strlen(path);
    int fd;

    /* With a slash behind it, O_NOFOLLOW would follow a link. */
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n >= sizeof(plain))
        return error_set(e, NULL, 0, "the name of the log folder is too long");
    memcpy(plain, path, n);
    plain[n] = '\0';
    if (create && mkdir(plain, 0700) < 0 && errno != EEXIST)
        return error_set(e, path, 0, "can't make the log folder: %s", strerror(errno));
    fd = open(plain, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return open_error(path, errno, e);
    if (check_private(fd, path, create, e) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool plain_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

int log_file_name(char *buf, size_t size, const char *host, uint32_t pid, uint64_t start_ticks,
                  unsigned attempt)
{
    char safe[64];
    size_t i;
    int n;

    for (i = 0; i + 1 < sizeof(safe) && host[i]; i++)
        safe[i] = plain_letter(host[i]) ? host[i] : '_';
    safe[i] = '\0';
    if (i == 0 || safe[0] == '.') /* a leading dot would hide the file */
        safe[0] = '_';
    if (i == 0)
        safe[1] = '\0';
    if (attempt == 0)
        n = snprintf(buf, size, "%s-%u-%llu" NCCLSHIM_LOG_SUFFIX, safe, pid,
                     (unsigned long long)start_ticks);
    else
        n = snprintf(buf, size, "%s-%u-%llu-%u" NCCLSHIM_LOG_SUFFIX, safe, pid,
                     (unsigned long long)start_ticks, attempt);
    return n < 0 || (size_t)n >= size ? -1 : 0;
}

bool is_log_file_name(const char *name)
{
    size_t n = strlen(name), suffix = sizeof(NCCLSHIM_LOG_SUFFIX) - 1;

    return n > suffix && !strchr(name, '/') && !strcmp(name + n - suffix, NCCLSHIM_LOG_SUFFIX);
}
