/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table for the terminal that fits its width: columns that matter least are left out first, then
 * the one flexible column is cut.
 */
#ifndef NCCLSHIM_SHOW_TABLE_H
#define NCCLSHIM_SHOW_TABLE_H

#include "shim/show/term.h"

#define TABLE_COLUMNS 24

struct table {
    struct {
        const char *title;
        bool left;     /* aligned left; numbers stand right */
        int drop;      /* 0 = never left out; the highest number goes first */
        bool flexible; /* may be cut to fit */
    } columns[TABLE_COLUMNS];
    unsigned column_count;
    char **cells; /* row by row */
    unsigned char *colours;
    size_t cell_count, cell_room;
    bool broken; /* memory ran out */
};

enum table_flags { TABLE_LEFT = 1, TABLE_FLEXIBLE = 2 };

void table_init(struct table *t);
void table_free(struct table *t);
void table_column(struct table *t, const char *title, unsigned flags, int drop);
/* Add the next cell, made harmless by safe_text. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_cell_colour(struct table *t, enum colour c, const char *text);
/* Print it, indented. A column of which every cell is empty is left out. */
void table_print(const struct table *t, const struct term *term, int indent);

#endif
