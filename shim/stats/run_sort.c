/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting what other tables point into by number. */
#include <stdlib.h>
#include <string.h>

#include "shim/stats/run.h"

struct order {
    const char *items;
    size_t bytes;
    int (*compare)(const void *a, const void *b);
};

/* What is equal stays in its order. */
static int by_item(const void *a, const void *b, void *user)
{
    const uint32_t *x = a, *y = b;
    const struct order *o = user;
    int c = o->compare(o->items + *x * o->bytes, o->items + *y * o->bytes);

    return c ? c : *x < *y ? -1 : *x > *y;
}

uint32_t *run_sort(void *items, uint32_t count, size_t bytes,
                   int (*compare)(const void *a, const void *b))
{
    uint32_t *old_place = malloc((count + 1ull) * sizeof(*old_place));
    uint32_t *new_place = malloc((count + 1ull) * sizeof(*new_place));
    char *old = malloc((count + 1ull) * bytes);
    struct order order = {old, bytes, compare};

    if (!old_place || !new_place || !old) {
        free(old_place);
        free(new_place);
        free(old);
        return NULL;
    }
    if (count)
        memcpy(old, items, count * bytes);
    for (uint32_t i = 0; i < count; i++)
        old_place[i] = i;
    qsort_r(old_place, count, sizeof(*old_place), by_item, &order);
    for (uint32_t i = 0; i < count; i++) {
        memcpy((char *)items + i * bytes, old + old_place[i] * bytes, bytes);
        new_place[old_place[i]] = i;
    }
    free(old_place);
    free(old);
    return new_place;
}
