/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "shim/cli/filter_args.h"
#include "shim/cli/outfile.h"
#include "shim/cli/verbs.h"
#include "shim/show/html.h"
#include "shim/show/json.h"
#include "shim/show/report.h"

static const char help[] =
    "usage: ncclshim report [RUN] [OPTION]...\n"
    "\n"
    "What happened in a run: what was in force, how long each kind of collective took, where the\n"
    "ranks waited, and what is worth a look. RUN is a run folder, a folder with the run folders "
    "of\n"
    "a run's nodes, a folder of logs or one log file; without it, the newest run below\n"
    "./ncclshim-runs, else the servers that run now.\n"
    "\n"
    "  --sort COLUMN      total (default), bytes, calls, p50, p99, max or bus\n"
    "  --all              everything, not only what takes most of the time\n" FILTER_HELP
    "  --since TIME       only the last TIME of the run: 90s, 10m, 2h, 1d\n"
    "  --json             for programs; keys carry their units\n"
    "  --html FILE        one self-contained page with plots\n"
    "\n"
    "examples:\n"
    "  ncclshim report\n"
    "  ncclshim report --op all_reduce --bytes 1K-64K --captured\n"
    "  ncclshim report ncclshim-runs/2026-12-01-101500-sglang --html report.html\n"
    "  ncclshim report --json | jq '.communicators[].rows[] | {bytes, p50_ns: .time.p50_ns}'\n";

struct request {
    struct run_filter filter;
    struct report_options options;
    const char *run, *html;
    uint64_t since_ns;
    bool json;
};

static int take_sort(void *place, const char *value, struct error *e)
{
    int sort = sort_parse(value);

    if (sort < 0)
        return unknown_name("--sort", value, sort_names, e);
    *(enum report_sort *)place = (enum report_sort)sort;
    return 0;
}

static const struct option_row rows[] = {
    {"sort", .kind = OPTION_CALL, .at = offsetof(struct request, options.sort), .take = take_sort},
    {"all", .kind = OPTION_FLAG, .at = offsetof(struct request, options.all)},
    {"since", .kind = OPTION_TIME, .at = offsetof(struct request, since_ns)},
    {"json", .kind = OPTION_FLAG, .at = offsetof(struct request, json)},
    {"html", .kind = OPTION_TEXT, .at = offsetof(struct request, html)},
    FILTER_ROWS(struct request),
    {.name = NULL},
};

/* "The last ten minutes" of a run end with its last call, not now. */
static int narrow(struct request *q, struct run **r, struct error *e)
{
    struct run *whole = *r;
    int rc;

    if (!q->since_ns)
        return 0;
    q->filter.since_ns = whole->last_ns > q->since_ns ? whole->last_ns - q->since_ns : 1;
    *r = NULL;
    rc = run_open(whole->path, whole->live, &q->filter, r, e);
    run_free(whole);
    return rc;
}

struct page {
    const struct overview *findings;
    const struct report_options *options;
};

static int write_page(const void *what, FILE *out, struct error *e)
{
    const struct page *p = what;

    (void)e;
    return report_html(p->findings, p->options, out);
}

static int print_report(struct run *r, const struct request *q, struct error *e)
{
    struct overview f;
    struct term t = term_of(stdout);
    int rc = 0;

    if (overview_make(r, &f, e) < 0)
        return -1;
    if (q->html)
        rc = outfile_write(q->html, write_page, &(struct page){&f, &q->options}, e);
    if (rc == 0 && q->json)
        rc = json_print(report_json(&f, &q->options), stdout, e);
    else if (rc == 0 && !q->json && !q->html)
        report_text(&f, &q->options, &t);
    if (rc == 0 && q->html && !q->json)
        printf("wrote %s\n", q->html);
    overview_free(&f);
    return rc;
}

int verb_report(int argc, char **argv)
{
    struct request q = {.filter = RUN_FILTER_ALL};
    struct run *r = NULL;
    struct error e = {0};
    int rc = options_read(argc, argv, &(struct options){help, rows, false}, &q, NULL);

    if (rc < 0)
        rc = options_argument(argc, argv, "run", " (`ncclshim compare` takes several)", &q.run);
    if (rc >= 0)
        return rc;
    rc = run_open_given(q.run, &q.filter, &r, &e);
    if (rc == 0)
        rc = narrow(&q, &r, &e);
    if (rc == 0)
        rc = print_report(r, &q, &e);
    run_free(r);
    return rc < 0 ? fail(2, &e) : 0;
}
