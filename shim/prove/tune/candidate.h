/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One set of settings to try: a value (or none) of each setting of the space, and a rule (or none)
 * for each class of sizes. Classes do not touch each other: NCCL decides about each call by itself.
 * So one bench tries a rule for every class at once.
 */
#ifndef NCCLSHIM_PROVE_CANDIDATE_H
#define NCCLSHIM_PROVE_CANDIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "shim/base/error.h"
#include "shim/prove/tune/space.h"

#define TUNE_CLASSES 64
#define TUNE_ROWS 128

/* A kind of call of the workload: a row of bench. */
struct tune_row {
    char op[24]; /* bench's word: an operation, or "group" */
    char comm[48];
    uint64_t bytes;
    bool graph;
    uint32_t calls;
    double weight; /* calls in the recorded run */
    double share;  /* of what counts, all rows together 1 */
    int class;     /* index; -1 = no rule can reach it */
};

/* Calls that one rule decides: an operation at one size. */
struct tune_class {
    int op;
    uint64_t bytes;
};

struct tune_work {
    struct tune_row rows[TUNE_ROWS];
    size_t row_count;
    struct tune_class classes[TUNE_CLASSES]; /* by operation and size */
    size_t class_count;
};

struct tune_choice {
    int8_t algo, proto; /* -1 = NCCL's choice */
    int16_t channels;   /* 0 = NCCL's */
    uint64_t chunk;     /* 0 = NCCL's */
};
#define TUNE_NO_RULE \
    {                \
        -1, -1, 0, 0 \
    }

struct candidate {
    int8_t value[SPACE_SETTINGS]; /* index in the setting's values; -1 = not set */
    struct tune_choice rule[TUNE_CLASSES];
};

void candidate_init(struct candidate *c);
bool candidate_equal(const struct candidate *a, const struct candidate *b);
bool candidate_same_settings(const struct candidate *a, const struct candidate *b);
bool tune_choice_equal(const struct tune_choice *a, const struct tune_choice *b);
bool tune_choice_empty(const struct tune_choice *c);
/* How much it says: 0 for no rule. The less the better, when all else is equal. */
int tune_choice_words(const struct tune_choice *c);
/* "ring ll channels=2"; "no rule". Returns buf. */
const char *tune_choice_text(const struct tune_choice *c, char *buf, size_t size);
/* "NCCL_P2P_LEVEL=SYS, all_reduce 42K: ring ll"; "NCCL's default". Returns buf. */
const char *candidate_text(const struct candidate *c, const struct tune_space *s,
                           const struct tune_work *w, char *buf, size_t size);
/* The profile that bench gets: rules for exactly the sizes measured. */
void candidate_write(const struct candidate *c, const struct tune_space *s,
                     const struct tune_work *w, FILE *out);
/* Would such a profile be accepted? Contradictions are found here, before anything is run. */
int candidate_check(const struct candidate *c, const struct tune_space *s,
                    const struct tune_work *w, struct error *e);

/* "allreduce", as profiles write it. */
const char *candidate_rule_op(int op, char *buf, size_t size);

#endif
