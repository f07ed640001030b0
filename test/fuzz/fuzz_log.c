/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing the log reader and the reader of statistics: whatever the bytes, no crash, no endless
 * loop, and every record number accounted for.
 *
 *   make build/fuzz/fuzz_log && build/fuzz/fuzz_log -max_len=65536 -rss_limit_mb=4096 CORPUS
 *
 * Random bytes never look like a log. The input is therefore taken as a log whose magic, version
 * and byte order are put right, and whose digest, for statistics, is.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/base/digest.h"
#include "shim/log/read/reader.h"
#include "shim/stats/accum.h"
#include "shim/stats/histfile.h"
#include "shim/stats/histfile_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BATCH 512
static struct ncclshim_record batch[BATCH];

static void read_ring_of(struct log_file *f, const struct log_ring *ring, struct accum *a)
{
    struct ring_cursor c = {0};
    uint64_t handed = 0, total;
    struct error e;
    long n;

    ring_total(f, ring, &total, &e);
    for (int final = 0; final < 2; final++)
        while ((n = ring_read(f, ring, &c, batch, BATCH, final, &e)) > 0) {
            handed += (uint64_t)n;
            accum_feed(a, ring->number, batch, (size_t)n, f->sites, f->site_count);
        }
    if (handed + c.lost + c.torn != c.next)
        abort();
}

static void read_log(const char *path)
{
    const struct ncclshim_note *n = NULL;
    struct log_file *f;
    struct accum a;
    struct error e;
    char text[256];

    if (log_open(path, &f, &e) < 0)
        return;
    accum_init(&a);
    while ((n = log_note_next(f, n)))
        log_note_text(n, n->a % 128, text, sizeof(text));
    for (uint32_t i = 0; i < f->ring_count; i++)
        read_ring_of(f, &f->rings[i], &a);
    if (f->head.pid % 256 == 0) /* it may read all of /proc: now and then will do */
        log_writer_lives(f);
    log_refresh(f, &e);
    accum_finish(&a);
    accum_free(&a);
    log_free(f);
}

static void read_statistics(const char *path)
{
    struct histfile h;
    struct accum a;
    struct error e;

    accum_init(&a);
    if (histfile_load(path, &a, &h, &e) == 0) {
        for (uint32_t i = 0; i < a.site_cap; i++)
            hist_quantile(&a.sites[i].ns, 0.99);
        accum_finish(&a);
        histfile_free(&h);
    }
    accum_free(&a);
}

static void put(uint8_t *copy, size_t at, const void *bytes, size_t n, size_t size)
{
    if (at + n <= size)
        memcpy(copy + at, bytes, n);
}

static void as_log(uint8_t *copy, size_t size)
{
    uint32_t words[] = {NCCLSHIM_LOG_VERSION, NCCLSHIM_LOG_BYTE_ORDER, NCCLSHIM_LOG_HEADER_BYTES};

    put(copy, 0, NCCLSHIM_LOG_MAGIC, 8, size);
    put(copy, 8, words, sizeof(words), size);
}

static void as_statistics(uint8_t *copy, size_t size)
{
    uint32_t words[] = {HISTFILE_VERSION, HISTFILE_BYTE_ORDER};
    uint64_t bytes = size, digest;

    put(copy, 0, HISTFILE_MAGIC, 8, size);
    put(copy, 8, words, sizeof(words), size);
    put(copy, 16, &bytes, sizeof(bytes), size);
    if (size < 8)
        return;
    digest = digest_bytes(DIGEST_START, copy, size - 8);
    put(copy, size - 8, &digest, 8, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", 0);
    uint8_t *copy = malloc(size + 1);
    char path[64];

    if (fd < 0 || !copy || size == 0)
        goto out;
    memcpy(copy, data, size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    (size > 8 && !memcmp(data, HISTFILE_MAGIC, 8) ? as_statistics : as_log)(copy, size);
    if (pwrite(fd, copy, size, 0) == (ssize_t)size) {
        read_log(path);
        read_statistics(path);
    }
out:
    free(copy);
    if (fd >= 0)
        close(fd);
    return 0;
}
