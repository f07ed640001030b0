/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small map from one 64-bit number to another, open addressing, never shrinking. It lives in one
 * array of 2 * cap words (key + 1, value), so that its owner can keep and free it as an array.
 */
#ifndef NCCLSHIM_STATS_MAP_H
#define NCCLSHIM_STATS_MAP_H

#include <stdint.h>

struct map {
    uint64_t *slots;
    uint32_t cap; /* a power of two, or 0 */
    uint32_t used;
};

/* The value under a key, made 0 when the key is new; NULL when memory is out. Not the key ~0. */
uint64_t *map_at(struct map *m, uint64_t key);
/* The value under a key, or NULL. */
uint64_t *map_find(const struct map *m, uint64_t key);
void map_free(struct map *m);

#endif
