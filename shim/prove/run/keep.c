/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define OUT_BYTES (128u * 1024u)
#define LEVEL 1 /* 32 MB/s of records at a million a second: level 1 takes a tenth of a core */

struct keep {
    int fd;
    ZSTD_CCtx *z;
    uint64_t bytes; /* written to the file */
    bool open_frame;
    const char *name;
    char out[OUT_BYTES];
};

struct keep *keep_open(int dirfd, const char *name, uint64_t bytes, struct error *e)
{
    struct keep *k = calloc(1, sizeof(*k));

    if (!k || !(k->z = ZSTD_createCCtx())) {
        free(k);
        error_set(e, name, 0, "out of memory");
        return NULL;
    }
    k->name = name;
    k->fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (k->fd < 0 || ftruncate(k->fd, (off_t)bytes) < 0 ||
        lseek(k->fd, (off_t)bytes, SEEK_SET) < 0) {
        error_set(e, name, 0, "can't write the records: %s", strerror(errno));
        keep_close(k);
        return NULL;
    }
    k->bytes = bytes;
    ZSTD_CCtx_setParameter(k->z, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(k->z, ZSTD_c_windowLog, 18); /* 256 KiB: the memory stays small */
    return k;
}

static int flush_out(struct keep *k, size_t n, struct error *e)
{
    const char *p = k->out;

    while (n) {
        ssize_t done = write(k->fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return error_set(e, k->name, 0, "can't write the records: %s", strerror(errno));
        p += done;
        n -= (size_t)done;
        k->bytes += (uint64_t)done;
    }
    return 0;
}

static int compress(struct keep *k, const void *data, size_t bytes, ZSTD_EndDirective how,
                    struct error *e)
{
    ZSTD_inBuffer in = {data, bytes, 0};
    size_t left;

    do {
        ZSTD_outBuffer out = {k->out, sizeof(k->out), 0};
        left = ZSTD_compressStream2(k->z, &out, &in, how);
        if (ZSTD_isError(left))
            return error_set(e, k->name, 0, "can't compress the records: %s",
                             ZSTD_getErrorName(left));
        if (flush_out(k, out.pos, e) < 0)
            return -1;
    } while (in.pos < in.size || (how == ZSTD_e_end && left));
    return 0;
}

int keep_write(struct keep *k, const struct ncclshim_record *r, size_t n, struct error *e)
{
    k->open_frame = true;
    return compress(k, r, n * sizeof(*r), ZSTD_e_continue, e);
}

int keep_checkpoint(struct keep *k, uint64_t *bytes, struct error *e)
{
    if (k->open_frame && compress(k, NULL, 0, ZSTD_e_end, e) < 0)
        return -1;
    k->open_frame = false;
    *bytes = k->bytes;
    return 0;
}

void keep_close(struct keep *k)
{
    if (!k)
        return;
    if (k->fd >= 0)
        close(k->fd);
    ZSTD_freeCCtx(k->z);
    free(k);
}
