/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cli/options.h"
#include "shim/prove/run/watch.h"

static const char help[] =
    "usage: ncclshim run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
    "\n"
    "Start COMMAND with the shim in front of NCCL, collect the GPU times of its collectives, and\n"
    "return its exit code (128 + n when signal n ended it; 2 when it was not started).\n"
    "\n"
    "  -p, --profile PROFILE  a name, a path, or none: log only (default: NCCLSHIM_PROFILE, or "
    "none)\n"
    "  -o, --output RUN_DIR   run folder (default: a new one below ncclshim-runs)\n"
    "      --log-dir DIR      where live logs lie; tmpfs (default: NCCLSHIM_LOG_DIR, else\n"
    "                         /dev/shm/ncclshim-UID)\n"
    "      --keep all         keep every record, not only histograms and the newest\n"
    "      --strict           a profile that can't be applied makes communicator init fail\n"
    "      --no-collect       become COMMAND at once; `ncclshim collect` can gather its logs\n"
    "  -h, --help\n"
    "\n"
    "examples:\n"
    "  ncclshim run -- python -m sglang.launch_server --model M --tp 8\n"
    "  ncclshim run -p fewer-channels -o before -- ./serve.sh\n";

static void print_error(const struct error *e)
{
    fail(0, e);
}

static void print_start(const struct profile *p, const char *folder, bool collects)
{
    bool none = !p->path[0];

    fprintf(stderr, "ncclshim: profile %s%s%s%s, %s %s\n", p->name, none ? " (log only" : " (",
            none ? "" : p->path, ")", collects ? "run folder" : "no collector, logs in", folder);
}

/* Why nothing was seen, as far as can be told from here. */
static const char *why_nothing(void)
{
    const char *log = getenv("NCCLSHIM_LOG");

    if (log && !strcmp(log, "off"))
        return "NCCLSHIM_LOG is off";
    return "none of its processes called NCCL with the shim loaded: either NCCL was not used, or "
           "LD_PRELOAD was removed on the way (sudo, a container, a static or 32-bit program)";
}

static void print_end(const struct watch_result *r)
{
    const struct summary *s = &r->summary;
    char line[512];

    if (s->processes == 0 && r->left) {
        fprintf(stderr,
                "ncclshim: nothing seen yet, %zu process%s still running; "
                "`ncclshim collect -o %s` goes on\n",
                r->left, r->left == 1 ? "" : "es", r->run_path);
        return;
    }
    if (s->processes == 0) {
        fprintf(stderr, "ncclshim: nothing seen: %s; see `ncclshim doctor`\n", why_nothing());
        return;
    }
    summary_text(s, line, sizeof(line));
    if (r->left)
        fprintf(stderr,
                "ncclshim: %s; %zu process%s still running, `ncclshim collect -o %s` goes on\n",
                line, r->left, r->left == 1 ? "" : "es", r->run_path);
    else
        fprintf(stderr, "ncclshim: %s; see `ncclshim report %s`\n", line, r->run_path);
}

static const struct option_row rows[] = {
    {"profile", 'p', OPTION_TEXT, .at = offsetof(struct watch_options, profile)},
    {"output", 'o', OPTION_TEXT, .at = offsetof(struct watch_options, run_dir)},
    {"log-dir", .kind = OPTION_TEXT, .at = offsetof(struct watch_options, log_dir)},
    {"keep", .kind = OPTION_WORD, .at = offsetof(struct watch_options, keep_all), .word = "all"},
    {"strict", .kind = OPTION_FLAG, .at = offsetof(struct watch_options, strict)},
    {"no-collect", .kind = OPTION_FLAG, .at = offsetof(struct watch_options, no_collect)},
    {.name = NULL},
};

int verb_run(int argc, char **argv)
{
    struct watch_options o = {.started = print_start, .warn = print_error};
    struct watch_result r;
    struct error e;
    int rc = options_read(argc, argv, &(struct options){help, rows, true}, &o, NULL);

    if (rc >= 0)
        return rc;
    if (optind >= argc) {
        error_set(&e, "", 0, "no command to run is given; it stands last, behind --");
        return fail(2, &e);
    }
    o.command = argv + optind;
    if (watch(&o, &r, &e) < 0)
        return fail(2, &e);
    print_end(&r);
    return r.exit_code;
}
