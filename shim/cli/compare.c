/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/base/grow.h"
#include "shim/cli/filter_args.h"
#include "shim/cli/outfile.h"
#include "shim/cli/verbs.h"
#include "shim/show/compare_show.h"
#include "shim/show/json.h"

static const char help[] =
    "usage: ncclshim compare A B [C]... [OPTION]...\n"
    "\n"
    "Each kind of call of the runs B, C, ... against the same kind in A: median and p99, the "
    "change\n"
    "with a 95 % interval, and a verdict: faster, slower, or no difference shown. The intervals "
    "come\n"
    "from how the runs vary in time, not from the number of calls. Several runs of one side, given "
    "as\n"
    "A1,A2,A3, make the verdict rest on how much starts of the same server differ.\n"
    "\n"
    "  --fail-if-slower PERCENT  exit 1 when a median is shown to be slower by more than that\n"
    "  --margin PERCENT          changes up to this are no difference (0.75; several runs a side: "
    "0)\n"
    "  --all                     every kind of call, not only those that take most "
    "time\n" FILTER_HELP "  --json                    for programs\n"
    "  --html FILE               one self-contained page\n"
    "\n"
    "examples:\n"
    "  ncclshim compare ncclshim-runs/before ncclshim-runs/after\n"
    "  ncclshim compare base candidate --op all_reduce --captured --fail-if-slower 2\n"
    "  ncclshim compare a1,a2,a3 b1,b2,b3 --json\n";

#define SIDES_MAX 26

struct request {
    struct run_filter filter;
    double fail_share, margin; /* fail_share < 0 = not asked */
    const char *html;
    bool json, all;
    int sides;
};

static const struct option_row rows[] = {
    {"fail-if-slower", .kind = OPTION_PERCENT, .at = offsetof(struct request, fail_share)},
    {"margin", .kind = OPTION_PERCENT, .at = offsetof(struct request, margin)},
    {"all", .kind = OPTION_FLAG, .at = offsetof(struct request, all)},
    {"json", .kind = OPTION_FLAG, .at = offsetof(struct request, json)},
    {"html", .kind = OPTION_TEXT, .at = offsetof(struct request, html)},
    FILTER_ROWS(struct request),
    {.name = NULL},
};

static int check_sides(int sides, struct error *e)
{
    if (sides < 2)
        return error_set(e, "", 0, "compare needs two runs or more: `ncclshim compare A B`");
    if (sides > SIDES_MAX)
        return error_set(e, "", 0, "compare takes at most %d sides, not %d", SIDES_MAX, sides);
    return 0;
}

/* ---- opening the runs ------------------------------------------------------------------------ */

static int open_one(struct compare_side *s, const char *name, const struct run_filter *f,
                    struct error *e)
{
    struct run **more = GROW(s->runs, s->run_count);

    if (!more)
        return error_set(e, name, 0, "out of memory");
    if (run_open_given(name, f, more, e) == 0)
        return 0;
    s->run_count--;
    return -1;
}

/* "A1,A2" is two runs, unless a run of that very name exists. */
static int open_side(struct compare_side *s, const char *given, const struct run_filter *f,
                     struct error *e)
{
    struct stat st;
    char *copy, *save, *name;
    int rc = 0;

    s->label = given;
    if (!strchr(given, ',') || stat(given, &st) == 0)
        return open_one(s, given, f, e);
    if (!(copy = strdup(given)))
        return error_set(e, given, 0, "out of memory");
    for (name = strtok_r(copy, ",", &save); name && rc == 0; name = strtok_r(NULL, ",", &save))
        rc = open_one(s, name, f, e);
    free(copy);
    if (rc == 0 && !s->run_count)
        rc = error_set(e, given, 0, "names no run");
    return rc;
}

static void close_sides(struct compare_side *sides, int count)
{
    for (int i = 0; i < count; i++) {
        for (size_t k = 0; k < sides[i].run_count; k++)
            run_free(sides[i].runs[k]);
        free(sides[i].runs);
    }
}

/* ---- printing -------------------------------------------------------------------------------- */

struct page {
    const struct compare *compare;
    const struct setting_changes *changes;
};

static int write_page(const void *what, FILE *out, struct error *e)
{
    const struct page *p = what;

    (void)e;
    return compare_html(p->compare, p->changes, out);
}

static int print(const struct compare *c, const struct setting_changes *s, const struct request *q,
                 struct error *e)
{
    struct term t = term_of(stdout);
    int rc = 0;

    if (q->html && outfile_write(q->html, write_page, &(struct page){c, s}, e) < 0)
        return -1;
    if (q->json)
        rc = json_print(compare_json(c, s), stdout, e);
    else if (!q->html)
        compare_text(c, s, &t, q->all);
    else
        printf("wrote %s\n", q->html);
    return rc;
}

static int compare_and_print(const struct compare_side *sides, const struct request *q,
                             struct error *e)
{
    struct run_settings *settings = calloc((size_t)q->sides, sizeof(*settings));
    struct setting_changes changes = {0};
    struct compare c = {0};
    int rc = settings ? 0 : error_set(e, "", 0, "out of memory"), slower = 0;

    for (int i = 0; i < q->sides && rc == 0; i++)
        if (run_settings_gather(sides[i].runs[0], &settings[i]) < 0)
            rc = error_set(e, "", 0, "out of memory");
    if (rc == 0)
        rc = compare_make(sides, (size_t)q->sides, q->margin, &c, e);
    if (rc == 0 && setting_changes_make(&c, settings, &changes) < 0)
        rc = error_set(e, "", 0, "out of memory");
    if (rc == 0)
        rc = print(&c, &changes, q, e);
    for (int i = 1; i < q->sides && rc == 0; i++)
        slower |= q->fail_share >= 0 && compare_slower_by(&c, (size_t)i, q->fail_share);
    setting_changes_free(&changes);
    for (int i = 0; settings && i < q->sides; i++)
        run_settings_free(&settings[i], sides[i].runs[0]);
    free(settings);
    compare_free(&c);
    return rc < 0 ? -1 : slower;
}

int verb_compare(int argc, char **argv)
{
    struct request q = {.filter = RUN_FILTER_ALL, .fail_share = -1, .margin = COMPARE_MARGIN};
    struct compare_side sides[SIDES_MAX] = {0};
    struct error e = {0};
    int rc = options_read(argc, argv, &(struct options){help, rows, false}, &q, NULL);

    if (rc >= 0)
        return rc;
    q.sides = argc - optind;
    rc = check_sides(q.sides, &e);
    for (int i = 0; i < q.sides && rc == 0; i++)
        rc = open_side(&sides[i], argv[optind + i], &q.filter, &e);
    if (rc == 0)
        rc = compare_and_print(sides, &q, &e);
    close_sides(sides, SIDES_MAX);
    return rc < 0 ? fail(2, &e) : rc;
}
