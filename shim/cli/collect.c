/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <limits.h>
#include <stdio.h>

#include "shim/cli/options.h"
#include "shim/prove/run/gather.h"

static const char help[] =
    "usage: ncclshim collect [OPTION]...\n"
    "\n"
    "Collect the logs of all servers under the shim into a run folder, as they come and go, until\n"
    "SIGINT or SIGTERM. The servers were started by somebody else: with LD_PRELOAD, by `ncclshim "
    "run\n"
    "--no-collect`, or in another container that shares the folder of the logs.\n"
    "\n"
    "      --log-dir DIR     folder of the logs (default: that of the run folder's run.json, else\n"
    "                        NCCLSHIM_LOG_DIR, else /dev/shm/ncclshim-UID)\n"
    "  -o, --output RUN_DIR  run folder; an old one is gone on with, as after a collector that "
    "died\n"
    "                        (default: a new one below ncclshim-runs)\n"
    "      --keep all        keep every record, not only histograms and the newest\n"
    "      --pid PID         only this process\n"
    "      --once            gather what is there, then end\n"
    "      --until-ended     end when the servers that were seen running have all ended\n"
    "      --interval MS     look at least so often (default: as often as the rings need it)\n"
    "      --leave-logs      do not remove the logs of ended processes after they were saved\n"
    "  -h, --help\n"
    "\n"
    "examples:\n"
    "  ncclshim collect -o /var/lib/ncclshim/today\n"
    "  ncclshim collect --until-ended -o run-1   # beside a batch job\n"
    "  ncclshim collect --once --log-dir /dev/shm/ncclshim-1000\n";

static void print_error(const struct error *e)
{
    fail(0, e);
}

static void print_start(const char *log_dir, const char *run_dir)
{
    fprintf(stderr, "ncclshim: collecting from %s, run folder %s\n", log_dir, run_dir);
}

static void print_end(const struct gather_result *r)
{
    char line[512];

    if (r->summary.processes == 0) {
        fprintf(stderr, "ncclshim: nothing %s: there was no log in %s; see `ncclshim %s%s`\n",
                r->went_on ? "new" : "seen", r->log_dir, r->went_on ? "report " : "doctor",
                r->went_on ? r->run_path : "");
        return;
    }
    summary_text(&r->summary, line, sizeof(line));
    fprintf(stderr, "ncclshim: %s; see `ncclshim report %s`\n", line, r->run_path);
}

static const struct option_row rows[] = {
    {"log-dir", .kind = OPTION_TEXT, .at = offsetof(struct gather_options, log_dir)},
    {"output", 'o', OPTION_TEXT, .at = offsetof(struct gather_options, run_dir)},
    {"keep", .kind = OPTION_WORD, .at = offsetof(struct gather_options, keep_all), .word = "all"},
    {"pid", .kind = OPTION_NUMBER, .at = offsetof(struct gather_options, pid), .least = 1,
     .most = INT_MAX},
    {"once", .kind = OPTION_FLAG, .at = offsetof(struct gather_options, once)},
    {"until-ended", .kind = OPTION_FLAG, .at = offsetof(struct gather_options, until_ended)},
    {"interval", .kind = OPTION_NUMBER, .at = offsetof(struct gather_options, interval_ms),
     .least = 1, .most = 60000},
    {"leave-logs", .kind = OPTION_FLAG, .at = offsetof(struct gather_options, leave_logs)},
    {.name = NULL},
};

int verb_collect(int argc, char **argv)
{
    struct gather_options o = {.started = print_start, .warn = print_error};
    struct gather_result r;
    struct error e;
    int rc = options_read(argc, argv, &(struct options){help, rows, false}, &o, NULL);

    if (rc < 0)
        rc = options_none(argc, argv, "to start a command, use `ncclshim run`");
    if (rc >= 0)
        return rc;
    if (gather(&o, &r, &e) < 0)
        return fail(2, &e);
    print_end(&r);
    return 0;
}
