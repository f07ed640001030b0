/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line under libFuzzer: each line of the input is an argument. Every verb reads its
 * options as ever; where it would start, read or write something it comes to a stand-in below,
 * which looks whether what was let through is what the rooms behind may rely on, and says no.
 *
 * No crash, no leak on any words; no refusal without a sentence; no other exit code than 0, 1 or 2.
 * Only profiles are really read, and the file that --nccl names.
 */
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cli/verbs.h"
#include "shim/profile/profile.h"
#include "shim/prove/ab/ab.h"
#include "shim/prove/bench/bench.h"
#include "shim/prove/doctor/doctor_look.h"
#include "shim/prove/run/gather.h"
#include "shim/prove/ab/ready.h"
#include "shim/prove/tune/sweep.h"
#include "shim/prove/tune/tune.h"
#include "shim/prove/run/watch.h"
#include "shim/show/top_screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);
int ncclshim_main(int argc, char **argv); /* main.c, renamed by the compiler's -D */

#define ARGS_MAX 64
#define TEXT_MAX 4096
#define REGEX_MAX 64

/* A file of any length may be named, and memory may be out: that is no crash. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void must(bool holds)
{
    if (!holds)
        abort();
}

static int no(struct error *e)
{
    return error_set(e, "", 0, "a stand-in");
}

/* ---- what stands for the rooms behind the verbs ---------------------------------------------- */

int fail(int code, const struct error *e)
{
    char buf[sizeof(*e) + 32];

    must(e->text[0] && error_str(e, buf, sizeof(buf))[0]);
    return code;
}

int watch(const struct watch_options *o, struct watch_result *r, struct error *e)
{
    (void)r;
    must(o->command && o->command[0]);
    return no(e);
}

int gather(const struct gather_options *o, struct gather_result *r, struct error *e)
{
    (void)r;
    must(o->pid >= 0 && o->interval_ms <= 60000);
    return no(e);
}

int sweep(const struct sweep_options *o, struct sweep_result *r, struct error *e)
{
    (void)r;
    must(o->log_dir && o->tell);
    return no(e);
}

int doctor_look(const struct doctor_options *o, struct doctor_list *l, struct error *e)
{
    (void)l;
    must(o->pid >= 0);
    return no(e);
}

int live_open(struct live *l, const char *folder)
{
    must(folder);
    memset(l, 0, sizeof(*l));
    return 0;
}

int live_look(struct live *l)
{
    (void)l;
    return -1; /* or --batch would go on for ever */
}

void live_free(struct live *l)
{
    (void)l;
}

int top_screen(struct live *l, int interval_ms, unsigned frames, struct error *e)
{
    (void)l;
    must(interval_ms >= 50 && interval_ms <= 3600000 && frames <= 1000000000u);
    return no(e);
}

int run_find(const char *given, char **path, bool *live, struct error *e)
{
    *live = !given;
    *path = strdup(given ? given : "newest");
    return *path ? 0 : error_set(e, "", 0, "out of memory");
}

int run_open(const char *path, bool live, const struct run_filter *f, struct run **out,
             struct error *e)
{
    (void)path;
    (void)live;
    *out = NULL;
    must(f->op >= -1 && f->op < OP_COUNT && f->rank >= -1);
    must(f->captured >= -1 && f->captured <= 1);
    must(f->bytes_low >= 0 && f->bytes_high >= f->bytes_low);
    return no(e);
}

int profile_list(struct profile_entry **list, size_t *count)
{
    *list = NULL; /* reading all that are installed tells nothing of the command line */
    *count = 0;
    return 0;
}

void profile_list_free(struct profile_entry *list, size_t count)
{
    must(!list && !count);
}

/* ---- lists of sizes -------------------------------------------------------------------------- */

static void try_sizes(const char *list, uint8_t op, uint8_t dtype, int ranks)
{
    struct workload_sizes s = {list, op, dtype, true, true, ranks};
    struct error e = {0};
    struct workload w;

    if (workload_from_sizes(&w, &s, &e) < 0)
        must(e.text[0]);
    else
        must(w.step_count > 0 && (workload_check(&w, ranks, &e) == 0 || e.text[0]));
    workload_free(&w);
}

int bench_run(struct bench_result *b, const struct bench_options *o, struct error *e)
{
    (void)b;
    must(o->ranks >= 0 && o->ranks <= WORKLOAD_RANKS && o->calls <= 4096);
    must(o->repeats >= 1 && o->warmup >= 1 && o->timeout_s >= 1);
    must(workload_op_playable(o->op) && o->dtype < DTYPE_COUNT);
    must((o->from != NULL) + (o->sizes != NULL) + (o->file != NULL) <= 1);
    if (o->sizes)
        try_sizes(o->sizes, o->op, o->dtype, o->ranks ? o->ranks : 2);
    return no(e);
}

void bench_free(struct bench_result *b)
{
    (void)b;
}

int ranks_be_one(const char *word)
{
    must(word != NULL);
    return 2;
}

int tune_run(struct tune *t, const struct tune_options *o, struct error *e)
{
    (void)t;
    must(o->ranks >= 0 && o->ranks <= WORKLOAD_RANKS && o->calls <= 4096);
    must(o->repeats >= 3 && o->proof_runs <= TUNE_PROOF_MAX);
    must(!o->resume || (!o->from && !o->sizes && !o->workload && !o->space));
    if (o->sizes)
        try_sizes(o->sizes, OP_ALL_REDUCE, DTYPE_BFLOAT16, o->ranks ? o->ranks : 2);
    return no(e);
}

void tune_free(struct tune *t)
{
    (void)t;
}

/* ---- regular expressions --------------------------------------------------------------------- */

/* libc's own compiler of them takes memory and time without end for nested counts: not our part. */
static bool is_tame(const char *regex)
{
    return regex && strlen(regex) < REGEX_MAX && !strpbrk(regex, "{\\*+");
}

static void try_metric(const char *regex)
{
    struct metric_value v = {0, 0};
    struct error e = {0};
    struct metric m;

    if (metric_init(&m, regex, false, &e) < 0) {
        must(e.text[0]);
        return;
    }
    if (metric_in_line(&m, "throughput: 1,234.5 tok/s, 82.0 tok/s in 7e2 ms -1", &v))
        must(isfinite(v.value) && v.value > 0 && v.step >= 0);
    metric_free(&m);
}

static void try_ready(const char *regex)
{
    struct error e = {0};
    struct ready r;

    if (ready_init(&r, regex, &e) < 0)
        must(e.text[0]);
    else
        ready_free(&r);
}

int ab_run(struct ab_result *r, const struct ab_options *o, struct error *e)
{
    r->stopped = 0;
    must(o->sides >= 2 && o->sides <= AB_SIDES && o->rounds >= 1 && o->rounds <= AB_ROUNDS);
    must(o->timeout_s >= 1 && o->grace_s <= 3600 && o->margin >= 0 && o->margin <= 1e4);
    must(o->command && o->command[0] && !o->ready == !o->load && (o->metric || !o->lower));
    if (is_tame(o->metric))
        try_metric(o->metric);
    if (is_tame(o->ready))
        try_ready(o->ready);
    return no(e);
}

void ab_free(struct ab_result *r)
{
    (void)r;
}

/* ---- the input ------------------------------------------------------------------------------- */

static int split(char *text, char **argv)
{
    static char name[] = "ncclshim";
    int argc = 0;

    argv[argc++] = name;
    while (*text && argc < ARGS_MAX) {
        argv[argc++] = text;
        text += strcspn(text, "\n");
        if (*text)
            *text++ = '\0';
    }
    argv[argc] = NULL;
    return argc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *argv[ARGS_MAX + 1];
    int rc;

    if (!text || size > TEXT_MAX)
        goto out;
    memcpy(text, data, size);
    text[size] = '\0';
    optind = 0; /* getopt begins anew: it holds pointers into the arguments before */
    opterr = 1;
    rc = ncclshim_main(split(text, argv), argv);
    must(rc >= 0 && rc <= 2);
out:
    free(text);
    return 0;
}
