/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int begin(struct replacement *r, int dirfd, const char *name, int length, mode_t mode)
{
    if (length >= (int)sizeof(r->temporary)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    r->dirfd = dirfd;
    r->name = name;
    unlinkat(dirfd, r->temporary, 0);
    r->fd = openat(dirfd, r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    return r->fd < 0 ? -1 : 0;
}

int replace_begin(struct replacement *r, int dirfd, const char *name)
{
    int n = snprintf(r->temporary, sizeof(r->temporary), ".%s.new", name);

    return begin(r, dirfd, name, n, 0644);
}

int replace_begin_path(struct replacement *r, const char *path, mode_t mode)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    int n = snprintf(r->temporary, sizeof(r->temporary), "%.*s.%s.%d.new", folder, path,
                     path + folder, (int)getpid());

    return begin(r, AT_FDCWD, path, n, mode);
}

int replace_end(struct replacement *r, bool good)
{
    int why = errno;

    if (close(r->fd) < 0 && good) {
        why = errno;
        good = false;
    }
    if (good) {
        if (renameat(r->dirfd, r->temporary, r->dirfd, r->name) == 0)
            return 0;
        why = errno;
    }
    unlinkat(r->dirfd, r->temporary, 0);
    errno = why;
    return -1;
}

int write_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;

    while (n) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}
