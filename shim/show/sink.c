/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/sink.h"

#include <stdarg.h>
#include <string.h>

void sink_init(struct sink *s, FILE *out)
{
    s->out = out;
    s->failed = false;
    s->used = 0;
}

int sink_flush(struct sink *s)
{
    if (s->used && fwrite(s->buf, 1, s->used, s->out) != s->used)
        s->failed = true;
    s->used = 0;
    if (fflush(s->out) != 0)
        s->failed = true;
    return s->failed ? -1 : 0;
}

void sink_bytes(struct sink *s, const char *text, size_t n)
{
    while (n) {
        size_t room = sizeof(s->buf) - s->used, part = n < room ? n : room;
        memcpy(s->buf + s->used, text, part);
        s->used += part;
        text += part;
        n -= part;
        if (s->used == sizeof(s->buf)) {
            if (fwrite(s->buf, 1, s->used, s->out) != s->used)
                s->failed = true;
            s->used = 0;
        }
    }
}

void sink_text(struct sink *s, const char *text)
{
    sink_bytes(s, text, strlen(text));
}

void sink_u64(struct sink *s, uint64_t n)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    sink_bytes(s, digits + at, sizeof(digits) - at);
}

void sink_us(struct sink *s, uint64_t ns)
{
    char part[4] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
                    (char)('0' + ns % 10)};

    sink_u64(s, ns / 1000);
    sink_bytes(s, part, sizeof(part));
}

void sink_printf(struct sink *s, const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    sink_text(s, text);
}
