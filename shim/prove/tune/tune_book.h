/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was measured, and how well it is known.
 *
 * A number of a bench is uncertain twice: within a run (its own interval), and from one start of
 * the processes to the next (1 to 3 % were seen). The second counts here, and is learnt from
 * everything that was started more than once. All runs with the same settings and the same rule for
 * a class are measurements of the same thing, whatever rules the other classes had.
 */
#ifndef NCCLSHIM_PROVE_TUNE_BOOK_H
#define NCCLSHIM_PROVE_TUNE_BOOK_H

#include "shim/prove/tune/candidate.h"
#include "shim/stats/intervals.h"

enum tune_end { TUNE_GOOD, TUNE_WRONG, TUNE_HUNG, TUNE_FAILED, TUNE_ENDS };
const char *tune_end_text(enum tune_end end); /* "wrong sums" */
const char *tune_end_key(enum tune_end end);  /* "wrong" */
int tune_end_of_key(const char *key);         /* -1 = no such */

enum tune_kind { TUNE_SEARCH, TUNE_PROOF_DEFAULT, TUNE_PROOF_WINNER };

struct tune_sample {
    double log_ns, se; /* median of a row in one run, and its standard error within the run */
};

struct tune_trial {
    enum tune_kind kind;
    struct candidate c;
    unsigned nth; /* which run of this candidate, from 0 */
    enum tune_end end;
    char why[400]; /* of a bad end */
    uint64_t took_ns;
    struct tune_sample rows[TUNE_ROWS]; /* of a good one */
};

struct tune_book {
    const struct tune_work *w;
    struct tune_trial **trials;
    size_t count;
    double spread[TUNE_ROWS]; /* private: renewed with each trial */
};

/* Takes a copy. The place of it, valid until the book is freed; NULL when memory is out. */
const struct tune_trial *book_add(struct tune_book *b, const struct tune_trial *t);
void book_free(struct tune_book *b);

/* Runs of exactly this candidate. */
unsigned book_runs(const struct tune_book *b, const struct candidate *c);
/* The first of its trials that ended badly, or NULL. */
const struct tune_trial *book_bad(const struct tune_book *b, const struct candidate *c);
const struct tune_trial *book_find(const struct tune_book *b, enum tune_kind kind,
                                   const struct candidate *c, unsigned nth);

/* Spread from one start to the next, of a row; as log. Never less than BOOK_SPREAD_LEAST. */
#define BOOK_SPREAD_LEAST 0.002
#define BOOK_SPREAD_UNKNOWN 0.01 /* before anything was started twice */
double book_spread(const struct tune_book *b, size_t row);

/* A row under the settings of `c` with this rule for the row's class. Not known: never measured. */
struct estimate book_row(const struct tune_book *b, size_t row, const struct candidate *c);

/*
 * How much time rows take against NCCL's default, weighted by share: sum of share x (ratio - 1),
 * and the standard error of that. Rows of one class alone with class >= 0; rows that no rule
 * reaches with -1; all rows with BOOK_ALL.
 */
#define BOOK_ALL (-2)
struct tune_cost {
    bool known;
    double change, se;
    double worst, worst_se; /* the row that lost most: its ratio - 1 */
    size_t worst_row;
};
struct tune_cost book_cost(const struct tune_book *b, const struct candidate *c, int class);

/* 95 %: two standard errors, since spreads are pooled over many runs. */
#define TUNE_Z 2.0

#endif
