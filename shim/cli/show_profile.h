/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of `ncclshim show PROFILE`. */
#ifndef NCCLSHIM_CLI_SHOW_PROFILE_H
#define NCCLSHIM_CLI_SHOW_PROFILE_H

#include <stdio.h>

#include "shim/cli/judged.h"

void show_profile_text(const struct judged *j, FILE *out);
/* 0, or -1 with *e filled. */
int show_profile_json(const struct judged *j, FILE *out, struct error *e);

/* The worst finding on a variable, key or rule in a section; NULL when there is none. */
const struct finding *note_on(const struct judged *j, const char *subject, const char *section);

/* "ranks = 8, name = tp*" in malloc'ed memory; "" for any. */
char *condition_text(const struct comm_condition *c);

/* A rule in its normal form, malloc'ed. */
char *rule_text(const struct tune_rule *t);

#endif
