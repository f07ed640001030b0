/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cli/ab_show.h"
#include "shim/cli/filter_args.h"
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

enum {
    OPT_METRIC = 1,
    OPT_LOWER,
    OPT_READY,
    OPT_LOAD,
    OPT_TIMEOUT,
    OPT_GRACE,
    OPT_KEEP,
    OPT_FAIL,
    OPT_MARGIN,
    OPT_JSON
};

static const struct option options[] = {
    {"profile", required_argument, NULL, 'p'},
    {"rounds", required_argument, NULL, 'n'},
    {"metric", required_argument, NULL, OPT_METRIC},
    {"lower", no_argument, NULL, OPT_LOWER},
    {"ready", required_argument, NULL, OPT_READY},
    {"load", required_argument, NULL, OPT_LOAD},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"grace", required_argument, NULL, OPT_GRACE},
    {"output", required_argument, NULL, 'o'},
    {"keep", required_argument, NULL, OPT_KEEP},
    {"fail-if-slower", required_argument, NULL, OPT_FAIL},
    {"margin", required_argument, NULL, OPT_MARGIN},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
    struct ab_options o;
    double fail_share; /* < 0 = not asked */
    bool json, help;
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

static int percent(const char *option, const char *text, double *share, struct error *e)
{
    char *end;
    double v = strtod(text, &end);

    while (*end == ' ' || *end == '%')
        end++;
    if (end == text || *end || !(v >= 0) || v > 1e6)
        return error_set(e, NULL, 0, "%s: '%s' is no percentage: write 2 or 0.5", option, text);
    *share = v / 100;
    return 0;
}

static int take_number(struct request *q, int option, const char *value, struct error *e)
{
    long n = 0;

    switch (option) {
    case 'n':
        if (number("--rounds", value, 1, AB_ROUNDS, &n, e) < 0)
            return -1;
        q->o.rounds = (size_t)n;
        return 0;
    case OPT_TIMEOUT:
        if (number("--timeout", value, 1, 864000, &n, e) < 0)
            return -1;
        q->o.timeout_s = (uint32_t)n;
        return 0;
    case OPT_GRACE:
        if (number("--grace", value, 0, 3600, &n, e) < 0)
            return -1;
        q->o.grace_s = (uint32_t)n;
        return 0;
    case OPT_FAIL:
        return percent("--fail-if-slower", value, &q->fail_share, e);
    default:
        return percent("--margin", value, &q->o.margin, e);
    }
}

static int take_option(struct request *q, int option, const char *value, struct error *e)
{
    switch (option) {
    case 'p':
        if (q->o.sides == AB_SIDES)
            return error_set(e, NULL, 0, "more than %d profiles", AB_SIDES);
        q->o.profiles[q->o.sides++] = value;
        return 0;
    case OPT_METRIC:
        q->o.metric = value;
        return 0;
    case OPT_LOWER:
        q->o.lower = true;
        return 0;
    case OPT_READY:
        q->o.ready = value;
        return 0;
    case OPT_LOAD:
        q->o.load = value;
        return 0;
    case 'o':
        q->o.out_dir = value;
        return 0;
    case OPT_KEEP:
        q->o.keep_all = true;
        return strcmp(value, "all") == 0
                   ? 0
                   : error_set(e, NULL, 0, "--keep knows 'all', not '%s'", value);
    case OPT_JSON:
        q->json = true;
        return 0;
    case 'h':
        q->help = true;
        return 0;
    default:
        return take_number(q, option, value, e);
    }
}

static int parse(int argc, char **argv, struct request *q, struct error *e)
{
    int option;

    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, "+:p:n:o:h", options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return bad_option(argv, option, options, e);
        if (take_option(q, option, optarg, e) < 0)
            return -1;
    }
    if (q->help)
        return 0;
    q->o.command = argv + optind;
    if (q->o.sides < 2)
        return error_set(e, NULL, 0, "ab needs two profiles or more: -p none -p turin8");
    if (optind >= argc)
        return error_set(e, NULL, 0, "no command to run is given; it stands last, behind --");
    if (!q->o.ready != !q->o.load)
        return error_set(
            e, NULL, 0,
            "--ready and --load belong together: a server that is ready is given a load");
    if (q->o.lower && !q->o.metric)
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

    if (q->json && json_print(ab_json(r), stdout) < 0) {
        fputs("ncclshim: can't print: out of memory, or the output is closed\n", stderr);
        return 2;
    }
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
    int rc;

    if (parse(argc, argv, &q, &e) < 0)
        return fail(2, &e);
    if (q.help)
        return usage(help, 1);
    q.o.progress = print_progress;
    rc = ab_run(&r, &q.o, &e);
    rc = rc == 0 ? tell(&r, &q) : fail(r.stopped ? 128 + r.stopped : 2, &e);
    ab_free(&r);
    return rc;
}
