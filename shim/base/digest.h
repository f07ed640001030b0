/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a, 64 bits: to tell settings and ids apart, not to protect anything. */
#ifndef NCCLSHIM_BASE_DIGEST_H
#define NCCLSHIM_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_START 0xcbf29ce484222325ull

static inline uint64_t digest_bytes(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;

    while (n--)
        h = (h ^ *p++) * 0x100000001b3ull;
    return h;
}

#endif
