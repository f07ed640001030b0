/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes as people write them: digits, then nothing or one of K, M, G (powers of 1024), which may be
 * followed by iB: 43008, 42K, 8M, 8MiB. KB and MB are refused: one half of the world takes them for
 * powers of 1000.
 */
#ifndef NCCLSHIM_BASE_SIZE_H
#define NCCLSHIM_BASE_SIZE_H

#include <stddef.h>
#include <stdint.h>

#define SIZE_TEXT_MAX 24

/* 0, or -1 when the whole text is no size or does not fit in 64 bits. No signs, no blanks. */
int size_parse(const char *text, uint64_t *out);

/* The shortest text that size_parse reads back exactly: "42K", "1M", "43009". Returns buf. */
const char *size_text(uint64_t bytes, char *buf, size_t size);

#endif
