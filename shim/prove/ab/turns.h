/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who comes when. Whatever drifts (clocks, temperature, other load) must fall on all sides alike.
 */
#ifndef NCCLSHIM_PROVE_TURNS_H
#define NCCLSHIM_PROVE_TURNS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Round by round, each second one backwards: A B, B A, A B, ... (A B C, C B A for three). A drift
 * that is a straight line cancels out over two rounds.
 */
size_t turns_abba(size_t turn, size_t sides);

/*
 * Rounds of all sides again, each in an order drawn by `seed`: for a proof nobody should be able to
 * foresee which one comes next. out has sides x rounds places.
 */
void turns_shuffled(uint64_t seed, size_t sides, size_t rounds, size_t *out);

#endif
