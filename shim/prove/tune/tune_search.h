/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search. It knows nothing of processes and GPUs: it asks for measurements and decides by them,
 * and by nothing else, so that a search that was stopped comes to the same place again when its
 * measurements are handed back (tune_state.h).
 *
 *   1 settings   each value of each setting alone
 *   2 rules      algorithm and protocol for each class of sizes, all classes at once; then
 * channels; then chunks: successive halving, by intervals 3 together   the promising settings, best
 * first, each kept when it helps beside those before it 4 rules      again, under these settings 5
 * neighbours each chosen value against those beside it and against leaving it out
 */
#ifndef NCCLSHIM_PROVE_TUNE_SEARCH_H
#define NCCLSHIM_PROVE_TUNE_SEARCH_H

#include "shim/prove/tune/tune_book.h"

enum { MEASURED = 0, NO_TIME = 1 };

struct tune_search {
    const struct tune_space *s;
    const struct tune_work *w;
    struct tune_book book; /* all it asked for */
    /* Run the candidate once more: MEASURED, NO_TIME, or -1 with *e filled (stopped, broken). */
    int (*measure)(void *user, const struct candidate *c, unsigned nth, struct tune_trial *out,
                   struct error *e);
    /* What is being done: `done` of `total` runs of a stage; a total may grow. */
    void (*progress)(void *user, const char *stage, size_t done, size_t total);
    void *user;

    /* the result */
    struct candidate best;
    struct tune_choice rules[TUNE_CLASSES]; /* best under the default's settings, for step 3 */
    bool out_of_time;
    char guarded[400]; /* what the guard kept out; "" = nothing */

    /* private */
    size_t stage_done, stage_total;
    const char *stage;
};

/* Search. 0 (also when the time is over), or -1 with *e filled. */
int tune_search(struct tune_search *t, struct error *e);
void tune_search_free(struct tune_search *t);

/*
 * The guard: is any row of the workload slower than under NCCL's default, by more than what could
 * be chance and TUNE_SLACK?
 */
#define TUNE_SLACK 0.005
bool tune_guard(const struct tune_cost *c);
/* One against the other in what counts: shown to be less? */
bool tune_less(const struct tune_cost *a, const struct tune_cost *b);

/* ---- between the files of the search ---- */

/* Measure it once more, unless it ended badly before (then 0 as well). MEASURED, NO_TIME, -1. */
int search_once(struct tune_search *t, const struct candidate *c, struct error *e);
/* Until it has so many runs. */
int search_until(struct tune_search *t, const struct candidate *c, unsigned runs, struct error *e);
void search_stage(struct tune_search *t, const char *name, size_t total);

/* tune_halve.c: successive halving of the choices of each class, under the settings of `base`. */
#define TUNE_CHOICES 96
struct choice_list {
    struct tune_choice list[TUNE_CHOICES];
    size_t count;
};
int search_halve(struct tune_search *t, const struct candidate *base, struct choice_list *lists,
                 struct error *e);
/* Which of n estimates stay: those whose interval reaches the best one's. kept[i]; how many. */
size_t halve_keep(const struct tune_cost *c, size_t n, bool *kept);
/* tune_rules.c: the best rule of each class under the settings of c goes into c. Not fine:
 * algorithm and protocol alone. */
int search_rules(struct tune_search *t, struct candidate *c, bool fine, struct error *e);
/* The chosen rules, and each with less in it, in more runs; what does not hold up goes. */
int search_confirm(struct tune_search *t, struct candidate *c, struct error *e);
/* Best of a list by what is known: least words where it makes no difference. */
struct tune_choice rules_pick(const struct tune_search *t, const struct candidate *base, int class,
                              const struct choice_list *l);
/* tune_settings.c */
int search_settings(struct tune_search *t, struct error *e);                      /* step 1 */
int search_together(struct tune_search *t, struct candidate *c, struct error *e); /* step 3 */
int search_neighbours(struct tune_search *t, struct candidate *c, bool *moved, struct error *e);

#endif
