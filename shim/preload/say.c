/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic int said[SAY_KIND_COUNT];

/* In one write where the system lets us. A closed stderr is the server's business. */
static void put(const char *line, size_t bytes)
{
    for (int tries = 0; bytes && tries < 64; tries++) {
        ssize_t n = write(STDERR_FILENO, line, bytes);
        if (n < 0 && errno != EINTR)
            return;
        line += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
}

void say_once(enum say_kind kind, const char *fmt, ...)
{
    char line[1024] = "ncclshim: ";
    size_t head = strlen(line);
    int saved = errno;
    va_list ap;
    int n;

    if (atomic_exchange(&said[kind], 1))
        return;
    va_start(ap, fmt);
    n = vsnprintf(line + head, sizeof(line) - head - 1, fmt, ap);
    va_end(ap);
    if (n < 0)
        n = 0;
    if ((size_t)n > sizeof(line) - head - 2)
        n = (int)(sizeof(line) - head - 2);
    line[head + (size_t)n] = '\n';
    put(line, head + (size_t)n + 1);
    errno = saved;
}

void say_forget(void)
{
    for (int i = 0; i < SAY_KIND_COUNT; i++)
        atomic_store(&said[i], 0);
}
