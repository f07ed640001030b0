/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/logcopy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/replace.h"


#define PAGE 4096u
#define CHUNK (64u * PAGE)

static bool is_zero(const uint8_t *page, size_t n)
{
    return page[0] == 0 && !memcmp(page, page + 1, n - 1);
}

static int fail_copy(const char *name, struct error *e)
{
    return error_set(e, name, 0, "can't copy the log into the run folder: %s", strerror(errno));
}

/* Copy [at, end) page by page, leaving out those that hold nothing. */
static int copy_range(int from, int to, uint64_t at, uint64_t end, uint8_t *chunk, const char *name,
                      struct error *e)
{
    while (at < end) {
        size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        ssize_t got = pread(from, chunk, want, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got ? errno : EIO;
            return fail_copy(name, e);
        }
        for (size_t i = 0; i < (size_t)got; i += PAGE) {
            size_t n = (size_t)got - i < PAGE ? (size_t)got - i : PAGE;
            if (!is_zero(chunk + i, n) && pwrite(to, chunk + i, n, (off_t)(at + i)) != (ssize_t)n)
                return fail_copy(name, e);
        }
        at += (uint64_t)got;
    }
    return 0;
}

/* A ring's head as it was before the first record. */
static int copy_empty_ring(const struct log_file *f, int to, uint64_t offset, const char *name,
                           struct error *e)
{
    struct ncclshim_ring head;

    if (pread(f->fd, &head, sizeof(head), (off_t)offset) != (ssize_t)sizeof(head))
        return fail_copy(name, e);
    head.lap = 0;
    if (pwrite(to, &head, sizeof(head), (off_t)offset) != (ssize_t)sizeof(head))
        return fail_copy(name, e);
    return 0;
}

/*
 * By the header that was read last: a section that came since is not in it and is left out whole.
 */
static int copy_all(const struct log_file *f, int to, bool records, uint8_t *chunk,
                    const char *name, struct error *e)
{
    int rc = pwrite(to, &f->head, sizeof(f->head), 0) == (ssize_t)sizeof(f->head)
                 ? 0
                 : fail_copy(name, e);

    for (unsigned i = 0; !rc && i < NCCLSHIM_LOG_SECTIONS; i++) {
        const struct ncclshim_section *s = &f->head.sections[i];
        if (!s->type)
            continue;
        if (s->type == NCCLSHIM_SECTION_RING && !records)
            rc = copy_empty_ring(f, to, s->offset, name, e);
        else
            rc = copy_range(f->fd, to, s->offset, s->offset + s->bytes, chunk, name, e);
    }
    if (!rc && ftruncate(to, (off_t)f->head.file_bytes) < 0)
        rc = fail_copy(name, e);
    return rc;
}

int logcopy(const struct log_file *f, int dirfd, const char *name, bool records, struct error *e)
{
    struct replacement r;
    uint8_t *chunk;
    int rc;

    if (replace_begin(&r, dirfd, name) < 0)
        return fail_copy(name, e);
    chunk = malloc(CHUNK);
    rc =
        chunk ? copy_all(f, r.fd, records, chunk, name, e) : error_set(e, name, 0, "out of memory");
    free(chunk);
    if (replace_end(&r, !rc) < 0 && !rc)
        rc = fail_copy(name, e);
    return rc;
}
