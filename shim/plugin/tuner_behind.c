/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's or the cloud vendor's own tuner, asked first: it answers for all sizes without a rule
 * of ours. Older interfaces are given what NCCL itself would give them (src/plugin/tuner).
 */
#include <pthread.h>

#include "shim/base/names.h"
#include "shim/plugin/behind.h"
#include "shim/plugin/tuner.h"

#define OLDEST 2
#define NEWEST 6

struct tuner_behind {
    int for_version; /* of the table that NCCL uses with us; 0 = not looked for yet */
    int version;     /* of its own table */
    const struct tuner_table *table;
};

static struct tuner_behind bound[NEWEST + 1];
static pthread_mutex_t binding = PTHREAD_MUTEX_INITIALIZER; /* in NCCL's init alone */

const struct tuner_behind *tuner_behind_bind(int version)
{
    struct tuner_behind *b = &bound[version];

    pthread_mutex_lock(&binding);
    if (!b->for_version)
        b->table = behind_table(BEHIND_TUNER, "ncclTunerPlugin", version, OLDEST, &b->version);
    b->for_version = version;
    pthread_mutex_unlock(&binding);
    return b->table ? b : NULL;
}

ncclResult_t tuner_behind_init(const struct tuner_behind *b, void **context,
                               const struct tuner_facts *f)
{
    if (b->version >= 5)
        return b->table->init.v5(context, f->hash, f->ranks, f->nodes, f->log, f->domain,
                                 f->constants);
    return b->table->init.v2(f->ranks, f->nodes, f->log, context);
}

static bool is_open(const struct tuner_ask *a, int algo)
{
    return algo < a->algos && a->table[algo * a->protos + PROTO_SIMPLE] >= 0;
}

/* v2's answer is a pair; NCCL turns it into an entry of the table. */
static ncclResult_t ask_v2(const struct tuner_context *c, const struct tuner_ask *a)
{
    int collnet = is_open(a, ALGO_COLLNET_CHAIN);
    int nvls = is_open(a, ALGO_NVLS) || is_open(a, ALGO_NVLS_TREE);
    int algo = -1, proto = -1;
    ncclResult_t r = c->behind->table->info.v2(c->behind_context, a->func, a->bytes, collnet, nvls,
                                               a->pipe_ops, &algo, &proto, a->channels);

    if (r == ncclSuccess && algo >= 0 && algo < a->algos && proto >= 0 && proto < a->protos &&
        a->table[algo * a->protos + proto] >= 0)
        a->table[algo * a->protos + proto] = 0;
    return r;
}

ncclResult_t tuner_behind_ask(const struct tuner_context *c, const struct tuner_ask *a)
{
    const struct tuner_table *t = c->behind->table;

    if (c->behind->for_version == 2)
        return t->info.v2(c->behind_context, a->func, a->bytes, a->collnet, a->nvls, a->pipe_ops,
                          a->algo, a->proto, a->channels);
    if (c->behind->version == 2)
        return ask_v2(c, a);
    if (c->behind->version == 3)
        return t->info.v3(c->behind_context, a->func, a->bytes, a->pipe_ops, (float **)a->table,
                          a->algos, a->protos, a->channels);
    return t->info.v4(c->behind_context, a->func, a->bytes, a->pipe_ops, (float **)a->table,
                      a->algos, a->protos, a->registered, a->channels);
}

ncclResult_t tuner_behind_chunk(const struct tuner_context *c, int func, size_t bytes, int algo,
                                int proto, int channels, size_t *chunk)
{
    const struct tuner_table_v6 *t = (const struct tuner_table_v6 *)c->behind->table;

    if (c->behind->version < 6 || !t->chunk)
        return ncclSuccess;
    return t->chunk(c->behind_context, func, bytes, algo, proto, channels, chunk);
}

ncclResult_t tuner_behind_finalize(const struct tuner_context *c)
{
    const struct tuner_table *t = c->behind->table;

    return t->finalize ? t->finalize(c->behind_context) : ncclSuccess;
}
