/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/log/read/tables.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Every table is read twice. An entry counts as published only when the first reading saw its state
 * word; its contents are those of the second, which began afterwards. pread promises no order
 * among the bytes of one copy, so one reading could pair a fresh state with stale contents. That the
 * second begins afterwards for the memory, too, is what the fence in log_pread is for: AArch64 may load
 * earlier what comes later.
 */

#define PAGE 4096u
#define TABLE_BYTES_MAX (1ull << 28) /* of all tables of a log: more is no log of ours */
#define ENTRIES_MAX (1u << 20)       /* call sites: each costs a reader about 1 KiB */
#define RING_CAPACITY_MAX (1u << 30)
#define NOTE_TRIES 4

struct tables {
    uint8_t *notes;
    size_t notes_bytes;
    struct ncclshim_comm *comms;
    uint32_t comm_count;
    struct ncclshim_site *sites;
    uint32_t site_count;
    struct log_ring *rings;
    uint32_t ring_count;
    uint64_t bytes; /* read so far, against TABLE_BYTES_MAX */
};

int log_pread(const struct log_file *f, void *buf, size_t bytes, uint64_t offset, struct error *e)
{
    uint8_t *p = buf;
    ssize_t n;

    while (bytes) {
        n = pread(f->fd, p, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(e, f->path, 0, "can't read the log at byte %llu: %s",
                             (unsigned long long)offset, strerror(errno));
        if (n == 0)
            return error_set(e, f->path, 0, "the log ends at byte %llu, before its contents do",
                             (unsigned long long)offset);
        p += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    atomic_thread_fence(memory_order_acquire);
    return 0;
}

static int bad_section(const struct log_file *f, unsigned i, const char *what, struct error *e)
{
    return error_set(
        e, f->path, 0, "section %u (described at byte %zu) %s", i,
        offsetof(struct ncclshim_log_header, sections) + i * sizeof(struct ncclshim_section), what);
}

static int check_section(const struct log_file *f, const struct ncclshim_log_header *h, unsigned i,
                         struct error *e)
{
    const struct ncclshim_section *s = &h->sections[i], *o;

    if (s->type > NCCLSHIM_SECTION_RING)
        return bad_section(f, i, "has an unknown type", e);
    if (s->offset % PAGE || s->offset < NCCLSHIM_LOG_HEADER_BYTES || s->offset > h->file_bytes ||
        s->bytes > h->file_bytes - s->offset)
        return bad_section(f, i, "lies outside the file", e);
    for (unsigned j = 0; j < i; j++) {
        o = &h->sections[j];
        if (o->type && s->offset < o->offset + o->bytes && o->offset < s->offset + s->bytes)
            return bad_section(f, i, "overlaps another", e);
    }
    return 0;
}

/* Make room for `more` bytes behind `*have` in the array *p. */
static int grow(const struct log_file *f, struct tables *t, void **p, size_t have, uint64_t more,
                struct error *e)
{
    void *q;

    t->bytes += more;
    if (t->bytes > TABLE_BYTES_MAX)
        return error_set(e, f->path, 0, "the log's tables are larger than a log's can be");
    q = realloc(*p, have + (size_t)more + 1);
    if (!q)
        return error_set(e, f->path, 0, "out of memory for the log's tables");
    *p = q;
    return 0;
}

#define CHUNK (64u * 1024u)

/* Read `count` entries whose first word is their state into out; see the top of the file. */
static int read_entries(const struct log_file *f, uint8_t *out, size_t entry, uint64_t count,
                        uint64_t offset, struct error *e)
{
    uint64_t bytes = count * entry;
    uint8_t *first = malloc(CHUNK);
    uint32_t state;
    int rc = first ? 0 : error_set(e, f->path, 0, "out of memory");

    for (uint64_t at = 0; !rc && at < bytes; at += CHUNK) {
        size_t n = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;
        rc = log_pread(f, first, n, offset + at, e);
        if (!rc)
            rc = log_pread(f, out + at, n, offset + at, e);
        for (size_t i = 0; !rc && i < n; i += entry) {
            memcpy(&state, first + i, sizeof(state));
            if (state == 0)
                memcpy(out + at + i, &state, sizeof(state));
        }
    }
    free(first);
    return rc;
}

/* Append one section of entries; all but the last section of a type count with their whole room. */
static int read_array(const struct log_file *f, struct tables *t, const struct ncclshim_section *s,
                      bool last, size_t entry, void **array, uint32_t *count, struct error *e)
{
    uint64_t room = s->bytes / entry, n = last && s->used < room ? s->used : room;

    if (*count + n > ENTRIES_MAX)
        return error_set(e, f->path, 0, "the log's tables are larger than a log's can be");
    if (grow(f, t, array, *count * entry, n * entry, e) < 0)
        return -1;
    if (read_entries(f, (uint8_t *)*array + *count * entry, entry, n, s->offset, e) < 0)
        return -1;
    *count += (uint32_t)n;
    return 0;
}

static uint64_t note_step(const struct ncclshim_note *n)
{
    uint64_t bytes = n->bytes ? n->bytes : NCCLSHIM_NOTE_ALIGN; /* 64 bits: it must not wrap */

    return (bytes + NCCLSHIM_NOTE_ALIGN - 1) / NCCLSHIM_NOTE_ALIGN * NCCLSHIM_NOTE_ALIGN;
}

/* Check that the notes lie end to end, and hide those the first reading did not see published. */
static int settle_notes(const struct log_file *f, uint8_t *notes, const uint8_t *first, uint64_t n,
                        uint64_t offset, struct error *e)
{
    uint64_t step;

    for (uint64_t at = 0; at < n; at += step) {
        struct ncclshim_note *note = (struct ncclshim_note *)(notes + at);
        const struct ncclshim_note *before = (const struct ncclshim_note *)(first + at);

        if (note->type == 0 && note->bytes == 0) {
            step = NCCLSHIM_NOTE_ALIGN;
            continue;
        }
        step = note_step(note);
        if (note->bytes < sizeof(*note) || step > n - at)
            return error_set(e, f->path, 0, "the note at byte %llu says it has %u bytes",
                             (unsigned long long)(offset + at), note->bytes);
        if (before->type == 0 || before->type == NCCLSHIM_NOTE_PENDING)
            note->type = NCCLSHIM_NOTE_PENDING;
    }
    return 0;
}

static int read_notes(const struct log_file *f, struct tables *t, const struct ncclshim_section *s,
                      struct error *e)
{
    uint64_t n = s->used < s->bytes ? s->used : s->bytes;
    uint8_t *first;
    int rc = 0;

    /* `used` may stand within a note's padding; what did not fit in the room was not written. */
    n = (n + NCCLSHIM_NOTE_ALIGN - 1) / NCCLSHIM_NOTE_ALIGN * NCCLSHIM_NOTE_ALIGN;
    if (n > s->bytes)
        n = s->bytes / NCCLSHIM_NOTE_ALIGN * NCCLSHIM_NOTE_ALIGN;
    if (grow(f, t, (void **)&t->notes, t->notes_bytes, n, e) < 0)
        return -1;
    first = malloc(n + 1);
    if (!first)
        return error_set(e, f->path, 0, "out of memory for the log's notes");
    /*
     * A note whose length was not there when its head was copied, but whose text was when that was
     * copied, looks like rubbish. It will not the next time.
     */
    for (int tries = 0; tries < NOTE_TRIES; tries++) {
        rc = log_pread(f, first, n, s->offset, e);
        if (!rc)
            rc = log_pread(f, t->notes + t->notes_bytes, n, s->offset, e);
        if (rc || !(rc = settle_notes(f, t->notes + t->notes_bytes, first, n, s->offset, e)))
            break;
    }
    if (!rc)
        t->notes_bytes += n;
    free(first);
    return rc;
}

static int read_ring(const struct log_file *f, struct tables *t, const struct ncclshim_section *s,
                     unsigned i, struct error *e)
{
    struct ncclshim_ring head;
    struct log_ring *r;

    if (s->bytes < sizeof(head))
        return bad_section(f, i, "is too small for a ring", e);
    if (log_pread(f, &head, 64, s->offset, e) < 0)
        return -1;
    if (head.record_bytes != sizeof(struct ncclshim_record))
        return bad_section(f, i, "is a ring whose records do not have 32 bytes", e);
    if (head.capacity < 2 || head.capacity > RING_CAPACITY_MAX ||
        (head.capacity & (head.capacity - 1)) ||
        head.capacity > (s->bytes - sizeof(head)) / sizeof(struct ncclshim_record))
        return bad_section(f, i,
                           "is a ring whose capacity is no power of two or more than its room", e);
    for (uint32_t j = 0; j < t->ring_count; j++)
        if (t->rings[j].number == s->number)
            return bad_section(f, i, "is a ring with the number of another", e);
    if (grow(f, t, (void **)&t->rings, t->ring_count * sizeof(*r), sizeof(*r), e) < 0)
        return -1;
    r = &t->rings[t->ring_count++];
    *r = (struct log_ring){
        .number = s->number, .device = head.device, .capacity = head.capacity, .offset = s->offset};
    return 0;
}

static bool last_of_type(const struct ncclshim_log_header *h, unsigned i)
{
    for (unsigned j = i + 1; j < NCCLSHIM_LOG_SECTIONS; j++)
        if (h->sections[j].type == h->sections[i].type)
            return false;
    return true;
}

static int read_section(const struct log_file *f, struct tables *t,
                        const struct ncclshim_log_header *h, unsigned i, struct error *e)
{
    const struct ncclshim_section *s = &h->sections[i];

    switch (s->type) {
    case NCCLSHIM_SECTION_NOTES:
        return read_notes(f, t, s, e);
    case NCCLSHIM_SECTION_COMMS:
        return read_array(f, t, s, last_of_type(h, i), sizeof(*t->comms), (void **)&t->comms,
                          &t->comm_count, e);
    case NCCLSHIM_SECTION_SITES:
        return read_array(f, t, s, last_of_type(h, i), sizeof(*t->sites), (void **)&t->sites,
                          &t->site_count, e);
    default:
        return read_ring(f, t, s, i, e);
    }
}

static void free_tables(uint8_t *notes, void *comms, void *sites, void *rings)
{
    free(notes);
    free(comms);
    free(sites);
    free(rings);
}

int log_tables_read(struct log_file *f, const struct ncclshim_log_header *h, struct error *e)
{
    struct tables t = {0};
    int rc = 0;

    for (unsigned i = 0; !rc && i < NCCLSHIM_LOG_SECTIONS; i++) {
        if (!h->sections[i].type)
            continue;
        rc = check_section(f, h, i, e);
        if (!rc)
            rc = read_section(f, &t, h, i, e);
    }
    if (rc) {
        free_tables(t.notes, t.comms, t.sites, t.rings);
        return rc;
    }
    free_tables(f->notes, f->comms, f->sites, f->rings);
    f->head = *h;
    f->notes = t.notes;
    f->notes_bytes = t.notes_bytes;
    f->comms = t.comms;
    f->comm_count = t.comm_count;
    f->sites = t.sites;
    f->site_count = t.site_count;
    f->rings = t.rings;
    f->ring_count = t.ring_count;
    return 0;
}
