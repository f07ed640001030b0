/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/cli/filter_args.h"
#include "shim/prove/tune.h"
#include "shim/prove/workload.h"
#include "shim/show/compare_show.h"
#include "shim/show/json.h"
#include "shim/show/table.h"

static const char help[] =
    "usage: ncclshim tune [--from RUN | --sizes LIST | --workload FILE] [OPTION]...\n"
    "\n"
    "Find settings under which these collectives take less time than under NCCL's default: tries "
    "them with\n"
    "`bench` in fresh processes, proves the best in runs of their own, and writes a profile with "
    "its evidence.\n"
    "Where nothing is shown to be better it says so and writes none.\n"
    "\n"
    "  --from RUN           the calls of a recorded run; each counts by the time it took there\n"
    "  --sizes LIST         8K-64M (doubling), 42K,4M or both mixed; each size counts alike\n"
    "  --workload FILE      a workload file (docs/bench.md)\n"
    "  --op, --type, --graph, --eager, --both   as for bench\n"
    "  --budget TIME        90s, 10m, 2h (10m)\n"
    "  --space FILE         what to try (docs/tune.md; default: safe settings, protocols and "
    "channels by size)\n"
    "  --write NAME         put the profile where `-p NAME` finds it (or a path ending in .ini)\n"
    "  --waits-for-graphs   the server never calls on a communicator while a graph that uses it "
    "still runs:\n"
    "                       NCCL's condition for NCCL_GRAPH_MIXING_SUPPORT=0 where one is used "
    "both ways\n"
    "  --ranks N, --one-process, --one-gpu   as for bench\n"
    "  --calls N, --repeats N   of each bench (as bench; 10)\n"
    "  --proof N            runs of each side in the proof (3 to 10, by budget)\n"
    "  --timeout S          end a candidate that makes no progress for so long (by how long the "
    "default takes)\n"
    "  -o, --output DIR     folder for everything (default: a new one below ncclshim-runs)\n"
    "  --resume DIR         go on with a search that was stopped; --budget then counts from now "
    "on\n"
    "  --json               for programs; docs/tune.md has the keys\n"
    "\n"
    "The server must be stopped meanwhile. Exit code 1: nothing was shown to be better. 2: the "
    "request can't be\n"
    "carried out. ^C leaves all measurements in DIR for --resume.\n"
    "\n"
    "example:\n"
    "  ncclshim tune --from ncclshim-runs/2026-12-01-101500-sglang --write turin8\n";

enum {
    OPT_FROM = 1,
    OPT_SIZES,
    OPT_WORKLOAD,
    OPT_OP,
    OPT_TYPE,
    OPT_GRAPH,
    OPT_EAGER,
    OPT_BOTH,
    OPT_BUDGET,
    OPT_SPACE,
    OPT_WRITE,
    OPT_WAITS,
    OPT_RANKS,
    OPT_ONE_PROCESS,
    OPT_ONE_GPU,
    OPT_CALLS,
    OPT_REPEATS,
    OPT_PROOF,
    OPT_TIMEOUT,
    OPT_RESUME,
    OPT_JSON,
};

static const struct option options[] = {
    {"from", required_argument, NULL, OPT_FROM},
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"workload", required_argument, NULL, OPT_WORKLOAD},
    {"op", required_argument, NULL, OPT_OP},
    {"type", required_argument, NULL, OPT_TYPE},
    {"graph", no_argument, NULL, OPT_GRAPH},
    {"eager", no_argument, NULL, OPT_EAGER},
    {"both", no_argument, NULL, OPT_BOTH},
    {"budget", required_argument, NULL, OPT_BUDGET},
    {"space", required_argument, NULL, OPT_SPACE},
    {"write", required_argument, NULL, OPT_WRITE},
    {"waits-for-graphs", no_argument, NULL, OPT_WAITS},
    {"ranks", required_argument, NULL, OPT_RANKS},
    {"one-process", no_argument, NULL, OPT_ONE_PROCESS},
    {"one-gpu", no_argument, NULL, OPT_ONE_GPU},
    {"calls", required_argument, NULL, OPT_CALLS},
    {"repeats", required_argument, NULL, OPT_REPEATS},
    {"proof", required_argument, NULL, OPT_PROOF},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"output", required_argument, NULL, 'o'},
    {"resume", required_argument, NULL, OPT_RESUME},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
    struct tune_options o;
    bool json, help, other; /* other: an option that a resumed search has from its folder */
    size_t shown;           /* columns of the transient line on the screen */
    uint64_t told_ns;       /* when the last line was printed */
};

#define QUIET_NS 10000000000ull

/* ---- options ----------------------------------------------------------------------------------
 */

static int take_number(struct tune_options *o, int option, const char *value, struct error *e)
{
    static const struct {
        int option;
        const char *name;
        long least, most;
    } numbers[] = {{OPT_RANKS, "--ranks", 1, WORKLOAD_RANKS},
                   {OPT_CALLS, "--calls", 1, 4096},
                   {OPT_REPEATS, "--repeats", 3, 10000},
                   {OPT_PROOF, "--proof", 2, TUNE_PROOF_MAX},
                   {OPT_TIMEOUT, "--timeout", 1, 86400}};
    char *end;
    long n;

    errno = 0;
    n = strtol(value, &end, 10);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i].option == option &&
            (errno || end == value || *end || n < numbers[i].least || n > numbers[i].most))
            return error_set(e, NULL, 0, "%s: '%s' is no number from %ld to %ld", numbers[i].name,
                             value, numbers[i].least, numbers[i].most);
    if (option == OPT_RANKS)
        o->ranks = (int)n;
    else
        *(option == OPT_CALLS     ? &o->calls
          : option == OPT_REPEATS ? &o->repeats
          : option == OPT_PROOF   ? &o->proof_runs
                                  : &o->timeout_s) = (uint32_t)n;
    return 0;
}

static int take_how(struct tune_options *o, const char *how, struct error *e)
{
    if (o->how && strcmp(o->how, how) != 0)
        return error_set(e, NULL, 0, "--graph, --eager and --both exclude each other");
    o->how = how;
    return 0;
}

static int take_flag(struct request *q, int option, struct error *e)
{
    switch (option) {
    case OPT_GRAPH:
        return take_how(&q->o, "--graph", e);
    case OPT_EAGER:
        return take_how(&q->o, "--eager", e);
    case OPT_BOTH:
        return take_how(&q->o, "--both", e);
    case OPT_WAITS:
        q->o.waits = true;
        return 0;
    case OPT_ONE_PROCESS:
        q->o.one_process = true;
        return 0;
    case OPT_ONE_GPU:
        q->o.one_gpu = true;
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
    struct tune_options *o = &q->o;

    q->other |= option != OPT_RESUME && option != OPT_BUDGET && option != OPT_WRITE &&
                option != OPT_JSON && option != 'h';
    switch (option) {
    case OPT_FROM:
        o->from = value;
        return 0;
    case OPT_SIZES:
        o->sizes = value;
        return 0;
    case OPT_WORKLOAD:
        o->workload = value;
        return 0;
    case OPT_OP:
        o->op = value;
        return 0;
    case OPT_TYPE:
        o->type = value;
        return 0;
    case OPT_SPACE:
        o->space = value;
        return 0;
    case OPT_WRITE:
        o->write = value;
        return 0;
    case OPT_RESUME:
        o->resume = value;
        return 0;
    case 'o':
        o->out_dir = value;
        return 0;
    case OPT_BUDGET:
        if (parse_duration(value, &o->budget_ns) < 0 || !o->budget_ns)
            return error_set(e, NULL, 0, "--budget: '%s' is no time like 90s, 10m or 2h", value);
        return 0;
    case OPT_RANKS:
    case OPT_CALLS:
    case OPT_REPEATS:
    case OPT_PROOF:
    case OPT_TIMEOUT:
        return take_number(o, option, value, e);
    default:
        return take_flag(q, option, e);
    }
}

static int parse(int argc, char **argv, struct request *q, struct error *e)
{
    int option;

    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return bad_option(argv, option, options, e);
        if (take_option(q, option, optarg, e) < 0)
            return -1;
    }
    if (q->help)
        return 0;
    if (optind < argc)
        return error_set(e, NULL, 0, "'%s' is no option; a run is given with --from", argv[optind]);
    if ((q->o.from != NULL) + (q->o.sizes != NULL) + (q->o.workload != NULL) > 1)
        return error_set(e, NULL, 0, "--from, --sizes and --workload exclude each other");
    if (q->o.resume && q->other)
        return error_set(
            e, NULL, 0,
            "--resume takes everything from its folder; only --budget, --write and --json can be "
            "given with it");
    return 0;
}

/* ---- while it runs ----------------------------------------------------------------------------
 */

/* On a terminal the next line overwrites a transient one; in a file one of them now and then is
 * enough. */
static void say(void *user, const char *line, bool transient)
{
    struct request *q = user;
    bool screen = isatty(STDERR_FILENO);
    size_t n = strlen(line);

    if (transient && !screen && monotonic_ns() - q->told_ns < QUIET_NS)
        return;
    q->told_ns = monotonic_ns();
    if (screen)
        fprintf(stderr, "\r%s%*s", line, q->shown > n ? (int)(q->shown - n) : 0, "");
    else
        fputs(line, stderr);
    q->shown = transient && screen ? n : 0;
    if (!q->shown)
        fputc('\n', stderr);
    fflush(stderr);
}

/* ---- the result -------------------------------------------------------------------------------
 */

static void proof_table(const struct tune *t, const struct term *term)
{
    struct table table;
    char text[UNIT_SIZE];

    table_init(&table);
    table_column(&table, "", TABLE_LEFT, 0);
    table_column(&table, "", 0, 0);
    table_column(&table, "", TABLE_LEFT, 0);
    table_column(&table, "default", 0, 0);
    table_column(&table, "winner", 0, 0);
    table_column(&table, "change", 0, 0);
    table_column(&table, "95 %", TABLE_LEFT, 1);
    table_column(&table, "", TABLE_LEFT, 0);
    for (size_t i = 0; i < t->work.row_count; i++) {
        const struct tune_row *r = &t->work.rows[i];
        const struct tune_proof_row *p = &t->proof[i];
        table_cell(&table, "%s", r->op);
        table_cell(&table, "%s", unit_bytes(r->bytes, text));
        table_cell(&table, "%s", r->graph ? "captured" : "eager");
        table_cell(&table, "%s", unit_ns((uint64_t)llround(exp(p->before.log_ns)), text));
        table_cell(&table, "%s", unit_ns((uint64_t)llround(exp(p->after.log_ns)), text));
        table_cell(&table, "%s", change_text(p->difference.change, text));
        table_cell(&table, "[%+.1f, %+.1f]", p->difference.low * 100, p->difference.high * 100);
        table_cell_colour(&table,
                          p->verdict == PROOF_FASTER   ? COLOUR_GREEN
                          : p->verdict == PROOF_SLOWER ? COLOUR_RED
                                                       : COLOUR_NONE,
                          p->verdict == PROOF_FASTER   ? "faster"
                          : p->verdict == PROOF_SLOWER ? "slower"
                                                       : "no difference shown");
    }
    table_print(&table, term, 0);
    table_free(&table);
}

static void dropped_lines(const struct tune *t, const struct term *term)
{
    char text[1024];

    for (size_t i = 0; i < t->all.count; i++) {
        const struct tune_trial *x = t->all.trials[i];
        if (x->end != TUNE_GOOD)
            fprintf(term->out, "dropped: %s %s: %s\n",
                    candidate_text(&x->c, &t->space, &t->work, text, sizeof(text)),
                    tune_end_text(x->end), x->why);
    }
}

static void print_result(const struct tune *t, const struct term *term)
{
    char text[1024];

    if (t->simulated)
        print_simulated(term);
    fprintf(term->out, "%zu benches in %.0f s, %u of them the proof\n", t->all.count,
            (double)tune_spent(t) / 1e9, 2 * t->proof_runs);
    dropped_lines(t, term);
    for (size_t i = 0; i < t->note_count; i++)
        print_wrapped(term, t->notes[i], 2);
    fprintf(term->out, "found: %s\n",
            candidate_text(&t->search.best, &t->space, &t->work, text, sizeof(text)));
    if (t->proof_runs) {
        proof_table(t, term);
        fprintf(term->out,
                "proof: %u fresh runs of default and winner, shuffled; sums right in all\n",
                2 * t->proof_runs);
    }
    fprintf(term->out, "verdict: %s\n", t->verdict);
    if (t->written[0])
        fprintf(term->out, "wrote %s\n", t->written);
    else if (t->profile[0])
        fprintf(term->out,
                "wrote %s; use it with -p, or --write NAME puts it among your profiles\n",
                t->profile);
    else
        fprintf(term->out, "no profile was written\n");
    if (t->proven)
        fprintf(term->out, "see `ncclshim compare %s/default %s/winner`\n", t->folder.path,
                t->folder.path);
}

static int tell(const struct tune *t, const struct request *q)
{
    struct term term = term_of(stdout);

    if (q->json && json_print(tune_json(t), stdout) < 0) {
        fputs("ncclshim: can't print: out of memory, or the output is closed\n", stderr);
        return 2;
    }
    if (!q->json)
        print_result(t, &term);
    return t->proven ? 0 : 1;
}

int verb_tune(int argc, char **argv)
{
    struct request q = {.o = TUNE_OPTIONS};
    struct error e = {0};
    struct tune *t;
    int rc;

    if (parse(argc, argv, &q, &e) < 0)
        return fail(2, &e);
    if (q.help)
        return usage(help, 1);
    t = calloc(1, sizeof(*t));
    if (!t)
        return error_set(&e, NULL, 0, "out of memory"), fail(2, &e);
    q.o.say = say;
    q.o.user = &q;
    rc = tune_run(t, &q.o, &e);
    if (q.shown) /* whatever comes next begins on a line of its own */
        fputc('\n', stderr);
    rc = rc == 0 ? tell(t, &q) : fail(t->nursery.stopped ? 128 + t->nursery.stopped : 2, &e);
    tune_free(t);
    free(t);
    return rc;
}
