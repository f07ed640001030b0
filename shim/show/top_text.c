/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/top_text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/base/names.h"
#include "shim/show/table.h"
#include "shim/show/term.h"

const char *const top_sort_names[] = {"time", "calls", "p50", "p99", "size"};

#define HEAD_LINES 3
#define LEAST_ROWS 3

struct keyed {
    const struct live_row *row;
    double key;
};

static int largest_first(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    if (x->key > y->key || x->key < y->key)
        return x->key > y->key ? -1 : 1;
    return x->row < y->row ? -1 : 1;
}

static double key_of(const struct live_row *r, enum top_sort sort)
{
    switch (sort) {
    case TOP_BY_CALLS:
        return (double)r->window.count;
    case TOP_BY_P50:
        return (double)hist_quantile(&r->window, 0.5);
    case TOP_BY_P99:
        return (double)hist_quantile(&r->window, 0.99);
    case TOP_BY_SIZE:
        return (double)r->bytes;
    default:
        return (double)r->window.sum;
    }
}

static struct keyed *sorted_rows(const struct live *l, enum top_sort sort, uint32_t *count)
{
    struct keyed *k = malloc((l->row_count + 1) * sizeof(*k));

    *count = 0;
    for (uint32_t i = 0; k && i < l->row_count; i++)
        if (l->rows[i].window.count)
            k[(*count)++] = (struct keyed){&l->rows[i], key_of(&l->rows[i], sort)};
    if (k)
        qsort(k, *count, sizeof(*k), largest_first);
    return k;
}

/* ---- head ------------------------------------------------------------------------------------ */

static void print_head(const struct live *l, enum top_sort sort, FILE *out)
{
    uint64_t calls = 0, ns = 0, ranks = 0;
    char a[UNIT_SIZE], b[UNIT_SIZE], c[UNIT_SIZE], clock[16];
    double seconds = (double)l->window_ns / 1e9;
    time_t now = time(NULL);
    struct tm tm;

    for (uint32_t i = 0; i < l->rank_count; i++) {
        calls += l->ranks[i].calls;
        ns += l->ranks[i].ns;
        ranks += l->ranks[i].calls != 0;
    }
    strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
    fprintf(out, "ncclshim top  %s  %u process%s, %llu rank%s at work, by %s, window %s\n", clock,
            l->process_count, l->process_count == 1 ? "" : "es", (unsigned long long)ranks,
            ranks == 1 ? "" : "s", top_sort_names[sort], unit_ns(l->window_ns, a));
    fprintf(out, "%s calls/s, %s of each rank's time in calls, %s records lost\n\n",
            unit_count(seconds > 0 ? (uint64_t)((double)calls / seconds + 0.5) : 0, a),
            unit_percent(
                ranks && l->window_ns ? (double)ns / (double)ranks / (double)l->window_ns : 0, b),
            unit_count(l->lost, c));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void row_cells(struct table *t, const struct live *l, const struct live_row *r)
{
    const struct hist *h = &r->window;
    char a[UNIT_SIZE], channels[16] = "-";
    double seconds = (double)l->window_ns / 1e9;

    if (r->channels)
        snprintf(channels, sizeof(channels), "%u", r->channels);
    table_cell(t, "%s", r->comm);
    table_cell(t, "%s", op_name(r->op));
    table_cell(t, "%s", unit_bytes(r->bytes, a));
    table_cell(t, "%s", r->captured ? "captured" : "eager");
    table_cell(t, "%s",
               unit_count(seconds > 0 ? (uint64_t)((double)h->count / seconds + 0.5) : 0, a));
    table_cell(t, "%s", unit_ns(hist_quantile(h, 0.5), a));
    table_cell(t, "%s", unit_ns(hist_quantile(h, 0.99), a));
    table_cell(t, "%s", unit_ns(h->max, a));
    if (r->algo == NCCLSHIM_NO_CHOICE)
        table_cell(t, "-");
    else
        table_cell(t, "%s %s %s", algo_name(r->algo),
                   r->proto == NCCLSHIM_NO_CHOICE ? "-" : proto_name(r->proto), channels);
}

static int print_rows(const struct live *l, enum top_sort sort, const struct term *term,
                      uint32_t most)
{
    uint32_t count;
    struct keyed *rows = sorted_rows(l, sort, &count);
    struct table t;

    if (!rows)
        return -1;
    table_init(&t);
    table_column(&t, "comm", TABLE_LEFT | TABLE_FLEXIBLE, 0);
    table_column(&t, "operation", TABLE_LEFT, 0);
    table_column(&t, "size", 0, 0);
    table_column(&t, "how", TABLE_LEFT, 2);
    table_column(&t, "calls/s", 0, 0);
    table_column(&t, "p50", 0, 0);
    table_column(&t, "p99", 0, 0);
    table_column(&t, "max", 0, 3);
    table_column(&t, "algo proto ch", TABLE_LEFT, 1);
    for (uint32_t i = 0; i < count && i < most; i++)
        row_cells(&t, l, rows[i].row);
    table_print(&t, term, 0);
    table_free(&t);
    if (count > most)
        fprintf(term->out, "... and %u more\n", count - most);
    free(rows);
    return 0;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* The communicator that took most time in the window. */
static const struct live_rank *busiest(const struct live *l)
{
    const struct live_rank *best = NULL;

    for (uint32_t i = 0; i < l->rank_count; i++)
        if (l->ranks[i].calls && (!best || l->ranks[i].ns > best->ns))
            best = &l->ranks[i];
    return best;
}

static const struct live_rank *rank_of(const struct live *l, const struct live_rank *like,
                                       int32_t rank)
{
    for (uint32_t i = 0; i < l->rank_count; i++)
        if (l->ranks[i].rank == rank && l->ranks[i].ranks == like->ranks &&
            !strcmp(l->ranks[i].comm, like->comm))
            return &l->ranks[i];
    return NULL;
}

static uint32_t ranks_shown(const struct live *l)
{
    const struct live_rank *b = busiest(l);

    return b && b->ranks > 1 ? (uint32_t)b->ranks : 0;
}

static void print_ranks(const struct live *l, const struct term *term, uint32_t most)
{
    const struct live_rank *b = busiest(l);
    char comm[300], a[UNIT_SIZE];
    uint64_t longest = 1;
    int room = term->width - 24;

    if (!b || b->ranks < 2 || most < 3)
        return;
    for (int32_t i = 0; i < b->ranks; i++) {
        const struct live_rank *r = rank_of(l, b, i);
        if (r && r->calls && r->ns / r->calls > longest)
            longest = r->ns / r->calls;
    }
    fprintf(term->out,
            "\nmean time in a call of comm %s; the rank that others wait for has the shortest\n",
            safe_text(b->comm, comm, sizeof(comm)));
    for (int32_t i = 0; i < b->ranks && (uint32_t)i + 2 < most; i++) {
        const struct live_rank *r = rank_of(l, b, i);
        uint64_t mean = r && r->calls ? r->ns / r->calls : 0;
        int bar = (int)((double)mean / (double)longest * room + 0.5);
        fprintf(term->out, "rank %-3d %9s  ", i, mean ? unit_ns(mean, a) : "-");
        for (int k = 0; k < bar; k++)
            fputs("█", term->out);
        fputc('\n', term->out);
    }
}

int top_frame(const struct live *l, enum top_sort sort, int width, int height, FILE *out)
{
    struct term term = {.out = out, .width = width};
    uint32_t ranks = ranks_shown(l), lines = height > 0 ? (uint32_t)height : 1000;
    uint32_t for_ranks = ranks ? ranks + 2 : 0, least = 0, rows;

    print_head(l, sort, out);
    if (!l->process_count && !ranks) {
        fprintf(out, "no server with a log in %s; waiting for one\n", l->folder);
        return 0;
    }
    lines = lines > HEAD_LINES + 2 ? lines - HEAD_LINES - 2 : 1; /* the table's title, and "more" */
    for (uint32_t i = 0; i < l->row_count && least < LEAST_ROWS; i++)
        least += l->rows[i].window.count != 0;
    if (for_ranks + least > lines)
        for_ranks = lines > least ? lines - least : 0;
    rows = lines - for_ranks;
    if (print_rows(l, sort, &term, rows) < 0)
        return -1;
    print_ranks(l, &term, for_ranks);
    return 0;
}
