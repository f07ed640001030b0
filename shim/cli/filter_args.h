/* SPDX-License-Identifier: Apache-2.0 */
/* The options by which report, compare and export narrow a run down to some of its calls. */
#ifndef NCCLSHIM_CLI_FILTER_ARGS_H
#define NCCLSHIM_CLI_FILTER_ARGS_H

#include "shim/cli/options.h"
#include "shim/stats/run.h"

/* Rows of the verb's table; its request has a `struct run_filter filter`. */
#define FILTER_ROWS(request)                                                                       \
    {"op", .kind = OPTION_CALL, .at = offsetof(request, filter), .take = filter_op},               \
    {"bytes", .kind = OPTION_CALL, .at = offsetof(request, filter), .take = filter_bytes},         \
    {"comm", .kind = OPTION_TEXT, .at = offsetof(request, filter.comm)},                           \
    {"rank", .kind = OPTION_NUMBER, .at = offsetof(request, filter.rank), .most = INT32_MAX},      \
    {"captured", .kind = OPTION_ONE_OF, .at = offsetof(request, filter.captured), .least = 1},     \
    {"eager", .kind = OPTION_ONE_OF, .at = offsetof(request, filter.captured), .least = 0}

#define FILTER_HELP                                                                                \
    "  --op NAME          only this operation: all_reduce, AllGather, ...\n"                       \
    "  --bytes SIZE       only this size, or a range: 42K, 1K-64K, 1M-\n"                          \
    "  --comm NAME        only this communicator, by the name that `report` shows\n"               \
    "  --rank N           only this rank of each communicator\n"                                   \
    "  --captured         only calls captured in CUDA graphs\n"                                    \
    "  --eager            only calls made outside of graphs\n"

/* OPTION_CALL on a struct run_filter. */
int filter_op(void *filter, const char *value, struct error *e);
int filter_bytes(void *filter, const char *value, struct error *e);

#endif
