/* SPDX-License-Identifier: Apache-2.0 */
/* A bench for people and for programs. */
#ifndef NCCLSHIM_CLI_BENCH_SHOW_H
#define NCCLSHIM_CLI_BENCH_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "shim/prove/bench/bench.h"

/* Columns like those of nccl-tests. */
void bench_text(const struct bench_result *b, FILE *out);
/* docs/bench.md has the keys. NULL when memory is out. */
json_t *bench_json(const struct bench_result *b);

/* nccl-tests' GB/s of a row that takes ns a call. */
double bench_algbw(const struct bench_result *b, uint32_t row, double ns);
double bench_busbw(const struct bench_result *b, uint32_t row, double ns);
/* Operation of a row: "all_reduce", "group". */
const char *bench_row_op(const struct bench_result *b, uint32_t row);

#endif
