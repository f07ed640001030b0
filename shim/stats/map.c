/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/map.h"

#include <stdlib.h>

static uint64_t *slot_of(const struct map *m, uint64_t key)
{
    uint64_t i = (key * 0x9E3779B97F4A7C15ull) >> 32;

    for (;; i++) {
        uint64_t *slot = &m->slots[2 * (i & (m->cap - 1))];
        if (slot[0] == 0 || slot[0] == key + 1)
            return slot;
    }
}

uint64_t *map_find(const struct map *m, uint64_t key)
{
    uint64_t *slot = m->cap ? slot_of(m, key) : NULL;

    return slot && slot[0] ? &slot[1] : NULL;
}

static int grow(struct map *m)
{
    struct map larger = {.cap = m->cap ? 2 * m->cap : 16, .used = m->used};
    uint64_t *slot;

    larger.slots = calloc(2 * (size_t)larger.cap, sizeof(uint64_t));
    if (!larger.slots)
        return -1;
    for (uint32_t i = 0; i < m->cap; i++)
        if (m->slots[2 * i]) {
            slot = slot_of(&larger, m->slots[2 * i] - 1);
            slot[0] = m->slots[2 * i];
            slot[1] = m->slots[2 * i + 1];
        }
    free(m->slots);
    *m = larger;
    return 0;
}

uint64_t *map_at(struct map *m, uint64_t key)
{
    uint64_t *value = map_find(m, key), *slot;

    if (value)
        return value;
    if (m->used >= m->cap / 2 && grow(m) < 0)
        return NULL;
    slot = slot_of(m, key);
    slot[0] = key + 1;
    m->used++;
    return &slot[1];
}

void map_free(struct map *m)
{
    free(m->slots);
    *m = (struct map){0};
}
