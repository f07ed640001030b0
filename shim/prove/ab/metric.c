/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/ab/metric.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALPHA 0.05
#define NUMBER_MAX 64

/* ---- the expression ------------------------------------------------------------------------- */

static bool is_plain(char c)
{
    return isalnum((unsigned char)c) || c == '/' || c == '_' || c == '%' || c == '-';
}

/* The word that stands behind the group, else the one before it; blanks and punctuation left out.
 */
static void make_label(struct metric *m, const char *regex)
{
    const char *open = strchr(regex, '('), *close = open ? strchr(open, ')') : NULL, *from, *to;

    for (from = close ? close + 1 : ""; *from == ' '; from++)
        ;
    for (to = from; is_plain(*to); to++)
        ;
    if (to == from && open) {
        for (to = open; to > regex && !is_plain(to[-1]); to--)
            ;
        for (from = to; from > regex && is_plain(from[-1]); from--)
            ;
    }
    snprintf(m->label, sizeof(m->label), "%.*s", to > from ? (int)(to - from) : 6,
             to > from ? from : "metric");
}

int metric_init(struct metric *m, const char *regex, bool lower, struct error *e)
{
    char why[160];
    int rc = regcomp(&m->re, regex, REG_EXTENDED | REG_NEWLINE);

    if (rc != 0) {
        regerror(rc, &m->re, why, sizeof(why));
        return error_set(e, NULL, 0, "--metric: '%s' is no extended regular expression: %s", regex,
                         why);
    }
    m->lower = lower;
    make_label(m, regex);
    if (m->re.re_nsub < 1 || strstr(regex, "\\d")) {
        metric_free(m);
        return error_set(e, NULL, 0, "--metric: '%s' %s", regex,
                         strstr(regex, "\\d")
                             ? "has \\d, which POSIX lacks: write [0-9]"
                             : "has no group: put the number in (...), as in '([0-9.]+) tok/s'");
    }
    return 0;
}

void metric_free(struct metric *m)
{
    regfree(&m->re);
}

/* ---- the number ----------------------------------------------------------------------------- */

/* Is it a comma between thousands: three digits behind it, and no fourth? */
static bool parts_thousands(const char *text, size_t n, size_t i)
{
    if (text[i] != ',' || i == 0 || i + 3 >= n)
        return false;
    for (size_t k = 1; k <= 3; k++)
        if (!isdigit((unsigned char)text[i + k]))
            return false;
    return i + 4 >= n || !isdigit((unsigned char)text[i + 4]);
}

/* "82.0" and "1,234.5" */
static bool read_number(const char *text, size_t n, struct metric_value *out)
{
    char copy[NUMBER_MAX], *end;
    const char *point;
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        if (used + 1 >= sizeof(copy))
            return false;
        if (parts_thousands(text, n, i))
            continue;
        copy[used++] = text[i];
    }
    copy[used] = '\0';
    out->value = strtod(copy, &end);
    if (end == copy || *end || !isfinite(out->value) || out->value <= 0)
        return false;
    point = strchr(copy, '.');
    out->step = point && !strpbrk(copy, "eE") ? pow(10, -(double)strlen(point + 1)) : 1;
    if (strpbrk(copy, "eE"))
        out->step = 0;
    return true;
}

bool metric_in_line(const struct metric *m, const char *line, struct metric_value *out)
{
    regmatch_t at[2];
    struct metric_value v;
    bool found = false;
    int flags = 0;

    while (regexec(&m->re, line, 2, at, flags) == 0) {
        if (at[1].rm_so >= 0 &&
            read_number(line + at[1].rm_so, (size_t)(at[1].rm_eo - at[1].rm_so), &v)) {
            *out = v;
            found = true;
        }
        if (!line[at[0].rm_eo])
            break;
        line += at[0].rm_eo > 0 ? at[0].rm_eo : 1;
        flags = REG_NOTBOL;
    }
    return found;
}

int metric_in_file(const struct metric *m, const char *path, struct metric_value *out,
                   struct error *e)
{
    FILE *in = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    ssize_t n;

    if (!in)
        return error_set(e, path, 0, "can't be read: %s", strerror(errno));
    while ((n = getline(&line, &room, in)) > 0) {
        if (line[n - 1] == '\n')
            line[n - 1] = '\0';
        found |= metric_in_line(m, line, out);
    }
    free(line);
    fclose(in);
    return found ? 0
                 : error_set(e, path, 0,
                             "no line matches --metric with a positive number in its first group");
}

/* ---- several -------------------------------------------------------------------------------- */

double metric_mean(const struct metric_value *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += log(v[i].value);
    return n ? exp(sum / (double)n) : 0;
}

void metric_compare(const struct metric_value *first, const struct metric_value *other,
                    size_t rounds, double margin, struct metric_test *out)
{
    const struct estimate zero = {.known = true, .df = 1};
    struct estimate d = {.known = true, .n = rounds, .df = (double)rounds - 1};
    double squares = 0, rounding = 0;

    memset(out, 0, sizeof(*out));
    out->difference.p = 1;
    out->verdict = VERDICT_UNKNOWN;
    for (size_t i = 0; i < rounds; i++)
        d.log_ns += log(other[i].value / first[i].value) / (double)rounds;
    if (rounds < 2) {
        out->difference.change = rounds ? expm1(d.log_ns) : 0;
        return;
    }
    for (size_t i = 0; i < rounds; i++) {
        double x = log(other[i].value / first[i].value) - d.log_ns;
        double a = first[i].step / first[i].value, b = other[i].step / other[i].value;
        squares += x * x;
        rounding += (a * a + b * b) / 12; /* variance of what rounding hides */
    }
    d.se = sqrt(squares / (d.df * (double)rounds));
    rounding = sqrt(rounding) / (double)rounds;
    /* Numbers that are printed with few digits can agree by that alone. */
    if (d.se < rounding)
        d.se = rounding;
    out->difference = difference_of(&zero, &d, margin);
    out->verdict = VERDICT_NONE;
}

int metric_judge(struct metric_test *tests, size_t count, bool lower)
{
    double *p = calloc(count + 1, sizeof(*p));
    bool *accepted = calloc(count + 1, 1);
    int rc = p && accepted ? 0 : -1;
    size_t n = 0, k = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        if (tests[i].verdict != VERDICT_UNKNOWN)
            p[n++] = tests[i].difference.p;
    if (rc == 0)
        rc = holm(p, n, ALPHA, accepted);
    for (size_t i = 0; i < count && rc == 0; i++)
        if (tests[i].verdict != VERDICT_UNKNOWN && accepted[k++])
            tests[i].verdict =
                (tests[i].difference.change < 0) == lower ? VERDICT_FASTER : VERDICT_SLOWER;
    free(p);
    free(accepted);
    return rc;
}
