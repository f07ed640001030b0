/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char suffixes[] = "KMG";

int size_parse(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    const char *c = text;
    unsigned shift = 0;

    if (*c < '0' || *c > '9')
        return -1;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
            return -1;
    if (*c) {
        const char *s = strchr(suffixes, *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
        if (!s)
            return -1;
        shift = 10 * (unsigned)(s - suffixes + 1);
        c++;
        if (!strcmp(c, "iB"))
            c += 2;
    }
    if (*c || value > UINT64_MAX >> shift)
        return -1;
    *out = value << shift;
    return 0;
}

const char *size_text(uint64_t bytes, char *buf, size_t size)
{
    int n = 3;

    while (n > 0 && (!bytes || bytes & ((1ull << (10 * n)) - 1)))
        n--;
    if (n)
        snprintf(buf, size, "%" PRIu64 "%c", bytes >> (10 * n), suffixes[n - 1]);
    else
        snprintf(buf, size, "%" PRIu64, bytes);
    return buf;
}
