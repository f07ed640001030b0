/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/paths.h"
#include "shim/cli/filter_args.h"
#include "shim/cli/verbs.h"
#include "shim/show/term.h"
#include "shim/show/top_screen.h"

static const char help[] =
    "usage: ncclshim top [FOLDER] [OPTION]...\n"
    "\n"
    "The servers that run now, over the last ten looks: calls a second, p50 and p99 of each kind "
    "of\n"
    "call, and a bar for each rank. It only reads the logs; servers come and go as they like. "
    "FOLDER is\n"
    "where the logs lie (NCCLSHIM_LOG_DIR, else the usual place).\n"
    "\n"
    "  --interval SECONDS  between looks (1)\n"
    "  --frames N          leave after N looks\n"
    "  --batch             plain text, one frame after the other, for pipes and files\n"
    "\n"
    "keys: q leaves, s sorts by another column, p pauses\n"
    "\n"
    "examples:\n"
    "  ncclshim top\n"
    "  ncclshim top --batch --frames 2 --interval 5 | tail -20\n";

enum { OPT_INTERVAL = 1, OPT_FRAMES, OPT_BATCH, OPT_HELP };

static const struct option options[] = {
    {"interval", required_argument, NULL, OPT_INTERVAL},
    {"frames", required_argument, NULL, OPT_FRAMES},
    {"batch", no_argument, NULL, OPT_BATCH},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

struct request {
    const char *folder;
    double interval_s;
    unsigned frames;
    bool batch, help;
};

static int take_option(struct request *q, int option, const char *value, struct error *e)
{
    char *end = NULL;

    switch (option) {
    case OPT_INTERVAL:
        q->interval_s = strtod(value, &end);
        if (end == value || *end || !(q->interval_s >= 0.05) || q->interval_s > 3600)
            return error_set(e, "", 0, "--interval: '%s' is no number of seconds from 0.05 to 3600",
                             value);
        return 0;
    case OPT_FRAMES:
        q->frames = (unsigned)strtoul(value, &end, 10);
        if (end == value || *end || !q->frames || q->frames > 1000000000u)
            return error_set(e, "", 0, "--frames: '%s' is no count: write a number from 1 on",
                             value);
        return 0;
    case OPT_BATCH:
        q->batch = true;
        return 0;
    default:
        q->help = true;
        return 0;
    }
}

static int parse(int argc, char **argv, struct request *q, struct error *e)
{
    int option;

    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return bad_option(argv, option, options, e);
        if (take_option(q, option == 'h' ? OPT_HELP : option, optarg, e) < 0)
            return -1;
    }
    if (optind < argc)
        q->folder = argv[optind++];
    if (optind < argc)
        return error_set(e, "", 0, "one folder at a time: '%s' is too much", argv[optind]);
    return 0;
}

static int batch(struct live *l, const struct request *q, struct error *e)
{
    struct term t = term_of(stdout);
    struct timespec pause = {(time_t)q->interval_s,
                             (long)((q->interval_s - (double)(time_t)q->interval_s) * 1e9)};

    for (unsigned i = 0; !q->frames || i < q->frames; i++) {
        if (i)
            nanosleep(&pause, NULL);
        if (live_look(l) < 0 || top_frame(l, TOP_BY_TIME, t.width, 0, stdout) < 0)
            return error_set(e, "", 0, "out of memory");
        if (fputs("\n", stdout) == EOF || fflush(stdout) != 0)
            return 0; /* who read us has left */
    }
    return 0;
}

int verb_top(int argc, char **argv)
{
    struct request q = {.interval_s = 1};
    struct error e = {0};
    struct live l;
    char folder[4096];
    int rc;

    if (parse(argc, argv, &q, &e) < 0)
        return fail(2, &e);
    if (q.help)
        return usage(help, 1);
    if (!q.folder && log_dir_default(folder, sizeof(folder)) < 0) {
        error_set(&e, "", 0, "the path of the log folder is too long: shorten NCCLSHIM_LOG_DIR");
        return fail(2, &e);
    }
    if (!q.batch && !isatty(STDOUT_FILENO)) {
        error_set(&e, "", 0, "top draws on a terminal; --batch prints plain text");
        return fail(2, &e);
    }
    if (live_open(&l, q.folder ? q.folder : folder) < 0) {
        error_set(&e, "", 0, "out of memory");
        return fail(2, &e);
    }
    rc = q.batch ? batch(&l, &q, &e) : top_screen(&l, (int)(q.interval_s * 1000), q.frames, &e);
    live_free(&l);
    return rc < 0 ? fail(2, &e) : 0;
}
