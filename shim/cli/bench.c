/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cli/filter_args.h"
#include "shim/prove/bench.h"
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

enum {
    OPT_FROM = 1,
    OPT_SIZES,
    OPT_WORKLOAD,
    OPT_WRITE,
    OPT_OP,
    OPT_TYPE,
    OPT_GRAPH,
    OPT_EAGER,
    OPT_BOTH,
    OPT_RANKS,
    OPT_ONE_PROCESS,
    OPT_ONE_GPU,
    OPT_CALLS,
    OPT_REPEATS,
    OPT_WARMUP,
    OPT_CHECK,
    OPT_NO_CHECK,
    OPT_STAMPS,
    OPT_NO_STAMPS,
    OPT_TIMEOUT,
    OPT_JSON,
};

static const struct option options[] = {
    {"from", required_argument, NULL, OPT_FROM},
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"workload", required_argument, NULL, OPT_WORKLOAD},
    {"write-workload", required_argument, NULL, OPT_WRITE},
    {"profile", required_argument, NULL, 'p'},
    {"op", required_argument, NULL, OPT_OP},
    {"type", required_argument, NULL, OPT_TYPE},
    {"graph", no_argument, NULL, OPT_GRAPH},
    {"eager", no_argument, NULL, OPT_EAGER},
    {"both", no_argument, NULL, OPT_BOTH},
    {"ranks", required_argument, NULL, OPT_RANKS},
    {"one-process", no_argument, NULL, OPT_ONE_PROCESS},
    {"one-gpu", no_argument, NULL, OPT_ONE_GPU},
    {"calls", required_argument, NULL, OPT_CALLS},
    {"repeats", required_argument, NULL, OPT_REPEATS},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"check", no_argument, NULL, OPT_CHECK},
    {"no-check", no_argument, NULL, OPT_NO_CHECK},
    {"stamps", no_argument, NULL, OPT_STAMPS},
    {"no-stamps", no_argument, NULL, OPT_NO_STAMPS},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
    struct bench_options o;
    bool json, help;
    bool sized; /* --op or --type was given */
};

static int number(const char *option, const char *text, long least, long most, long *out,
                  struct error *e)
{
    char *end;

    errno = 0;
    *out = strtol(text, &end, 10);
    if (errno || end == text || *end || *out < least || *out > most)
        return error_set(e, NULL, 0, "%s: '%s' is no number from %ld to %ld", option, text, least,
                         most);
    return 0;
}

static int take_number(struct bench_options *o, int option, const char *value, struct error *e)
{
    static const struct {
        int option;
        const char *name;
        long least, most;
    } numbers[] = {{OPT_RANKS, "--ranks", 1, WORKLOAD_RANKS}, {OPT_CALLS, "--calls", 1, 4096},
                   {OPT_REPEATS, "--repeats", 1, 10000},      {OPT_WARMUP, "--warmup", 1, 10000},
                   {OPT_TIMEOUT, "--timeout", 1, 86400}};
    long n = 0;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i].option == option &&
            number(numbers[i].name, value, numbers[i].least, numbers[i].most, &n, e) < 0)
            return -1;
    if (option == OPT_RANKS)
        o->ranks = (int)n;
    else if (option == OPT_CALLS)
        o->calls = (uint32_t)n;
    else if (option == OPT_REPEATS)
        o->repeats = (uint32_t)n;
    else if (option == OPT_WARMUP)
        o->warmup = (uint32_t)n;
    else
        o->timeout_s = (uint32_t)n;
    return 0;
}

static int take_name(struct request *q, int option, const char *value, struct error *e)
{
    static const char *const ops[] = {
#define X(sym, num, text, nccl) text,
        NCCLSHIM_OPS(X)
#undef X
            NULL};
    static const char *const types[] = {
#define X(sym, num, text, bytes) text,
        NCCLSHIM_DTYPES(X)
#undef X
            NULL};
    int found = option == OPT_OP ? op_parse(value) : dtype_parse(value);
    const char *near = nearest_name(value, option == OPT_OP ? ops : types);

    q->sized = true;
    if (option == OPT_OP && found >= 0 && !workload_op_playable((unsigned)found))
        return error_set(e, NULL, 0,
                         "--op: %s can't be played (all_reduce, all_gather, reduce_scatter, "
                         "broadcast, reduce, all_to_all, gather, scatter can)",
                         value);
    if (found < 0)
        return error_set(e, NULL, 0, "%s: '%s' is unknown%s%s%s",
                         option == OPT_OP ? "--op" : "--type", value,
                         near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    if (option == OPT_OP)
        q->o.op = (uint8_t)found;
    else
        q->o.dtype = (uint8_t)found;
    return 0;
}

static int take_how(struct bench_options *o, enum bench_how how, struct error *e)
{
    if (o->how != BENCH_AS_IS && o->how != how)
        return error_set(e, NULL, 0, "--graph, --eager and --both exclude each other");
    o->how = how;
    return 0;
}

static int take_flag(struct request *q, int option, struct error *e)
{
    switch (option) {
    case OPT_GRAPH:
        return take_how(&q->o, BENCH_GRAPH, e);
    case OPT_EAGER:
        return take_how(&q->o, BENCH_EAGER, e);
    case OPT_BOTH:
        return take_how(&q->o, BENCH_BOTH, e);
    case OPT_ONE_PROCESS:
        q->o.one_process = true;
        return 0;
    case OPT_ONE_GPU:
        q->o.one_gpu = q->o.one_process = true;
        return 0;
    case OPT_CHECK:
    case OPT_NO_CHECK:
        q->o.check = option == OPT_CHECK;
        return 0;
    case OPT_STAMPS:
    case OPT_NO_STAMPS:
        q->o.stamps = option == OPT_STAMPS ? BENCH_STAMPS_ON : BENCH_STAMPS_OFF;
        return 0;
    case OPT_JSON:
        q->json = true;
        return 0;
    default:
        q->help = true;
        return 0;
    }
}

static int take_option(struct request *q, int option, const char *value, struct error *e)
{
    switch (option) {
    case OPT_FROM:
        q->o.from = value;
        return 0;
    case OPT_SIZES:
        q->o.sizes = value;
        return 0;
    case OPT_WORKLOAD:
        q->o.file = value;
        return 0;
    case OPT_WRITE:
        q->o.write_workload = value;
        return 0;
    case 'p':
        q->o.profile = value;
        return 0;
    case OPT_OP:
    case OPT_TYPE:
        return take_name(q, option, value, e);
    case OPT_RANKS:
    case OPT_CALLS:
    case OPT_REPEATS:
    case OPT_WARMUP:
    case OPT_TIMEOUT:
        return take_number(&q->o, option, value, e);
    default:
        return take_flag(q, option, e);
    }
}

static int parse(int argc, char **argv, struct request *q, struct error *e)
{
    int option, sources;

    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, ":p:h", options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return bad_option(argv, option, options, e);
        if (take_option(q, option, optarg, e) < 0)
            return -1;
    }
    if (optind < argc)
        return error_set(e, NULL, 0, "'%s' is no option; a run is given with --from", argv[optind]);
    sources = (q->o.from != NULL) + (q->o.sizes != NULL) + (q->o.file != NULL);
    if (sources > 1)
        return error_set(e, NULL, 0, "--from, --sizes and --workload exclude each other");
    if (q->sized && (q->o.from || q->o.file))
        return error_set(e, NULL, 0, "--op and --type belong to --sizes: the workload has its own");
    return 0;
}

/* What came of it, and the exit code. */
static int tell(const struct bench_result *b, bool json)
{
    if (b->speaks && json && json_print(bench_json(b), stdout) < 0) {
        fputs("ncclshim: can't print: out of memory, or the output is closed\n", stderr);
        return 2;
    }
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
    int rc;

    /* The ranks that we start: hidden, and never mixed with other options. */
    if (argc == 3 && !strcmp(argv[1], "--rank-of"))
        return ranks_be_one(argv[2]);
    if (parse(argc, argv, &q, &e) < 0)
        return fail(2, &e);
    if (q.help)
        return usage(help, 1);
    rc = bench_run(&b, &q.o, &e);
    rc = rc < 0 ? fail(2, &e) : rc == 1 ? 0 : tell(&b, q.json);
    bench_free(&b);
    return rc;
}
