/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/json.h"

#include <stdlib.h>
#include <string.h>

#include "shim/show/term.h"

json_t *json_text(const char *text)
{
    json_t *j;
    char *safe;
    size_t size;

    if (!text)
        return json_null();
    size = strlen(text) * 10 + 1; /* \u{10ffff} is the longest that one character becomes */
    safe = malloc(size);
    if (!safe)
        return NULL;
    j = json_string(safe_text(text, safe, size));
    free(safe);
    return j;
}

json_t *json_u64(uint64_t n)
{
    return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

json_t *json_known(uint64_t n)
{
    return n ? json_u64(n) : json_null();
}

json_t *json_hist(const struct hist *h)
{
    if (!h->count)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "count", json_u64(h->count),
                     "sum_ns", json_u64(h->sum), "min_ns", json_u64(h->min), "p50_ns",
                     json_u64(hist_quantile(h, 0.5)), "p90_ns", json_u64(hist_quantile(h, 0.9)),
                     "p99_ns", json_u64(hist_quantile(h, 0.99)), "max_ns", json_u64(h->max),
                     "mean_ns", hist_mean(h));
}

json_t *json_difference(const struct difference *d)
{
    if (!d->known)
        return json_null();
    return json_pack("{s:f, s:f, s:f, s:f}", "change", d->change, "low_95", d->low, "high_95",
                     d->high, "p", d->p);
}

int json_print(json_t *j, FILE *out, struct error *e)
{
    int rc = j ? json_dumpf(j, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : -1;

    json_decref(j);
    if (rc == 0 && fputc('\n', out) != EOF && fflush(out) == 0)
        return 0;
    return error_set(e, NULL, 0, "can't print: out of memory, or the output is closed");
}

json_t *json_hex(uint64_t n)
{
    char text[24];

    if (!n)
        return json_null();
    snprintf(text, sizeof(text), "0x%llx", (unsigned long long)n);
    return json_string(text);
}
