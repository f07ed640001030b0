/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as an INI file that reads back to the same profile: what it inherits is written out,
 * sizes are plain or shortest, comments are gone.
 */
#ifndef NCCLSHIM_PROFILE_WRITE_H
#define NCCLSHIM_PROFILE_WRITE_H

#include <stdio.h>

#include "shim/profile/profile.h"

/* 0, or -1 when `out` has an error. */
int profile_write(const struct profile *p, FILE *out);

/* `ranks = 8` and so on, one condition a line with `before` in front; nothing for "any". */
void condition_write(const struct comm_condition *c, const char *before, FILE *out);

/* "allreduce 0-64K = ring ll channels=2", in one normal form whatever was written. */
void tune_rule_write(const struct tune_rule *t, FILE *out);

/* Text of one field that a [comm] section gives. */
const char *config_field_value(const struct comm_section *c, int field, char *buf, size_t size);

#endif
