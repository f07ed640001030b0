/* SPDX-License-Identifier: Apache-2.0 */
/* What is played, and which of its calls a rule can reach. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/profile/choice.h"
#include "shim/profile/version.h"
#include "shim/prove/bench/bench_plan.h"
#include "shim/prove/tune/tune.h"
#include "shim/prove/bench/workload.h"

#define LIMIT_NS (300ull * 1000000000ull)

/* ---- the workload file ---------------------------------------------------------------------- */

/*
 * Only kinds of call are measured, each by itself: their order and their repetitions would only
 * take time. Of each kind one is kept, with the weight of all.
 */
static int keep_kinds(const struct workload *w, struct workload *out)
{
    uint32_t graph = 0;

    memcpy(out->comms, w->comms, sizeof(w->comms));
    memcpy(out->source, w->source, sizeof(w->source));
    memcpy(out->nccl, w->nccl, sizeof(w->nccl));
    memcpy(out->left_out, w->left_out, sizeof(w->left_out));
    out->comm_count = w->comm_count;
    out->ranks = w->ranks;
    for (uint32_t i = 0, end; i < w->step_count; i = end) {
        uint32_t k = 0, n = end = bench_call_end(w, i);
        bool found = false;

        n -= i;
        for (; k < out->step_count && !found; k = bench_call_end(out, k)) {
            found = bench_call_end(out, k) - k == n && !out->steps[k].graph == !w->steps[i].graph;
            for (uint32_t s = 0; s < n && found; s++)
                found = workload_same_call(&out->steps[k + s], &w->steps[i + s]);
            for (uint32_t s = 0; s < n && found; s++)
                out->steps[k + s].runs += w->steps[i].runs;
        }
        graph += !found && w->steps[i].graph;
        for (uint32_t s = 0; s < n && !found; s++) {
            struct workload_step step = w->steps[i + s];
            step.graph = step.graph ? graph : 0;
            if (workload_add_step(out, &step) < 0)
                return -1;
        }
    }
    return 0;
}

static int compact(const char *path, const char *into, struct error *e)
{
    struct workload w, kinds;
    FILE *out;
    int rc;

    workload_init(&w);
    workload_init(&kinds);
    rc = workload_read(&w, path, e);
    if (rc == 0 && keep_kinds(&w, &kinds) < 0)
        rc = error_set(e, path, 0, "out of memory");
    if (rc == 0) {
        out = fopen(into, "we");
        if (!out || workload_write(&kinds, out) < 0 || fclose(out) != 0)
            rc = error_set(e, into, 0, "can't be written: %s", strerror(errno));
    }
    workload_free(&w);
    workload_free(&kinds);
    return rc;
}

static void source_args(const struct tune *t, const char *into, struct tune_args *a)
{
    static const char *const hows[] = {
        [BENCH_GRAPH] = "--graph", [BENCH_EAGER] = "--eager", [BENCH_BOTH] = "--both"};
    const struct tune_options *o = &t->o;

    tune_args_add(a, a->self);
    tune_args_add(a, "bench");
    tune_args_add(a, "--write-workload");
    tune_args_add(a, into);
    if (o->from || o->sizes || o->workload) {
        tune_args_add(a, o->from ? "--from" : o->sizes ? "--sizes" : "--workload");
        tune_args_add(a, o->from ? o->from : o->sizes ? o->sizes : o->workload);
    }
    if (o->op) {
        tune_args_add(a, "--op");
        tune_args_add(a, o->op);
    }
    if (o->type) {
        tune_args_add(a, "--type");
        tune_args_add(a, o->type);
    }
    if (o->how != BENCH_AS_IS)
        tune_args_add(a, hows[o->how]);
    if (o->ranks) {
        snprintf(a->number[0], sizeof(a->number[0]), "%d", o->ranks);
        tune_args_add(a, "--ranks");
        tune_args_add(a, a->number[0]);
    }
    if (o->one_process || o->one_gpu)
        tune_args_add(a, o->one_gpu ? "--one-gpu" : "--one-process");
}

int tune_work_make(struct tune *t, struct error *e)
{
    struct tune_args a = {.self = "/proc/self/exe"};
    char whole[TUNE_PATH], path[TUNE_PATH], err[TUNE_PATH], line[1024] = "";
    bool good, late;
    FILE *in;

    tune_path(t, "workload.whole", whole, sizeof(whole));
    tune_path(t, "workload", path, sizeof(path));
    tune_path(t, "workload.err", err, sizeof(err));
    source_args(t, whole, &a);
    if (tune_command(t, a.argv, "/dev/null", err, monotonic_ns() + LIMIT_NS, &good, &late, e) < 0)
        return -1;
    if (good) {
        const char *list = t->o.sizes ? t->o.sizes : "8K-64M";
        snprintf(t->source, sizeof(t->source), "%s %.400s",
                 t->o.from       ? "run"
                 : t->o.workload ? "file"
                                 : "sizes",
                 t->o.from       ? t->o.from
                 : t->o.workload ? t->o.workload
                                 : list);
        for (char *p = t->source; *p; p++) /* it goes into JSON and into an INI file */
            if (*p & 0x80 || (unsigned char)*p < ' ')
                *p = '?';
        remove(err);
        return compact(whole, path, e);
    }
    in = fopen(err, "re");
    if (in && fgets(line, sizeof(line), in))
        line[strcspn(line, "\n")] = '\0';
    if (in)
        fclose(in);
    return error_set(e, NULL, 0, "the workload can't be made: %s",
                     !strncmp(line, "ncclshim: ", 10) ? line + 10
                     : line[0]                        ? line
                                                      : "bench said nothing");
}

/* ---- rows and classes ----------------------------------------------------------------------- */

static int class_of(struct tune_work *w, int op, uint64_t bytes)
{
    for (size_t i = 0; i < w->class_count; i++)
        if (w->classes[i].op == op && w->classes[i].bytes == bytes)
            return (int)i;
    if (w->class_count == TUNE_CLASSES)
        return -1;
    w->classes[w->class_count] = (struct tune_class){op, bytes};
    return (int)w->class_count++;
}

static int read_row(struct tune *t, const json_t *j, struct tune_row *row, struct error *e)
{
    const char *op = json_string_value(json_object_get(j, "op")),
               *comm = json_string_value(json_object_get(j, "comm"));
    const char *how = json_string_value(json_object_get(j, "how"));
    int number;

    if (!op || !comm || !how)
        return error_set(e, NULL, 0, "a result of bench lacks op, comm or how");
    snprintf(row->op, sizeof(row->op), "%s", op);
    snprintf(row->comm, sizeof(row->comm), "%s", comm);
    row->bytes = (uint64_t)json_integer_value(json_object_get(j, "bytes"));
    row->calls = (uint32_t)json_integer_value(json_object_get(j, "calls"));
    row->weight = json_number_value(json_object_get(j, "weight"));
    row->graph = !strcmp(how, "graph");
    number = op_parse(op);
    row->class = number >= 0 && choice_index(number) >= 0 &&
                         json_integer_value(json_object_get(j, "steps")) == 1
                     ? class_of(&t->work, number, row->bytes)
                     : -1;
    return 0;
}

/*
 * What counts: of a recorded run the time that its calls took; of a list of sizes each size alike,
 * for otherwise the largest would be all that counts.
 */
static void share_out(struct tune *t, const json_t *rows, bool recorded)
{
    double sum = 0;

    for (size_t i = 0; i < t->work.row_count; i++) {
        struct tune_row *row = &t->work.rows[i];
        row->share =
            recorded ? row->weight *
                           json_number_value(json_object_get(json_array_get(rows, i), "median_ns"))
                     : 1;
        sum += row->share;
    }
    for (size_t i = 0; i < t->work.row_count; i++)
        t->work.rows[i].share /= sum > 0 ? sum : 1;
}

static bool used_both_ways(const struct tune_work *w)
{
    for (size_t i = 0; i < w->row_count; i++)
        for (size_t k = 0; k < i; k++)
            if (w->rows[i].graph != w->rows[k].graph && !strcmp(w->rows[i].comm, w->rows[k].comm))
                return true;
    return false;
}

static void copy_text(const json_t *bench, const char *key, char *buf, size_t size)
{
    const char *text = json_string_value(json_object_get(bench, key));

    snprintf(buf, size, "%s", text ? text : "");
}

int tune_work_learn(struct tune *t, const json_t *bench, struct error *e)
{
    const json_t *rows = json_object_get(bench, "rows");
    size_t n = json_array_size(rows);

    if (n < 1 || n > TUNE_ROWS)
        return error_set(e, NULL, 0,
                         "the workload has %zu kinds of call; tune takes 1 to %d: take fewer sizes",
                         n, TUNE_ROWS);
    memset(&t->work, 0, sizeof(t->work));
    for (size_t i = 0; i < n; i++)
        if (read_row(t, json_array_get(rows, i), &t->work.rows[t->work.row_count++], e) < 0)
            return -1;
    share_out(t, rows,
              t->o.from != NULL || json_is_integer(json_object_get(bench, "recorded_ranks")));
    t->mixed = used_both_ways(&t->work);
    t->simulated = json_is_true(json_object_get(bench, "simulated"));
    t->ranks = (int)json_integer_value(json_object_get(bench, "ranks"));
    copy_text(bench, "nccl", t->nccl, sizeof(t->nccl));
    copy_text(bench, "gpu", t->gpu, sizeof(t->gpu));
    copy_text(bench, "placement", t->placement, sizeof(t->placement));
    t->version = version_parse(t->nccl, NULL);
    t->known = true;
    return 0;
}
