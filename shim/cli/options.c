/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/cli/verbs.h"

/* getopt's answers: letters as they are, rows from here on. */
#define ROW_BASE 1000

static size_t count_rows(const struct option_row *rows)
{
    size_t n = 0;

    while (rows[n].name)
        n++;
    return n;
}

static bool has_value(const struct option_row *row)
{
    return row->kind < OPTION_FLAG;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int take_number(const struct option_row *row, const char *value, int *to, struct error *e)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(value, &end, 10);
    if (errno || end == value || *end || n < row->least || n > row->most)
        return error_set(e, NULL, 0, "--%s: '%s' is no number from %ld to %ld", row->name, value,
                         row->least, row->most);
    *to = (int)n;
    return 0;
}

static int take_percent(const struct option_row *row, const char *value, double *to,
                        struct error *e)
{
    char *end;
    double v = strtod(value, &end);

    while (*end == ' ' || *end == '%')
        end++;
    if (end == value || *end || !(v >= 0) || v > 1e6)
        return error_set(e, NULL, 0, "--%s: '%s' is no percentage: write 2 or 0.5", row->name,
                         value);
    *to = v / 100;
    return 0;
}

static int take_time(const struct option_row *row, const char *value, uint64_t *to, struct error *e)
{
    static const struct {
        char letter;
        double ns;
    } units[] = {{'\0', 1e9}, {'s', 1e9}, {'m', 60e9}, {'h', 3600e9}, {'d', 86400e9}};
    char *end;
    double v, ns = 0;

    errno = 0;
    v = strtod(value, &end);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (*end == units[i].letter)
            ns = units[i].ns;
    if (errno || end == value || !(v > 0) || ns == 0 || (*end && end[1]) || v * ns >= 0x1p64)
        return error_set(e, NULL, 0, "--%s: '%s' is no time: write 90s, 10m, 2h or 1d", row->name,
                         value);
    *to = (uint64_t)(v * ns);
    return 0;
}

static int take_one_of(const struct option_row *rows, size_t i, uint64_t given, int *to,
                       struct error *e)
{
    for (size_t k = 0; rows[k].name; k++)
        if (k != i && given >> k & 1 && rows[k].kind == OPTION_ONE_OF && rows[k].at == rows[i].at)
            return error_set(e, NULL, 0, "--%s and --%s exclude each other", rows[k].name,
                             rows[i].name);
    *to = (int)rows[i].least;
    return 0;
}

static int take(const struct option_row *rows, size_t i, const char *value, void *request,
                uint64_t given, struct error *e)
{
    const struct option_row *row = &rows[i];
    void *place = (char *)request + row->at;

    switch (row->kind) {
    case OPTION_TEXT:
        *(const char **)place = value;
        return 0;
    case OPTION_NUMBER:
        return take_number(row, value, place, e);
    case OPTION_PERCENT:
        return take_percent(row, value, place, e);
    case OPTION_TIME:
        return take_time(row, value, place, e);
    case OPTION_WORD:
        *(bool *)place = true;
        return strcmp(value, row->word) == 0 ? 0
                                             : error_set(e, NULL, 0, "--%s knows '%s', not '%s'",
                                                         row->name, row->word, value);
    case OPTION_CALL:
        return row->take(place, value, e);
    case OPTION_FLAG:
    case OPTION_CLEAR:
        *(bool *)place = row->kind == OPTION_FLAG;
        return 0;
    case OPTION_SET:
        *(int *)place = (int)row->least;
        return 0;
    case OPTION_ONE_OF:
        return take_one_of(rows, i, given, place, e);
    }
    return 0;
}

int unknown_name(const char *option, const char *value, const char *const *names, struct error *e)
{
    const char *near = nearest_name(value, names);
    char all[400] = "";
    size_t n = 0;

    if (near)
        return error_set(e, NULL, 0, "%s: '%s' is unknown; did you mean '%s'?", option, value,
                         near);
    for (size_t i = 0; names[i] && n < sizeof(all); i++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", names[i]);
    return error_set(e, NULL, 0, "%s: '%s' is none of %s", option, value, all);
}

/* ---- what getopt wants ------------------------------------------------------------------------
 */

struct tables {
    char letters[2 * OPTIONS_MAX + 8];
    struct option longs[OPTIONS_MAX + 2];
    const char *names[OPTIONS_MAX + 2];
};

static void make_tables(const struct options *o, struct tables *t)
{
    char *letter = t->letters;
    size_t n = 0;

    if (o->command)
        *letter++ = '+';
    *letter++ = ':';
    *letter++ = 'h';
    for (const struct option_row *row = o->rows; row->name; row++, n++) {
        t->names[n] = row->name;
        t->longs[n] = (struct option){row->name, has_value(row), NULL, ROW_BASE + (int)n};
        if (!row->letter)
            continue;
        *letter++ = row->letter;
        if (has_value(row))
            *letter++ = ':';
    }
    *letter = '\0';
    t->names[n] = "help";
    t->names[n + 1] = NULL;
    t->longs[n] = (struct option){"help", no_argument, NULL, 'h'};
    t->longs[n + 1] = (struct option){0};
}

/*
 * A letter that no option has: '-x', or within '-jx', where optind still points at the word itself.
 * Of a long option getopt leaves its value in optopt, or 0.
 */
static bool is_unknown_letter(int result, const struct tables *t)
{
    for (const struct option *o = t->longs; o->name; o++)
        if (o->val == optopt)
            return false;
    return result == '?' && optopt;
}

/* What getopt_long said no to ('?' or ':'), as a sentence. */
static int bad_option(char **argv, int result, const struct tables *t, struct error *e)
{
    const char *given = argv[optind - 1], *near;

    if (result == ':')
        return error_set(e, NULL, 0, "%s needs a value", given);
    if (is_unknown_letter(result, t))
        return error_set(e, NULL, 0, "there is no option -%c; --help lists them", optopt);
    near = nearest_name(given + 2, t->names);
    if (near && strcmp(near, given + 2))
        return error_set(e, NULL, 0, "there is no option %s; did you mean --%s?", given, near);
    return error_set(e, NULL, 0, "there is no option %s, or it takes no value; --help lists them",
                     given);
}

static size_t row_of(const struct option_row *rows, int answer)
{
    size_t i = 0;

    if (answer >= ROW_BASE)
        return (size_t)(answer - ROW_BASE);
    while (rows[i].letter != answer)
        i++;
    return i;
}

int options_read(int argc, char **argv, const struct options *o, void *request, uint64_t *given)
{
    struct error e = {0};
    struct tables t;
    uint64_t seen = 0;
    int answer;

    assert(count_rows(o->rows) <= OPTIONS_MAX);
    make_tables(o, &t);
    opterr = 0;
    while ((answer = getopt_long(argc, argv, t.letters, t.longs, NULL)) != -1) {
        size_t i;
        if (answer == 'h')
            return usage(o->help, 1);
        if (answer == '?' || answer == ':')
            return bad_option(argv, answer, &t, &e), fail(2, &e);
        i = row_of(o->rows, answer);
        if (take(o->rows, i, optarg, request, seen, &e) < 0)
            return fail(2, &e);
        seen |= UINT64_C(1) << i;
    }
    if (given)
        *given = seen;
    return -1;
}

int options_none(int argc, char **argv, const char *instead)
{
    struct error e;

    if (optind >= argc)
        return -1;
    error_set(&e, NULL, 0, "'%s' is no option; %s", argv[optind], instead);
    return fail(2, &e);
}

int options_argument(int argc, char **argv, const char *what, const char *behind,
                     const char **argument)
{
    struct error e;

    *argument = argv[optind]; /* NULL behind the last */
    if (optind + 1 >= argc)
        return -1;
    error_set(&e, NULL, 0, "one %s at a time: '%s' is too much%s", what, argv[optind + 1], behind);
    return fail(2, &e);
}
