/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/version.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int code_of(int major, int minor, int patch)
{
    int major_weight = major == 2 && minor <= 8 ? 1000 : 10000;

    return major * major_weight + minor * 100 + patch;
}

/* One number of at most two digits; advances. -1 when there is none. */
static int small_number(const char **c)
{
    int n = 0, digits = 0;

    for (; **c >= '0' && **c <= '9' && digits < 3; (*c)++, digits++)
        n = n * 10 + (**c - '0');
    return digits == 0 || digits == 3 ? -1 : n;
}

static int parse(const char **c, int *last)
{
    int major, minor, patch;

    major = small_number(c);
    if (major < 1 || **c != '.')
        return 0;
    (*c)++;
    minor = small_number(c);
    if (minor < 0)
        return 0;
    if (**c != '.') {
        *last = code_of(major, minor, 99);
        return code_of(major, minor, 0);
    }
    (*c)++;
    patch = small_number(c);
    if (patch < 0)
        return 0;
    *last = code_of(major, minor, patch);
    return *last;
}

int version_parse(const char *text, int *last)
{
    int ignored, code;

    if (!last)
        last = &ignored;
    code = parse(&text, last);
    return *text ? 0 : code;
}

const char *version_text(int code, char *buf, size_t size)
{
    int weight = code < 10000 ? 1000 : 10000;

    if (code % 100 == 99)
        snprintf(buf, size, "%d.%d", code / weight, code % weight / 100);
    else
        snprintf(buf, size, "%d.%d.%d", code / weight, code % weight / 100, code % 100);
    return buf;
}

static const char *skip_blanks(const char *c)
{
    while (*c == ' ' || *c == '\t')
        c++;
    return c;
}

/* One `>=2.21`; advances. */
static int narrow(const char **c, struct version_range *r)
{
    int least = 0, most = INT_MAX, first, last;
    char op = *skip_blanks(*c);
    bool equal;

    *c = skip_blanks(*c);
    if (op == '<' || op == '>' || op == '=')
        (*c)++;
    equal = **c == '=';
    if (equal)
        (*c)++;
    *c = skip_blanks(*c);
    first = parse(c, &last);
    if (!first)
        return -1;
    if (op == '>')
        least = equal ? first : last + 1;
    else if (op == '<')
        most = equal ? last : first - 1;
    else
        least = first, most = last;
    r->least = least > r->least ? least : r->least;
    r->most = most < r->most ? most : r->most;
    *c = skip_blanks(*c);
    return 0;
}

int version_range_parse(const char *text, struct version_range *out)
{
    struct version_range r = {.least = 0, .most = INT_MAX};

    for (;;) {
        if (narrow(&text, &r))
            return -1;
        if (!*text)
            break;
        if (*text++ != ',')
            return -1;
    }
    if (r.least > r.most)
        return -1;
    out->least = r.least;
    out->most = r.most;
    return 0;
}
