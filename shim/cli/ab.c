/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <getopt.h>
#include <stdio.h>

#include "shim/cli/ab_show.h"
#include "shim/cli/options.h"
#include "shim/show/json.h"

static const char help[] =
    "usage: ncclshim ab -p A -p B [-p C]... [OPTION]... [--] COMMAND [ARGUMENT]...\n"
    "\n"
    "Run COMMAND under each profile in turns (A B, B A, A B, ...), each turn as `ncclshim run` "
    "does, and\n"
    "compare calls and metric. \"No difference shown\" is a result.\n"
    "\n"
    "  -p, --profile P      two or more: names, paths, or none; the first is what others are held "
    "against\n"
    "  -n, --rounds N       turns of each profile (3); with one there is no verdict on the metric\n"
    "  --metric REGEX       the number to compare: the first group of the last match in the output "
    "of\n"
    "                       COMMAND, or of the load command (POSIX extended: '([0-9.]+) tok/s')\n"
    "  --lower              less of it is better (latency)\n"
    "  --ready REGEX        COMMAND is a server: it is ready when a line of its output matches "
    "...\n"
    "  --load 'COMMAND'     ... then this is run by the shell, and the server stopped after it\n"
    "  --timeout S          limit of one turn (1800)\n"
    "  --grace S            from SIGINT to SIGTERM, and from there to SIGKILL (10)\n"
    "  -o, --output DIR     folder for all runs (default: a new one below ncclshim-runs)\n"
    "  --keep all           every record of every run, not histograms and the newest alone\n"
    "  --fail-if-slower P   exit 1 when a profile is shown to be worse than the first by more than "
    "P %\n"
    "  --margin P           changes up to this are no difference (0.75 %; for calls of several "
    "rounds: 0)\n"
    "  --json               for programs; docs/ab.md has the keys\n"
    "\n"
    "Exit code 2: a turn failed or took too long, or the request can't be carried out; no process "
    "is left.\n"
    "\n"
    "example:\n"
    "  ncclshim ab -p none -p turin8 -n 3 --ready 'ready to roll' --load ./bench.sh \\\n"
    "      --metric '([0-9.]+) tok/s' -- ./serve.sh\n";

struct request {
    struct ab_options o;
    double fail_share; /* < 0 = not asked */
    bool json;
};

static int take_profile(void *place, const char *value, struct error *e)
{
    struct ab_options *o = place;

    if (o->sides == AB_SIDES)
        return error_set(e, NULL, 0, "more than %d profiles", AB_SIDES);
    o->profiles[o->sides++] = value;
    return 0;
}

static const struct option_row rows[] = {
    {"profile", 'p', OPTION_CALL, .at = offsetof(struct request, o), .take = take_profile},
    {"rounds", 'n', OPTION_NUMBER, .at = offsetof(struct request, o.rounds), .least = 1,
     .most = AB_ROUNDS},
    {"metric", .kind = OPTION_TEXT, .at = offsetof(struct request, o.metric)},
    {"lower", .kind = OPTION_FLAG, .at = offsetof(struct request, o.lower)},
    {"ready", .kind = OPTION_TEXT, .at = offsetof(struct request, o.ready)},
    {"load", .kind = OPTION_TEXT, .at = offsetof(struct request, o.load)},
    {"timeout", .kind = OPTION_NUMBER, .at = offsetof(struct request, o.timeout_s), .least = 1,
     .most = 864000},
    {"grace", .kind = OPTION_NUMBER, .at = offsetof(struct request, o.grace_s), .least = 0,
     .most = 3600},
    {"output", 'o', OPTION_TEXT, .at = offsetof(struct request, o.out_dir)},
    {"keep", .kind = OPTION_WORD, .at = offsetof(struct request, o.keep_all), .word = "all"},
    {"fail-if-slower", .kind = OPTION_PERCENT, .at = offsetof(struct request, fail_share)},
    {"margin", .kind = OPTION_PERCENT, .at = offsetof(struct request, o.margin)},
    {"json", .kind = OPTION_FLAG, .at = offsetof(struct request, json)},
    {.name = NULL},
};

static int check_request(const struct ab_options *o, struct error *e)
{
    if (o->sides < 2)
        return error_set(e, NULL, 0, "ab needs two profiles or more: -p none -p turin8");
    if (!*o->command)
        return error_set(e, NULL, 0, "no command to run is given; it stands last, behind --");
    if (!o->ready != !o->load)
        return error_set(
            e, NULL, 0,
            "--ready and --load belong together: a server that is ready is given a load");
    if (o->lower && !o->metric)
        return error_set(e, NULL, 0, "--lower is about --metric, which is not given");
    return 0;
}

static void print_progress(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "%s\n", line);
}

static int tell(const struct ab_result *r, const struct request *q)
{
    struct term t = term_of(stdout);
    struct error e;

    if (q->json && json_print(ab_json(r), stdout, &e) < 0)
        return fail(2, &e);
    if (!q->json)
        ab_text(r, &t);
    for (size_t s = 1; s < r->o.sides; s++)
        if (q->fail_share >= 0 && ab_slower_by(r, s, q->fail_share))
            return 1;
    return 0;
}

int verb_ab(int argc, char **argv)
{
    struct request q = {.o = AB_OPTIONS, .fail_share = -1};
    struct ab_result r;
    struct error e = {0};
    int rc = options_read(argc, argv, &(struct options){help, rows, true}, &q, NULL);

    if (rc >= 0)
        return rc;
    q.o.command = argv + optind;
    if (check_request(&q.o, &e) < 0)
        return fail(2, &e);
    q.o.progress = print_progress;
    rc = ab_run(&r, &q.o, &e);
    rc = rc == 0 ? tell(&r, &q) : fail(r.stopped ? 128 + r.stopped : 2, &e);
    ab_free(&r);
    return rc;
}
