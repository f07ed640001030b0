/* SPDX-License-Identifier: Apache-2.0 */
/* A rule on NCCL's cost table (v3 on), and on v2's pair of answers. */
#include "shim/base/names.h"
#include "shim/plugin/tuner.h"

/* Behind the winner's 0 in NCCL's comparison, where the first of equals wins. Microseconds. */
#define JUST_BEHIND 1e-3f

static float *entry(const struct tuner_ask *a, int algo, int proto)
{
    return &a->table[algo * a->protos + proto];
}

static bool covers(const struct tune_rule *r, int algo, int proto)
{
    return (r->algo < 0 || r->algo == algo) && (r->proto < 0 || r->proto == proto);
}

/* The cheapest entry that the rule allows and NCCL has not ruled out. */
static bool best(const struct tune_rule *r, const struct tuner_ask *a, int *algo, int *proto)
{
    bool found = false;

    for (int i = 0; i < a->algos; i++)
        for (int p = 0; p < a->protos; p++) {
            float cost = *entry(a, i, p);
            if (!covers(r, i, p) || !(cost >= 0) || (found && cost >= *entry(a, *algo, *proto)))
                continue;
            *algo = i;
            *proto = p;
            found = true;
        }
    return found;
}

bool tuner_apply_table(const struct tune_rule *r, const struct tuner_ask *a, int *algo, int *proto)
{
    if (!best(r, a, algo, proto))
        return false;
    if (r->algo < 0 && r->proto < 0)
        return true; /* channels or chunks alone: NCCL's choice stays */
    for (int i = 0; i < a->algos; i++)
        for (int p = 0; p < a->protos; p++)
            if (*entry(a, i, p) == 0)
                *entry(a, i, p) = JUST_BEHIND;
    *entry(a, *algo, *proto) = 0;
    return true;
}

/*
 * v2 (NCCL 2.21) shows no table. Its answer goes straight to the kernel, past the conditions under
 * which NCCL itself allows LL128 (wrong data on links that do not keep 128 bytes together) and past
 * the user's NCCL_ALGO and NCCL_PROTO. So what can't be known to be allowed is taken for ruled out,
 * and so is half an answer, which NCCL 2.21 throws away.
 */
bool tuner_apply_pair(const struct tune_rule *r, const struct tuner_ask *a, int *algo, int *proto)
{
    bool nvls = r->algo == ALGO_NVLS || r->algo == ALGO_NVLS_TREE;
    bool collnet = r->algo == ALGO_COLLNET_DIRECT || r->algo == ALGO_COLLNET_CHAIN;

    *algo = *proto = -1;
    if (r->algo < 0 && r->proto < 0)
        return true;
    if (r->algo < 0 || r->proto < 0 || r->proto == PROTO_LL128 || r->algo == ALGO_PAT)
        return false;
    if ((nvls && a->nvls != 1) || (collnet && a->collnet != 1))
        return false;
    if (!tuner_pins_leave(r->op, r->algo, r->proto))
        return false;
    *a->algo = *algo = r->algo;
    *a->proto = *proto = r->proto;
    return true;
}
