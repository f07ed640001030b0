/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/paths.h"
#include "shim/prove/sweep.h"

static const char text[] =
    "usage: ncclshim clean [OPTION]...\n"
    "\n"
    "Remove the logs in the folder of live logs whose processes are gone, and say which. A log stays\n"
    "while its process lives or can't be seen from here, while a collector is at work in its folder,\n"
    "and when it is another user's. Run folders are not touched.\n"
    "\n"
    "      --dry-run      only say what would be removed\n"
    "      --log-dir DIR  the folder (default: NCCLSHIM_LOG_DIR, else /dev/shm/ncclshim-UID)\n"
    "  -h, --help\n";

static bool dry;

static void tell(enum sweep_verdict v, const char *path, const char *why, uint64_t bytes)
{
    if (v == SWEEP_LEFT)
        printf("left %s: %s\n", path, why);
    else
        printf("%s %s (%.1f MiB)\n", dry ? "would remove" : "removed", path,
               (double)bytes / 1048576.0);
}

static int parse(int argc, char **argv, struct sweep_options *o)
{
    static const struct option options[] = {{"dry-run", no_argument, NULL, 'n'},
                                            {"log-dir", required_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1)
        switch (c) {
        case 'n':
            o->dry_run = dry = true;
            break;
        case 'l':
            o->log_dir = optarg;
            break;
        case 'h':
            usage(text, 1);
            return -1;
        default:
            return usage(text, 0);
        }
    if (optind == argc)
        return 0;
    fprintf(stderr, "ncclshim: clean takes no argument '%s'; a folder is given with --log-dir\n",
            argv[optind]);
    return usage(text, 0);
}

int verb_clean(int argc, char **argv)
{
    struct sweep_options o = {.tell = tell};
    struct sweep_result r;
    struct error e;
    char dir[4096];
    int rc = parse(argc, argv, &o);

    if (rc)
        return rc < 0 ? 0 : rc;
    if (!o.log_dir && log_dir_default(dir, sizeof(dir)) < 0) {
        error_set(&e, NULL, 0, "the name of the folder for logs is too long");
        return fail(2, &e);
    }
    if (!o.log_dir)
        o.log_dir = dir;
    if (sweep(&o, &r, &e) < 0)
        return fail(2, &e);
    printf("%s %u log%s, %.1f MiB; left %u\n", dry ? "would remove" : "removed", r.removed,
           r.removed == 1 ? "" : "s", (double)r.bytes / 1048576.0, r.left);
    return 0;
}
