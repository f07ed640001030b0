/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL_ALGO and NCCL_PROTO, as NCCL's parseList reads them (graph/tuning.cc, 2.24 to 2.30.7):
 * entries joined by ';', each `[operation:][^]element,element`; only the first may lack the
 * operation and then counts for all; '^' turns the list around; an operation without an entry
 * keeps everything. A blank in front of an element is part of its name for NCCL, which then fails
 * the init of every communicator, so blanks go before the value is handed over.
 */
#ifndef NCCLSHIM_PROFILE_CHOICE_H
#define NCCLSHIM_PROFILE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/names.h"

/* Operations that have a choice, in NCCL's order. */
#define CHOICE_OPS 5
extern const int choice_ops[CHOICE_OPS]; /* NCCLSHIM_OPS numbers */

struct choice {
    uint8_t on[CHOICE_OPS]; /* bit n: algorithm or protocol n is left */
    bool said[CHOICE_OPS];  /* an entry speaks of this operation */
    bool per_operation;     /* some entry has an operation in front: NCCL 2.24 and newer only */
    bool negated;           /* some entry begins with ^ */
    uint8_t named;          /* bit n: n is written out somewhere without ^ */
};

#define CHOICE_ALL_ALGOS ((1u << ALGO_COUNT) - 1)
#define CHOICE_ALL_PROTOS ((1u << PROTO_COUNT) - 1)

/* Everything left, nothing said. */
void choice_default(bool proto, struct choice *out);

/* Read a value without blanks. 0; or -1 with a reason that names the place in it. */
int choice_parse(const char *value, bool proto, struct choice *out, char *why, size_t why_size);

/* Remove the blanks around ',', ';', ':' and '^', in place. */
void choice_trim(char *value);

/* Index in choice_ops of an operation, -1 when it has no choice (send, all_to_all, ...). */
int choice_index(int op);

/*
 * Protocols (bits) that an algorithm has for an operation; 0 when it does not serve it at all.
 * From ncclTopoTuneModel (graph/tuning.cc, 2.30.7).
 */
uint8_t choice_protos_of(int op, int algo);

#endif
