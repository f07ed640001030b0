/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "shim/cli/filter_args.h"
#include "shim/cli/outfile.h"
#include "shim/cli/verbs.h"
#include "shim/show/export.h"

static const char help[] =
    "usage: ncclshim export [RUN] --format FORMAT [-o FILE] [OPTION]...\n"
    "\n"
    "A run for other programs. chrome, csv and json hold every call that is on record (all of "
    "them\n"
    "after `ncclshim run --keep all`, else the newest); prometheus holds counts and histograms of "
    "the\n"
    "whole run.\n"
    "\n"
    "  --format FORMAT    chrome (Perfetto, chrome://tracing), csv, json or prometheus\n"
    "  -o, --output FILE  write there instead of standard output; it appears whole or not at "
    "all\n" FILTER_HELP "\n"
    "examples:\n"
    "  ncclshim export --format chrome -o trace.json        (then open it at ui.perfetto.dev)\n"
    "  ncclshim export --format csv --comm tp | head\n"
    "  ncclshim export --format prometheus -o /var/lib/node_exporter/ncclshim.prom\n";

typedef int exporter(const struct run *r, FILE *out, struct error *e);

static const char *const format_names[] = {"chrome", "csv", "json", "prometheus", NULL};
static exporter *const formats[] = {export_chrome, export_csv, export_json, export_prometheus};

struct request {
    struct run_filter filter;
    const char *run, *output;
    exporter *write;
};

static int take_format(void *place, const char *value, struct error *e)
{
    for (size_t i = 0; format_names[i]; i++)
        if (!strcmp(value, format_names[i])) {
            *(exporter **)place = formats[i];
            return 0;
        }
    return unknown_name("--format", value, format_names, e);
}

static const struct option_row rows[] = {
    {"format", .kind = OPTION_CALL, .at = offsetof(struct request, write), .take = take_format},
    {"output", 'o', OPTION_TEXT, .at = offsetof(struct request, output)},
    FILTER_ROWS(struct request),
    {.name = NULL},
};

struct output {
    const struct run *run;
    exporter *write;
};

static int write_output(const void *what, FILE *out, struct error *e)
{
    const struct output *o = what;

    return o->write(o->run, out, e);
}

int verb_export(int argc, char **argv)
{
    struct request q = {.filter = RUN_FILTER_ALL};
    struct run *r = NULL;
    struct error e = {0};
    int rc = options_read(argc, argv, &(struct options){help, rows, false}, &q, NULL);

    if (rc < 0)
        rc = options_argument(argc, argv, "run", "", &q.run);
    if (rc >= 0)
        return rc;
    if (!q.write) {
        error_set(&e, "", 0, "--format is missing: chrome, csv, json or prometheus");
        return fail(2, &e);
    }
    rc = run_open_given(q.run, &q.filter, &r, &e);
    if (rc == 0)
        rc = q.output ? outfile_write(q.output, write_output, &(struct output){r, q.write}, &e)
                      : q.write(r, stdout, &e);
    run_free(r);
    return rc < 0 ? fail(2, &e) : 0;
}
