/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define GAP 2
#define FLEXIBLE_LEAST 8

void table_init(struct table *t)
{
    memset(t, 0, sizeof(*t));
}

void table_free(struct table *t)
{
    for (size_t i = 0; i < t->cell_count; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t->colours);
    memset(t, 0, sizeof(*t));
}

void table_column(struct table *t, const char *title, unsigned flags, int drop)
{
    if (t->column_count == TABLE_COLUMNS)
        return;
    t->columns[t->column_count].title = title;
    t->columns[t->column_count].left = flags & TABLE_LEFT;
    t->columns[t->column_count].flexible = flags & TABLE_FLEXIBLE;
    t->columns[t->column_count].drop = drop;
    t->column_count++;
}

void table_cell_colour(struct table *t, enum colour c, const char *text)
{
    char safe[512];

    if (t->cell_count == t->cell_room) {
        size_t room = t->cell_room ? t->cell_room * 2 : 64;
        char **cells = realloc(t->cells, room * sizeof(*cells));
        unsigned char *colours = cells ? realloc(t->colours, room) : NULL;
        if (cells)
            t->cells = cells;
        if (!colours) {
            t->broken = true;
            return;
        }
        t->colours = colours;
        t->cell_room = room;
    }
    t->colours[t->cell_count] = (unsigned char)c;
    t->cells[t->cell_count] = strdup(safe_text(text, safe, sizeof(safe)));
    if (t->cells[t->cell_count])
        t->cell_count++;
    else
        t->broken = true;
}

void table_cell(struct table *t, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    table_cell_colour(t, COLOUR_NONE, text);
}

/* Columns of each column; 0 = left out. Returns their sum with the gaps. */
static size_t measure(const struct table *t, size_t *width)
{
    size_t sum = 0;

    for (unsigned c = 0; c < t->column_count; c++) {
        size_t widest = 0;
        for (size_t i = c; i < t->cell_count; i += t->column_count) {
            size_t w = text_columns(t->cells[i]);
            widest = w > widest ? w : widest;
        }
        width[c] = 0;
        if (!widest)
            continue;
        width[c] = text_columns(t->columns[c].title);
        width[c] = widest > width[c] ? widest : width[c];
        sum += width[c] + GAP;
    }
    return sum ? sum - GAP : 0;
}

static void fit(const struct table *t, size_t *width, size_t room)
{
    size_t sum = measure(t, width);

    while (sum > room) {
        int worst = 0;
        unsigned which = 0;
        for (unsigned c = 0; c < t->column_count; c++)
            if (width[c] && t->columns[c].drop > worst) {
                worst = t->columns[c].drop;
                which = c;
            }
        if (!worst)
            break;
        sum -= width[which] + GAP;
        width[which] = 0;
    }
    for (unsigned c = 0; c < t->column_count && sum > room; c++)
        if (t->columns[c].flexible && width[c] > FLEXIBLE_LEAST) {
            size_t over = sum - room, spare = width[c] - FLEXIBLE_LEAST;
            size_t cut = over < spare ? over : spare;
            width[c] -= cut;
            sum -= cut;
        }
}

static void print_cell(const struct table *t, const struct term *term, unsigned c, size_t width,
                       const char *text, enum colour colour, bool last)
{
    size_t columns = text_columns(text), bytes = strlen(text);
    const char *tail = "";

    if (columns > width) {
        bytes = text_fit(text, width - 1);
        tail = "…";
        columns = width;
    }
    if (!t->columns[c].left)
        fprintf(term->out, "%*s", (int)(width - columns), "");
    fprintf(term->out, "%s%.*s%s%s", colour ? term_on(term, colour) : "", (int)bytes, text, tail,
            colour ? term_off(term) : "");
    if (t->columns[c].left && !last)
        fprintf(term->out, "%*s", (int)(width - columns), "");
}

static void print_line(const struct table *t, const struct term *term, int indent,
                       const size_t *width, size_t row, bool title)
{
    unsigned last = 0;
    bool first = true;

    for (unsigned c = 0; c < t->column_count; c++)
        if (width[c] && (title ? t->columns[c].title[0] : t->cells[row + c][0]))
            last = c;
    fprintf(term->out, "%*s", indent, "");
    for (unsigned c = 0; c <= last && c < t->column_count; c++) {
        if (!width[c])
            continue;
        fprintf(term->out, "%*s", first ? 0 : GAP, "");
        print_cell(t, term, c, width[c], title ? t->columns[c].title : t->cells[row + c],
                   title ? COLOUR_DIM : (enum colour)t->colours[row + c], c == last);
        first = false;
    }
    fputc('\n', term->out);
}

void table_print(const struct table *t, const struct term *term, int indent)
{
    size_t width[TABLE_COLUMNS];
    bool titled = false;

    if (t->broken)
        fputs("(memory ran out: the table is not whole)\n", term->out);
    fit(t, width, (size_t)(term->width - indent));
    for (unsigned c = 0; c < t->column_count; c++)
        titled |= width[c] && t->columns[c].title[0];
    if (titled)
        print_line(t, term, indent, width, 0, true);
    for (size_t i = 0; i + t->column_count <= t->cell_count; i += t->column_count)
        print_line(t, term, indent, width, i, false);
}
