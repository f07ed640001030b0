/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second playing, read back from its logs: how long each kind of call took between its stamps,
 * on all ranks together, warm-up left out.
 */
#include <string.h>

#include "shim/prove/bench/bench.h"
#include "shim/stats/run.h"

/* The end of the warm-up by the GPUs' clock: the host's, less what the anchors say lies between. */
static uint64_t gpu_time(const struct run *r, uint64_t host_ns)
{
    for (uint32_t p = 0; p < r->process_count; p++)
        for (uint32_t g = 0; g < r->processes[p].gpu_count; g++)
            if (r->processes[p].gpus[g].clock.known)
                return (uint64_t)((int64_t)host_ns - r->processes[p].gpus[g].clock.first.offset_ns);
    return host_ns;
}

static bool is_of(const struct bench_result *b, uint32_t row, const struct run_row *x)
{
    const struct bench_row *br = &b->plan.rows[row];
    const struct workload_step *s = &b->w.steps[br->step];

    if (x->part || x->captured != br->graph || x->bytes != br->bytes)
        return false;
    return br->steps > 1 ? x->op == OP_GROUP : x->op == s->op && x->dtype == s->dtype;
}

static void fill_row(struct bench_result *b, uint32_t row, const struct run *r)
{
    struct bench_row_result *out = &b->rows[row];
    struct hist all;

    hist_init(&all);
    for (uint32_t i = 0; i < r->row_count; i++)
        if (is_of(b, row, &r->rows[i]))
            hist_merge(&all, &r->rows[i].ns);
    if (all.count) {
        out->stamped = all.count;
        out->stamp_p50_ns = (double)hist_quantile(&all, 0.5);
        out->stamp_p99_ns = out->p99_ns = (double)hist_quantile(&all, 0.99);
        out->p99_from = "stamps";
        b->stamps = true;
    }
    hist_free(&all);
}

int bench_read_stamps(struct bench_result *b, const char *log_dir, uint64_t warm_ns,
                      struct error *e)
{
    struct run_filter f = RUN_FILTER_ALL;
    struct run *r = NULL;

    if (run_open(log_dir, false, &f, &r, e) < 0)
        return -1;
    f.since_ns = warm_ns ? gpu_time(r, warm_ns) : 0;
    run_free(r);
    r = NULL;
    if (run_open(log_dir, false, &f, &r, e) < 0)
        return -1;
    for (uint32_t i = 0; i < b->plan.row_count; i++)
        fill_row(b, i, r);
    run_free(r);
    return b->stamps ? 0 : error_set(e, NULL, 0, "the shim stamped no call");
}
