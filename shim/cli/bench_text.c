/* SPDX-License-Identifier: Apache-2.0 */
/* Columns like those of nccl-tests, so that the two can be read side by side. */
#include <string.h>

#include "shim/base/size.h"
#include "shim/profile/version.h"
#include "shim/cli/bench_show.h"
#include "shim/stats/run.h"

double bench_algbw(const struct bench_result *b, uint32_t row, double ns)
{
    return ns > 0 ? (double)b->plan.rows[row].bytes / ns : 0;
}

double bench_busbw(const struct bench_result *b, uint32_t row, double ns)
{
    const struct workload_step *s = &b->w.steps[b->plan.rows[row].step];
    int n = workload_comm_ranks(&b->w.comms[s->comm], b->share->set.ranks);

    return b->plan.rows[row].steps > 1 ? 0 : bench_algbw(b, row, ns) * bus_factor(s->op, n);
}

const char *bench_row_op(const struct bench_result *b, uint32_t row)
{
    return b->plan.rows[row].steps > 1 ? "group" : op_name(b->w.steps[b->plan.rows[row].step].op);
}

static void print_head(const struct bench_result *b, FILE *out)
{
    static const char *const places[][2] = {{"processes", "one process each, one GPU each"},
                                            {"threads", "threads of one process, one GPU each"},
                                            {"one_gpu", "threads of one process, all on one GPU"}};
    const struct bench_outcome *o = &b->share->out;
    const char *where = "";
    char nccl[VERSION_TEXT_MAX];

    for (size_t i = 0; i < 3; i++)
        if (!strcmp(places[i][0], b->placement))
            where = places[i][1];
    if (o->simulated)
        fputs("# SIMULATED: no GPU took part; times come from the stand-in driver\n", out);
    fprintf(out, "# %d ranks (%s), %s, NCCL %s, profile %s%s\n", b->share->set.ranks, where, o->gpu,
            version_text(o->nccl, nccl, sizeof(nccl)), b->profile,
            o->simulated ? ", SIMULATED" : "");
    fprintf(out, "# workload: %s\n", b->w.source);
    if (b->w.ranks && (int)b->w.ranks != b->share->set.ranks)
        fprintf(out,
                "# recorded with %u ranks, played with %d: sizes are per rank, times will differ\n",
                b->w.ranks, b->share->set.ranks);
    if (b->w.left_out[0])
        fprintf(out, "# left out: %s\n", b->w.left_out);
    fprintf(out, "# time: %s, a call, median of %u samples with its 95 %% interval%s\n",
            o->simulated ? "simulated clock" : "GPU clock, slowest rank", b->share->set.repeats,
            b->stamps ? "; gpu: between stamps on the GPU, all ranks, from a second playing" : "");
}

static void print_row(const struct bench_result *b, uint32_t i, FILE *out)
{
    const struct bench_row *row = &b->plan.rows[i];
    const struct bench_row_result *x = &b->rows[i];
    const struct workload_step *s = &b->w.steps[row->step];
    char size[32] = "-", p50[16] = "-", p99[16] = "-";

    if (x->p99_from && strcmp(x->p99_from, "samples") != 0)
        snprintf(p99, sizeof(p99), "%.2f", x->p99_ns / 1e3);
    if (x->stamp_p50_ns > 0)
        snprintf(p50, sizeof(p50), "%.2f", x->stamp_p50_ns / 1e3);
    else if (x->event_p50_ns > 0)
        snprintf(p50, sizeof(p50), "%.2f", x->event_p50_ns / 1e3);
    snprintf(size, sizeof(size), "%llu", (unsigned long long)row->bytes);
    fprintf(out, " %11s %12llu %10s %6s %14s %5s ", size, (unsigned long long)s->count,
            dtype_name(s->dtype), workload_op_reduces(s->op) ? redop_name(s->redop) : "none",
            bench_row_op(b, i), row->graph ? "graph" : "eager");
    if (b->share->out.timed && b->share->set.check)
        fprintf(out, "%9.2f %9.2f %9.2f %7.2f %7.2f %7llu ", x->ns.median / 1e3, x->ns.low / 1e3,
                x->ns.high / 1e3, bench_algbw(b, i, x->ns.median), bench_busbw(b, i, x->ns.median),
                (unsigned long long)x->wrong);
    else if (b->share->out.timed)
        fprintf(out, "%9.2f %9.2f %9.2f %7.2f %7.2f %7s ", x->ns.median / 1e3, x->ns.low / 1e3,
                x->ns.high / 1e3, bench_algbw(b, i, x->ns.median), bench_busbw(b, i, x->ns.median),
                "N/A");
    else
        fprintf(out, "%9s %9s %9s %7s %7s %7llu ", "-", "-", "-", "-", "-",
                (unsigned long long)x->wrong);
    fprintf(out, "%9s %9s%s\n", p50, p99, b->w.comm_count > 1 ? b->w.comms[s->comm].name : "");
}

void bench_text(const struct bench_result *b, FILE *out)
{
    if (!b->share->out.filled)
        return;
    print_head(b, out);
    fprintf(out, "#%11s %12s %10s %6s %14s %5s %9s %9s %9s %7s %7s %7s %9s %9s\n", "size", "count",
            "type", "redop", "op", "how", "time", "low", "high", "algbw", "busbw", "#wrong",
            "gpu p50", "gpu p99");
    fprintf(out, "#%11s %12s %10s %6s %14s %5s %9s %9s %9s %7s %7s %7s %9s %9s\n", "(B)",
            "(elements)", "", "", "", "", "(us)", "(us)", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
            "(us)");
    for (uint32_t i = 0; i < b->plan.row_count; i++)
        print_row(b, i, out);
    if (b->plan.turn_count && b->share->out.timed)
        fprintf(out, "# pass: %llu calls in %.1f us [%.1f, %.1f], gaps included\n",
                (unsigned long long)b->plan.pass_calls, b->pass.median / 1e3, b->pass.low / 1e3,
                b->pass.high / 1e3);
    if (b->no_stamps[0])
        fprintf(out, "# no stamps: %s\n", b->no_stamps);
    if (b->share->out.checked)
        fprintf(out, "# results: %llu elements checked%s\n",
                (unsigned long long)b->share->out.checked,
                b->ranks.end == RANKS_WRONG ? ", some are wrong" : ", all right");
}
