/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <stdio.h>

#include "shim/base/paths.h"
#include "shim/cli/options.h"
#include "shim/prove/tune/sweep.h"

static const char help[] =
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

static const struct option_row rows[] = {
    {"dry-run", .kind = OPTION_FLAG, .at = offsetof(struct sweep_options, dry_run)},
    {"log-dir", .kind = OPTION_TEXT, .at = offsetof(struct sweep_options, log_dir)},
    {.name = NULL},
};

int verb_clean(int argc, char **argv)
{
    struct sweep_options o = {.tell = tell};
    struct sweep_result r;
    struct error e;
    char dir[4096];
    int rc = options_read(argc, argv, &(struct options){help, rows, false}, &o, NULL);

    if (rc < 0)
        rc = options_none(argc, argv, "a folder is given with --log-dir");
    if (rc >= 0)
        return rc;
    dry = o.dry_run;
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
