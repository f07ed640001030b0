/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what stands behind '=' to a value: comments, quotes, numbers, ranges.
 */
#ifndef NCCLSHIM_PROFILE_VALUE_H
#define NCCLSHIM_PROFILE_VALUE_H

#include <stdbool.h>
#include <stddef.h>

struct clean_value {
    char *text;  /* malloc'ed */
    bool quoted; /* stood in quotes: what is inside is meant as it is, also when it is empty */
};

/*
 * Remove a comment (a `;` with a blank before it, when `comments` is set) and one pair of outer
 * quotes, " or '. 0; or -1 with a reason in `why`: quotes that do not match, a quote mark inside,
 * no value at all, memory out.
 */
int value_clean(const char *raw, bool comments, struct clean_value *out, char *why,
                size_t why_size);

/* Is there a ';' or '#' with a blank before it: what looks like a comment? */
bool value_has_comment(const char *text);

/* Whole numbers from `least` to `most`: "8". 0 or -1. */
int value_int(const char *text, int least, int most, int *out);

/* yes, no, on, off, true, false, 1, 0. 0 or -1. */
int value_bool(const char *text, bool *out);

/* "8", "2-8" or "4-" (no upper end: INT_MAX), inclusive, `least` the smallest number. 0 or -1. */
int value_range(const char *text, int least, int *min, int *max);

#endif
