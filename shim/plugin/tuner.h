/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's tuner plugin: the [tune] rules of the profile. One decision for all interface versions; a
 * size without a rule is left exactly as NCCL (or the user's tuner behind ours) has it, in the
 * table and in the number of channels. What NCCL or the user has ruled out stays ruled out.
 */
#ifndef NCCLSHIM_PLUGIN_TUNER_H
#define NCCLSHIM_PLUGIN_TUNER_H

#include <stdbool.h>

#include "shim/plugin/abi_tuner.h"
#include "shim/profile/profile.h"

struct log_writer;
struct tuner_behind;

/* One communicator. NCCL uses it on one thread at a time. */
struct tuner_context {
    _Atomic int taken;      /* its place in the pool */
    struct comm_facts facts; /* its texts are the two below */
    char name[64], parent[64];
    int channels_most; /* no rule gets more */
    const struct tune_rule
        *applied[NCCL_FUNC_TUNED];     /* by the latest question about each operation */
    const struct tuner_behind *behind; /* NULL = none */
    void *behind_context;
};

/* What NCCL says at init; hash 0 = it does not (v2 to v4). */
struct tuner_facts {
    uint64_t hash;
    size_t ranks, nodes;
    nccl_logger_fn log;
    void *domain, *constants; /* v5 on */
};

/* A question about one call. */
struct tuner_ask {
    int func;
    size_t bytes;
    int pipe_ops;
    float *table; /* v3 on; NULL in v2 */
    int algos, protos;
    int registered;    /* v4 on */
    int collnet, nvls; /* v2: what is available */
    int *algo, *proto; /* v2: the answer */
    int *channels;
};

/* tuner.c */
ncclResult_t tuner_init(int version, void **context, const struct tuner_facts *f);
ncclResult_t tuner_decide(int version, struct tuner_context *c, const struct tuner_ask *a);
ncclResult_t tuner_chunk(struct tuner_context *c, int func, size_t bytes, int algo, int proto,
                         int channels, size_t *chunk);
ncclResult_t tuner_finalize(struct tuner_context *c);

/* tuner_table.c: where a rule can apply. false = ruled out; *algo, *proto: who wins then. */
bool tuner_apply_table(const struct tune_rule *r, const struct tuner_ask *a, int *algo, int *proto);
bool tuner_apply_pair(const struct tune_rule *r, const struct tuner_ask *a, int *algo, int *proto);

/* tuner_pins.c: do NCCL_ALGO and NCCL_PROTO leave this pair? v2 does not show them. */
bool tuner_pins_leave(int op, int algo, int proto);

/* tuner_rules.c: counters in the log, and one warning a rule for each kind. */
enum rule_event { RULE_MATCHED, RULE_MASKED, RULE_CAPPED, RULE_EVENTS };
void tuner_rule_count(const struct tune_rule *r, enum rule_event event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void tuner_rules_log_opened(struct log_writer *log);

/* tuner_behind.c: the user's tuner. Its errors are NCCL's to see, as without us. */
const struct tuner_behind *tuner_behind_bind(int version);
ncclResult_t tuner_behind_init(const struct tuner_behind *b, void **context,
                               const struct tuner_facts *f);
ncclResult_t tuner_behind_ask(const struct tuner_context *c, const struct tuner_ask *a);
ncclResult_t tuner_behind_chunk(const struct tuner_context *c, int func, size_t bytes, int algo,
                                int proto, int channels, size_t *chunk);
ncclResult_t tuner_behind_finalize(const struct tuner_context *c);

#endif
