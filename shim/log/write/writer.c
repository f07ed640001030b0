/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/log/write/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/paths.h"
#include "shim/log/write/identity.h"
#include "shim/log/write/space.h"

#define PAGE 4096u
#define COMM_CAP 8192u       /* 2 MiB; see take_ended for programs that make more */
#define COMM_LEAST 64u
#define NOTES_BYTES (256u << 10)
#define SITE_LEAST 512u
#define RING_LEAST 1024u
#define FIRST_RING_SLOT 3u /* behind the three fixed sections there are rings alone */

/* The log's words that others read while we write. C11 atomics on plain mapped integers. */
#define A32(p) ((_Atomic uint32_t *)(p))
#define A64(p) ((_Atomic uint64_t *)(p))

uint64_t log_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t); /* vDSO: no system call */
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Several threads may add a ring, each for the context of its own GPU. */
static void room_take(struct log_writer *w, uint64_t bytes)
{
    uint64_t room = atomic_load(A64(&w->room));

    while (!atomic_compare_exchange_weak(A64(&w->room), &room, bytes < room ? room - bytes : 0))
        ;
}

static uint64_t page_up(uint64_t n)
{
    return (n + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static void section_publish(struct ncclshim_log_header *h, unsigned slot, uint32_t type,
                            uint32_t number, uint64_t offset, uint64_t bytes)
{
    struct ncclshim_section *s = &h->sections[slot];

    s->number = number;
    s->offset = offset;
    s->bytes = bytes;
    atomic_store_explicit(A32(&s->type), type, memory_order_release);
}

/* Made exclusively, following no link: something planted under the name makes us take the next. */
static int create_file(struct log_writer *w, int dir_fd, const char *dir, struct error *e)
{
    struct identity id;
    char name[200];
    int fd = -1;

    identity_read(&id);
    for (unsigned attempt = 0; attempt < 64; attempt++) {
        if (log_file_name(name, sizeof(name), id.host, id.pid, id.start_ticks, attempt))
            return error_set(e, dir, 0, "the name of the log does not fit");
        fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            break;
    }
    snprintf(w->path, sizeof(w->path), "%s/%s", dir, name);
    if (fd < 0)
        return error_set(e, w->path, 0, "can't make the log: %s", strerror(errno));
    return fd;
}

static void fill_header(struct ncclshim_log_header *h, uint64_t bytes)
{
    struct identity id;

    identity_read(&id);
    h->version = NCCLSHIM_LOG_VERSION;
    h->byte_order = NCCLSHIM_LOG_BYTE_ORDER;
    h->header_bytes = NCCLSHIM_LOG_HEADER_BYTES;
    h->file_bytes = bytes;
    h->pid = id.pid;
    h->uid = id.uid;
    h->start_ticks = id.start_ticks;
    h->pid_ns = id.pid_ns;
    memcpy(h->boot_id, id.boot_id, sizeof(h->boot_id));
    memcpy(h->host, id.host, sizeof(h->host));
    snprintf(h->shim_version, sizeof(h->shim_version), "%s", NCCLSHIM_VERSION);
    h->created_ns = log_now_ns();
    h->state = NCCLSHIM_LOG_OPEN;
}

static int map_fixed(struct log_writer *w, uint32_t comm_cap, uint32_t site_cap, struct error *e)
{
    uint64_t comms = page_up((uint64_t)comm_cap * sizeof(struct ncclshim_comm));
    uint64_t sites = page_up((uint64_t)site_cap * sizeof(struct ncclshim_site));
    uint64_t total = PAGE + NOTES_BYTES + comms + sites;
    uint8_t *base;

    if (space_reserve(w->fd, 0, total, w->path, e))
        return -1;
    base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
    if (base == MAP_FAILED)
        return error_set(e, w->path, 0, "can't map the log: %s", strerror(errno));
    w->head = (struct ncclshim_log_header *)base;
    w->notes = base + PAGE;
    w->notes_cap = NOTES_BYTES;
    w->comms = (struct ncclshim_comm *)(base + PAGE + NOTES_BYTES);
    w->comm_cap = comm_cap;
    w->sites = (struct ncclshim_site *)(base + PAGE + NOTES_BYTES + comms);
    w->site_cap = site_cap;
    fill_header(w->head, total);
    section_publish(w->head, 0, NCCLSHIM_SECTION_NOTES, 0, PAGE, NOTES_BYTES);
    section_publish(w->head, 1, NCCLSHIM_SECTION_COMMS, 0, PAGE + NOTES_BYTES, comms);
    section_publish(w->head, 2, NCCLSHIM_SECTION_SITES, 0, PAGE + NOTES_BYTES + comms, sites);
    atomic_thread_fence(memory_order_release);
    memcpy(w->head->magic, NCCLSHIM_LOG_MAGIC, sizeof(w->head->magic));
    room_take(w, total);
    return 0;
}

int log_writer_open(struct log_writer *w, const char *dir, uint32_t site_cap, struct error *e)
{
    uint32_t comm_cap = COMM_CAP;
    int dir_fd;

    memset(w, 0, sizeof(*w));
    w->fd = -1;
    w->pid = (int)getpid();
    dir_fd = log_dir_open(dir, true, e);
    if (dir_fd < 0)
        return -1;
    w->fd = create_file(w, dir_fd, dir, e);
    if (w->fd < 0) {
        close(dir_fd);
        return -1;
    }
    w->room = space_share(w->fd);
    while (site_cap > SITE_LEAST && (uint64_t)site_cap * sizeof(struct ncclshim_site) > w->room / 4)
        site_cap /= 2;
    while (comm_cap > COMM_LEAST && (uint64_t)comm_cap * sizeof(struct ncclshim_comm) > w->room / 8)
        comm_cap /= 2;
    if (map_fixed(w, comm_cap, site_cap, e)) {
        unlinkat(dir_fd, strrchr(w->path, '/') + 1, 0);
        close(w->fd);
        w->fd = -1;
        w->head = NULL;
        close(dir_fd);
        return -1;
    }
    close(dir_fd);
    return 0;
}

void log_writer_close(struct log_writer *w)
{
    if (!w->head || w->pid != (int)getpid())
        return;
    w->head->closed_ns = log_now_ns();
    atomic_store_explicit(A32(&w->head->state), NCCLSHIM_LOG_CLOSED, memory_order_release);
}

/* Claim the next free section slot and the next stretch of the file for it. */
static int section_claim(struct log_writer *w, uint64_t bytes, uint64_t *offset)
{
    for (unsigned s = FIRST_RING_SLOT; s < NCCLSHIM_LOG_SECTIONS; s++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(A64(&w->head->sections[s].bytes), &none, bytes)) {
            *offset = atomic_fetch_add(A64(&w->head->file_bytes), bytes);
            return (int)s;
        }
    }
    return -1;
}

struct ncclshim_ring *log_ring_add(struct log_writer *w, uint32_t capacity, int device,
                                   uint32_t *number, struct error *e)
{
    uint64_t bytes, offset;
    struct ncclshim_ring *ring;
    int slot;

    if (!w->head) {
        error_set(e, NULL, 0, "there is no log");
        return NULL;
    }
    while (capacity > RING_LEAST &&
           PAGE + (uint64_t)capacity * sizeof(struct ncclshim_record) > atomic_load(A64(&w->room)))
        capacity /= 2;
    for (;; capacity /= 2) {
        bytes = page_up(PAGE + (uint64_t)capacity * sizeof(struct ncclshim_record));
        offset = atomic_load(A64(&w->head->file_bytes));
        /* Try the room first, at the end of the file: a slot, once claimed, is never given back. */
        if (!space_reserve(w->fd, offset, bytes, w->path, e))
            break;
        /* Not cut off: another thread's ring may lie behind `offset` by now. */
        if (capacity / 2 < RING_LEAST)
            return NULL;
    }
    slot = section_claim(w, bytes, &offset);
    if (slot < 0) {
        error_set(e, w->path, 0, "more GPUs or contexts than a log has room for");
        return NULL;
    }
    /* Another thread may have claimed the stretch that was tried: make sure of the real one. */
    if (space_reserve(w->fd, offset, bytes, w->path, e))
        return NULL;
    ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, w->fd, (off_t)offset);
    if (ring == MAP_FAILED) {
        error_set(e, w->path, 0, "can't map a ring: %s", strerror(errno));
        return NULL;
    }
    ring->capacity = capacity;
    ring->record_bytes = sizeof(struct ncclshim_record);
    ring->device = device;
    *number = (uint32_t)slot - FIRST_RING_SLOT;
    room_take(w, bytes);
    w->head->sections[slot].offset = offset;
    return ring;
}

void log_ring_publish(struct log_writer *w, uint32_t number)
{
    unsigned slot = number + FIRST_RING_SLOT;
    const struct ncclshim_section *s = &w->head->sections[slot];

    section_publish(w->head, slot, NCCLSHIM_SECTION_RING, number, s->offset, s->bytes);
}

/* Index of a fresh entry of a fixed section, or -1 when it is full (counted in *lost). */
static int64_t take_entry(struct log_writer *w, unsigned section, uint32_t cap, uint64_t *lost)
{
    uint64_t i;

    if (!w->head)
        return -1;
    i = atomic_fetch_add_explicit(A64(&w->head->sections[section].used), 1, memory_order_relaxed);
    if (i < cap)
        return (int64_t)i;
    atomic_fetch_add_explicit(A64(lost), 1, memory_order_relaxed);
    return -1;
}

/*
 * When the table is full: the entry of a communicator that ended without a single call. No record
 * and no call site names it, so it can be another's.
 */
static struct ncclshim_comm *take_ended(struct log_writer *w, uint32_t *number)
{
    for (uint32_t i = 0; i < w->comm_cap; i++) {
        struct ncclshim_comm *c = &w->comms[i];
        uint32_t ended = NCCLSHIM_COMM_ENDED;
        if (c->wrapped_calls || c->missed_calls ||
            !atomic_compare_exchange_strong(A32(&c->state), &ended, NCCLSHIM_COMM_FREE))
            continue;
        memset(c, 0, sizeof(*c));
        *number = i;
        return c;
    }
    return NULL;
}

struct ncclshim_comm *log_comm_add(struct log_writer *w, uint32_t *number)
{
    struct ncclshim_comm *again = NULL;
    int64_t i;

    if (w->head && atomic_load_explicit(A64(&w->head->sections[1].used), memory_order_relaxed) >= w->comm_cap)
        again = take_ended(w, number);
    if (again)
        return again;
    i = take_entry(w, 1, w->comm_cap, w->head ? &w->head->comms_lost : NULL);
    if (i < 0)
        return NULL;
    *number = (uint32_t)i;
    return &w->comms[i];
}

struct ncclshim_site *log_site_add(struct log_writer *w, uint32_t *number)
{
    int64_t i = take_entry(w, 2, w->site_cap, w->head ? &w->head->sites_lost : NULL);

    if (i < 0)
        return NULL;
    *number = (uint32_t)i;
    return &w->sites[i];
}

bool log_sites_full(const struct log_writer *w)
{
    return w->head && atomic_load_explicit(A64(&w->head->sections[2].used), memory_order_relaxed) >= w->site_cap;
}

void *log_note(struct log_writer *w, enum ncclshim_note_type type, uint32_t a, uint32_t b,
               uint64_t value, const void *body, size_t body_bytes, const char *text,
               size_t text_bytes)
{
    size_t bytes = sizeof(struct ncclshim_note) + body_bytes + text_bytes;
    size_t step = (bytes + NCCLSHIM_NOTE_ALIGN - 1) & ~(size_t)(NCCLSHIM_NOTE_ALIGN - 1);
    struct ncclshim_note *n;
    uint64_t at;

    if (!w->head)
        return NULL;
    at = atomic_fetch_add_explicit(A64(&w->head->sections[0].used), step, memory_order_relaxed);
    if (at + step > w->notes_cap) {
        atomic_fetch_add_explicit(A64(&w->head->notes_lost), 1, memory_order_relaxed);
        return NULL;
    }
    n = (struct ncclshim_note *)(w->notes + at);
    /* Length first, so that a reader can step over a note whose writer was killed half-way. */
    atomic_store_explicit(A32(&n->bytes), (uint32_t)bytes, memory_order_release);
    atomic_store_explicit(A32(&n->type), NCCLSHIM_NOTE_PENDING, memory_order_release);
    n->a = a;
    n->b = b;
    n->value = value;
    n->time_ns = log_now_ns();
    if (body_bytes)
        memcpy(n + 1, body, body_bytes);
    if (text_bytes)
        memcpy((uint8_t *)(n + 1) + body_bytes, text, text_bytes);
    atomic_store_explicit(A32(&n->type), (uint32_t)type, memory_order_release);
    return n + 1;
}

void log_warn(struct log_writer *w, int comm, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    int n;

    if (!w->head)
        return;
    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if ((size_t)n >= sizeof(text))
        n = sizeof(text) - 1;
    log_note(w, NCCLSHIM_NOTE_WARNING, (uint32_t)(comm + 1), 0, 0, NULL, 0, text, (size_t)n + 1);
}
