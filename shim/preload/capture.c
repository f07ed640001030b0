/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/capture.h"

#include <stddef.h>

/* More captures at once than this would share places: their counts restart, times stay right. */
#define PLACES 64u

static struct capture places[PLACES];
static _Atomic uint32_t numbers;
static _Atomic uint32_t next_place;

static struct capture *begin(struct capture *c, uint64_t id)
{
    c->number = atomic_fetch_add(&numbers, 1) + 1;
    atomic_store(&c->calls, 0);
    atomic_store(&c->last_node, NULL);
    c->last_end = 0;
    c->last_gpu = NULL;
    atomic_store_explicit(&c->id, id, memory_order_release);
    return c;
}

struct capture *capture_of(uint64_t id)
{
    static _Atomic int busy; /* one thread at a time begins a capture; finding one is free of it */
    int none = 0;

    for (;;) {
        for (unsigned i = 0; i < PLACES; i++)
            if (atomic_load_explicit(&places[i].id, memory_order_acquire) == id)
                return &places[i];
        if (atomic_compare_exchange_strong(&busy, &none, 1))
            break;
        none = 0;
    }
    struct capture *c = NULL;
    for (unsigned i = 0; i < PLACES && !c; i++) /* somebody may have begun it meanwhile */
        if (atomic_load_explicit(&places[i].id, memory_order_acquire) == id)
            c = &places[i];
    if (!c)
        c = begin(&places[atomic_fetch_add(&next_place, 1) % PLACES], id);
    atomic_store_explicit(&busy, 0, memory_order_release);
    return c;
}

void capture_forget(void)
{
    for (unsigned i = 0; i < PLACES; i++)
        atomic_store(&places[i].id, 0);
}
