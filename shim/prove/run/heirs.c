/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/heirs.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENVIRONMENT_MAX (256u * 1024u)

static size_t read_environment(const char *pid, char *buf)
{
    char path[288];
    size_t n = 1;
    ssize_t got;
    int fd;

    snprintf(path, sizeof(path), "/proc/%s/environ", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    buf[0] = '\0'; /* so that the first variable, too, has a zero before it */
    while (n < ENVIRONMENT_MAX && (got = read(fd, buf + n, ENVIRONMENT_MAX - n)) > 0)
        n += (size_t)got;
    close(fd);
    return n;
}

size_t heirs_of(const char *log_dir)
{
    char *buf = malloc(ENVIRONMENT_MAX), *want = NULL;
    /* With the zeros on both sides. */
    int length = asprintf(&want, "%cNCCLSHIM_LOG_DIR=%s", '\0', log_dir);
    DIR *d = opendir("/proc");
    struct dirent *entry;
    size_t count = 0, n;

    while (buf && length > 0 && d && (entry = readdir(d))) {
        if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == getpid())
            continue;
        n = read_environment(entry->d_name, buf);
        count += n && memmem(buf, n, want, (size_t)length + 1) != NULL;
    }
    if (d)
        closedir(d);
    if (length > 0)
        free(want);
    free(buf);
    return count;
}
