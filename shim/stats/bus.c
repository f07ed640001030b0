/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/base/names.h"
#include "shim/stats/run.h"

/*
 * The factors of nccl-tests (doc/PERFORMANCE.md and the *GetBw functions of 2.13 to 2.17): what the
 * slowest link has to carry, as a share of the size.
 */
double bus_factor(unsigned op, int32_t ranks)
{
    double n = ranks;

    if (ranks < 1)
        return 0;
    switch (op) {
    case OP_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case OP_ALL_GATHER:
    case OP_REDUCE_SCATTER:
    case OP_ALL_TO_ALL:
    case OP_GATHER:
    case OP_SCATTER:
        return (n - 1) / n;
    case OP_BROADCAST:
    case OP_REDUCE:
    case OP_SEND:
    case OP_RECV:
        return 1;
    default:
        return 0;
    }
}

double row_bus_gbps(const struct run *r, const struct run_row *row, uint64_t ns)
{
    if (!ns || row->part)
        return 0;
    return (double)row->bytes / (double)ns * bus_factor(row->op, r->comms[row->comm].ranks);
}
