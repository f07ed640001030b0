/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of which every sum (product, maximum, ...) is exact in their type, whatever the order in
 * which NCCL adds: small non-negative integers whose total stays below the first integer that the
 * type can't hold. They differ by rank, by place and by call, so that a part that is missing, came
 * twice or came to the wrong place shows; their period is a prime, so that a shift by a power of
 * two shows too.
 *
 * One case can't be exact: `avg` of floats over a number of ranks that is no power of two, where
 * NCCL multiplies by a rounded 1/n. There bench_value_tolerance says how far off is still right.
 */
#ifndef NCCLSHIM_PROVE_BENCH_VALUES_H
#define NCCLSHIM_PROVE_BENCH_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_PERIOD 4099u

/* What `rank` of `ranks` has at element `at` in the buffer of call `call`. */
double bench_value(unsigned dtype, unsigned redop, int ranks, int rank, uint32_t call, uint64_t at);
/* What the reduction over all ranks gives there. */
double bench_value_reduced(unsigned dtype, unsigned redop, int ranks, uint32_t call, uint64_t at);
/* Largest difference from it that is right: 0 but for the case above. */
double bench_value_tolerance(unsigned dtype, unsigned redop, int ranks, double expected);

/* To and from the bytes of a type. A value must be one that the type holds exactly. */
void bench_encode(unsigned dtype, double value, void *to);
double bench_decode(unsigned dtype, const void *from);
/* Does the type hold it exactly? */
bool bench_exact(unsigned dtype, double value);

/*
 * Fill `count` elements from element `at` on: rank's own values, or with rank -1 the reduced ones.
 * `tile` is scratch of BENCH_PERIOD * 8 bytes.
 */
void bench_fill(void *to, unsigned dtype, unsigned redop, int ranks, int rank, uint32_t call,
                uint64_t at, uint64_t count, void *tile);

#endif
