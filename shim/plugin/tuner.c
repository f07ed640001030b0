/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/plugin/tuner.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/plugin/profiler.h"

/* Channels that NCCL has room for; what is above is written past the end of its arrays. */
#define CHANNELS_ROOM_OLD 32 /* before 2.25 */
#define CHANNELS_ROOM 64
/* The smallest chunk that is no less than one grain of every protocol (LL128: 1920 bytes): NCCL
 * rounds down to whole grains, and divides by the result. */
#define CHUNK_LEAST 2048

static const int ops[NCCL_FUNC_TUNED] = {OP_BROADCAST, OP_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER,
                                         OP_ALL_REDUCE};

/* ---- one communicator ----------------------------------------------------------------------- */

static int env_number(const char *name)
{
    const char *v = getenv(name);
    long n = v && *v ? strtol(v, NULL, 0) : 0;

    return n > 0 && n < CHANNELS_ROOM ? (int)n : 0;
}

/* The variable goes before the config in NCCL. */
static int channels_most(const struct comm *c)
{
    int version = c && c->lib ? lib_version(c->lib) : 0;
    int most = version && version < 22500 ? CHANNELS_ROOM_OLD : CHANNELS_ROOM;
    int ctas = env_number("NCCL_MAX_CTAS"), channels = env_number("NCCL_MAX_NCHANNELS");

    if (!ctas && c && c->entry && c->entry->given_max_ctas > 0)
        ctas = c->entry->given_max_ctas;
    if (ctas && ctas < most)
        most = ctas;
    return channels && channels < most ? channels : most;
}

static const char *parent_name(const struct comm *c)
{
    struct log_writer *log = shim_log_if_open();

    if (!log || !c->entry || c->entry->parent < 0 || (uint32_t)c->entry->parent >= log->comm_cap)
        return NULL;
    return log->comms[c->entry->parent].name;
}

static void learn(struct tuner_context *t, const struct tuner_facts *f)
{
    struct comm *c =
        birth_current ? birth_current->comm : profiler_comm_here(f->hash, (int)f->ranks);
    const char *parent = c ? parent_name(c) : NULL;

    t->facts = (struct comm_facts){.ranks = (int)f->ranks, .nodes = (int)f->nodes, .index = -1};
    t->facts.name = t->name;
    if (c) {
        t->facts.index = c->index;
        snprintf(t->name, sizeof(t->name), "%s", c->name);
    }
    if (parent) {
        snprintf(t->parent, sizeof(t->parent), "%s", parent);
        t->facts.parent = t->parent;
    }
    t->channels_most = channels_most(c);
}

/*
 * Places are there from the start: a rank whose memory runs out here would be the only one without
 * the rules, and ranks that choose differently hang or give wrong data.
 */
static struct tuner_context pool[COMM_LIVE_MAX];

static struct tuner_context *take_place(void)
{
    for (int i = 0; i < COMM_LIVE_MAX; i++) {
        int none = 0;
        if (!atomic_compare_exchange_strong(&pool[i].taken, &none, 1))
            continue;
        memset((char *)&pool[i] + sizeof(pool[i].taken), 0, sizeof(pool[i]) - sizeof(pool[i].taken));
        return &pool[i];
    }
    return NULL;
}

ncclResult_t tuner_init(int version, void **context, const struct tuner_facts *f)
{
    struct tuner_context *t = take_place();
    ncclResult_t r = ncclSuccess;

    *context = t;
    if (!t) /* so many communicators, on all ranks: everything stays as NCCL has it */
        return ncclSuccess;
    learn(t, f);
    t->behind = tuner_behind_bind(version);
    if (t->behind)
        r = tuner_behind_init(t->behind, &t->behind_context, f);
    if (r != ncclSuccess)
        t->behind = NULL;
    return r;
}

ncclResult_t tuner_finalize(struct tuner_context *c)
{
    ncclResult_t r = c && c->behind ? tuner_behind_finalize(c) : ncclSuccess;

    if (c)
        atomic_store_explicit(&c->taken, 0, memory_order_release);
    return r;
}

/* ---- one call ------------------------------------------------------------------------------- */

/*
 * With CollNet, and with NVLS between nodes, NCCL uses as many channels as it is told, whether or
 * not they are connected; elsewhere it takes no more than it has.
 */
static bool takes_any_number(const struct tuner_context *c, int algo)
{
    return algo == ALGO_COLLNET_DIRECT || algo == ALGO_COLLNET_CHAIN ||
           (algo == ALGO_NVLS && c->facts.nodes > 1);
}

static void set_channels(const struct tuner_context *c, const struct tune_rule *r,
                         const struct tuner_ask *a, int algo)
{
    if (!r->channels)
        return;
    if (takes_any_number(c, algo)) {
        tuner_rule_count(r, RULE_CAPPED, "leaves the channels to NCCL where it uses %s",
                         algo_name((unsigned)algo));
        return;
    }
    *a->channels = r->channels < c->channels_most ? r->channels : c->channels_most;
    if (*a->channels < r->channels)
        tuner_rule_count(r, RULE_CAPPED,
                         "asks for %d channels; it gets %d, the most that this "
                         "communicator may have",
                         r->channels, *a->channels);
}

/*
 * NCCL does not always say which communicator it is (v2 to v4, made in a group): the index is then
 * not known, and rules that ask for one do not hold.
 */
static const struct tune_rule *match(const struct tuner_context *c, int op, uint64_t bytes)
{
    const struct profile *p = shim.profile;
    struct comm_facts facts = c->facts;

    if (!p || facts.index >= 0)
        return p ? profile_tune_match(p, op, bytes, &facts) : NULL;
    facts.index = 0;
    for (size_t i = 0; i < p->tune_count; i++) {
        const struct tune_rule *r = &p->tune[i];
        if (r->op == op && bytes >= r->bytes_min && bytes <= r->bytes_max &&
            r->when.index_min == 0 && r->when.index_max == INT_MAX &&
            condition_holds(&r->when, &facts))
            return r;
    }
    return NULL;
}

static const char *text_or(const char *text, int number)
{
    return number < 0 ? "NCCL's choice" : text;
}

ncclResult_t tuner_decide(int version, struct tuner_context *c, const struct tuner_ask *a)
{
    const struct tune_rule *r;
    ncclResult_t result;
    int algo = -1, proto = -1;

    if (!c)
        return ncclSuccess;
    result = c->behind ? tuner_behind_ask(c, a) : ncclSuccess;
    if (result != ncclSuccess || a->func < 0 || a->func >= NCCL_FUNC_TUNED)
        return result;
    c->applied[a->func] = NULL;
    r = match(c, ops[a->func], a->bytes);
    if (!r)
        return ncclSuccess;
    if (!(version == 2 ? tuner_apply_pair : tuner_apply_table)(r, a, &algo, &proto)) {
        tuner_rule_count(r, RULE_MASKED,
                         "can't be followed: NCCL or the environment rules %s with "
                         "%s out for this call",
                         text_or(algo_name((unsigned)r->algo), r->algo),
                         text_or(proto_name((unsigned)r->proto), r->proto));
        return ncclSuccess;
    }
    c->applied[a->func] = r;
    set_channels(c, r, a, algo);
    tuner_rule_count(r, RULE_MATCHED, NULL);
    return ncclSuccess;
}

/*
 * `bytes` is one channel's part of the call here, so the rule is the one that the call itself got
 * when NCCL asked about it just before. In a group, that of the last call of this operation: all
 * ranks have the same calls in a group, and so the same answer.
 */
ncclResult_t tuner_chunk(struct tuner_context *c, int func, size_t bytes, int algo, int proto,
                         int channels, size_t *chunk)
{
    const struct tune_rule *r;
    ncclResult_t result;

    if (!c)
        return ncclSuccess;
    result =
        c->behind ? tuner_behind_chunk(c, func, bytes, algo, proto, channels, chunk) : ncclSuccess;
    if (result != ncclSuccess || func < 0 || func >= NCCL_FUNC_TUNED)
        return result;
    r = c->applied[func];
    if (!r || !r->chunk_bytes || bytes > r->bytes_max || (r->algo >= 0 && r->algo != algo) ||
        (r->proto >= 0 && r->proto != proto))
        return ncclSuccess;
    *chunk = r->chunk_bytes;
    if (*chunk < CHUNK_LEAST) {
        *chunk = CHUNK_LEAST;
        tuner_rule_count(r, RULE_CAPPED,
                         "asks for chunks of %llu bytes; it gets %d, the least that "
                         "works",
                         (unsigned long long)r->chunk_bytes, CHUNK_LEAST);
    }
    return ncclSuccess;
}
