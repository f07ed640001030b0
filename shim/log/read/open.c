/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a log and checking that it is one; its tables are read in tables.c. */
#include "shim/log/read/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/log/read/tables.h"

static int check_head(const struct ncclshim_log_header *h, const char *path, struct error *e)
{
    if (memcmp(h->magic, NCCLSHIM_LOG_MAGIC, sizeof(h->magic)) != 0)
        return error_set(e, path, 0, "not a log of ncclshim (it does not begin with %s)",
                         NCCLSHIM_LOG_MAGIC);
    if (h->byte_order != NCCLSHIM_LOG_BYTE_ORDER)
        return error_set(e, path, 0,
                         "the log's byte order mark is %#x, not %#x: read it on a "
                         "little-endian machine",
                         h->byte_order, NCCLSHIM_LOG_BYTE_ORDER);
    if (h->version != NCCLSHIM_LOG_VERSION)
        return error_set(e, path, 0,
                         "the log has version %u, this command reads version %u: use "
                         "the ncclshim that wrote it",
                         h->version, NCCLSHIM_LOG_VERSION);
    if (h->header_bytes != NCCLSHIM_LOG_HEADER_BYTES)
        return error_set(e, path, 0, "the log's header says it has %u bytes, not %u",
                         h->header_bytes, NCCLSHIM_LOG_HEADER_BYTES);
    if (h->state != NCCLSHIM_LOG_OPEN && h->state != NCCLSHIM_LOG_CLOSED)
        return error_set(e, path, 0, "the log's state is %u, neither open nor closed", h->state);
    return 0;
}

/* Texts in the header come from a file: make sure that they end. */
static void end_texts(struct ncclshim_log_header *h)
{
    h->boot_id[sizeof(h->boot_id) - 1] = '\0';
    h->host[sizeof(h->host) - 1] = '\0';
    h->shim_version[sizeof(h->shim_version) - 1] = '\0';
}

/*
 * Read the header twice: a section counts as there only when the first reading saw its type, which
 * is stored last; its other words are those of the second reading (see tables.c).
 */
static int read_head(const struct log_file *f, struct ncclshim_log_header *h, struct error *e)
{
    struct ncclshim_log_header first;
    ssize_t n;

    for (int pass = 0; pass < 2; pass++) {
        n = pread(f->fd, pass ? h : &first, sizeof(*h), 0);
        if (n < 0)
            return error_set(e, f->path, 0, "can't read the log: %s", strerror(errno));
        if (n < (ssize_t)sizeof(*h))
            return error_set(e, f->path, 0,
                             "not a log of ncclshim: its %zd bytes are less than a "
                             "header",
                             n);
    }
    for (unsigned i = 0; i < NCCLSHIM_LOG_SECTIONS; i++)
        if (first.sections[i].type == 0)
            h->sections[i].type = 0;
    return 0;
}

int log_refresh(struct log_file *f, struct error *e)
{
    struct ncclshim_log_header h;
    struct stat st;

    if (read_head(f, &h, e) < 0 || check_head(&h, f->path, e) < 0)
        return -1;
    if (fstat(f->fd, &st) < 0)
        return error_set(e, f->path, 0, "can't read the log: %s", strerror(errno));
    if ((uint64_t)st.st_size < h.file_bytes)
        return error_set(e, f->path, 0, "the log was cut: it has %lld bytes of %llu",
                         (long long)st.st_size, (unsigned long long)h.file_bytes);
    end_texts(&h);
    return log_tables_read(f, &h, e);
}

int log_open_at(int dirfd, const char *name, const char *path, struct log_file **out,
                struct error *e)
{
    /* O_NONBLOCK: a FIFO under that name must not hold us up; it has no effect on a file. */
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (dirfd == AT_FDCWD ? 0 : O_NOFOLLOW);
    struct log_file *f = calloc(1, sizeof(*f));
    struct stat st;

    *out = NULL;
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return error_set(e, path, 0, "out of memory");
    }
    f->fd = openat(dirfd, name, flags);
    if (f->fd < 0) {
        error_set(e, path, 0, "can't open the log: %s",
                  errno == ELOOP ? "it is a symbolic link" : strerror(errno));
        log_free(f);
        return -1;
    }
    if (fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        error_set(e, path, 0, "not a log of ncclshim (no regular file)");
        log_free(f);
        return -1;
    }
    if (log_refresh(f, e) < 0) {
        log_free(f);
        return -1;
    }
    *out = f;
    return 0;
}

int log_open(const char *path, struct log_file **out, struct error *e)
{
    return log_open_at(AT_FDCWD, path, path, out, e);
}

bool log_is_made(const char *path)
{
    char magic[sizeof(NCCLSHIM_LOG_MAGIC) - 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : pread(fd, magic, sizeof(magic), 0);
    bool gone = fd < 0 && errno == ENOENT;

    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < n; i++)
        if (magic[i])
            return true;
    return n < 0 && !gone;
}

void log_free(struct log_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->notes);
    free(f->comms);
    free(f->sites);
    free(f->rings);
    free(f);
}
