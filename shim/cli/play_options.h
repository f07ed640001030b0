/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of option tables (options.h) that say how collectives are played: `bench` and `tune`, which
 * plays by bench, take the same with the same bounds. For a file whose `struct request` has an `o`
 * with the members how, ranks, one_process, one_gpu, calls and timeout_s.
 */
#ifndef NCCLSHIM_CLI_PLAY_OPTIONS_H
#define NCCLSHIM_CLI_PLAY_OPTIONS_H

#include <stddef.h>

#include "shim/cli/options.h"
#include "shim/prove/bench/bench.h"
#include "shim/prove/bench/workload.h"

#define PLAY_OPTION(MEMBER) .at = offsetof(struct request, o.MEMBER)

#define PLAY_HOW_ROWS                                                               \
    {"graph", .kind = OPTION_ONE_OF, PLAY_OPTION(how), .least = BENCH_GRAPH},       \
        {"eager", .kind = OPTION_ONE_OF, PLAY_OPTION(how), .least = BENCH_EAGER},   \
        {"both", .kind = OPTION_ONE_OF, PLAY_OPTION(how), .least = BENCH_BOTH}

#define PLAY_RANKS_ROWS                                                                          \
    {"ranks", .kind = OPTION_NUMBER, PLAY_OPTION(ranks), .least = 1, .most = WORKLOAD_RANKS},    \
        {"one-process", .kind = OPTION_FLAG, PLAY_OPTION(one_process)},                          \
        {"one-gpu", .kind = OPTION_FLAG, PLAY_OPTION(one_gpu)},                                  \
        {"calls", .kind = OPTION_NUMBER, PLAY_OPTION(calls), .least = 1, .most = 4096}

#define PLAY_TIMEOUT_ROW                                                                         \
    {"timeout", .kind = OPTION_NUMBER, PLAY_OPTION(timeout_s), .least = 1, .most = 86400}

#endif
