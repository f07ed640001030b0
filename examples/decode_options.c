/* SPDX-License-Identifier: Apache-2.0 */
#include "examples/decode_options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: decode_server [OPTION]...\n"
    "\n"
    "A stand-in for an inference server. Each request is some eager all-reduces (prefill), then "
    "decode steps;\n"
    "a step replays a CUDA graph of many small in-place all-reduces. All sums are checked.\n"
    "\n"
    "  --ranks N          ranks (default: the GPUs at hand, 8 at most; 2 on the simulator)\n"
    "  --one-process      one thread a rank in one process (default: one process a rank)\n"
    "  --one-gpu          all ranks on device 0; needs --one-process, NCCL 2.30.3 or newer and\n"
    "                     NCCL_MULTI_RANK_GPU_ENABLE=1\n"
    "  --requests N       requests (4)\n"
    "  --steps N          decode steps a request, 3 tokens each (25)\n"
    "  --calls N          all-reduces in a step (122)\n"
    "  --bytes N          bytes of each, bf16 (43008 = [3, 7168])\n"
    "  --prefill-calls N  eager all-reduces a request (8)\n"
    "  --prefill-bytes N  bytes of each (4M)\n"
    "  --compute-us N     a kernel of N us before each captured all-reduce (5; 0 = none)\n"
    "  --delay-rank R     this rank comes late to every captured all-reduce ...\n"
    "  --delay-us N       ... by N us (100)\n"
    "  --mixed            an eager all-reduce right behind each graph launch, without waiting for "
    "it\n"
    "  --timing           print the wall time of a captured call\n"
    "  --hold             serve until SIGINT or SIGTERM, or the limit\n"
    "  --die-mid-replay   kill itself with SIGKILL in the middle of a replay of the last request\n"
    "  --limit N          give up after N seconds (120; with --hold 600)\n"
    "  --probe            print what is at hand (gpus=, simulated=, nccl=) and end\n";

enum flag_option { FLAG_BASE = 256, ONE_PROCESS, ONE_GPU, MIXED, TIMING, HOLD, DIE, PROBE, HELP };
enum value_option { VALUE_BASE = 512 };

struct value {
    const char *name;
    size_t offset; /* in struct options */
    bool is_bytes; /* size_t with K and M; else int */
    long least, most;
};

#define INT(name, field, least, most)                             \
    {                                                             \
        name, offsetof(struct options, field), false, least, most \
    }
#define BYTES(name, field)                                       \
    {                                                            \
        name, offsetof(struct options, field), true, 2, 1l << 30 \
    }
static const struct value values[] = {
    INT("ranks", ranks, 1, MAX_RANKS),
    INT("requests", requests, 1, 1000000),
    INT("steps", steps, 1, 1000000),
    INT("calls", calls, 1, 4096),
    BYTES("bytes", bytes),
    INT("prefill-calls", prefill_calls, 0, 10000),
    BYTES("prefill-bytes", prefill_bytes),
    INT("compute-us", compute_us, 0, 1000000),
    INT("delay-rank", delay_rank, 0, MAX_RANKS - 1),
    INT("delay-us", delay_us, 1, 1000000),
    INT("limit", limit_s, 1, 86400),
    INT("worker", worker, 0, MAX_RANKS - 1),
    INT("share", share_fd, 0, INT_MAX),
};
#define VALUE_COUNT (sizeof(values) / sizeof(values[0]))

static const struct option flags[] = {
    {"one-process", no_argument, NULL, ONE_PROCESS},
    {"one-gpu", no_argument, NULL, ONE_GPU},
    {"mixed", no_argument, NULL, MIXED},
    {"timing", no_argument, NULL, TIMING},
    {"hold", no_argument, NULL, HOLD},
    {"die-mid-replay", no_argument, NULL, DIE},
    {"probe", no_argument, NULL, PROBE},
    {"help", no_argument, NULL, HELP},
};
#define FLAG_COUNT (sizeof(flags) / sizeof(flags[0]))

static int refuse(const char *fmt, const char *name, const char *text)
{
    fputs("decode_server: ", stderr);
    fprintf(stderr, fmt, name, text);
    fputs("; see --help\n", stderr);
    return 2 + 1;
}

static int read_value(struct options *opt, const struct value *v, const char *text)
{
    char *end;
    long number;
    void *field = (char *)opt + v->offset;

    errno = 0;
    number = strtol(text, &end, 10);
    if (end == text || errno)
        return refuse("--%s: '%s' is not a number", v->name, text);
    if (v->is_bytes && (*end == 'K' || *end == 'M')) {
        if (number > v->most >> 10)
            return refuse("--%s: %s is too large", v->name, text);
        number <<= *end == 'K' ? 10 : 20;
        end++;
    }
    if (*end)
        return refuse("--%s: '%s' is not a number", v->name, text);
    if (number < v->least || number > v->most)
        return refuse("--%s: %s is out of range", v->name, text);
    if (v->is_bytes)
        *(size_t *)field = (size_t)number;
    else
        *(int *)field = (int)number;
    return 0;
}

static int set_flag(struct options *opt, int flag)
{
    switch (flag) {
    case ONE_PROCESS:
        opt->one_process = true;
        return 0;
    case ONE_GPU:
        opt->one_gpu = true;
        return 0;
    case MIXED:
        opt->mixed = true;
        return 0;
    case TIMING:
        opt->timing = true;
        return 0;
    case HOLD:
        opt->hold = true;
        return 0;
    case DIE:
        opt->die_mid_replay = true;
        return 0;
    case PROBE:
        opt->probe = true;
        return 0;
    case HELP:
        fputs(help, stdout);
        return 0 + 1;
    default:
        fputs("decode_server: see --help\n", stderr);
        return 2 + 1;
    }
}

static int check(const struct options *opt)
{
    if (opt->bytes % 2 || opt->prefill_bytes % 2)
        return refuse("%s: bf16 elements have 2 bytes%s", "--bytes, --prefill-bytes",
                      ", so the size must be even");
    if (opt->bytes * (size_t)opt->calls > (size_t)1 << 30)
        return refuse("%s: each call has its own buffer; together%s", "--calls, --bytes",
                      " 1 GiB at most");
    if (opt->one_gpu && !opt->one_process)
        return refuse("%s needs %s", "--one-gpu", "--one-process");
    if (opt->ranks && opt->delay_rank >= opt->ranks)
        return refuse("%s: there is no such %s", "--delay-rank", "rank");
    return 0;
}

int options_parse(struct options *opt, int argc, char **argv)
{
    struct option all[VALUE_COUNT + FLAG_COUNT + 1] = {0};
    int c, rc;

    *opt = (struct options){.requests = 4,
                            .steps = 25,
                            .calls = 122,
                            .bytes = 43008,
                            .prefill_calls = 8,
                            .prefill_bytes = 4 << 20,
                            .compute_us = 5,
                            .delay_rank = -1,
                            .delay_us = 100,
                            .worker = -1,
                            .share_fd = -1};
    for (size_t i = 0; i < VALUE_COUNT; i++)
        all[i] = (struct option){values[i].name, required_argument, NULL, VALUE_BASE + (int)i};
    memcpy(all + VALUE_COUNT, flags, sizeof(flags));
    while ((c = getopt_long(argc, argv, "", all, NULL)) != -1) {
        rc = c >= VALUE_BASE ? read_value(opt, &values[c - VALUE_BASE], optarg) : set_flag(opt, c);
        if (rc)
            return rc;
    }
    if (optind < argc)
        return refuse("'%s' is no %s", argv[optind], "option");
    if (!opt->limit_s)
        opt->limit_s = opt->hold ? 600 : 120;
    return check(opt);
}
