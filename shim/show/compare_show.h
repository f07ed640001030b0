/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to print a comparison. */
#ifndef NCCLSHIM_SHOW_COMPARE_SHOW_H
#define NCCLSHIM_SHOW_COMPARE_SHOW_H

#include <jansson.h>

#include "shim/show/overview.h"
#include "shim/show/term.h"
#include "shim/stats/compare.h"

/* A setting that is not the same on all sides; NULL = not set. */
struct setting_change {
    char name[64];
    const char **values; /* by side; point into the runs' settings */
};

struct setting_changes {
    struct setting_change *items;
    size_t count;
};

/* settings: one a side (of its first run). 0, or -1 when memory is out. */
int setting_changes_make(const struct compare *c, const struct run_settings *settings,
                         struct setting_changes *out);
void setting_changes_free(struct setting_changes *s);

void compare_text(const struct compare *c, const struct setting_changes *s, const struct term *t,
                  bool all);
json_t *compare_json(const struct compare *c, const struct setting_changes *s);
int compare_html(const struct compare *c, const struct setting_changes *s, FILE *out);

/* Green for faster, red for slower. */
enum colour verdict_colour(enum verdict v);
/* "+3.1 %", "-74.9 %" */
const char *change_text(double change, char *buf);
/* One line for one side against the first. Returns buf. */
const char *whole_text(const struct compare *c, size_t side, char *buf, size_t size);

#endif
