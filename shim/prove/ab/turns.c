/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/ab/turns.h"

size_t turns_abba(size_t turn, size_t sides)
{
    size_t at = turn % sides;

    return turn / sides % 2 ? sides - 1 - at : at;
}

/* splitmix64: the same on every machine, so that a resumed proof goes on with the same order. */
static uint64_t next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15ull;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

void turns_shuffled(uint64_t seed, size_t sides, size_t rounds, size_t *out)
{
    for (size_t r = 0; r < rounds; r++, out += sides) {
        for (size_t i = 0; i < sides; i++)
            out[i] = i;
        for (size_t i = sides; i-- > 1;) {
            size_t k = next(&seed) % (i + 1), was = out[i];
            out[i] = out[k];
            out[k] = was;
        }
    }
}
