/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shim/show/term.h"

/* Three significant digits: 7.90, 29.8, 204. */
static const char *three_digits(double v, const char *unit, char *buf)
{
    int decimals = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;

    snprintf(buf, UNIT_SIZE, "%.*f%s", decimals, v, unit);
    return buf;
}

const char *unit_ns(uint64_t ns, char *buf)
{
    double v = (double)ns;

    if (ns < 1000)
        snprintf(buf, UNIT_SIZE, "%u ns", (unsigned)ns);
    else if (v < 999.5e3)
        three_digits(v / 1e3, " us", buf);
    else if (v < 999.5e6)
        three_digits(v / 1e6, " ms", buf);
    else if (v < 120e9)
        three_digits(v / 1e9, " s", buf);
    else if (v < 7200e9)
        snprintf(buf, UNIT_SIZE, "%.0f min", v / 60e9);
    else
        three_digits(v / 3600e9, " h", buf);
    return buf;
}

const char *unit_bytes(uint64_t bytes, char *buf)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    unsigned i = 0;

    while (v >= 1024 && i < 6) {
        v /= 1024;
        i++;
    }
    if (v == floor(v))
        snprintf(buf, UNIT_SIZE, "%.0f %s", v, names[i]);
    else
        snprintf(buf, UNIT_SIZE, "%.*f %s", v < 9.995 ? 2 : v < 999.5 ? 1 : 0, v, names[i]);
    return buf;
}

const char *unit_count(uint64_t n, char *buf)
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), at = 0;

    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

const char *unit_gbps(double gbps, char *buf)
{
    if (!(gbps > 0))
        strcpy(buf, "-");
    else if (gbps < 0.01)
        snprintf(buf, UNIT_SIZE, "%.1g", gbps);
    else
        three_digits(gbps, "", buf);
    return buf;
}

const char *unit_percent(double share, char *buf)
{
    double v = share * 100, size = fabs(v);

    if (!isfinite(v))
        strcpy(buf, "-");
    else if (size != 0 && size < 0.01)
        snprintf(buf, UNIT_SIZE, "<0.01 %%");
    else
        snprintf(buf, UNIT_SIZE, "%.*f %%",
                 size == 0 || size >= 9.95 ? 0
                 : size < 0.995            ? 2
                                           : 1,
                 v);
    return buf;
}

const char *unit_date(uint64_t ns, char *buf)
{
    time_t seconds = (time_t)(ns / 1000000000u);
    struct tm tm;

    if (!ns || !localtime_r(&seconds, &tm) || !strftime(buf, UNIT_SIZE, "%Y-%m-%d %H:%M:%S", &tm))
        strcpy(buf, "?");
    return buf;
}
