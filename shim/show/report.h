/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to print a report. None of them allocates what it does not free. */
#ifndef NCCLSHIM_SHOW_REPORT_H
#define NCCLSHIM_SHOW_REPORT_H

#include <jansson.h>

#include "shim/show/overview.h"
#include "shim/show/term.h"

enum report_sort { SORT_TOTAL, SORT_BYTES, SORT_CALLS, SORT_P50, SORT_P99, SORT_MAX, SORT_BUS };

struct report_options {
    enum report_sort sort;
    bool all; /* every row, not only those that matter */
};

/* Rows of a communicator in the order asked for; malloc'ed array of *count, NULL when memory is
 * out. */
const struct run_row **rows_of_comm(const struct run *r, uint32_t comm, enum report_sort sort,
                                    uint32_t *count);
/* -1 when it is no column's name. */
int sort_parse(const char *text);
extern const char *const sort_names[]; /* NULL-terminated */

void report_text(const struct overview *f, const struct report_options *o, const struct term *t);
/* New reference; NULL when memory is out. docs/report.md describes the keys. */
json_t *report_json(const struct overview *f, const struct report_options *o);

/* The parts of report_text that stand below the tables (report_details.c). */
void print_ranks(const struct overview *f, const struct term *t, bool all);
void print_settings(const struct overview *f, const struct term *t);
void print_rules(const struct overview *f, const struct term *t);
void print_missed(const struct overview *f, const struct term *t);
void print_warnings(const struct overview *f, const struct term *t);

#endif
