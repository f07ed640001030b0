/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking records out of a ring while a GPU writes them.
 *
 * Each slot is copied twice and handed out only when both copies are equal and carry the expected
 * number. A record's halves are each written by one 16-byte store, but pread may copy a half in
 * pieces in any order: one copy could pair the number of one record with the times of another. Such
 * a mix means that the store fell into that very copy, so the other copy, which lies wholly before
 * or behind the store, differs.
 */
#include "shim/log/read/reader.h"

#include <string.h>

#include "shim/log/read/tables.h"

#define CHUNK 512u /* records copied at a time: 16 KiB, twice, on the stack */
#define JUMPS_MAX 5
#define AGAIN_MAX 64 /* so that a file somebody scribbles on can't hold us for ever */

enum slot {
    SLOT_DONE,    /* holds the record asked for, whole */
    SLOT_HALF,    /* one half of it */
    SLOT_MISSING, /* still an older record, or nothing */
    SLOT_PAST,    /* a later record: the one asked for is overwritten, or being so */
};

/* Numbers are compared modulo 2^32: a ring is far shorter than that. */
static enum slot judge(const struct ncclshim_record *r, uint64_t n, uint32_t capacity)
{
    uint32_t want = (uint32_t)(n + 1);
    int32_t a = (int32_t)(r->sequence - want), b = (int32_t)(r->sequence2 - want);

    if (a == 0 && b == 0)
        return SLOT_DONE;
    /* A later number in this slot is whole laps away; anything else is rubbish. */
    if ((a > 0 && (uint32_t)a % capacity == 0) || (b > 0 && (uint32_t)b % capacity == 0))
        return SLOT_PAST;
    return a == 0 || b == 0 ? SLOT_HALF : SLOT_MISSING;
}

static uint64_t slot_offset(const struct log_ring *ring, uint64_t n)
{
    return ring->offset + sizeof(struct ncclshim_ring) +
           (n & (ring->capacity - 1)) * sizeof(struct ncclshim_record);
}

static int slot_at(struct log_file *f, const struct log_ring *ring, uint64_t n, enum slot *s,
                   struct error *e)
{
    struct ncclshim_record r;

    if (log_pread(f, &r, sizeof(r), slot_offset(ring, n), e) < 0)
        return -1;
    *s = judge(&r, n, ring->capacity);
    return 0;
}

/* Number of a record that went to slot 0 and that lies less than two laps below the newest. */
static int ring_base(struct log_file *f, const struct log_ring *ring, uint64_t *base,
                     struct error *e)
{
    struct ncclshim_record r;
    uint64_t lap;
    uint32_t ahead;

    if (log_pread(f, &lap, sizeof(lap), ring->offset + offsetof(struct ncclshim_ring, lap), e) < 0)
        return -1;
    if (lap % ring->capacity || lap > UINT64_MAX / 2)
        return error_set(e, f->path, 0,
                         "the head of ring %u (byte %llu) says that record %llu went "
                         "to slot 0, which can't be",
                         ring->number, (unsigned long long)ring->offset, (unsigned long long)lap);
    if (log_pread(f, &r, sizeof(r), slot_offset(ring, 0), e) < 0)
        return -1;
    /*
     * `lap` may be behind what it describes by a moment, or by a store a killed writer never made.
     */
    ahead = r.sequence - (uint32_t)(lap + 1);
    if (ahead < UINT32_MAX / 2 && ahead % ring->capacity == 0)
        lap += ahead;
    *base = lap;
    return 0;
}

/* Is record n, or a later one in its slot, there at least in part? */
static int present(struct log_file *f, const struct log_ring *ring, uint64_t n, bool *yes,
                   struct error *e)
{
    enum slot s;

    if (slot_at(f, ring, n, &s, e) < 0)
        return -1;
    *yes = s != SLOT_MISSING;
    return 0;
}

/*
 * From n on, some records may be missing while others behind them are there (several streams write
 * at once): look a stretch ahead, and again from every record found.
 */
static int skip_holes(struct log_file *f, const struct log_ring *ring, uint64_t *n, uint64_t end,
                      struct error *e)
{
    struct ncclshim_record chunk[CHUNK];
    uint64_t at = *n, stop, missing = 0;

    while (at < end && missing < 2 * CHUNK) {
        stop = end - at < CHUNK ? end - at : CHUNK;
        if (stop > ring->capacity - (at & (ring->capacity - 1)))
            stop = ring->capacity - (at & (ring->capacity - 1));
        if (log_pread(f, chunk, stop * sizeof(chunk[0]), slot_offset(ring, at), e) < 0)
            return -1;
        for (uint64_t i = 0; i < stop; i++, at++) {
            missing++;
            if (judge(&chunk[i], at, ring->capacity) != SLOT_MISSING) {
                *n = at + 1;
                missing = 0;
            }
        }
    }
    return 0;
}

int ring_total(struct log_file *f, const struct log_ring *ring, uint64_t *total, struct error *e)
{
    uint64_t low, high, end, middle;
    bool yes;

    if (ring_base(f, ring, &low, e) < 0)
        return -1;
    /* All numbers below `low` were given out; find the last of this lap. */
    high = end = low + ring->capacity;
    while (low < high) {
        middle = low + (high - low) / 2;
        if (present(f, ring, middle, &yes, e) < 0)
            return -1;
        if (yes)
            low = middle + 1;
        else
            high = middle;
    }
    *total = low;
    return skip_holes(f, ring, total, end, e);
}

/* What one call of ring_read has learnt about records that can't be had. */
struct limits {
    uint64_t lost_from;  /* from here on, an overwritten record is counted one by one */
    uint64_t torn_below; /* below this, a record that is not whole will never be */
    unsigned jumps;
};

/*
 * The record at the cursor is overwritten: go on at the oldest that is still there. When the writer
 * overtakes us even so, it needs a start: an eighth of the ring, then more.
 */
static int jump(struct log_file *f, const struct log_ring *ring, struct ring_cursor *c,
                struct limits *l, struct error *e)
{
    static const uint32_t start_of[JUMPS_MAX] = {0, 1, 2, 4, 6}; /* eighths */
    uint64_t total, oldest;
    uint32_t eighths = start_of[l->jumps < JUMPS_MAX ? l->jumps : JUMPS_MAX - 1];

    l->jumps++;
    if (ring_total(f, ring, &total, e) < 0)
        return -1;
    oldest = total > ring->capacity ? total - ring->capacity : 0;
    if (oldest > c->next)
        oldest += (uint64_t)ring->capacity / 8 * eighths;
    if (oldest <= c->next)
        oldest = c->next + 1;
    c->lost += oldest - c->next;
    c->next = oldest;
    l->lost_from = oldest;
    return 0;
}

/*
 * May a record that is missing or half there still come? Not when the writer is gone. While it
 * lives it does, unless half a ring was written behind it: no kernel takes so long between taking
 * its slot and filling it, so the one that should have was killed.
 */
static int find_torn(struct log_file *f, const struct log_ring *ring, bool final, struct limits *l,
                     struct error *e)
{
    uint64_t total;

    if (ring_total(f, ring, &total, e) < 0)
        return -1;
    if (final)
        l->torn_below = total;
    else
        l->torn_below = total > ring->capacity / 2 ? total - ring->capacity / 2 : 0;
    return 0;
}

/* Guards against a cursor of another log, and against being more than a lap behind. */
static int check_cursor(struct log_file *f, const struct log_ring *ring, struct ring_cursor *c,
                        struct limits *l, struct error *e)
{
    uint64_t base;

    if (ring_base(f, ring, &base, e) < 0)
        return -1;
    if (c->next > base + 2ull * ring->capacity)
        return error_set(e, f->path, 0,
                         "ring %u holds fewer records than were read from it before: "
                         "it is another log",
                         ring->number);
    /* Numbers have 64 bits here and 32 in the ring: only within two laps are they told apart. */
    if (c->next + ring->capacity < base)
        return jump(f, ring, c, l, e);
    return 0;
}

enum why { GO_ON, AGAIN, OVERTAKEN, NOT_THERE };

/* Take what there is from one chunk, copied twice. */
static enum why take(const struct ncclshim_record *first, const struct ncclshim_record *second,
                     size_t n, uint32_t capacity, const struct limits *l, struct ring_cursor *c,
                     struct ncclshim_record *out, size_t *taken)
{
    size_t before = *taken;

    for (size_t i = 0; i < n; i++, c->next++) {
        enum slot s = judge(&second[i], c->next, capacity);

        if (s == SLOT_DONE && !memcmp(&first[i], &second[i], sizeof(first[i])))
            out[(*taken)++] = second[i];
        else if (s == SLOT_DONE)
            return AGAIN; /* it arrived between the two copies */
        else if (s == SLOT_PAST && (i > 0 || c->next >= l->lost_from))
            c->lost++; /* overtaken while we read; those behind it are still there */
        else if (s == SLOT_PAST)
            return OVERTAKEN;
        else if (c->next < l->torn_below)
            c->torn++;
        else
            return NOT_THERE;
    }
    return *taken == before && l->torn_below < c->next ? OVERTAKEN : GO_ON;
}

static int copy_twice(struct log_file *f, const struct log_ring *ring, uint64_t n, size_t count,
                      struct ncclshim_record *first, struct ncclshim_record *second,
                      struct error *e)
{
    if (log_pread(f, first, count * sizeof(*first), slot_offset(ring, n), e) < 0)
        return -1;
    return log_pread(f, second, count * sizeof(*second), slot_offset(ring, n), e);
}

long ring_read(struct log_file *f, const struct log_ring *ring, struct ring_cursor *c,
               struct ncclshim_record *out, size_t cap, bool final, struct error *e)
{
    struct ncclshim_record first[CHUNK], second[CHUNK];
    struct limits l = {UINT64_MAX, 0, 0};
    size_t taken = 0, n;
    int again = 0, rc = check_cursor(f, ring, c, &l, e);

    while (!rc && taken < cap) {
        n = ring->capacity - (c->next & (ring->capacity - 1));
        n = n < CHUNK ? n : CHUNK;
        n = n < cap - taken ? n : cap - taken;
        rc = copy_twice(f, ring, c->next, n, first, second, e);
        if (rc)
            break;
        switch (take(first, second, n, ring->capacity, &l, c, out, &taken)) {
        case GO_ON:
            break;
        case AGAIN:
            if (++again > AGAIN_MAX)
                return (long)taken;
            break;
        case OVERTAKEN:
            if (l.jumps >= JUMPS_MAX)
                return (long)taken; /* far too fast for us: the caller has other rings as well */
            rc = jump(f, ring, c, &l, e);
            break;
        case NOT_THERE:
            rc = find_torn(f, ring, final, &l, e);
            if (!rc && c->next >= l.torn_below)
                return (long)taken;
            break;
        }
    }
    return rc ? -1 : (long)taken;
}
