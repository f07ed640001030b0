/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/log/write/identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static size_t read_file(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;

    if (fd >= 0) {
        n = read(fd, buf, size - 1);
        close(fd);
    }
    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

uint64_t identity_start_ticks(int pid)
{
    char path[64], buf[1024];
    const char *p;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (!read_file(path, buf, sizeof(buf)))
        return 0;
    /* The name, field 2, may hold blanks and brackets: count from its last bracket. */
    p = strrchr(buf, ')');
    for (int field = 3; p && field <= 22; field++) {
        p = strchr(p + 1, ' ');
        if (p && field == 22)
            return strtoull(p + 1, NULL, 10);
    }
    return 0;
}

void identity_read(struct identity *id)
{
    struct stat st;
    char *end;

    memset(id, 0, sizeof(*id));
    id->pid = (uint32_t)getpid();
    id->uid = (uint32_t)geteuid();
    id->start_ticks = identity_start_ticks((int)id->pid);
    if (stat("/proc/self/ns/pid", &st) == 0)
        id->pid_ns = st.st_ino;
    read_file("/proc/sys/kernel/random/boot_id", id->boot_id, sizeof(id->boot_id));
    end = strchr(id->boot_id, '\n');
    if (end)
        *end = '\0';
    if (gethostname(id->host, sizeof(id->host) - 1) != 0)
        strcpy(id->host, "localhost");
}
