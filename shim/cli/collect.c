/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/prove/gather.h"

static const char text[] =
    "usage: ncclshim collect [OPTION]...\n"
    "\n"
    "Collect the logs of all servers under the shim into a run folder, as they come and go, until\n"
    "SIGINT or SIGTERM. The servers were started by somebody else: with LD_PRELOAD, by `ncclshim run\n"
    "--no-collect`, or in another container that shares the folder of the logs.\n"
    "\n"
    "      --log-dir DIR     folder of the logs (default: that of the run folder's run.json, else\n"
    "                        NCCLSHIM_LOG_DIR, else /dev/shm/ncclshim-UID)\n"
    "  -o, --output RUN_DIR  run folder; an old one is gone on with, as after a collector that died\n"
    "                        (default: a new one below ncclshim-runs)\n"
    "      --keep all        keep every record, not only histograms and the newest\n"
    "      --pid PID         only this process\n"
    "      --once            gather what is there, then end\n"
    "      --interval MS     look at least so often (default: as often as the rings need it)\n"
    "      --leave-logs      do not remove the logs of ended processes after they were saved\n"
    "  -h, --help\n"
    "\n"
    "examples:\n"
    "  ncclshim collect -o /var/lib/ncclshim/today\n"
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
        fprintf(stderr, "ncclshim: nothing seen: there was no log in %s; see `ncclshim doctor`\n",
                r->log_dir);
        return;
    }
    summary_text(&r->summary, line, sizeof(line));
    fprintf(stderr, "ncclshim: %s; see `ncclshim report %s`\n", line, r->run_path);
}

static int number(const char *word, const char *option, long most, long *out)
{
    char *end;

    *out = strtol(word, &end, 10);
    if (end != word && !*end && *out > 0 && *out <= most)
        return 0;
    fprintf(stderr, "ncclshim: %s wants a number from 1 to %ld, not '%s'\n", option, most, word);
    return 2;
}

static int parse_one(int c, struct gather_options *o)
{
    long n = 0;
    int rc = 0;

    switch (c) {
    case 'o':
        o->run_dir = optarg;
        break;
    case 'l':
        o->log_dir = optarg;
        break;
    case 'k':
        o->keep_all = true;
        if (strcmp(optarg, "all") != 0) {
            fprintf(stderr, "ncclshim: --keep knows 'all', not '%s'\n", optarg);
            rc = 2;
        }
        break;
    case 'p':
        rc = number(optarg, "--pid", INT_MAX, &n);
        o->pid = (int)n;
        break;
    case 'i':
        rc = number(optarg, "--interval", 60000, &n);
        o->interval_ms = (unsigned)n;
        break;
    case '1':
        o->once = true;
        break;
    case 'L':
        o->leave_logs = true;
        break;
    case 'h':
        usage(text, 1);
        return -1;
    default:
        return usage(text, 0);
    }
    return rc;
}

static int parse(int argc, char **argv, struct gather_options *o)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"log-dir", required_argument, NULL, 'l'},
                                            {"keep", required_argument, NULL, 'k'},
                                            {"pid", required_argument, NULL, 'p'},
                                            {"interval", required_argument, NULL, 'i'},
                                            {"once", no_argument, NULL, '1'},
                                            {"leave-logs", no_argument, NULL, 'L'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int c, rc;

    while ((c = getopt_long(argc, argv, "o:h", options, NULL)) != -1)
        if ((rc = parse_one(c, o)))
            return rc;
    if (optind == argc)
        return 0;
    fprintf(stderr, "ncclshim: '%s' is no option; to start a command, use `ncclshim run`\n",
            argv[optind]);
    return usage(text, 0);
}

int verb_collect(int argc, char **argv)
{
    struct gather_options o = {.started = print_start, .warn = print_error};
    struct gather_result r;
    struct error e;
    int rc = parse(argc, argv, &o);

    if (rc)
        return rc < 0 ? 0 : rc;
    if (gather(&o, &r, &e) < 0)
        return fail(2, &e);
    print_end(&r);
    return 0;
}
