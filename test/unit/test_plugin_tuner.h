/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's side of the tuner interface, for tests that call it directly: the table of costs as NCCL
 * fills it. What it or the user has ruled out is -1; the smallest entry wins, of equal ones the
 * first.
 */
#ifndef TEST_PLUGIN_TUNER_H
#define TEST_PLUGIN_TUNER_H

#include "test/unit/test_plugin_help.h"

#include "shim/base/names.h"
#include "shim/plugin/plugin.h"
#include "shim/profile/profile.h"

#define ALGOS 7
#define PROTOS 3
#define FIRST 2
#define LAST 6
#define K 1024ul
#define M (1024ul * 1024ul)

/* ---- NCCL's side -------------------------------------------------------------------------------
 */

struct world {
    float costs[ALGOS][PROTOS]; /* before the question */
    size_t ranks, nodes;
    int algos;
};

struct answer {
    ncclResult_t result;
    float costs[ALGOS][PROTOS];
    int algo, proto; /* what NCCL then takes; in v2 the tuner's own answer */
    int channels;
};

/* One box without NVLink: rings and trees; ring Simple is the cheapest. */
static inline struct world box(void)
{
    struct world w = {.ranks = 8, .nodes = 1, .algos = ALGOS};

    for (int a = 0; a < ALGOS; a++)
        for (int p = 0; p < PROTOS; p++)
            w.costs[a][p] = a <= ALGO_RING && p != PROTO_LL128 ? 40.0f - 10 * a - 2 * p : -1.0f;
    return w;
}

static const struct tuner_table *table_of(int version)
{
    static const struct tuner_table *const tables[] = {&ncclTunerPlugin_v2, &ncclTunerPlugin_v3,
                                                       &ncclTunerPlugin_v4, &ncclTunerPlugin_v5,
                                                       &ncclTunerPlugin_v6.v5};

    return tables[version - FIRST];
}

static inline void *begin(int version, const struct world *w)
{
    const struct tuner_table *t = table_of(version);
    void *context = NULL;
    ncclResult_t r = version >= 5 ? t->init.v5(&context, 0x77, w->ranks, w->nodes, NULL, NULL, NULL)
                                  : t->init.v2(w->ranks, w->nodes, NULL, &context);

    CHECK_INT(r, ncclSuccess);
    return context;
}

static inline void nccl_takes(struct answer *a)
{
    float least = 3.6e9f;

    for (int i = 0; i < ALGOS; i++)
        for (int p = 0; p < PROTOS; p++)
            if (a->costs[i][p] >= 0 && a->costs[i][p] < least) {
                least = a->costs[i][p];
                a->algo = i;
                a->proto = p;
            }
}

static inline struct answer ask(int version, void *context, const struct world *w, int func,
                                size_t bytes)
{
    const struct tuner_table *t = table_of(version);
    struct answer a = {.algo = -1, .proto = -1};
    float **flat = (float **)a.costs;

    memcpy(a.costs, w->costs, sizeof(a.costs));
    if (version == 2)
        a.result = t->info.v2(context, func, bytes, 0, 0, 1, &a.algo, &a.proto, &a.channels);
    else if (version == 3)
        a.result = t->info.v3(context, func, bytes, 1, flat, w->algos, PROTOS, &a.channels);
    else
        a.result = t->info.v4(context, func, bytes, 1, flat, w->algos, PROTOS, 0, &a.channels);
    CHECK_INT(a.result, ncclSuccess);
    if (version > 2)
        nccl_takes(&a);
    return a;
}

static inline struct answer ask_once(int version, const struct world *w, int func, size_t bytes)
{
    void *context = begin(version, w);
    struct answer a = ask(version, context, w, func, bytes);

    CHECK_INT(table_of(version)->finalize(context), ncclSuccess);
    return a;
}

static inline bool untouched(const struct answer *a, const struct world *w)
{
    return !memcmp(a->costs, w->costs, sizeof(a->costs)) && a->channels == 0;
}

/* ---- profiles ----------------------------------------------------------------------------------
 */

static inline void use(const char *rules)
{
    struct profile *p = NULL;
    struct error e;
    char text[2048], why[512];

    snprintf(text, sizeof(text), "%s", rules);
    if (profile_parse(text, strlen(text), "test.ini", &p, &e)) {
        fprintf(stderr, "%s\n", error_str(&e, why, sizeof(why)));
        _exit(1);
    }
    shim.profile = p;
    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_PROTO");
    unsetenv("NCCL_MAX_CTAS");
    unsetenv("NCCL_MAX_NCHANNELS");
}

static inline struct ncclshim_rule rule(struct log_writer *log, int n)
{
    const struct ncclshim_note *have = note(log, NCCLSHIM_NOTE_RULE, n);
    struct ncclshim_rule r;

    CHECK(have && have->a == (uint32_t)n);
    memcpy(&r, have + 1, sizeof(r));
    return r;
}

#endif
