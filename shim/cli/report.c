/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/cli/filter_args.h"
#include "shim/cli/verbs.h"
#include "shim/show/html.h"
#include "shim/show/json.h"
#include "shim/show/report.h"

static const char help[] =
    "usage: ncclshim report [RUN] [OPTION]...\n"
    "\n"
    "What happened in a run: what was in force, how long each kind of collective took, where the\n"
    "ranks waited, and what is worth a look. RUN is a run folder, a folder of logs or one log "
    "file;\n"
    "without it, the newest run below ./ncclshim-runs, else the servers that run now.\n"
    "\n"
    "  --sort COLUMN      total (default), bytes, calls, p50, p99, max or bus\n"
    "  --all              every kind of call and pass, not only those that take most "
    "time\n" FILTER_HELP "  --since TIME       only the last TIME of the run: 90s, 10m, 2h, 1d\n"
    "  --json             for programs; keys carry their units\n"
    "  --html FILE        one self-contained page with plots\n"
    "\n"
    "examples:\n"
    "  ncclshim report\n"
    "  ncclshim report --op all_reduce --bytes 1K-64K --captured\n"
    "  ncclshim report ncclshim-runs/2026-12-01-101500-sglang --html report.html\n"
    "  ncclshim report --json | jq '.communicators[].rows[] | {bytes, p50_ns: .time.p50_ns}'\n";

enum { OPT_SORT = 1, OPT_ALL, OPT_SINCE, OPT_JSON, OPT_HTML, OPT_HELP };

static const struct option options[] = {
    {"sort", required_argument, NULL, OPT_SORT},
    {"all", no_argument, NULL, OPT_ALL},
    {"since", required_argument, NULL, OPT_SINCE},
    {"json", no_argument, NULL, OPT_JSON},
    {"html", required_argument, NULL, OPT_HTML},
    {"help", no_argument, NULL, OPT_HELP},
    FILTER_LONG_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct request {
    struct run_filter filter;
    struct report_options options;
    const char *run, *html;
    uint64_t since_ns;
    bool json, help;
};

static int take_option(struct request *q, int option, const char *value, struct error *e)
{
    int sort;

    switch (option) {
    case OPT_SORT:
        sort = sort_parse(value);
        if (sort < 0)
            return error_set(
                e, "", 0, "--sort: no column '%s': total, bytes, calls, p50, p99, max, bus", value);
        q->options.sort = (enum report_sort)sort;
        return 0;
    case OPT_ALL:
        q->options.all = true;
        return 0;
    case OPT_SINCE:
        if (parse_duration(value, &q->since_ns) < 0 || !q->since_ns)
            return error_set(e, "", 0, "--since: '%s' is no time: write 90s, 10m, 2h or 1d", value);
        return 0;
    case OPT_JSON:
        q->json = true;
        return 0;
    case OPT_HTML:
        q->html = value;
        return 0;
    case OPT_HELP:
        q->help = true;
        return 0;
    default:
        return filter_arg(&q->filter, option, value, e) < 0 ? -1 : 0;
    }
}

static int parse(int argc, char **argv, struct request *q, struct error *e)
{
    int option;

    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        if (option == 'h')
            option = OPT_HELP;
        if (option == '?' || option == ':')
            return bad_option(argv, option, options, e);
        if (take_option(q, option, optarg, e) < 0)
            return -1;
    }
    if (optind < argc)
        q->run = argv[optind++];
    if (optind < argc)
        return error_set(e, "", 0,
                         "one run at a time: '%s' is too much (`ncclshim compare` takes several)",
                         argv[optind]);
    return 0;
}

/* "The last ten minutes" of a run end with its last call, not now. */
static int narrow(struct request *q, const char *path, bool live, struct run **r, struct error *e)
{
    uint64_t last = (*r)->last_ns;

    if (!q->since_ns)
        return 0;
    run_free(*r);
    *r = NULL;
    q->filter.since_ns = last > q->since_ns ? last - q->since_ns : 1;
    return run_open(path, live, &q->filter, r, e);
}

static int write_html(const struct findings *f, const struct report_options *o, const char *path,
                      struct error *e)
{
    FILE *out = fopen(path, "we");
    int rc;

    if (!out)
        return error_set(e, path, 0, "can't be written: %s", strerror(errno));
    rc = report_html(f, o, out);
    if (fclose(out) != 0)
        rc = -1;
    return rc < 0 ? error_set(e, path, 0, "can't be written: %s", strerror(errno)) : 0;
}

static int print_report(struct run *r, const struct request *q, struct error *e)
{
    struct findings f;
    struct term t = term_of(stdout);
    int rc = 0;

    if (findings_make(r, &f, e) < 0)
        return -1;
    if (q->html)
        rc = write_html(&f, &q->options, q->html, e);
    if (rc == 0 && q->json && json_print(report_json(&f, &q->options), stdout) < 0)
        rc = error_set(e, "", 0, "can't print the report: out of memory, or the output is closed");
    else if (rc == 0 && !q->json && !q->html)
        report_text(&f, &q->options, &t);
    if (rc == 0 && q->html && !q->json)
        printf("wrote %s\n", q->html);
    report_findings_free(&f);
    return rc;
}

int verb_report(int argc, char **argv)
{
    struct request q = {.filter = RUN_FILTER_ALL};
    struct run *r = NULL;
    struct error e = {0};
    char *path = NULL;
    bool live;
    int rc;

    if (parse(argc, argv, &q, &e) < 0)
        return fail(2, &e);
    if (q.help)
        return usage(help, 1);
    rc = run_find(q.run, &path, &live, &e);
    if (rc == 0)
        rc = run_open(path, live, &q.filter, &r, &e);
    if (rc == 0)
        rc = narrow(&q, path, live, &r, &e);
    if (rc == 0)
        rc = print_report(r, &q, &e);
    run_free(r);
    free(path);
    return rc < 0 ? fail(2, &e) : 0;
}
