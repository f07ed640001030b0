/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers around jansson: texts from logs made valid, numbers that do not lose their sign. */
#ifndef NCCLSHIM_SHOW_JSON_H
#define NCCLSHIM_SHOW_JSON_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "shim/base/error.h"
#include "shim/stats/hist.h"
#include "shim/stats/intervals.h"

/* A string made harmless by safe_text; null for NULL. */
json_t *json_text(const char *text);
/* Counts above 2^63 do not happen; they are cut there. */
json_t *json_u64(uint64_t n);
/* The same, null for 0: for what is not known. */
json_t *json_known(uint64_t n);
/* count, sum_ns, min_ns, p50_ns, p90_ns, p99_ns, max_ns, mean_ns; null when empty. */
json_t *json_hist(const struct hist *h);
/* change, low_95, high_95, p; null when it is not known. */
json_t *json_difference(const struct difference *d);
/* Print it with a line feed; steals the reference. 0, or -1 with *e filled: it is NULL (memory is
 * out) or can't be written. */
int json_print(json_t *j, FILE *out, struct error *e);
/* Hexadecimal, as NCCL's own messages print hashes. */
json_t *json_hex(uint64_t n);

#endif
