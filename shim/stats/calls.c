/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/calls.h"

#include <stdlib.h>

#include "shim/base/names.h"

bool op_synchronises(unsigned op)
{
    return op == OP_ALL_REDUCE || op == OP_ALL_GATHER || op == OP_REDUCE_SCATTER ||
           op == OP_ALL_TO_ALL;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v;
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ull;
    return h ^ h >> 33;
}

uint64_t call_key(uint64_t site_key, uint32_t run)
{
    return mix(site_key, run + 1ull);
}

/* What is the same on all ranks; in-place, root of the caller and the like need not be. */
static uint64_t kind_of(const struct ncclshim_site *s)
{
    return mix(mix(s->bytes, s->op), s->dtype);
}

struct named {
    uint32_t comm, capture, index, site;
    uint64_t kind;
};

/* Eager sites of one kind side by side, captured ones in the order of their calls. */
static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;

    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->capture != y->capture)
        return x->capture < y->capture ? -1 : 1;
    if (!x->capture && x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

uint64_t *call_keys(const struct run_process *p)
{
    uint32_t n = p->log->site_count;
    uint64_t *keys = calloc(n + 1ull, sizeof(*keys));
    struct named *named = malloc((n + 1ull) * sizeof(*named));
    uint32_t capture_number = 0, place = 0;

    if (!keys || !named) {
        free(keys);
        free(named);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct ncclshim_site *s = &p->log->sites[i];
        named[i] = (struct named){s->comm, s->capture, s->index, i, kind_of(s)};
    }
    qsort(named, n, sizeof(*named), by_name);
    for (uint32_t i = 0; i < n; i++) {
        const struct named *now = &named[i], *before = i ? &named[i - 1] : NULL;
        bool same_comm = before && before->comm == now->comm;
        if (!same_comm)
            capture_number = 0;
        if (same_comm && before->capture == now->capture &&
            (now->capture || before->kind == now->kind)) {
            place++;
        } else {
            place = 0;
            capture_number += now->capture != 0;
        }
        keys[now->site] = mix(mix(now->kind, now->capture ? capture_number : 0), place);
    }
    free(named);
    return keys;
}
