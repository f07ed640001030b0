/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/cli/filter_args.h"
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

enum { OPT_FORMAT = 1, OPT_HELP };

static const struct option options[] = {
    {"format", required_argument, NULL, OPT_FORMAT},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, OPT_HELP},
    FILTER_LONG_OPTIONS,
    {NULL, 0, NULL, 0},
};

typedef int exporter(const struct run *r, FILE *out, struct error *e);

static const struct {
    const char *name;
    exporter *write;
} formats[] = {
    {"chrome", export_chrome},
    {"csv", export_csv},
    {"json", export_json},
    {"prometheus", export_prometheus},
};

struct request {
    struct run_filter filter;
    const char *run, *output;
    exporter *write;
    bool help;
};

static int set_format(struct request *q, const char *name, struct error *e)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (!strcmp(name, formats[i].name)) {
            q->write = formats[i].write;
            return 0;
        }
    return error_set(e, "", 0, "--format: there is no format '%s': chrome, csv, json or prometheus",
                     name);
}

static int parse(int argc, char **argv, struct request *q, struct error *e)
{
    int option, rc = 0;

    opterr = 0;
    optind = 1;
    while (rc == 0 && (option = getopt_long(argc, argv, ":ho:", options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return bad_option(argv, option, options, e);
        if (option == OPT_FORMAT)
            rc = set_format(q, optarg, e);
        else if (option == 'o')
            q->output = optarg;
        else if (option == OPT_HELP || option == 'h')
            q->help = true;
        else
            rc = filter_arg(&q->filter, option, optarg, e) < 0 ? -1 : 0;
    }
    if (rc < 0 || q->help)
        return rc;
    if (optind < argc)
        q->run = argv[optind++];
    if (optind < argc)
        return error_set(e, "", 0, "one run at a time: '%s' is too much", argv[optind]);
    if (!q->write)
        return error_set(e, "", 0, "--format is missing: chrome, csv, json or prometheus");
    return 0;
}

static int cant_write(const char *path, struct error *e)
{
    return error_set(e, path, 0, "can't be written: %s", strerror(errno));
}

/* Into what can't be replaced, and must not be: /dev/null, a pipe, a terminal. */
static int write_into(const struct run *r, const struct request *q, struct error *e)
{
    FILE *out = fopen(q->output, "we");
    int rc;

    if (!out)
        return cant_write(q->output, e);
    rc = q->write(r, out, e);
    return fclose(out) != 0 && rc == 0 ? cant_write(q->output, e) : rc;
}

/* Through a temporary name, so that who reads the file (node_exporter) never sees half of it. */
static int replace_file(const struct run *r, const struct request *q, const char *file,
                        struct error *e)
{
    char path[PATH_MAX + 64];
    FILE *out;
    int rc;

    snprintf(path, sizeof(path), "%s.%d.tmp", file, (int)getpid());
    /* Its name can be guessed: nothing planted there, in a folder of many, is followed. */
    unlink(path);
    out = fopen(path, "wex");
    if (!out)
        return cant_write(q->output, e);
    rc = q->write(r, out, e);
    if (fclose(out) != 0 && rc == 0)
        rc = cant_write(q->output, e);
    if (rc == 0 && rename(path, file) < 0)
        rc = cant_write(q->output, e);
    if (rc < 0)
        unlink(path);
    return rc;
}

static int write_file(const struct run *r, const struct request *q, struct error *e)
{
    struct stat there;
    char *file;
    int rc;

    if (stat(q->output, &there) < 0)
        return replace_file(r, q, q->output, e);
    if (!S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
        return write_into(r, q, e);
    /* What a link leads to is replaced, not the link: /dev/stdout is one. */
    file = realpath(q->output, NULL);
    rc = file ? replace_file(r, q, file, e) : cant_write(q->output, e);
    free(file);
    return rc;
}

int verb_export(int argc, char **argv)
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
        rc = q.output ? write_file(r, &q, &e) : q.write(r, stdout, &e);
    run_free(r);
    free(path);
    return rc < 0 ? fail(2, &e) : 0;
}
