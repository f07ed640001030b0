/* SPDX-License-Identifier: Apache-2.0 */
/* Writing millions of small pieces: a buffer and numbers without printf. */
#ifndef NCCLSHIM_SHOW_SINK_H
#define NCCLSHIM_SHOW_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sink {
    FILE *out;
    bool failed;
    size_t used;
    char buf[1 << 16];
};

void sink_init(struct sink *s, FILE *out);
void sink_bytes(struct sink *s, const char *text, size_t n);
void sink_text(struct sink *s, const char *text);
void sink_u64(struct sink *s, uint64_t n);
/* Microseconds with three decimals. */
void sink_us(struct sink *s, uint64_t ns);
void sink_printf(struct sink *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* 0, or -1 when anything could not be written. */
int sink_flush(struct sink *s);

#endif
