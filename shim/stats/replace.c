/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int replace_begin(struct replacement *r, int dirfd, const char *name)
{
    int n = snprintf(r->temporary, sizeof(r->temporary), ".%s.new", name);

    if (n >= (int)sizeof(r->temporary)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    r->dirfd = dirfd;
    r->name = name;
    r->fd =
        openat(dirfd, r->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    return r->fd < 0 ? -1 : 0;
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
