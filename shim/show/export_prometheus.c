/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus text format: for node_exporter's textfile collector, or anything that scrapes a file.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/export.h"
#include "shim/show/sink.h"
#include "shim/show/term.h"

#define ROWS_MOST 200 /* a series for each of 25 buckets: more rows would flood the database */

/* Upper bounds in nanoseconds: 1, 2, 5 a decade from 1 us to 10 s. */
static const uint64_t bounds[] = {
    1000,      2000,      5000,       10000,      20000,      50000,       100000,   200000,
    500000,    1000000,   2000000,    5000000,    10000000,   20000000,    50000000, 100000000,
    200000000, 500000000, 1000000000, 2000000000, 5000000000, 10000000000,
};
#define BOUNDS (sizeof(bounds) / sizeof(bounds[0]))

/* Label values: backslash, quote and line feed are escaped (the text is harmless already). */
static const char *label_value(const char *text, char *buf, size_t size)
{
    char safe[600];
    size_t at = 0;

    safe_text(text, safe, sizeof(safe));
    for (const char *c = safe; *c && at + 3 < size; c++) {
        if (*c == '"' || *c == '\\')
            buf[at++] = '\\';
        buf[at++] = *c;
    }
    buf[at] = '\0';
    return buf;
}

static void head(struct sink *s, const char *name, const char *type, const char *text)
{
    sink_printf(s, "# HELP %s %s\n# TYPE %s %s\n", name, text, name, type);
}

static const char *row_labels(const struct run *r, const struct run_row *row, char *buf,
                              size_t size)
{
    char comm[400];

    snprintf(buf, size,
             "comm=\"%s\",ranks=\"%d\",operation=\"%s\",bytes=\"%llu\",type=\"%s\",how=\"%s\","
             "algorithm=\"%s\",protocol=\"%s\"",
             label_value(r->comms[row->comm].name, comm, sizeof(comm)), r->comms[row->comm].ranks,
             op_name(row->op), (unsigned long long)row->bytes, dtype_name(row->dtype),
             row->part       ? (row->captured ? "captured_part" : "eager_part")
             : row->captured ? "captured"
                             : "eager",
             row->algo == NCCLSHIM_NO_CHOICE ? "" : algo_name(row->algo),
             row->proto == NCCLSHIM_NO_CHOICE ? "" : proto_name(row->proto));
    return buf;
}

static void counter(struct sink *s, const struct run *r, uint32_t rows, const char *name,
                    const char *text, size_t offset)
{
    char labels[1200];

    head(s, name, "counter", text);
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&r->rows[i] + offset, sizeof(value));
        sink_printf(s, "%s{%s} %llu\n", name, row_labels(r, &r->rows[i], labels, sizeof(labels)),
                    (unsigned long long)value);
    }
}

/* Calls of at most each bound; a bucket that a bound cuts counts where its middle lies. */
static void cumulate(const struct hist *h, uint64_t *sums)
{
    memset(sums, 0, BOUNDS * sizeof(*sums));
    for (unsigned o = 0; o < HIST_OCTAVES; o++)
        for (unsigned b = 0; h->octave[o] && b < HIST_BUCKETS; b++) {
            uint64_t low, high;
            size_t k = 0;
            if (!h->octave[o][b])
                continue;
            hist_bucket_range(o, b, &low, &high);
            while (k < BOUNDS && bounds[k] < low + (high - low) / 2)
                k++;
            if (k < BOUNDS)
                sums[k] += h->octave[o][b];
        }
    for (size_t k = 1; k < BOUNDS; k++)
        sums[k] += sums[k - 1];
}

static void histograms(struct sink *s, const struct run *r, uint32_t rows)
{
    const char *name = "ncclshim_call_seconds";
    uint64_t sums[BOUNDS];
    char labels[1200];

    head(s, name, "histogram",
         "Time of a collective by the GPU's clock, the stamps' floor included.");
    for (uint32_t i = 0; i < rows; i++) {
        const struct run_row *row = &r->rows[i];
        if (!row->timed)
            continue;
        row_labels(r, row, labels, sizeof(labels));
        cumulate(&row->ns, sums);
        for (size_t k = 0; k < BOUNDS; k++)
            sink_printf(s, "%s_bucket{%s,le=\"%g\"} %llu\n", name, labels, (double)bounds[k] / 1e9,
                        (unsigned long long)sums[k]);
        sink_printf(s, "%s_bucket{%s,le=\"+Inf\"} %llu\n", name, labels,
                    (unsigned long long)row->ns.count);
        sink_printf(s, "%s_sum{%s} %.9f\n", name, labels, (double)row->ns.sum / 1e9);
        sink_printf(s, "%s_count{%s} %llu\n", name, labels, (unsigned long long)row->ns.count);
    }
}

static void passes(struct sink *s, const struct run *r)
{
    static const double quantiles[] = {0.5, 0.9, 0.99};
    const char *name = "ncclshim_pass_seconds";

    if (!r->pass_count)
        return;
    head(s, name, "summary", "Time of one replay of a captured graph, first collective to last.");
    for (uint32_t i = 0; i < r->pass_count; i++) {
        const struct run_pass *p = &r->passes[i];
        char labels[200];
        snprintf(labels, sizeof(labels),
                 "calls=\"%u\",operation=\"%s\",bytes=\"%llu\",kind=\"%016llx\"", p->calls,
                 op_name(p->op), (unsigned long long)p->bytes, (unsigned long long)p->key);
        for (size_t k = 0; k < 3; k++)
            sink_printf(s, "%s{%s,quantile=\"%g\"} %.9f\n", name, labels, quantiles[k],
                        (double)hist_quantile(&p->pass_ns, quantiles[k]) / 1e9);
        sink_printf(s, "%s_sum{%s} %.9f\n%s_count{%s} %llu\n", name, labels,
                    (double)p->pass_ns.sum / 1e9, name, labels,
                    (unsigned long long)p->pass_ns.count);
    }
}

static void whole_run(struct sink *s, const struct run *r, uint32_t rows)
{
    char profile[600], name[600];

    head(s, "ncclshim_info", "gauge", "The run that these numbers are of.");
    sink_printf(
        s, "ncclshim_info{run=\"%s\",profile=\"%s\",simulated=\"%s\"} 1\n",
        label_value(r->name, name, sizeof(name)),
        label_value(r->profile && r->profile[0] ? r->profile : "none", profile, sizeof(profile)),
        r->simulated ? "true" : "false");
    head(s, "ncclshim_processes", "gauge", "Processes of the run.");
    sink_printf(s, "ncclshim_processes %u\n", r->process_count);
    head(s, "ncclshim_not_intercepted_calls_total", "counter",
         "Calls that NCCL counted and the shim did not see.");
    sink_printf(s, "ncclshim_not_intercepted_calls_total %llu\n",
                (unsigned long long)r->missed_calls);
    head(s, "ncclshim_torn_records_total", "counter",
         "Records that were half written when their process ended.");
    sink_printf(s, "ncclshim_torn_records_total %llu\n", (unsigned long long)r->torn);
    head(s, "ncclshim_floor_seconds", "gauge", "Time that an empty pair of stamps shows.");
    sink_printf(s, "ncclshim_floor_seconds %.9f\n", (double)r->floor_ns / 1e9);
    head(s, "ncclshim_rows_left_out", "gauge",
         "Kinds of call beyond the largest ones, which are in no series.");
    sink_printf(s, "ncclshim_rows_left_out %u\n", r->row_count - rows);
}

int export_prometheus(const struct run *r, FILE *out, struct error *e)
{
    struct sink *s = malloc(sizeof(*s));
    uint32_t rows = r->row_count < ROWS_MOST ? r->row_count : ROWS_MOST;
    int rc;

    if (!s)
        return error_set(e, r->path, 0, "out of memory");
    sink_init(s, out);
    whole_run(s, r, rows);
    counter(s, r, rows, "ncclshim_calls_total", "Calls made, on all ranks.",
            offsetof(struct run_row, issued));
    counter(s, r, rows, "ncclshim_timed_calls_total", "Calls whose time is known.",
            offsetof(struct run_row, timed));
    counter(s, r, rows, "ncclshim_lost_calls_total",
            "Calls that were stamped and overwritten before they were read.",
            offsetof(struct run_row, lost));
    histograms(s, r, rows);
    passes(s, r);
    rc = sink_flush(s);
    free(s);
    return rc < 0 ? error_set(e, "", 0, "the output can't be written: %m") : 0;
}
