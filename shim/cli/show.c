/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>

#include "shim/cli/judged.h"
#include "shim/cli/options.h"
#include "shim/cli/show_profile.h"
#include "shim/cli/show_run.h"
#include "shim/cli/verbs.h"
#include "shim/profile/write.h"

static const char help[] =
    "usage: ncclshim show [OPTION]... PROFILE\n"
    "       ncclshim show --run [RUN] [--json]\n"
    "\n"
    "Show what a profile would set if a server started in this shell now: each value, where it "
    "comes\n"
    "from (this shell, the profile, what it inherits, NCCL's own files), and what NCCL makes of "
    "it.\n"
    "\n"
    "  --run [RUN]          what was asked and got in a recorded run (the newest; a folder or log)\n"
    "  --ini                the profile as one INI file, what it inherits written out\n"
    "  --nccl VERSION|PATH  judge for this NCCL: 2.28.9, or the path of a libnccl.so.2\n"
    "  --json               for programs\n"
    "\n"
    "exit code: 0 good, 1 the profile can't be loaded, 2 no such profile\n"
    "\n"
    "  ncclshim show fewer-channels\n"
    "  ncclshim show --ini pcie-latency > mine.ini\n"
    "  ncclshim show --run ncclshim-runs/2026-12-01-101500-sglang\n";

static int show_bad(const struct judged *j)
{
    for (size_t i = 0; i < j->findings.count; i++) {
        const struct finding *f = &j->findings.list[i];
        struct error e;
        if (f->severity < SEVERITY_DANGER || f->allowed)
            continue;
        error_set(&e, f->file, f->line, "%s%s%s%s%s", f->subject, *f->subject ? ": " : "",
                  f->reason, *f->advice ? "; " : "", f->advice);
        fail(1, &e);
    }
    return 1;
}

/* As the library would load it: an error in the shell's own variables is shown, but no obstacle. */
static int loads(const char *name, const struct judged *j)
{
    struct profile *p;
    struct error e;
    int rc;

    if (!j->p)
        return show_bad(j);
    rc = profile_load(name, &p, &e);
    profile_free(p);
    return rc ? fail(1, &e) : 0;
}

static int show(const char *name, int version, bool ini, bool json)
{
    struct judged j;
    struct error e;
    int rc;

    if (judged_load(name, true, version, &j, &e))
        rc = fail(2, &e);
    else if (!(rc = loads(name, &j))) {
        if (ini)
            profile_write(j.p, stdout);
        else if (json)
            rc = show_profile_json(&j, stdout, &e) < 0 ? fail(2, &e) : 0;
        else
            show_profile_text(&j, stdout);
    }
    judged_free(&j);
    return rc;
}

struct request {
    int version;
    bool ini, json, run;
};

static const struct option_row rows[] = {
    {"nccl", .kind = OPTION_CALL, .at = offsetof(struct request, version), .take = take_nccl},
    {"ini", .kind = OPTION_FLAG, .at = offsetof(struct request, ini)},
    {"run", .kind = OPTION_FLAG, .at = offsetof(struct request, run)},
    {"json", .kind = OPTION_FLAG, .at = offsetof(struct request, json)},
    {.name = NULL},
};

int verb_show(int argc, char **argv)
{
    struct request q = {0};
    int rc = options_read(argc, argv, &(struct options){help, rows, false}, &q, NULL);

    if (rc >= 0)
        return rc;
    if (q.run && !q.ini && !q.version && optind + 1 >= argc)
        return show_run(argv[optind], q.json); /* argv[argc] is NULL: the newest run */
    if (q.run || optind + 1 != argc || (q.ini && q.json))
        return usage(help, 0);
    return show(argv[optind], q.version, q.ini, q.json);
}
