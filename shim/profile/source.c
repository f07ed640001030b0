/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/profile/nccl_vars.h"

#define BOM "\xef\xbb\xbf"

static int open_regular(const char *path, size_t *size, struct error *e)
{
    struct stat st;
    /* O_NONBLOCK: opening a FIFO must not wait inside a server's start. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0)
        return error_set(e, path, 0, "can't be opened: %s", strerror(errno));
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        error_set(e, path, 0, "is no regular file; a profile is an INI file");
    else if (st.st_size > (off_t)SOURCE_FILE_MAX)
        error_set(e, path, 0, "is larger than 16 MiB; this is no profile");
    else {
        *size = (size_t)st.st_size;
        return fd;
    }
    close(fd);
    return -1;
}

int source_read(const char *path, char **bytes, size_t *size, struct error *e)
{
    size_t room = 0, got = 0;
    int fd = open_regular(path, &room, e), interrupted = 0;

    if (fd < 0)
        return -1;
    *bytes = malloc(room + 1);
    while (*bytes && got < room) {
        ssize_t n = read(fd, *bytes + got, room - got);
        if (n < 0 && errno == EINTR && interrupted++ < 64)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    close(fd);
    if (!*bytes)
        return error_set(e, path, 0, "out of memory");
    if (got < room) {
        free(*bytes);
        return error_set(e, path, 0, "can't be read to its end");
    }
    (*bytes)[got] = '\0';
    *size = got;
    return 0;
}

static int line_of(const char *bytes, const char *at)
{
    int line = 1;

    for (; bytes < at; bytes++)
        line += *bytes == '\n';
    return line;
}

/* Length of the UTF-8 sequence at s (no overlong forms, no surrogates); 0 when it is none. */
static size_t utf8_length(const unsigned char *s, const unsigned char *end)
{
    size_t n = s[0] < 0x80   ? 1
               : s[0] < 0xc2 ? 0
               : s[0] < 0xe0 ? 2
               : s[0] < 0xf0 ? 3
               : s[0] < 0xf5 ? 4
                             : 0;

    if (!n || (size_t)(end - s) < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static int check_encoding(const char *bytes, size_t size, const char *file, struct error *e)
{
    const char *end = bytes + size, *c = bytes;

    if (size >= 2 && (!memcmp(bytes, "\xff\xfe", 2) || !memcmp(bytes, "\xfe\xff", 2)))
        return error_set(e, file, 1, "the file is UTF-16; save it as UTF-8");
    if (size >= 6 && !memcmp(bytes, BOM BOM, 6))
        return error_set(e, file, 1,
                         "two byte order marks at the start; save the file as UTF-8 without one");
    if (size >= 3 && !memcmp(bytes, BOM, 3))
        c += 3;
    while (c < end) {
        unsigned char b = (unsigned char)*c;
        size_t n = utf8_length((const unsigned char *)c, (const unsigned char *)end);
        if (!b)
            return error_set(e, file, line_of(bytes, c),
                             "a zero byte; is this UTF-16, or no text at all? Save it as UTF-8");
        if (b == '\r' && (c + 1 == end || c[1] != '\n'))
            return error_set(e, file, line_of(bytes, c),
                             "a carriage return without a line feed; save the file with LF or "
                             "CRLF line ends");
        if ((b < 0x20 && b != '\t' && b != '\n' && b != '\r') || b == 0x7f)
            return error_set(e, file, line_of(bytes, c), "a control character (0x%02x)", b);
        if (!n)
            return error_set(e, file, line_of(bytes, c),
                             "byte 0x%02x is no UTF-8; save the file as UTF-8", b);
        c += n;
    }
    return 0;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static const char *skip_blanks(const char *c, const char *end)
{
    while (c < end && blank(*c))
        c++;
    return c;
}

static int check_header(const char *c, const char *end, const char *file, int line, struct error *e)
{
    const char *close = memchr(c, ']', (size_t)(end - c)), *rest;

    if (!close)
        return error_set(e, file, line, "the section's header has no closing bracket");
    if ((size_t)(close - c) - 1 > SOURCE_NAME_MAX)
        return error_set(e, file, line, "the section's name is longer than %u letters; shorten it",
                         SOURCE_NAME_MAX);
    rest = skip_blanks(close + 1, end);
    if (rest < end && *rest != ';' && *rest != '#')
        return error_set(e, file, line, "text behind the section's header; put it on its own line");
    return 0;
}

/* Longer than what inih hands out in every version; the one family of such names is NCCL's own. */
static bool known_long_name(const char *c, size_t n)
{
    char name[80];

    if (n >= sizeof(name))
        return false;
    memcpy(name, c, n);
    name[n] = '\0';
    return nccl_var_find(name) != NULL;
}

static int check_key(const char *c, const char *end, const char *file, int line, struct error *e)
{
    const char *equals = memchr(c, '=', (size_t)(end - c));
    const char *colon = memchr(c, ':', (size_t)(end - c));
    const char *key_end = equals;

    if (!equals)
        return error_set(e, file, line,
                         "no '=' in this line; write KEY = VALUE, and start a "
                         "comment with ; or #");
    while (key_end > c && blank(key_end[-1]))
        key_end--;
    if (key_end == c)
        return error_set(e, file, line, "no key in front of '='");
    if (colon && colon < equals)
        return error_set(e, file, line, "a colon in the key; write KEY = VALUE");
    if ((size_t)(key_end - c) > SOURCE_NAME_MAX && !known_long_name(c, (size_t)(key_end - c)))
        return error_set(e, file, line, "the key is longer than %u letters; no key is that long",
                         SOURCE_NAME_MAX);
    return 0;
}

static int check_line(const char *c, const char *end, const char *file, int line, bool *in_section,
                      struct error *e)
{
    const char *text = skip_blanks(c, end);

    if (end > c && end[-1] == '\r')
        end--;
    if ((size_t)(end - c) > SOURCE_LINE_MAX)
        return error_set(e, file, line, "the line is longer than 64 KiB; nothing of it is used");
    if (text == end || *text == ';' || *text == '#')
        return 0;
    if (text > c)
        return error_set(e, file, line,
                         "the line is indented, which other INI readers take for "
                         "more of the line above; start it in the first column");
    if (*c == '[') {
        *in_section = true;
        return check_header(c, end, file, line, e);
    }
    if (!*in_section)
        return error_set(e, file, line,
                         "a line before the first section; start with [profile] or "
                         "[env]");
    return check_key(c, end, file, line, e);
}

int source_check(const char *bytes, size_t size, const char *file, struct error *e)
{
    const char *c = bytes, *end = bytes + size;
    bool in_section = false;

    if (check_encoding(bytes, size, file, e))
        return -1;
    if (size >= 3 && !memcmp(c, BOM, 3))
        c += 3;
    for (int line = 1; c < end; line++) {
        const char *stop = memchr(c, '\n', (size_t)(end - c));
        if (!stop)
            stop = end;
        if (check_line(c, stop, file, line, &in_section, e))
            return -1;
        c = stop + 1;
    }
    if (!in_section)
        return error_set(e, file, 0,
                         "no section and no key in this file; start with [profile] or "
                         "[env]");
    return 0;
}
