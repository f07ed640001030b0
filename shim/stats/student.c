/* SPDX-License-Identifier: Apache-2.0 */
/* Student's t by the incomplete beta function. */
#include <math.h>

#include "shim/stats/intervals.h"

/* Lentz's continued fraction; converges in a few dozen steps for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), h;

    d = 1 / (fabs(d) < tiny ? tiny : d);
    h = d;
    for (int m = 1; m <= 300; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), step;
        d = 1 + even * d;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = 1 + even / c;
        c = fabs(c) < tiny ? tiny : c;
        h *= d * c;
        d = 1 + odd * d;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = 1 + odd / c;
        c = fabs(c) < tiny ? tiny : c;
        step = d * c;
        h *= step;
        if (fabs(step - 1) < 1e-13)
            break;
    }
    return h;
}

static double incomplete_beta(double a, double b, double x)
{
    double front;

    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_cdf(double t, double df)
{
    double tail = 0.5 * incomplete_beta(df / 2, 0.5, df / (df + t * t));

    return t > 0 ? 1 - tail : tail;
}

double student_quantile(double p, double df)
{
    double low = -1e4, high = 1e4;

    for (int i = 0; i < 100; i++) {
        double mid = (low + high) / 2;
        if (student_cdf(mid, df) < p)
            low = mid;
        else
            high = mid;
    }
    return (low + high) / 2;
}
