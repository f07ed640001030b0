/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stats/clock.h"

/* Anchors nearer than this to the first (or last) one compete with it, and the tightest wins. */
#define NEAR_NS 1000000000ull

static struct clock_point point_of(const struct ncclshim_anchor *a)
{
    uint64_t half = (a->host_after_ns - a->host_before_ns) / 2;

    return (struct clock_point){
        .gpu_ns = a->gpu_ns,
        .offset_ns = (int64_t)(a->host_before_ns + half - a->gpu_ns),
        .error_ns = half,
    };
}

static bool better_first(const struct clock_point *new, const struct clock_point *old)
{
    if (new->gpu_ns + NEAR_NS < old->gpu_ns)
        return true;
    return new->gpu_ns < old->gpu_ns + NEAR_NS &&new->error_ns < old->error_ns;
}

static bool better_last(const struct clock_point *new, const struct clock_point *old)
{
    if (new->gpu_ns > old->gpu_ns + NEAR_NS)
        return true;
    return new->gpu_ns + NEAR_NS > old->gpu_ns &&new->error_ns < old->error_ns;
}

void clock_add(struct clock *c, const struct ncclshim_anchor *a)
{
    struct clock_point p;

    if (a->host_after_ns < a->host_before_ns || !a->gpu_ns)
        return;
    p = point_of(a);
    if (!c->known || better_first(&p, &c->first))
        c->first = p;
    if (!c->known || better_last(&p, &c->last))
        c->last = p;
    c->known = true;
}

uint64_t clock_host(const struct clock *c, uint64_t gpu_ns)
{
    double span, share;
    int64_t offset = c->first.offset_ns;

    if (!c->known)
        return gpu_ns;
    span = (double)(c->last.gpu_ns - c->first.gpu_ns);
    if (c->last.gpu_ns > c->first.gpu_ns) {
        share = (double)(int64_t)(gpu_ns - c->first.gpu_ns) / span;
        /* beyond the anchors the line is not carried on: the clock may have been set since */
        share = share < 0 ? 0 : share > 1 ? 1 : share;
        offset += (int64_t)(share * (double)(c->last.offset_ns - c->first.offset_ns));
    }
    return gpu_ns + (uint64_t)offset;
}

uint64_t clock_error(const struct clock *c)
{
    if (!c->known)
        return UINT64_MAX;
    return c->first.error_ns > c->last.error_ns ? c->first.error_ns : c->last.error_ns;
}
