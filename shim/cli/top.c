/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/paths.h"
#include "shim/cli/options.h"
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

struct request {
    const char *folder;
    double interval_s;
    unsigned frames;
    bool batch;
};

static int take_interval(void *place, const char *value, struct error *e)
{
    double *s = place;
    char *end;

    *s = strtod(value, &end);
    if (end == value || *end || !(*s >= 0.05) || *s > 3600)
        return error_set(e, "", 0, "--interval: '%s' is no number of seconds from 0.05 to 3600",
                         value);
    return 0;
}

static const struct option_row rows[] = {
    {"interval", .kind = OPTION_CALL, .at = offsetof(struct request, interval_s),
     .take = take_interval},
    {"frames", .kind = OPTION_NUMBER, .at = offsetof(struct request, frames), .least = 1,
     .most = 1000000000},
    {"batch", .kind = OPTION_FLAG, .at = offsetof(struct request, batch)},
    {.name = NULL},
};

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
    int rc = options_read(argc, argv, &(struct options){help, rows, false}, &q, NULL);

    if (rc < 0)
        rc = options_argument(argc, argv, "folder", "", &q.folder);
    if (rc >= 0)
        return rc;
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
