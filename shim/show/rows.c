/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of one communicator in the order that the user asked for. */
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/report.h"

const char *const sort_names[] = {"total", "bytes", "calls", "p50", "p99", "max", "bus", NULL};

int sort_parse(const char *text)
{
    for (int i = 0; sort_names[i]; i++)
        if (!strcmp(sort_names[i], text))
            return i;
    return -1;
}

struct keyed {
    const struct run_row *row;
    double key;
    uint32_t index;
};

static double key_of(const struct run *r, const struct run_row *row, enum report_sort sort)
{
    uint64_t p50 = hist_quantile(&row->ns, 0.5);

    switch (sort) {
    case SORT_BYTES:
        return (double)row->bytes;
    case SORT_CALLS:
        return (double)row->issued;
    case SORT_P50:
        return (double)p50;
    case SORT_P99:
        return (double)hist_quantile(&row->ns, 0.99);
    case SORT_MAX:
        return row->timed ? (double)row->ns.max : 0;
    case SORT_BUS:
        return row_bus_gbps(r, row, p50);
    default:
        return (double)row->ns.sum;
    }
}

static int largest_first(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    if (x->key > y->key || x->key < y->key)
        return x->key > y->key ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

const struct run_row **rows_of_comm(const struct run *r, uint32_t comm, enum report_sort sort,
                                    uint32_t *count)
{
    struct keyed *keyed = malloc((r->row_count + 1) * sizeof(*keyed));
    const struct run_row **rows = malloc((r->row_count + 1) * sizeof(*rows));

    *count = 0;
    if (!keyed || !rows) {
        free(keyed);
        free(rows);
        return NULL;
    }
    for (uint32_t i = 0; i < r->row_count; i++)
        if (r->rows[i].comm == comm) {
            keyed[*count] = (struct keyed){&r->rows[i], key_of(r, &r->rows[i], sort), i};
            ++*count;
        }
    qsort(keyed, *count, sizeof(*keyed), largest_first);
    for (uint32_t i = 0; i < *count; i++)
        rows[i] = keyed[i].row;
    free(keyed);
    return rows;
}
