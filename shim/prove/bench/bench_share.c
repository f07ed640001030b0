/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/bench/bench_share.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t lay_out(struct bench_share *s, const struct workload *w, const struct bench_plan *p,
                        uint32_t repeats)
{
    uint32_t measures = p->row_count + (p->turn_count > 0);

    s->steps_at = (sizeof(*s) + 63) / 64 * 64;
    s->rows_at = s->steps_at + (uint64_t)w->step_count * sizeof(struct workload_step);
    s->samples_at = s->rows_at + (uint64_t)p->row_count * sizeof(struct bench_row_outcome);
    s->row_count = p->row_count;
    s->measure_count = measures;
    return s->samples_at + (uint64_t)measures * repeats * sizeof(double);
}

struct bench_share *bench_share_make(const struct bench_settings *set, const struct workload *w,
                                     const struct bench_plan *p, int *fd, struct error *e)
{
    struct bench_share *s, head;
    uint64_t bytes;

    memset(&head, 0, sizeof(head));
    bytes = lay_out(&head, w, p, set->repeats);
    *fd = memfd_create("ncclshim-bench", MFD_CLOEXEC);
    s = MAP_FAILED;
    if (*fd >= 0 && ftruncate(*fd, (off_t)bytes) == 0)
        s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (s == MAP_FAILED) {
        error_set(e, NULL, 0, "no shared memory for the ranks: %s", strerror(errno));
        if (*fd >= 0)
            close(*fd);
        return NULL;
    }
    lay_out(s, w, p, set->repeats);
    s->bytes = bytes;
    s->set = *set;
    s->w = *w;
    s->w.steps = NULL;
    memcpy((char *)s + s->steps_at, w->steps, (size_t)w->step_count * sizeof(*w->steps));
    s->magic = BENCH_SHARE_MAGIC;
    return s;
}

struct bench_share *bench_share_map(int fd, struct error *e)
{
    struct bench_share *s;
    struct stat st;

    if (fstat(fd, &st) < 0 || (size_t)st.st_size < sizeof(*s)) {
        error_set(e, NULL, 0, "--rank-of is for `ncclshim bench` itself");
        return NULL;
    }
    s = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (s == MAP_FAILED || s->magic != BENCH_SHARE_MAGIC || s->bytes != (uint64_t)st.st_size) {
        error_set(e, NULL, 0, "--rank-of is for `ncclshim bench` itself");
        return NULL;
    }
    return s;
}

void bench_share_free(struct bench_share *s, int fd)
{
    if (s)
        munmap(s, s->bytes);
    if (fd >= 0)
        close(fd);
}

struct workload bench_share_workload(struct bench_share *s)
{
    struct workload w = s->w;

    w.steps = (struct workload_step *)((char *)s + s->steps_at);
    return w;
}

struct bench_row_outcome *bench_share_row(struct bench_share *s, uint32_t row)
{
    return (struct bench_row_outcome *)((char *)s + s->rows_at) + row;
}

double *bench_share_samples(struct bench_share *s, uint32_t measure)
{
    return (double *)((char *)s + s->samples_at) + (uint64_t)measure * s->set.repeats;
}
