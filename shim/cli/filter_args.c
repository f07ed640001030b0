/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/filter_args.h"

#include <string.h>

#include "shim/base/names.h"
#include "shim/base/size.h"

int filter_op(void *filter, const char *value, struct error *e)
{
    struct run_filter *f = filter;

    f->op = op_parse(value);
    return f->op >= 0 ? 0 : unknown_name("--op", value, op_names, e);
}

int filter_bytes(void *filter, const char *value, struct error *e)
{
    struct run_filter *f = filter;
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
    return 0;
}
