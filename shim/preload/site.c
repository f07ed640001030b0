/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/site.h"


#define TABLE (1u << 17) /* sites by hash; four times as many places as sites ever */
#define PROBES 64u

static _Atomic uint32_t table[TABLE]; /* site number + 1; 0 = free */

static void fill(struct ncclshim_site *s, const struct comm *c, const struct call_desc *d,
                 uint8_t flags, uint32_t capture, uint32_t index)
{
    s->comm = c->number;
    s->op = (uint8_t)d->op;
    s->dtype = (uint8_t)d->dtype;
    s->redop = (uint8_t)d->redop;
    s->flags = (uint8_t)(flags | (d->in_place ? NCCLSHIM_SITE_IN_PLACE : 0));
    s->algo = s->proto = NCCLSHIM_NO_CHOICE;
    s->count = d->count;
    s->bytes = d->bytes;
    s->capture = capture;
    s->index = index;
    s->root = d->root;
    atomic_store_explicit((_Atomic uint32_t *)&s->state, 1, memory_order_release);
}

/* TIMED, FILTERED and CHAINED are added later; the rest tells sites apart. */
#define IDENTITY_FLAGS (NCCLSHIM_SITE_PART | NCCLSHIM_SITE_IN_PLACE | NCCLSHIM_SITE_CAPTURED)

static bool is_site_of(const struct ncclshim_site *s, const struct comm *c,
                       const struct call_desc *d, uint8_t flags, uint32_t index)
{
    uint8_t want = (uint8_t)(flags | (d->in_place ? NCCLSHIM_SITE_IN_PLACE : 0));

    return s->comm == c->number && s->op == d->op && s->dtype == d->dtype && s->redop == d->redop &&
           s->count == d->count && s->bytes == d->bytes && s->root == d->root && s->index == index &&
           (s->flags & IDENTITY_FLAGS) == want;
}

static uint64_t hash_of(const struct comm *c, const struct call_desc *d, uint8_t flags,
                        uint32_t index)
{
    uint64_t h = ((uint64_t)c->number << 32) ^ d->count * 0x9e3779b97f4a7c15ull ^
                 (uint64_t)d->op << 24 ^ (uint64_t)d->dtype << 16 ^ (uint64_t)(uint32_t)d->root << 5 ^
                 flags ^ (uint64_t)index << 40;

    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9ull;
    return h ^ h >> 32;
}

struct site_ref site_eager(struct log_writer *log, const struct comm *c, const struct call_desc *d,
                           uint8_t flags)
{
    uint64_t h = hash_of(c, d, flags, 0);
    struct site_ref ref = {NULL, 0};

    for (unsigned probe = 0; probe < PROBES; probe++) {
        _Atomic uint32_t *place = &table[(h + probe) & (TABLE - 1)];
        uint32_t have = atomic_load_explicit(place, memory_order_acquire);
        if (have == 0) {
            if (!ref.site)
                ref.site = log_site_add(log, &ref.number);
            if (!ref.site)
                return ref;
            fill(ref.site, c, d, flags, 0, 0);
            if (atomic_compare_exchange_strong(place, &have, ref.number + 1))
                return ref;
            /* Another thread was first; if with another site, ours goes to the next place. */
        }
        if (is_site_of(&log->sites[have - 1], c, d, flags, 0))
            return (struct site_ref){&log->sites[have - 1], have - 1};
    }
    return (struct site_ref){NULL, 0};
}

/*
 * A program that captures the same work again and again (and updates its graphs with
 * cudaGraphExecUpdate) would use up the table. When it is full, a captured call takes the site of an
 * earlier capture's call with the same place and description.
 */
static struct site_ref earlier_capture(struct log_writer *log, const struct comm *c,
                                       const struct call_desc *d, uint8_t flags, uint32_t index)
{
    uint64_t h = hash_of(c, d, flags, index);

    for (unsigned probe = 0; probe < PROBES; probe++) {
        uint32_t have = atomic_load_explicit(&table[(h + probe) & (TABLE - 1)], memory_order_acquire);
        if (have == 0)
            break;
        if (is_site_of(&log->sites[have - 1], c, d, flags, index))
            return (struct site_ref){&log->sites[have - 1], have - 1};
    }
    return (struct site_ref){NULL, 0};
}

struct site_ref site_captured(struct log_writer *log, const struct comm *c,
                              const struct call_desc *d, uint8_t flags, uint32_t capture,
                              uint32_t index)
{
    struct site_ref ref = {NULL, 0};
    uint64_t h;

    flags |= NCCLSHIM_SITE_CAPTURED;
    if (log_sites_full(log)) {
        ref = earlier_capture(log, c, d, flags, index);
        if (ref.site)
            return ref;
    }
    ref.site = log_site_add(log, &ref.number);
    if (!ref.site)
        return ref;
    fill(ref.site, c, d, flags, capture, index);
    h = hash_of(c, d, flags, index);
    for (unsigned probe = 0; probe < PROBES; probe++) {
        uint32_t none = 0;
        if (atomic_compare_exchange_strong(&table[(h + probe) & (TABLE - 1)], &none, ref.number + 1))
            break;
    }
    return ref;
}

void site_add_flags(struct ncclshim_site *s, uint8_t flags)
{
    if ((s->flags & flags) != flags)
        atomic_fetch_or_explicit((_Atomic uint8_t *)&s->flags, flags, memory_order_relaxed);
}

void site_count(struct ncclshim_site *s, bool stamped)
{
    atomic_fetch_add_explicit((_Atomic uint64_t *)&s->issued, 1, memory_order_relaxed);
    if (stamped)
        atomic_fetch_add_explicit((_Atomic uint64_t *)&s->stamped, 1, memory_order_relaxed);
}

void site_choice(struct ncclshim_site *s, const struct choice *choice)
{
    if (choice->algo == NCCLSHIM_NO_CHOICE)
        return;
    s->algo = choice->algo;
    s->proto = choice->proto;
    s->channels = choice->channels;
    s->warps = choice->warps;
}

void site_forget(void)
{
    for (uint32_t i = 0; i < TABLE; i++)
        if (atomic_load_explicit(&table[i], memory_order_relaxed))
            atomic_store_explicit(&table[i], 0, memory_order_relaxed);
}
