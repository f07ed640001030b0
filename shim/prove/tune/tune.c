/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/tune/tune.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/size.h"

extern char **environ;

#define BAR 20

/* ---- small things --------------------------------------------------------------------------- */

void tune_note(struct tune *t, const char *fmt, ...)
{
    va_list args;

    if (t->note_count == TUNE_NOTES)
        return;
    va_start(args, fmt);
    vsnprintf(t->notes[t->note_count++], sizeof(t->notes[0]), fmt, args);
    va_end(args);
}

void tune_say(const struct tune *t, bool transient, const char *fmt, ...)
{
    char line[600];
    va_list args;

    if (!t->o.say)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    t->o.say(t->o.user, line, transient);
}

uint64_t tune_spent(const struct tune *t)
{
    return t->spent_ns + (monotonic_ns() - t->started_ns);
}

void tune_path(const struct tune *t, const char *name, char *buf, size_t size)
{
    snprintf(buf, size, "%s/%s", t->folder.path, name);
}

static void take_note(void *user, const char *line)
{
    tune_note(user, "%s", line);
}

/* ---- progress ------------------------------------------------------------------------------- */

static void time_text(double seconds, char *buf, size_t size)
{
    if (seconds >= 60)
        snprintf(buf, size, "%d min %02d s", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(buf, size, "%d s", (int)seconds);
}

/* Of the calls that count most, in microseconds; 0 = nothing is known yet. */
static double best_so_far(const struct tune *t)
{
    size_t row = 0;
    double best = 0;

    for (size_t i = 1; i < t->work.row_count; i++)
        if (t->work.rows[i].share > t->work.rows[row].share)
            row = i;
    for (size_t i = 0; i < t->all.count; i++) {
        double us = exp(t->all.trials[i]->rows[row].log_ns) / 1e3;
        if (t->all.trials[i]->end == TUNE_GOOD && (best == 0 || us < best))
            best = us;
    }
    return best;
}

static void show_progress(void *user, const char *stage, size_t done, size_t total)
{
    const struct tune *t = user;
    char bar[BAR + 1], left[32], of_budget[32];
    size_t filled;
    double spent = (double)tune_spent(t), budget = (double)t->o.budget_ns;

    total = total > done ? total : done + 1;
    filled = BAR * done / total;
    memset(bar, '-', BAR);
    memset(bar, '#', filled);
    bar[BAR] = '\0';
    time_text((double)(total - done) * (double)t->mean_ns / 1e9, left, sizeof(left));
    time_text(budget > spent ? (budget - spent) / 1e9 : 0, of_budget, sizeof(of_budget));
    tune_say(t, true,
             "%-24s %3zu of %-3zu [%s]  about %s to go, %s of the budget left, best so far %.1f us",
             stage, done, total, bar, left, of_budget, best_so_far(t));
}

/* ---- beginning ------------------------------------------------------------------------------ */

static int make_folder(struct tune *t, struct error *e)
{
    char *command[] = {(char[]){"tune"}, NULL}, path[TUNE_PATH];

    if (runfolder_make(&t->folder, t->o.out_dir, command, e) < 0)
        return -1;
    tune_path(t, "trials", path, sizeof(path));
    return mkdir(path, 0777) == 0 ? 0 : error_set(e, path, 0, "can't be made: %s", strerror(errno));
}

static int open_folder(struct tune *t, struct error *e)
{
    int n = snprintf(t->folder.path, sizeof(t->folder.path), "%s", t->o.resume);

    while (n > 1 && t->folder.path[n - 1] == '/')
        t->folder.path[--n] = '\0';
    return tune_state_load(t, e);
}

/* The first bench of the default: it tells what there is, and is the search's first measurement. */
static int first_bench(struct tune *t, struct error *e)
{
    struct tune_trial x;

    memset(&x, 0, sizeof(x));
    candidate_init(&x.c);
    tune_say(t, true, "first bench of NCCL's default");
    if (tune_trial_run(t, "none", &x, e) < 0)
        return -1;
    if (x.end != TUNE_GOOD)
        return error_set(e, NULL, 0, "NCCL's default itself %s: %s",
                         x.end == TUNE_WRONG  ? "gives wrong sums"
                         : x.end == TUNE_HUNG ? "hangs"
                                              : "fails",
                         x.why);
    return book_add(&t->loaded, &x) && book_add(&t->all, &x)
               ? 0
               : error_set(e, NULL, 0, "out of memory");
}

static int write_space(const struct tune *t, struct error *e)
{
    char path[TUNE_PATH];
    FILE *out;

    tune_path(t, "space.ini", path, sizeof(path));
    out = fopen(path, "we");
    if (!out)
        return error_set(e, path, 0, "can't be written: %s", strerror(errno));
    space_write(&t->space, out);
    return fclose(out) == 0 ? 0 : error_set(e, path, 0, "can't be written: %s", strerror(errno));
}

/* A search that is cut off in the middle is worse than a coarser one that comes to its end. */
static void thin_space(struct tune *t)
{
    uint64_t room = t->o.budget_ns > tune_spent(t) ? t->o.budget_ns - tune_spent(t) : 0;
    uint64_t kept_back = (2 * TUNE_PROOF_LEAST + 8) * t->mean_ns;
    size_t runs = t->mean_ns && room > kept_back ? (size_t)((room - kept_back) / t->mean_ns) : 1,
           whole = space_cost(&t->space);

    if (!t->o.space && space_thin(&t->space, runs))
        tune_note(t,
                  "the budget allows about %zu benches, all values would take about %zu: fewer "
                  "values of each setting "
                  "were tried (space.ini); --budget gives more time",
                  runs, whole);
}

static int choose_space(struct tune *t, struct error *e)
{
    struct space_facts f = {
        .version = t->version, .mixed = t->mixed, .waits = t->o.waits, .env = environ};

    for (size_t i = 0; i < t->work.row_count; i++)
        f.graphs |= t->work.rows[i].graph;
    space_prune(&t->space, &f, take_note, t);
    if (!t->space.setting_count && !t->space.algos && !t->space.protos && !t->space.channel_count &&
        !t->space.chunk_count)
        return error_set(e, NULL, 0, "nothing is left to try: %s",
                         t->note_count ? t->notes[0] : "the space is empty");
    thin_space(t);
    return write_space(t, e);
}

static int begin_anew(struct tune *t, struct error *e)
{
    if (t->o.space ? space_read(&t->space, t->o.space, e) < 0 : (space_default(&t->space), 0))
        return -1;
    if (make_folder(t, e) < 0 || tune_work_make(t, e) < 0 || first_bench(t, e) < 0 ||
        choose_space(t, e) < 0)
        return -1;
    return tune_state_save(t, e);
}

/* ---- the course of it ----------------------------------------------------------------------- */

static void look_around(struct tune *t, struct machine_look *look)
{
    char others[600];

    if (t->simulated)
        return;
    machine_look(&t->machine, look);
    if (machine_others(look, others, sizeof(others))[0])
        tune_note(t, "other processes are on the GPUs and may disturb every measurement: %s",
                  others);
}

static void tell_workload(const struct tune *t)
{
    char line[500] = "", size[SIZE_TEXT_MAX];
    size_t n = 0;

    for (size_t i = 0; i < t->work.row_count && n + 80 < sizeof(line); i++) {
        const struct tune_row *r = &t->work.rows[i];
        struct candidate none;
        double ns;
        candidate_init(&none);
        ns = t->loaded.count ? t->loaded.trials[0]->rows[i].log_ns : 0;
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s %s %s %.1f us", n ? ", " : "",
                              r->op, size_text(r->bytes, size, sizeof(size)),
                              r->graph ? "captured" : "eager", exp(ns) / 1e3);
    }
    if (t->simulated)
        tune_say(t, false, "SIMULATED: no GPU took part; times come from the stand-in driver");
    tune_say(t, false, "workload: %s; %d ranks; NCCL %s; folder %s", line, t->ranks, t->nccl,
             t->folder.path);
}

static bool same_as_default(const struct candidate *c)
{
    struct candidate none;

    candidate_init(&none);
    return candidate_equal(c, &none);
}

static int prove_once(struct tune *t, struct error *e)
{
    t->proof_runs = 0;
    return tune_write(t, e) < 0 ? -1 : tune_prove(t, e);
}

/* When a setting costs some size too much after all, rules alone may still be good. */
static int prove(struct tune *t, struct error *e)
{
    struct candidate rules;
    char first[sizeof(t->verdict)];

    candidate_init(&rules);
    memcpy(rules.rule, t->search.rules, sizeof(rules.rule));
    if (prove_once(t, e) < 0)
        return -1;
    if (t->proven || same_as_default(&rules) || candidate_equal(&rules, &t->search.best))
        return 0;
    memcpy(first, t->verdict, sizeof(first));
    tune_note(t, "with settings for all sizes: %.300s; tried again with rules by size alone",
              first);
    t->search.best = rules;
    return prove_once(t, e);
}

static int conclude(struct tune *t, struct error *e)
{
    t->winner_differs = !same_as_default(&t->search.best);
    if (!t->winner_differs) {
        snprintf(t->verdict, sizeof(t->verdict),
                 "nothing in this space was better than NCCL's default");
        return 0;
    }
    if (prove(t, e) < 0)
        return -1;
    if (!t->proven) {
        unlink(t->profile);
        t->profile[0] = '\0';
        return 0;
    }
    if (tune_write(t, e) < 0 || tune_record(t, e) < 0)
        return -1;
    return tune_install(t, e);
}

static int go(struct tune *t, struct error *e)
{
    if (tune_install(t, e) < 0) /* could it be written? */
        return -1;
    if ((t->resumed ? open_folder(t, e) : begin_anew(t, e)) < 0)
        return -1;
    look_around(t, &t->machine.before);
    tell_workload(t);
    t->search.s = &t->space;
    t->search.w = &t->work;
    t->loaded.w = t->all.w = &t->work;
    t->search.measure = tune_measure;
    t->search.progress = show_progress;
    t->search.user = t;
    if (tune_search(&t->search, e) < 0)
        return -1;
    if (t->search.out_of_time)
        tune_note(t, "the budget was over before the search was: --resume %s --budget TIME goes on",
                  t->folder.path);
    if (t->search.guarded[0])
        tune_note(t, "kept out, since it would cost another size: %s", t->search.guarded);
    if (conclude(t, e) < 0)
        return -1;
    look_around(t, &t->machine.after);
    return tune_state_save(t, e);
}

int tune_run(struct tune *t, const struct tune_options *o, struct error *e)
{
    int rc;

    memset(t, 0, sizeof(*t));
    t->o = *o;
    t->folder.fd = -1;
    if (!t->o.budget_ns && !o->resume)
        t->o.budget_ns = TUNE_BUDGET_NS;
    t->resumed = o->resume != NULL;
    t->started_ns = monotonic_ns();
    machine_open(&t->machine);
    nursery_open(&t->nursery);
    rc = go(t, e);
    nursery_close(&t->nursery);
    machine_close(&t->machine);
    return rc;
}

void tune_free(struct tune *t)
{
    tune_search_free(&t->search);
    book_free(&t->loaded);
    book_free(&t->all);
    if (t->folder.fd >= 0)
        close(t->folder.fd);
}
