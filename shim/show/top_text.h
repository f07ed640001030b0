/* SPDX-License-Identifier: Apache-2.0 */
/* One frame of `top` as lines of text; the screen (or a pipe) prints them. */
#ifndef NCCLSHIM_SHOW_TOP_TEXT_H
#define NCCLSHIM_SHOW_TOP_TEXT_H

#include <stdio.h>

#include "shim/stats/live.h"

enum top_sort { TOP_BY_TIME, TOP_BY_CALLS, TOP_BY_P50, TOP_BY_P99, TOP_BY_SIZE, TOP_SORTS };
extern const char *const top_sort_names[];

/* width columns, at most height lines (0 = no limit), no escape sequences. 0, or -1 = memory is
 * out. */
int top_frame(const struct live *l, enum top_sort sort, int width, int height, FILE *out);

#endif
