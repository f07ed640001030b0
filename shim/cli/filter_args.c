/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/filter_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/base/size.h"

static int parse_op(struct run_filter *f, const char *value, struct error *e)
{
    static const char *const names[] = {
#define X(sym, num, text, nccl) text,
        NCCLSHIM_OPS(X)
#undef X
            NULL,
    };
    const char *near;

    f->op = op_parse(value);
    if (f->op >= 0)
        return 1;
    near = nearest_name(value, names);
    if (near)
        return error_set(e, "", 0, "--op: there is no operation '%s'; did you mean '%s'?", value,
                         near);
    return error_set(e, "", 0,
                     "--op: there is no operation '%s' (all_reduce, all_gather, "
                     "reduce_scatter, broadcast, ...)",
                     value);
}

static int parse_bytes(struct run_filter *f, const char *value, struct error *e)
{
    const char *dash = strchr(value, '-');
    char low_text[64];
    uint64_t low = 0, high;
    size_t n = dash ? (size_t)(dash - value) : strlen(value);
    bool bad = n >= sizeof(low_text);

    if (!bad) {
        memcpy(low_text, value, n);
        low_text[n] = '\0';
        bad = (n || !dash) && size_parse(low_text, &low) < 0;
    }
    high = low;
    if (!bad && dash)
        bad = dash[1] ? size_parse(dash + 1, &high) < 0 : (high = INT64_MAX, false);
    if (bad || high > INT64_MAX || low > high || high == 0)
        return error_set(e, "", 0, "--bytes: '%s' is no size or range: write 42K, 1K-64K or 1M-",
                         value);
    f->bytes_low = (int64_t)low;
    f->bytes_high = (int64_t)high;
    return 1;
}

static int parse_rank(struct run_filter *f, const char *value, struct error *e)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(value, &end, 10);
    if (errno || end == value || *end || n < 0 || n > INT32_MAX)
        return error_set(e, "", 0, "--rank: '%s' is no rank: write a number from 0 on", value);
    f->rank = (int)n;
    return 1;
}

int filter_arg(struct run_filter *f, int option, const char *value, struct error *e)
{
    int captured = option == FILTER_CAPTURED;

    switch (option) {
    case FILTER_OP:
        return parse_op(f, value, e);
    case FILTER_BYTES:
        return parse_bytes(f, value, e);
    case FILTER_COMM:
        f->comm = value;
        return 1;
    case FILTER_RANK:
        return parse_rank(f, value, e);
    case FILTER_CAPTURED:
    case FILTER_EAGER:
        if (f->captured >= 0 && f->captured != captured)
            return error_set(e, "", 0,
                             "--captured and --eager leave nothing to show: give one of them");
        f->captured = captured;
        return 1;
    default:
        return 0;
    }
}

int bad_option(char **argv, int result, const struct option *options, struct error *e)
{
    const char *names[64];
    const char *given = argv[optind - 1], *near;
    size_t n = 0;

    if (result == ':')
        return error_set(e, "", 0, "%s needs a value", given);
    if (strncmp(given, "--", 2))
        return error_set(e, "", 0, "there is no option -%c; --help lists them",
                         optopt ? optopt : '?');
    for (; options[n].name && n < 63; n++)
        names[n] = options[n].name;
    names[n] = NULL;
    near = nearest_name(given + 2, names);
    if (near && strcmp(near, given + 2))
        return error_set(e, "", 0, "there is no option %s; did you mean --%s?", given, near);
    return error_set(e, "", 0, "there is no option %s, or it takes no value; --help lists them",
                     given);
}

int parse_duration(const char *text, uint64_t *ns)
{
    char *end;
    double v, unit;

    errno = 0;
    v = strtod(text, &end);
    if (errno || end == text || !(v >= 0) || v > 1e9)
        return -1;
    switch (*end ? *end++ : 's') {
    case 's':
        unit = 1e9;
        break;
    case 'm':
        unit = 60e9;
        break;
    case 'h':
        unit = 3600e9;
        break;
    case 'd':
        unit = 86400e9;
        break;
    default:
        return -1;
    }
    if (*end)
        return -1;
    *ns = (uint64_t)(v * unit);
    return 0;
}
