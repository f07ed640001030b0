/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log file for tests, in a shared mapping, and records written into it as a GPU would. Records
 * are made up from their number, so that a reader can check every word of what it got.
 */
#ifndef NCCLSHIM_TEST_LOGFIXTURE_H
#define NCCLSHIM_TEST_LOGFIXTURE_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/ncclshim/log.h"

struct fixture {
    char path[256];
    uint8_t *m;
    uint64_t bytes;
    uint32_t capacity, sites;
    struct ncclshim_log_header *head;
    struct ncclshim_ring *ring;
    struct ncclshim_record *records;
    struct ncclshim_site *site;
    struct ncclshim_comm *comm;
    uint8_t *notes;
    uint64_t next; /* number of the next record */
};

#define FIXTURE_NOTES_BYTES 8192u
#define FIXTURE_COMMS 16u

static inline uint64_t fixture_start_ns(uint64_t n)
{
    return 1000000000ull + n * 1000;
}

static inline uint64_t fixture_end_ns(uint64_t n)
{
    return fixture_start_ns(n) + 100 + n % 400;
}

static inline uint64_t fixture_ticks(void)
{
    unsigned long long ticks = 0;
    char buf[1024] = "", *p;
    int fd = open("/proc/self/stat", O_RDONLY);

    if (read(fd, buf, sizeof(buf) - 1) > 0 && (p = strrchr(buf, ')')))
        sscanf(p + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks);
    close(fd);
    return ticks;
}

/* Say that this process writes the log (a forked child calls it anew). */
static inline void fixture_sign(struct fixture *x)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY);
    struct stat st;

    memset(x->head->boot_id, 0, sizeof(x->head->boot_id));
    if (read(fd, x->head->boot_id, 36) != 36)
        x->head->boot_id[0] = '?';
    close(fd);
    stat("/proc/self/ns/pid", &st);
    x->head->pid = (uint32_t)getpid();
    x->head->uid = getuid();
    x->head->start_ticks = fixture_ticks();
    x->head->pid_ns = st.st_ino;
}

static inline void fixture_section(struct fixture *x, unsigned i, uint32_t type, uint64_t *at,
                                   uint64_t bytes)
{
    x->head->sections[i] = (struct ncclshim_section){type, 0, *at, bytes, 0};
    *at += (bytes + 4095) / 4096 * 4096;
}

/* A fresh log of `sites` call sites: one captured graph of all of them, on one communicator. */
static inline void fixture_make(struct fixture *x, const char *folder, uint32_t capacity,
                                uint32_t sites)
{
    static unsigned number;
    uint64_t at = 4096;
    int fd;

    memset(x, 0, sizeof(*x));
    snprintf(x->path, sizeof(x->path), "%s/unit-%d-%u.ncclshim", folder, (int)getpid(), number++);
    x->capacity = capacity;
    x->sites = sites;
    x->bytes = 4096 + FIXTURE_NOTES_BYTES + 4096 + (sites * 64ull + 4095) / 4096 * 4096 + 4096 +
               (capacity * 32ull + 4095) / 4096 * 4096;
    unlink(x->path);
    fd = open(x->path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)x->bytes) < 0)
        abort();
    x->m = mmap(NULL, x->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    x->head = (void *)x->m;
    memcpy(x->head->magic, NCCLSHIM_LOG_MAGIC, 8);
    x->head->version = NCCLSHIM_LOG_VERSION;
    x->head->byte_order = NCCLSHIM_LOG_BYTE_ORDER;
    x->head->header_bytes = NCCLSHIM_LOG_HEADER_BYTES;
    x->head->state = NCCLSHIM_LOG_OPEN;
    x->head->file_bytes = x->bytes;
    snprintf(x->head->host, sizeof(x->head->host), "unit");
    fixture_section(x, 0, NCCLSHIM_SECTION_NOTES, &at, FIXTURE_NOTES_BYTES);
    fixture_section(x, 1, NCCLSHIM_SECTION_COMMS, &at, FIXTURE_COMMS * 256);
    fixture_section(x, 2, NCCLSHIM_SECTION_SITES, &at, sites * 64ull);
    fixture_section(x, 3, NCCLSHIM_SECTION_RING, &at, 4096 + capacity * 32ull);
    x->notes = x->m + x->head->sections[0].offset;
    x->comm = (void *)(x->m + x->head->sections[1].offset);
    x->site = (void *)(x->m + x->head->sections[2].offset);
    x->ring = (void *)(x->m + x->head->sections[3].offset);
    x->records = (void *)((uint8_t *)x->ring + 4096);
    x->ring->capacity = capacity;
    x->ring->record_bytes = 32;
    x->comm[0] = (struct ncclshim_comm){.state = NCCLSHIM_COMM_READY,
                                        .parent = -1,
                                        .ranks = 1,
                                        .hash = 0x1234,
                                        .wrapped_calls = sites};
    x->head->sections[1].used = 1;
    for (uint32_t i = 0; i < sites; i++)
        x->site[i] = (struct ncclshim_site){.state = 1,
                                            .flags = 3,
                                            .capture = 1,
                                            .index = i,
                                            .bytes = 43008,
                                            .root = -1,
                                            .issued = 1,
                                            .stamped = 1};
    x->head->sections[2].used = sites;
    fixture_sign(x);
}

static inline void fixture_drop(struct fixture *x)
{
    munmap(x->m, x->bytes);
    unlink(x->path);
}

/* One half of a record, by one 16-byte store. */
static inline void fixture_half(struct fixture *x, uint64_t n, int half, uint64_t ns, uint32_t word)
{
    typedef uint64_t pair __attribute__((vector_size(16), aligned(16)));
    volatile pair *to = (volatile pair *)&x->records[n & (x->capacity - 1)] + half;

    *to = (pair){ns, (uint64_t)(uint32_t)(n + 1) << 32 | word};
}

static inline void fixture_lap(struct fixture *x, uint64_t n)
{
    if ((n & (x->capacity - 1)) == 0)
        atomic_store_explicit((_Atomic uint64_t *)&x->ring->lap, n, memory_order_release);
}

/* Record number n, whole. */
static inline void fixture_put(struct fixture *x, uint64_t n)
{
    fixture_lap(x, n);
    fixture_half(x, n, 0, fixture_start_ns(n), (uint32_t)(n % x->sites));
    fixture_half(x, n, 1, fixture_end_ns(n), (uint32_t)(n / x->sites));
}

/* The next `count` records. */
static inline void fixture_write(struct fixture *x, uint64_t count)
{
    while (count--)
        fixture_put(x, x->next++);
}

/* Is it record number n, word for word? */
static inline bool fixture_is(const struct fixture *x, const struct ncclshim_record *r, uint64_t n)
{
    return r->start_ns == fixture_start_ns(n) && r->end_ns == fixture_end_ns(n) &&
           r->site == n % x->sites && r->run == (uint32_t)(n / x->sites) &&
           r->sequence == (uint32_t)(n + 1) && r->sequence2 == (uint32_t)(n + 1);
}

/* A note with a text of n bytes. Returns its offset in the section. */
static inline uint64_t fixture_note(struct fixture *x, uint32_t type, const char *words, size_t n)
{
    uint64_t at = x->head->sections[0].used;
    struct ncclshim_note *note = (void *)(x->notes + at);

    note->bytes = (uint32_t)(sizeof(*note) + n);
    memcpy(note + 1, words, n);
    note->type = type;
    x->head->sections[0].used += (sizeof(*note) + n + 63) / 64 * 64;
    return at;
}

#endif
