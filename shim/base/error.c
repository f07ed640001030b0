/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/base/error.h"

#include <stdarg.h>
#include <stdio.h>

int (error_set)(struct error *e, const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    if (!e)
        return -1;
    snprintf(e->file, sizeof(e->file), "%s", file ? file : "");
    e->line = line;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    return -1;
}

const char *error_str(const struct error *e, char *buf, unsigned long size)
{
    if (e->file[0] && e->line > 0)
        snprintf(buf, size, "%s:%d: %s", e->file, e->line, e->text);
    else if (e->file[0])
        snprintf(buf, size, "%s: %s", e->file, e->text);
    else
        snprintf(buf, size, "%s", e->text);
    return buf;
}
