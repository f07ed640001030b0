/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof: NCCL's default against the profile as it will be used, in fresh processes, in an order
 * nobody could foresee. What the search measured does not count here: of many candidates the best
 * one was picked, and what is picked looks better than it is.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/prove/tune/tune.h"
#include "shim/prove/ab/turns.h"

#define SEED 20260101u
#define ALPHA 0.05
#define WORTH_IT 0.005 /* a profile must save more than that of what counts */
#define RECORD_TIMES 20

/* Runs of a side, by round. */
struct sides {
    const struct tune_trial *runs[2][TUNE_PROOF_MAX];
    size_t rounds;
};

/* ---- running -------------------------------------------------------------------------------- */

static uint32_t choose_rounds(const struct tune *t)
{
    uint64_t left = t->o.budget_ns > tune_spent(t) ? t->o.budget_ns - tune_spent(t) : 0;
    uint64_t rounds = t->mean_ns ? left * 8 / 10 / (2 * t->mean_ns) : TUNE_PROOF_MAX;

    if (t->o.proof_runs)
        return t->o.proof_runs < TUNE_PROOF_MAX ? t->o.proof_runs : TUNE_PROOF_MAX;
    return rounds < TUNE_PROOF_LEAST ? TUNE_PROOF_LEAST
           : rounds > TUNE_PROOF_MAX ? TUNE_PROOF_MAX
                                     : (uint32_t)rounds;
}

static const struct tune_trial *run_side(struct tune *t, size_t side, unsigned round,
                                         struct error *e)
{
    const struct tune_trial *known;
    struct tune_trial x;
    char path[TUNE_PATH] = "none";
    struct candidate c;

    candidate_init(&c);
    memset(&x, 0, sizeof(x));
    x.kind = side ? TUNE_PROOF_WINNER : TUNE_PROOF_DEFAULT;
    x.c = side ? t->search.best : c;
    x.nth = round;
    known = book_find(&t->all, x.kind, &x.c, round);
    if (known)
        return known;
    if (side)
        tune_path(t, "winner.ini", path, sizeof(path));
    if (tune_trial_run(t, path, &x, e) < 0)
        return NULL;
    known = book_add(&t->all, &x);
    if (!known)
        error_set(e, NULL, 0, "out of memory");
    return known && tune_state_save(t, e) == 0 ? known : NULL;
}

static int run_rounds(struct tune *t, struct sides *s, struct error *e)
{
    size_t order[2 * TUNE_PROOF_MAX], rounds = choose_rounds(t);

    turns_shuffled(SEED, 2, rounds, order);
    for (size_t i = 0; i < 2 * rounds; i++) {
        const struct tune_trial *x;
        tune_say(t, true, "proof  run %zu of %zu, default and winner shuffled   about %.0f s to go",
                 i + 1, 2 * rounds, (double)(2 * rounds - i) * (double)t->mean_ns / 1e9);
        x = run_side(t, order[i], (unsigned)(i / 2), e);
        if (!x)
            return -1;
        if (x->end != TUNE_GOOD) {
            snprintf(t->verdict, sizeof(t->verdict), "%s, in the proof: %s: %.200s",
                     order[i] ? "the winner" : "NCCL's default", tune_end_text(x->end), x->why);
            return 0;
        }
        s->runs[order[i]][i / 2] = x;
        if (i % 2)
            s->rounds = i / 2 + 1;
    }
    return 0;
}

/* ---- judging -------------------------------------------------------------------------------- */

static struct estimate estimate_of(const double *logs, const double *within, size_t n)
{
    struct estimate e = {.known = n > 1, .n = n, .df = (double)n - 1};
    double squares = 0, inside = 0;

    for (size_t i = 0; i < n; i++)
        e.log_ns += logs[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        squares += (logs[i] - e.log_ns) * (logs[i] - e.log_ns);
        inside += within[i] * within[i];
    }
    squares = n > 1 ? squares / (double)(n - 1) : 0;
    inside /= (double)n;
    /* Two or three runs may agree by chance alone. */
    if (squares < inside)
        squares = inside;
    if (squares < BOOK_SPREAD_LEAST * BOOK_SPREAD_LEAST)
        squares = BOOK_SPREAD_LEAST * BOOK_SPREAD_LEAST;
    e.se = sqrt(squares / (double)n);
    return e;
}

static struct estimate row_of(const struct sides *s, size_t side, size_t row)
{
    double logs[TUNE_PROOF_MAX], within[TUNE_PROOF_MAX];

    for (size_t i = 0; i < s->rounds; i++) {
        logs[i] = s->runs[side][i]->rows[row].log_ns;
        within[i] = s->runs[side][i]->rows[row].se;
    }
    return estimate_of(logs, within, s->rounds);
}

/* What counts, of one run: each row's time against the default's mean, by share. */
static struct estimate whole_of(const struct tune *t, const struct sides *s, size_t side)
{
    double logs[TUNE_PROOF_MAX], within[TUNE_PROOF_MAX] = {0};

    for (size_t i = 0; i < s->rounds; i++) {
        double sum = 0;
        for (size_t r = 0; r < t->work.row_count; r++)
            sum += t->work.rows[r].share *
                   exp(s->runs[side][i]->rows[r].log_ns - t->proof[r].before.log_ns);
        logs[i] = log(sum);
    }
    return estimate_of(logs, within, s->rounds);
}

static int judge_rows(struct tune *t, const struct sides *s)
{
    double p[TUNE_ROWS], slower[TUNE_ROWS];
    bool differs[TUNE_ROWS], loses[TUNE_ROWS];
    size_t n = t->work.row_count;

    for (size_t i = 0; i < n; i++) {
        struct tune_proof_row *x = &t->proof[i];
        x->before = row_of(s, 0, i);
        x->after = row_of(s, 1, i);
        x->difference = difference_of(&x->before, &x->after, 0);
        p[i] = x->difference.p;
        slower[i] = difference_of(&x->before, &x->after, TUNE_SLACK).p;
    }
    if (holm(p, n, ALPHA, differs) < 0 || holm(slower, n, ALPHA, loses) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct tune_proof_row *x = &t->proof[i];
        x->verdict = differs[i] && x->difference.change < 0 ? VERDICT_FASTER
                     : loses[i] && x->difference.change > 0 ? VERDICT_SLOWER
                                                            : VERDICT_NONE;
    }
    return 0;
}

static void conclude(struct tune *t)
{
    for (size_t i = 0; i < t->work.row_count; i++)
        if (t->proof[i].verdict == VERDICT_SLOWER) {
            snprintf(t->verdict, sizeof(t->verdict), "it makes %s of %llu bytes slower (%+.1f %%)",
                     t->work.rows[i].op, (unsigned long long)t->work.rows[i].bytes,
                     t->proof[i].difference.change * 100);
            return;
        }
    t->proven = t->whole.known && t->whole.high < 0 && t->whole.change < -WORTH_IT;
    if (t->proven)
        snprintf(t->verdict, sizeof(t->verdict),
                 "better: what counts takes %+.1f %% [%+.1f, %+.1f]", t->whole.change * 100,
                 t->whole.low * 100, t->whole.high * 100);
    else
        snprintf(t->verdict, sizeof(t->verdict), "no difference shown: %+.1f %% [%+.1f, %+.1f]",
                 t->whole.change * 100, t->whole.low * 100, t->whole.high * 100);
}

int tune_prove(struct tune *t, struct error *e)
{
    struct sides s = {.rounds = 0};
    struct estimate before, after;

    t->verdict[0] = '\0';
    t->proven = false;
    memset(t->proof, 0, sizeof(t->proof)); /* of the profile that was tried before */
    memset(&t->whole, 0, sizeof(t->whole));
    if (run_rounds(t, &s, e) < 0)
        return -1;
    t->proof_runs = (uint32_t)s.rounds;
    if (t->verdict[0])
        return 0;
    if (judge_rows(t, &s) < 0)
        return error_set(e, NULL, 0, "out of memory");
    before = whole_of(t, &s, 0);
    after = whole_of(t, &s, 1);
    t->whole = difference_of(&before, &after, 0);
    conclude(t);
    return 0;
}

/* ---- for report and compare ----------------------------------------------------------------- */

/*
 * `run` puts the shim and the profile in front of everything it starts; the bench inside is told to
 * bring none of its own (-p none), so that its ranks keep what they inherit.
 */
static int record(struct tune *t, const char *profile, const char *name, struct error *e)
{
    struct tune_args a = {.count = 0}, bench = {.count = 0};
    char folder[TUNE_PATH], out[TUNE_PATH], file[64];
    bool good, late;

    tune_path(t, name, folder, sizeof(folder));
    snprintf(file, sizeof(file), "trials/record-%s.out", name);
    tune_path(t, file, out, sizeof(out));
    if (access(folder, F_OK) == 0)
        return 0;
    tune_args_bench(t, "none", &bench);
    tune_args_add(&a, bench.self);
    tune_args_add(&a, "run");
    tune_args_add(&a, "-p");
    tune_args_add(&a, profile);
    tune_args_add(&a, "-o");
    tune_args_add(&a, folder);
    tune_args_add(&a, "--");
    for (int i = 0; i < bench.count; i++)
        tune_args_add(&a, bench.argv[i]);
    tune_say(t, true, "recording a run of %s", name);
    if (tune_command(t, a.argv, out, NULL,
                     monotonic_ns() + RECORD_TIMES * t->mean_ns + 60000000000ull, &good, &late,
                     e) < 0)
        return -1;
    if (!good)
        tune_note(t, "the recorded run of %s failed: %s", name, out);
    return 0;
}

int tune_record(struct tune *t, struct error *e)
{
    char path[TUNE_PATH];

    tune_path(t, "winner.ini", path, sizeof(path));
    return record(t, "none", "default", e) < 0 ? -1 : record(t, path, "winner", e);
}
