/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/cli/options.h"
#include "shim/cli/play_options.h"
#include "shim/cli/tune_show.h"
#include "shim/prove/bench/workload.h"
#include "shim/show/json.h"

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

struct request {
    struct tune_options o;
    bool json;
    size_t shown;     /* columns of the transient line on the screen */
    uint64_t told_ns; /* when the last line was printed */
};

#define QUIET_NS 10000000000ull

/* A resumed search has all but the first four from its folder. */
static const struct option_row rows[] = {
    {"resume", .kind = OPTION_TEXT, .at = offsetof(struct request, o.resume)},
    {"budget", .kind = OPTION_TIME, .at = offsetof(struct request, o.budget_ns)},
    {"write", .kind = OPTION_TEXT, .at = offsetof(struct request, o.write)},
    {"json", .kind = OPTION_FLAG, .at = offsetof(struct request, json)},
    {"from", .kind = OPTION_TEXT, .at = offsetof(struct request, o.from)},
    {"sizes", .kind = OPTION_TEXT, .at = offsetof(struct request, o.sizes)},
    {"workload", .kind = OPTION_TEXT, .at = offsetof(struct request, o.workload)},
    {"op", .kind = OPTION_TEXT, .at = offsetof(struct request, o.op)},
    {"type", .kind = OPTION_TEXT, .at = offsetof(struct request, o.type)},
    PLAY_HOW_ROWS,
    {"space", .kind = OPTION_TEXT, .at = offsetof(struct request, o.space)},
    {"waits-for-graphs", .kind = OPTION_FLAG, .at = offsetof(struct request, o.waits)},
    PLAY_RANKS_ROWS,
    {"repeats", .kind = OPTION_NUMBER, .at = offsetof(struct request, o.repeats), .least = 3,
     .most = 10000},
    {"proof", .kind = OPTION_NUMBER, .at = offsetof(struct request, o.proof_runs), .least = 2,
     .most = TUNE_PROOF_MAX},
    PLAY_TIMEOUT_ROW,
    {"output", 'o', OPTION_TEXT, .at = offsetof(struct request, o.out_dir)},
    {.name = NULL},
};
#define ROWS_WITH_RESUME 4

static int check_request(const struct tune_options *o, uint64_t given, struct error *e)
{
    if ((o->from != NULL) + (o->sizes != NULL) + (o->workload != NULL) > 1)
        return error_set(e, NULL, 0, "--from, --sizes and --workload exclude each other");
    if (o->resume && given >> ROWS_WITH_RESUME)
        return error_set(
            e, NULL, 0,
            "--resume takes everything from its folder; only --budget, --write and --json can be "
            "given with it");
    return 0;
}

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

static int tell(const struct tune *t, const struct request *q)
{
    struct term term = term_of(stdout);
    struct error e;

    if (q->json && json_print(tune_json(t), stdout, &e) < 0)
        return fail(2, &e);
    if (!q->json)
        tune_text(t, &term);
    return t->proven ? 0 : 1;
}

int verb_tune(int argc, char **argv)
{
    struct request q = {.o = TUNE_OPTIONS};
    struct error e = {0};
    struct tune *t;
    uint64_t given;
    int rc = options_read(argc, argv, &(struct options){help, rows, false}, &q, &given);

    if (rc < 0)
        rc = options_none(argc, argv, "a run is given with --from");
    if (rc >= 0)
        return rc;
    if (check_request(&q.o, given, &e) < 0)
        return fail(2, &e);
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
