/* SPDX-License-Identifier: Apache-2.0 */
/* A launch and its operations, for nccl_exec.c and nccl_move.c alone. */
#ifndef FAKE_NCCL_EXEC_H
#define FAKE_NCCL_EXEC_H

#include "test/fake/nccl_fake.h"

struct plan_op {
    ncclFunc_t func;
    const void *send;
    void *recv;
    size_t count, bytes; /* of one rank's part */
    ncclDataType_t type;
    struct fake_redop op;
    int root;
    uint64_t key, choice, duration_ns;
    bool wrong, hang;
};

struct fake_plan {
    ncclComm_t comm;
    bool captured;
    uint64_t ticket; /* 0: captured */
    int nops;
    struct plan_op ops[]; /* collectives, then messages */
};

enum moved { MOVED, MISMATCH, OTHER_CHOICE, BROKEN };
/* Meets the other ranks and moves the data; *latest is the arrival of the last rank. */
enum moved fake_move_coll(ncclComm_t comm, const struct plan_op *op, uint64_t arrival_ns,
                          bool skip_data, uint64_t *latest);
void fake_move_alone(const struct plan_op *op);

#endif
