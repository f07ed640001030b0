/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/value.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *c)
{
    while (blank(*c))
        c++;
    return c;
}

static int reason(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return -1;
}

static int keep(const char *from, const char *to, bool quoted, struct clean_value *out, char *why,
                size_t size)
{
    out->quoted = quoted;
    out->text = strndup(from, (size_t)(to - from));
    return out->text ? 0 : reason(why, size, "out of memory");
}

static int clean_quoted(const char *raw, bool comments, struct clean_value *out, char *why,
                        size_t size)
{
    const char *close = strchr(raw + 1, *raw), *rest;

    if (!close)
        return reason(why, size, "the quote at the start has no partner at the end");
    rest = skip_blanks(close + 1);
    if (*rest && !(comments && *rest == ';' && rest > close + 1))
        return reason(why, size, "text behind the closing quote");
    if (memchr(raw + 1, '"', (size_t)(close - raw - 1)))
        return reason(why, size, "a quote mark inside the value");
    return keep(raw + 1, close, true, out, why, size);
}

/* Where a comment starts: a ';' that is the first letter or has a blank before it. */
static const char *comment_start(const char *raw)
{
    for (const char *c = raw; *c; c++)
        if (*c == ';' && (c == raw || blank(c[-1])))
            return c;
    return raw + strlen(raw);
}

bool value_has_comment(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((*c == ';' || *c == '#') && c > text && blank(c[-1]))
            return true;
    return false;
}

int value_clean(const char *raw, bool comments, struct clean_value *out, char *why, size_t size)
{
    const char *end;

    out->text = NULL;
    if (*raw == '"' || *raw == '\'')
        return clean_quoted(raw, comments, out, why, size);
    end = comments ? comment_start(raw) : raw + strlen(raw);
    while (end > raw && blank(end[-1]))
        end--;
    if (end == raw)
        return reason(why, size, "the key has no value; write one, or \"\" for an empty text");
    if (memchr(raw, '"', (size_t)(end - raw)) || end[-1] == '\'')
        return reason(why, size,
                      "a quote mark inside the value; put quotes around the whole value "
                      "or nowhere");
    return keep(raw, end, false, out, why, size);
}

/* Digits only, no leading zeros; -1 when there is no number or it is too large. Advances. */
static int take_int(const char **c)
{
    long n = 0;
    const char *from = *c;

    for (; **c >= '0' && **c <= '9'; (*c)++) {
        n = n * 10 + (**c - '0');
        if (n > INT_MAX)
            return -1;
    }
    if (*c == from || (*from == '0' && *c > from + 1))
        return -1;
    return (int)n;
}

int value_int(const char *text, int least, int most, int *out)
{
    int n = take_int(&text);

    if (n < 0 || *text || n < least || n > most)
        return -1;
    *out = n;
    return 0;
}

int value_bool(const char *text, bool *out)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true", "0", "1"};

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcasecmp(text, words[i])) {
            *out = i & 1;
            return 0;
        }
    return -1;
}

int value_range(const char *text, int least, int *min, int *max)
{
    int from = take_int(&text), to = from;

    if (from < least)
        return -1;
    text = skip_blanks(text);
    if (*text == '-') {
        text = skip_blanks(text + 1);
        to = *text ? take_int(&text) : INT_MAX;
    }
    if (*text || to < from)
        return -1;
    *min = from;
    *max = to;
    return 0;
}
