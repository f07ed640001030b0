/* SPDX-License-Identifier: Apache-2.0 */
/* The options by which report, compare and export narrow a run down to some of its calls. */
#ifndef NCCLSHIM_CLI_FILTER_ARGS_H
#define NCCLSHIM_CLI_FILTER_ARGS_H

#include <getopt.h>

#include "shim/base/error.h"
#include "shim/stats/run.h"

enum filter_option { FILTER_OP = 1000, FILTER_BYTES, FILTER_COMM, FILTER_RANK, FILTER_CAPTURED, FILTER_EAGER };

#define FILTER_LONG_OPTIONS                                                                        \
    {"op", required_argument, NULL, FILTER_OP}, {"bytes", required_argument, NULL, FILTER_BYTES},  \
        {"comm", required_argument, NULL, FILTER_COMM},                                            \
        {"rank", required_argument, NULL, FILTER_RANK},                                            \
        {"captured", no_argument, NULL, FILTER_CAPTURED},                                          \
    {                                                                                              \
        "eager", no_argument, NULL, FILTER_EAGER                                                   \
    }

#define FILTER_HELP                                                                                \
    "  --op NAME          only this operation: all_reduce, AllGather, ...\n"                       \
    "  --bytes SIZE       only this size, or a range: 42K, 1K-64K, 1M-\n"                          \
    "  --comm NAME        only this communicator, by the name that `report` shows\n"               \
    "  --rank N           only this rank of each communicator\n"                                   \
    "  --captured         only calls captured in CUDA graphs\n"                                    \
    "  --eager            only calls made outside of graphs\n"

/* Take one of these options. 1 = taken, 0 = another option, -1 = *e filled. */
int filter_arg(struct run_filter *f, int option, const char *value, struct error *e);

/* What getopt_long said no to ('?' or ':'), as a sentence. Returns -1. */
int bad_option(char **argv, int result, const struct option *options, struct error *e);

/* "90s", "10m", "2h", "1d" -> nanoseconds. 0, or -1. */
int parse_duration(const char *text, uint64_t *ns);

#endif
