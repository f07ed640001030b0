/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/samples.h"

#include <stdlib.h>

#include "shim/base/grow.h"
#include "shim/stats/records.h"

static int add(struct row_samples *s, const struct ncclshim_record *r)
{
    struct sample *more = GROW(s->samples, s->count);

    if (!more)
        return -1;
    *more = (struct sample){r->start_ns, r->end_ns - r->start_ns};
    return 0;
}

static int gather_process(const struct run_process *p, struct row_samples *rows, struct error *e)
{
    const struct ncclshim_record *batch;
    struct records *records;
    /* one replay (or eager call) in `every`: by the run's number, so that all ranks keep the same
     */
    uint64_t every = p->records_path ? p->acc.records / SAMPLES_PER_PROCESS + 1 : 1;
    uint32_t ring;
    long n;
    int rc = p->records_path ? records_open(p, &records, e)
                             : records_open_newest(p, SAMPLES_PER_PROCESS, &records, e);

    if (rc < 0)
        return -1;
    while (rc == 0 && (n = records_next(records, &batch, &ring, e)) != 0) {
        if (n < 0)
            rc = -1;
        for (long i = 0; i < n && rc == 0; i++) {
            const struct ncclshim_record *r = &batch[i];
            if (r->site >= p->log->site_count || p->row_of[r->site] == RUN_NONE || r->run % every ||
                r->end_ns < r->start_ns)
                continue;
            if (add(&rows[p->row_of[r->site]], r) < 0)
                rc = error_set(e, p->log->path, 0, "out of memory");
        }
    }
    records_close(records);
    return rc;
}

static int by_start(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;

    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

void samples_free(struct row_samples *s, const struct run *r)
{
    for (uint32_t i = 0; s && i < r->row_count; i++)
        free(s[i].samples);
    free(s);
}

int samples_gather(const struct run *r, struct row_samples **out, struct error *e)
{
    struct row_samples *rows = calloc(r->row_count + 1, sizeof(*rows));
    int rc = rows ? 0 : error_set(e, r->path, 0, "out of memory");

    for (uint32_t i = 0; i < r->process_count && rc == 0; i++)
        rc = gather_process(&r->processes[i], rows, e);
    for (uint32_t i = 0; i < r->row_count && rc == 0; i++)
        if (rows[i].count)
            qsort(rows[i].samples, rows[i].count, sizeof(struct sample), by_start);
    if (rc < 0) {
        samples_free(rows, r);
        rows = NULL;
    }
    *out = rows;
    return rc;
}
