/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <string.h>

#include "shim/base/names.h"
#include "shim/cli/bench_show.h"
#include "shim/cli/options.h"
#include "shim/cli/play_options.h"
#include "shim/show/json.h"

static const char help[] =
    "usage: ncclshim bench [--from RUN | --sizes LIST | --workload FILE] [OPTION]...\n"
    "\n"
    "Play collectives on the GPUs, one process a GPU, check every result, and print how long each\n"
    "took. Under mpirun, srun or torchrun it is one rank of what they started.\n"
    "\n"
    "  --from RUN           the calls of a recorded run: sizes, order, graphs, gaps\n"
    "  --sizes LIST         8K-64M (doubling), 42K,4M or both mixed (default: 8K-64M)\n"
    "  --workload FILE      a workload file\n"
    "  --write-workload F   write the workload to F (- = standard output) and play nothing\n"
    "  -p, --profile P      a name, a path, or none (default: NCCLSHIM_PROFILE, or none)\n"
    "  --op OP, --type T    of --sizes: all_reduce, bfloat16 by default\n"
    "  --graph, --eager, --both  how to call with --sizes (default: both); with a run or file:\n"
    "                       only the calls that were captured, or made eagerly\n"
    "  --ranks N            default: as recorded, or the GPUs at hand\n"
    "  --one-process        ranks are threads of one process\n"
    "  --one-gpu            all of them on GPU 0 (NCCL 2.30.3 or newer)\n"
    "  --calls N            calls in one graph or eager stretch (default: 122, fewer when large)\n"
    "  --repeats N          samples (20)\n"
    "  --warmup N           plays before the first sample (3)\n"
    "  --check, --no-check  look at every result, before and after the timing (default: on)\n"
    "  --stamps, --no-stamps  play once more under the shim for times on the GPU (default: when\n"
    "                       libncclshim.so is found and NCCLSHIM_LOG is not off)\n"
    "  --timeout S          end all ranks when none moves for S seconds (60)\n"
    "  --json               for programs; docs/bench.md has the keys\n"
    "\n"
    "Exit code 1: a result was wrong, a rank hung or failed. 2: the request can't be carried out.\n"
    "\n"
    "examples:\n"
    "  ncclshim bench --sizes 8K-1M --graph\n"
    "  ncclshim bench --from ncclshim-runs/2026-12-01-101500-sglang -p turin8\n"
    "  mpirun -n 2 ncclshim bench --sizes 42K,4M\n";

struct request {
    struct bench_options o;
    bool json;
    bool sized; /* --op or --type was given */
};

static int take_op(void *place, const char *value, struct error *e)
{
    int op = op_parse(value);

    if (op < 0)
        return unknown_name("--op", value, op_names, e);
    if (!workload_op_playable((unsigned)op))
        return error_set(e, NULL, 0,
                         "--op: %s can't be played (all_reduce, all_gather, reduce_scatter, "
                         "broadcast, reduce, all_to_all, gather, scatter can)",
                         value);
    *(uint8_t *)place = (uint8_t)op;
    return 0;
}

static int take_type(void *place, const char *value, struct error *e)
{
    int dtype = dtype_parse(value);

    if (dtype < 0)
        return unknown_name("--type", value, dtype_names, e);
    *(uint8_t *)place = (uint8_t)dtype;
    return 0;
}

/* The first two belong to --sizes. */
static const struct option_row rows[] = {
    {"op", .kind = OPTION_CALL, .at = offsetof(struct request, o.op), .take = take_op},
    {"type", .kind = OPTION_CALL, .at = offsetof(struct request, o.dtype), .take = take_type},
    {"from", .kind = OPTION_TEXT, .at = offsetof(struct request, o.from)},
    {"sizes", .kind = OPTION_TEXT, .at = offsetof(struct request, o.sizes)},
    {"workload", .kind = OPTION_TEXT, .at = offsetof(struct request, o.file)},
    {"write-workload", .kind = OPTION_TEXT, .at = offsetof(struct request, o.write_workload)},
    {"profile", 'p', OPTION_TEXT, .at = offsetof(struct request, o.profile)},
    PLAY_HOW_ROWS,
    PLAY_RANKS_ROWS,
    {"repeats", .kind = OPTION_NUMBER, .at = offsetof(struct request, o.repeats), .least = 1,
     .most = 10000},
    {"warmup", .kind = OPTION_NUMBER, .at = offsetof(struct request, o.warmup), .least = 1,
     .most = 10000},
    {"check", .kind = OPTION_FLAG, .at = offsetof(struct request, o.check)},
    {"no-check", .kind = OPTION_CLEAR, .at = offsetof(struct request, o.check)},
    {"stamps", .kind = OPTION_SET, .at = offsetof(struct request, o.stamps),
     .least = BENCH_STAMPS_ON},
    {"no-stamps", .kind = OPTION_SET, .at = offsetof(struct request, o.stamps),
     .least = BENCH_STAMPS_OFF},
    PLAY_TIMEOUT_ROW,
    {"json", .kind = OPTION_FLAG, .at = offsetof(struct request, json)},
    {.name = NULL},
};
#define ROWS_OF_SIZES UINT64_C(3)

static int check_request(const struct bench_options *o, uint64_t given, struct error *e)
{
    if ((o->from != NULL) + (o->sizes != NULL) + (o->file != NULL) > 1)
        return error_set(e, NULL, 0, "--from, --sizes and --workload exclude each other");
    if (given & ROWS_OF_SIZES && (o->from || o->file))
        return error_set(e, NULL, 0, "--op and --type belong to --sizes: the workload has its own");
    return 0;
}

/* What came of it, and the exit code. */
static int tell(const struct bench_result *b, bool json)
{
    struct error e;

    if (b->speaks && json && json_print(bench_json(b), stdout, &e) < 0)
        return fail(2, &e);
    if (b->speaks && !json)
        bench_text(b, stdout);
    fflush(stdout);
    if (b->ranks.end == RANKS_GOOD)
        return 0;
    fail(1, &b->ranks.error);
    return b->ranks.end == RANKS_STOPPED ? 128 + b->ranks.signal : 1;
}

int verb_bench(int argc, char **argv)
{
    struct request q = {.o = BENCH_OPTIONS};
    struct bench_result b;
    struct error e = {0};
    uint64_t given;
    int rc;

    /* The ranks that we start: hidden, and never mixed with other options. */
    if (argc == 3 && !strcmp(argv[1], "--rank-of"))
        return ranks_be_one(argv[2]);
    rc = options_read(argc, argv, &(struct options){help, rows, false}, &q, &given);
    if (rc < 0)
        rc = options_none(argc, argv, "a run is given with --from");
    if (rc >= 0)
        return rc;
    if (check_request(&q.o, given, &e) < 0)
        return fail(2, &e);
    q.o.one_process |= q.o.one_gpu;
    rc = bench_run(&b, &q.o, &e);
    rc = rc < 0 ? fail(2, &e) : rc == 1 ? 0 : tell(&b, q.json);
    bench_free(&b);
    return rc;
}
