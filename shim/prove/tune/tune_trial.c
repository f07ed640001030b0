/* SPDX-License-Identifier: Apache-2.0 */
/* One bench in processes of its own, under a watchdog, and what it measured. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/prove/tune/tune.h"

#define SECOND 1000000000ull
#define GRACE_MS 2000u
#define FIRST_LIMIT_S 600u /* of the first run, about which nothing is known */
#define LIMIT_TIMES 10     /* a run may take so many times as long as usual */
#define STUCK_S 60u        /* bench's own limit without progress, until it is known better */
#define STUCK_TIMES 5
#define STUCK_LEAST_S 5u

/* ---- arguments ------------------------------------------------------------------------------ */

void tune_args_add(struct tune_args *a, const char *word)
{
    if (a->count + 1 < TUNE_ARGS)
        a->argv[a->count++] = (char *)word;
}

static void add_number(struct tune_args *a, const char *option, int slot, uint32_t n)
{
    snprintf(a->number[slot], sizeof(a->number[slot]), "%u", n);
    tune_args_add(a, option);
    tune_args_add(a, a->number[slot]);
}

/* How long bench may make no progress: a hang must not eat the budget, a slow init is no hang. */
static uint32_t stuck_s(const struct tune *t)
{
    uint64_t s = t->mean_ns * STUCK_TIMES / SECOND + STUCK_LEAST_S;

    if (t->o.timeout_s)
        return t->o.timeout_s;
    return t->mean_ns && s < STUCK_S ? (uint32_t)s : STUCK_S;
}

void tune_args_bench(const struct tune *t, const char *profile, struct tune_args *a)
{
    ssize_t n = readlink("/proc/self/exe", a->self, sizeof(a->self) - 1);

    a->self[n > 0 ? n : 0] = '\0';
    tune_path(t, "workload", a->workload, sizeof(a->workload));
    tune_args_add(a, a->self);
    tune_args_add(a, "bench");
    tune_args_add(a, "--json");
    tune_args_add(a, "--no-stamps");
    tune_args_add(a, "--workload");
    tune_args_add(a, a->workload);
    tune_args_add(a, "-p");
    tune_args_add(a, profile);
    add_number(a, "--repeats", 0, t->o.repeats);
    add_number(a, "--timeout", 1, stuck_s(t));
    if (t->o.calls)
        add_number(a, "--calls", 2, t->o.calls);
    if (t->o.ranks)
        add_number(a, "--ranks", 3, (uint32_t)t->o.ranks);
    if (t->o.one_gpu)
        tune_args_add(a, "--one-gpu");
    else if (t->o.one_process)
        tune_args_add(a, "--one-process");
}

/* ---- running -------------------------------------------------------------------------------- */

int tune_command(struct tune *t, char *const *argv, const char *out, const char *err,
                 uint64_t until_ns, bool *good, bool *late, struct error *e)
{
    struct offspring c;
    enum offspring_event event;

    *good = *late = false;
    if (offspring_start(&t->nursery, &c, argv, out, err, e) < 0)
        return -1;
    event = offspring_wait(&t->nursery, &c, until_ns, 0);
    *late = event == OFFSPRING_LATE;
    offspring_end(&t->nursery, &c, event == OFFSPRING_ENDED ? 0 : GRACE_MS, false);
    if (event == OFFSPRING_STOPPED || t->nursery.stopped)
        return error_set(e, NULL, 0, "stopped by signal %d; go on with: ncclshim tune --resume %s",
                         t->nursery.stopped, t->folder.path);
    *good = event == OFFSPRING_ENDED && WIFEXITED(c.status) && WEXITSTATUS(c.status) == 0;
    return 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* What it said on stderr: the last line, without our own name in front. */
static void last_words(const char *path, char *buf, size_t size)
{
    FILE *in = fopen(path, "re");
    char line[1024];

    buf[0] = '\0';
    while (in && fgets(line, sizeof(line), in)) {
        char *text = strncmp(line, "ncclshim: ", 10) ? line : line + 10;
        text[strcspn(text, "\r\n")] = '\0';
        if (*text)
            snprintf(buf, size, "%.*s", (int)size - 1, text);
    }
    if (in)
        fclose(in);
}

static double number_of(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

/* The interval of bench is one of 95 %; with few repeats it is the whole range, which is wider. */
static int read_rows(const struct tune *t, const json_t *rows, struct tune_trial *out)
{
    if (json_array_size(rows) != t->work.row_count)
        return -1;
    for (size_t i = 0; i < t->work.row_count; i++) {
        const json_t *row = json_array_get(rows, i);
        double median = number_of(row, "median_ns"), low = number_of(row, "ci_low_ns"),
               high = number_of(row, "ci_high_ns");
        if (!(median > 0) || !(low > 0) || !(high >= low))
            return -1;
        out->rows[i].log_ns = log(median);
        out->rows[i].se = (log(high) - log(low)) / (2 * 1.96);
    }
    return 0;
}

static void bad(struct tune_trial *out, enum tune_end end, const char *why)
{
    out->end = end;
    snprintf(out->why, sizeof(out->why), "%s", why[0] ? why : "it said nothing");
    for (char *p = out->why; *p; p++) /* it goes into JSON, and was cut anywhere */
        if (*p & 0x80 || (unsigned char)*p < ' ')
            *p = '?';
}

static int judge(struct tune *t, const json_t *bench, bool late, const char *words,
                 struct tune_trial *out, struct error *e)
{
    const json_t *error = json_object_get(bench, "error");
    const char *kind = json_string_value(json_object_get(error, "kind"));
    const char *text = json_string_value(json_object_get(error, "text"));
    int end = kind ? tune_end_of_key(kind) : TUNE_GOOD;

    if (late)
        bad(out, TUNE_HUNG, "it did not end in ten times the usual time");
    else if (!bench)
        bad(out, TUNE_FAILED, words);
    else if (end != TUNE_GOOD)
        bad(out, end < 0 ? TUNE_FAILED : (enum tune_end)end, text && *text ? text : words);
    else if (!t->known && tune_work_learn(t, bench, e) < 0)
        return -1;
    else if (read_rows(t, json_object_get(bench, "rows"), out) < 0)
        bad(out, TUNE_FAILED, "its result has other rows than the workload");
    return 0;
}

int tune_trial_run(struct tune *t, const char *profile, struct tune_trial *out, struct error *e)
{
    struct tune_args a = {.count = 0};
    char name[64], json[TUNE_PATH], err[TUNE_PATH], words[400];
    uint64_t begin = monotonic_ns(), limit = t->mean_ns
                                                 ? t->mean_ns * LIMIT_TIMES + STUCK_S * SECOND
                                                 : FIRST_LIMIT_S * SECOND;
    bool good, late;
    json_t *bench;
    int rc;

    snprintf(name, sizeof(name), "trials/%04u.json", ++t->trial);
    tune_path(t, name, json, sizeof(json));
    snprintf(name, sizeof(name), "trials/%04u.err", t->trial);
    tune_path(t, name, err, sizeof(err));
    tune_args_bench(t, profile, &a);
    if (tune_command(t, a.argv, json, err, begin + limit, &good, &late, e) < 0)
        return -1;
    out->took_ns = monotonic_ns() - begin;
    out->end = TUNE_GOOD;
    last_words(err, words, sizeof(words));
    bench = json_load_file(json, 0, NULL);
    rc = judge(t, bench, late, words, out, e);
    json_decref(bench);
    if (rc == 0 && out->end == TUNE_GOOD)
        t->mean_ns = t->mean_ns ? (t->mean_ns * 3 + out->took_ns) / 4 : out->took_ns;
    return rc;
}

/* ---- the search's question ------------------------------------------------------------------ */

static uint64_t reserve_ns(const struct tune *t)
{
    uint64_t runs = t->o.proof_runs ? t->o.proof_runs : TUNE_PROOF_LEAST + 2;

    return (2 * runs + 4) * t->mean_ns; /* the proof, and two recorded runs, which take longer */
}

static int write_candidate(const struct tune *t, const struct candidate *c, char *path, size_t size,
                           struct error *e)
{
    char name[64];
    FILE *out;

    snprintf(name, sizeof(name), "trials/%04u.ini", t->trial + 1);
    tune_path(t, name, path, size);
    out = fopen(path, "we");
    if (!out)
        return error_set(e, path, 0, "can't be written: %s", strerror(errno));
    candidate_write(c, &t->space, &t->work, out);
    return fclose(out) == 0 ? 0 : error_set(e, path, 0, "can't be written: %s", strerror(errno));
}

int tune_measure(void *user, const struct candidate *c, unsigned nth, struct tune_trial *out,
                 struct error *e)
{
    struct tune *t = user;
    const struct tune_trial *known = book_find(&t->loaded, TUNE_SEARCH, c, nth);
    char path[TUNE_PATH] = "none";
    struct candidate none;
    int rc;

    if (known) {
        *out = *known;
        t->reused++;
        return MEASURED;
    }
    if (t->known && tune_spent(t) + t->mean_ns + reserve_ns(t) > t->o.budget_ns)
        return NO_TIME;
    candidate_init(&none);
    if (!candidate_equal(c, &none) && write_candidate(t, c, path, sizeof(path), e) < 0)
        return -1;
    rc = tune_trial_run(t, path, out, e);
    if (rc == 0 && !book_add(&t->all, out))
        rc = error_set(e, NULL, 0, "out of memory");
    return rc == 0 ? tune_state_save(t, e) : rc;
}
