/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/digest.h"
#include "shim/stats/histfile.h"
#include "shim/stats/histfile_layout.h"

#define FILE_BYTES_MAX (4ull << 30)

struct input {
    const char *path;
    const uint8_t *p;
    size_t n, at;
    struct error *e;
};

static int bad(const struct input *in, const char *what)
{
    return error_set(in->e, in->path, 0, "damaged statistics: %s at byte %zu", what, in->at);
}

static int take(struct input *in, void *out, size_t bytes)
{
    if (in->n - in->at < bytes)
        return bad(in, "the file ends");
    memcpy(out, in->p + in->at, bytes);
    in->at += bytes;
    return 0;
}

static int take_hist(struct input *in, struct hist *h)
{
    struct histfile_hist head;
    struct histfile_bucket b;

    if (take(in, &head, sizeof(head)) < 0)
        return -1;
    h->count = head.count;
    h->sum = head.sum;
    h->min = head.min;
    h->max = head.max;
    for (uint32_t i = 0; i < head.buckets; i++) {
        if (take(in, &b, sizeof(b)) < 0)
            return -1;
        if (b.octave >= HIST_OCTAVES || b.bucket >= HIST_BUCKETS)
            return bad(in, "there is no such bucket");
        if (!h->octave[b.octave] && !(h->octave[b.octave] = calloc(HIST_BUCKETS, sizeof(uint32_t))))
            return bad(in, "out of memory");
        h->octave[b.octave][b.bucket] = b.count;
    }
    return 0;
}

static int take_rings(struct input *in, uint32_t count, struct histfile *h)
{
    struct histfile_cursor c;

    if (count > NCCLSHIM_LOG_SECTIONS)
        return bad(in, "more rings than a log can have");
    h->rings = calloc(count + 1, sizeof(*h->rings));
    if (!h->rings)
        return bad(in, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        if (take(in, &c, sizeof(c)) < 0)
            return -1;
        h->rings[i] = (struct histfile_ring){c.number, {c.next, c.lost, c.torn}};
    }
    h->ring_count = count;
    return 0;
}

static int take_gaps(struct input *in, uint32_t count, struct accum *a)
{
    struct histfile_gap g;
    uint64_t *value;

    for (uint32_t i = 0; i < count; i++) {
        if (take(in, &g, sizeof(g)) < 0)
            return -1;
        value = map_at(&a->last_end, (uint64_t)(g.ring & 0xffff) << 32 | g.comm);
        if (!value)
            return bad(in, "out of memory");
        *value = g.last_end_ns;
    }
    return 0;
}

static int take_sites(struct input *in, uint32_t count, struct accum *a)
{
    struct histfile_site head;
    uint64_t next = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (take(in, &head, sizeof(head)) < 0)
            return -1;
        if (head.site < next || head.site >= HISTFILE_SITES_MAX)
            return bad(in, "call sites are not in order");
        next = (uint64_t)head.site + 1;
        if (accum_reserve(a, head.site) < 0)
            return bad(in, "out of memory");
        a->sites[head.site].first_start_ns = head.first_start_ns;
        a->sites[head.site].last_end_ns = head.last_end_ns;
        a->sites[head.site].runs_max = head.runs_max;
        if (take_hist(in, &a->sites[head.site].ns) < 0 ||
            take_hist(in, &a->sites[head.site].gap_ns) < 0)
            return -1;
    }
    return 0;
}

static bool in_order(const struct pass_accum *p, const struct histfile_pass *next)
{
    return p->ring < next->ring || (p->ring == next->ring && p->capture < next->capture);
}

static int take_passes(struct input *in, uint32_t count, struct accum *a)
{
    struct histfile_pass f;
    struct pass_accum *p;

    if (count > in->n / sizeof(f))
        return bad(in, "the file ends");
    a->passes = calloc((size_t)count + 1, sizeof(*p));
    if (!a->passes)
        return bad(in, "out of memory");
    a->pass_cap = count;
    for (uint32_t i = 0; i < count; i++) {
        if (take(in, &f, sizeof(f)) < 0)
            return -1;
        if (i && !in_order(&a->passes[i - 1], &f))
            return bad(in, "captures are not in order");
        p = &a->passes[i];
        *p = (struct pass_accum){.capture = f.capture,
                                 .ring = f.ring,
                                 .calls = f.calls,
                                 .run = f.run,
                                 .seen = f.seen,
                                 .start_ns = f.start_ns,
                                 .end_ns = f.end_ns,
                                 .sum_ns = f.sum_ns,
                                 .last_start_ns = f.last_start_ns,
                                 .incomplete = f.incomplete};
        a->pass_count++; /* before its histograms, so that a failure frees what they took */
        if (take_hist(in, &p->pass_ns) < 0 || take_hist(in, &p->comm_ns) < 0 ||
            take_hist(in, &p->period_ns) < 0)
            return -1;
    }
    return 0;
}

static int take_head(struct input *in, struct histfile_head *head)
{
    uint64_t digest;

    if (in->n < sizeof(*head) + sizeof(digest) ||
        memcmp(in->p, HISTFILE_MAGIC, sizeof(head->magic)) != 0)
        return error_set(in->e, in->path, 0,
                         "no statistics of ncclshim (it does not begin with %s)", HISTFILE_MAGIC);
    take(in, head, sizeof(*head));
    if (head->byte_order != HISTFILE_BYTE_ORDER || head->version != HISTFILE_VERSION)
        return error_set(in->e, in->path, 0,
                         "statistics of version %u, this command reads version "
                         "%u: use the ncclshim that wrote them",
                         head->version, HISTFILE_VERSION);
    in->n -= sizeof(digest);
    memcpy(&digest, in->p + in->n, sizeof(digest));
    if (head->file_bytes != in->n + sizeof(digest) || digest != digest_bytes(DIGEST_START, in->p, in->n))
        return error_set(in->e, in->path, 0,
                         "damaged statistics: cut, or changed since they were "
                         "written");
    head->boot_id[sizeof(head->boot_id) - 1] = '\0';
    return 0;
}

static int parse(struct input *in, struct accum *a, struct histfile *h)
{
    struct histfile_head head;

    if (take_head(in, &head) < 0)
        return -1;
    a->records = head.records;
    a->bad = head.bad;
    a->lost = head.lost;
    a->torn = head.torn;
    h->pid = head.pid;
    h->final = head.final;
    h->start_ticks = head.start_ticks;
    h->pid_ns = head.pid_ns;
    h->created_ns = head.created_ns;
    memcpy(h->boot_id, head.boot_id, sizeof(h->boot_id));
    h->written_ns = head.written_ns;
    h->kept_bytes = head.kept_bytes;
    if (take_rings(in, head.rings, h) < 0 || take_gaps(in, head.gaps, a) < 0 ||
        take_sites(in, head.sites, a) < 0 || take_passes(in, head.passes, a) < 0)
        return -1;
    return in->at == in->n ? 0 : bad(in, "something follows the last capture");
}

static int read_file(const char *path, uint8_t **data, size_t *size, struct error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n = 1;

    *data = NULL;
    *size = 0;
    if (fd < 0)
        return error_set(e, path, 0, "can't open the statistics: %s", strerror(errno));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_BYTES_MAX ||
        !(*data = malloc((size_t)st.st_size + 1))) {
        close(fd);
        return error_set(e, path, 0, "no statistics of ncclshim");
    }
    while (n > 0 && *size < (size_t)st.st_size) {
        n = read(fd, *data + *size, (size_t)st.st_size - *size);
        *size += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    return 0;
}

int histfile_load(const char *path, struct accum *a, struct histfile *h, struct error *e)
{
    struct histfile local = {0};
    struct input in = {.path = path, .e = e};
    uint8_t *data;
    int rc;

    if (read_file(path, &data, &in.n, e) < 0)
        return -1;
    in.p = data;
    rc = parse(&in, a, &local);
    free(data);
    if (rc < 0)
        accum_free(a);
    if (rc < 0 || !h)
        histfile_free(&local);
    if (h)
        *h = local;
    return rc;
}

void histfile_free(struct histfile *h)
{
    free(h->rings);
    h->rings = NULL;
    h->ring_count = 0;
}

void histfile_identify(struct histfile *h, const struct ncclshim_log_header *head)
{
    memset(h, 0, sizeof(*h));
    h->pid = head->pid;
    h->start_ticks = head->start_ticks;
    h->pid_ns = head->pid_ns;
    h->created_ns = head->created_ns;
    memcpy(h->boot_id, head->boot_id, sizeof(h->boot_id));
}

bool histfile_is_of(const struct histfile *h, const struct ncclshim_log_header *head)
{
    return h->pid == head->pid && h->start_ticks == head->start_ticks &&
           h->pid_ns == head->pid_ns && h->created_ns == head->created_ns &&
           !memcmp(h->boot_id, head->boot_id, sizeof(h->boot_id));
}
