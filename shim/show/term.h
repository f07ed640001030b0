/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What text goes to a person: the width of the terminal, colour only where it can be seen, numbers
 * with units, and names from logs made harmless.
 */
#ifndef NCCLSHIM_SHOW_TERM_H
#define NCCLSHIM_SHOW_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct term {
    FILE *out;
    int width;
    bool colour;
};

enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_DIM, COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW };

/*
 * Width: COLUMNS, else the terminal's, else 80. Colour: on a terminal, unless NO_COLOR is set to
 * something or TERM is dumb.
 */
struct term term_of(FILE *out);
/* "" where there is no colour. */
const char *term_on(const struct term *t, enum colour c);
const char *term_off(const struct term *t);

/*
 * Copy text so that it can be printed anywhere: control characters, C1 controls, characters that
 * turn the direction of writing, and bytes that are no UTF-8 become \xNN or \u{N}. Cut at a whole
 * character when it does not fit. Returns buf.
 */
const char *safe_text(const char *text, char *buf, size_t size);
/* Columns that a harmless UTF-8 text takes. */
size_t text_columns(const char *text);
/* Bytes of the longest beginning that takes at most `columns`. */
size_t text_fit(const char *text, size_t columns);

/* The line that stands first wherever no GPU took part. */
void print_simulated(const struct term *t);
/* A heading in bold with something plain behind it, which moves to a line of its own when it must.
 */
void print_title(const struct term *t, const char *text, const char *rest);
/* Print a text word by word into lines of the terminal's width; later lines start at `indent`. */
void print_wrapped(const struct term *t, const char *text, int indent);

/* All of these return buf, which must hold 32 bytes. Three significant digits where it is a
 * measure. */
#define UNIT_SIZE 32
const char *unit_ns(uint64_t ns, char *buf); /* 950 ns, 7.90 us, 204 us, 1.21 ms, 12.3 s, 41 min */
const char *unit_bytes(uint64_t bytes, char *buf); /* 8 B, 42 KiB, 4 MiB */
const char *unit_count(uint64_t n, char *buf);     /* 9,322,020 */
const char *unit_gbps(double gbps, char *buf);     /* 0.36, 12.3; "-" for 0 */
const char *unit_percent(double share, char *buf); /* 0.94 -> "94 %", 0.0012 -> "0.12 %" */
/* Local date and time of a host clock reading. */
const char *unit_date(uint64_t ns, char *buf);

#endif
