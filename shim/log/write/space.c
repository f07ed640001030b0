/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/log/write/space.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>

#define SHARE_MOST (256ull << 20)
#define INTERRUPTED_MOST 64 /* tries */

uint64_t space_share(int fd)
{
    struct statvfs v;
    uint64_t size, avail, share;

    if (fstatvfs(fd, &v) != 0)
        return 0;
    size = (uint64_t)v.f_blocks * v.f_frsize;
    avail = (uint64_t)v.f_bavail * v.f_frsize;
    if (size == 0) /* a tmpfs without a limit */
        return SHARE_MOST;
    share = size / 32;
    if (share > avail / 4)
        share = avail / 4;
    return share < SHARE_MOST ? share : SHARE_MOST;
}

int space_reserve(int fd, uint64_t offset, uint64_t bytes, const char *path, struct error *e)
{
    int r = EINTR;

    /* tmpfs starts anew after each signal: under a profiler's timer a large piece is never done.
     * Callers go on with half of it. */
    for (int i = 0; i < INTERRUPTED_MOST && r == EINTR; i++)
        r = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    if (r)
        return error_set(e, path, 0, "no room for %llu KiB of log: %s",
                         (unsigned long long)(bytes >> 10), strerror(r));
    return 0;
}
