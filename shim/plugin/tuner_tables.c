/* SPDX-License-Identifier: Apache-2.0 */
/* The five tables; each puts NCCL's question into one form. */
#include "shim/plugin/plugin.h"
#include "shim/plugin/tuner.h"

#define INIT_V2(V)                                                                                \
    static ncclResult_t init_v##V(size_t ranks, size_t nodes, nccl_logger_fn log, void **context) \
    {                                                                                             \
        return tuner_init(V, context,                                                             \
                          &(struct tuner_facts){.ranks = ranks, .nodes = nodes, .log = log});     \
    }
#define INIT_V5(V)                                                                            \
    static ncclResult_t init_v##V(void **context, uint64_t hash, size_t ranks, size_t nodes,  \
                                  nccl_logger_fn log, void *domain, void *constants)          \
    {                                                                                         \
        return tuner_init(V, context,                                                         \
                          &(struct tuner_facts){hash, ranks, nodes, log, domain, constants}); \
    }
#define INFO_V4(V)                                                                      \
    static ncclResult_t info_v##V(void *context, int func, size_t bytes, int pipe_ops,  \
                                  float **table, int algos, int protos, int registered, \
                                  int *channels)                                        \
    {                                                                                   \
        return tuner_decide(V, context,                                                 \
                            &(struct tuner_ask){.func = func,                           \
                                                .bytes = bytes,                         \
                                                .pipe_ops = pipe_ops,                   \
                                                .table = (float *)table,                \
                                                .algos = algos,                         \
                                                .protos = protos,                       \
                                                .registered = registered,               \
                                                .channels = channels});                 \
    }

INIT_V2(2)
INIT_V2(3)
INIT_V2(4)
INIT_V5(5)
INIT_V5(6)
INFO_V4(4)
INFO_V4(5)
INFO_V4(6)

static ncclResult_t info_v2(void *context, int func, size_t bytes, int collnet, int nvls,
                            int pipe_ops, int *algo, int *proto, int *channels)
{
    return tuner_decide(2, context,
                        &(struct tuner_ask){.func = func,
                                            .bytes = bytes,
                                            .pipe_ops = pipe_ops,
                                            .collnet = collnet,
                                            .nvls = nvls,
                                            .algo = algo,
                                            .proto = proto,
                                            .channels = channels});
}

static ncclResult_t info_v3(void *context, int func, size_t bytes, int pipe_ops, float **table,
                            int algos, int protos, int *channels)
{
    return info_v4(context, func, bytes, pipe_ops, table, algos, protos, 0, channels);
}

static ncclResult_t finalize(void *context)
{
    return tuner_finalize(context);
}

static ncclResult_t chunk_v6(void *context, int func, size_t bytes, int algo, int proto,
                             int channels, size_t *chunk)
{
    return tuner_chunk(context, func, bytes, algo, proto, channels, chunk);
}

#define NAME "ncclshim"
PLUGIN_EXPORT const struct tuner_table ncclTunerPlugin_v2 = {
    NAME, {.v2 = init_v2}, {.v2 = info_v2}, finalize};
PLUGIN_EXPORT const struct tuner_table ncclTunerPlugin_v3 = {
    NAME, {.v2 = init_v3}, {.v3 = info_v3}, finalize};
PLUGIN_EXPORT const struct tuner_table ncclTunerPlugin_v4 = {
    NAME, {.v2 = init_v4}, {.v4 = info_v4}, finalize};
PLUGIN_EXPORT const struct tuner_table ncclTunerPlugin_v5 = {
    NAME, {.v5 = init_v5}, {.v4 = info_v5}, finalize};
PLUGIN_EXPORT const struct tuner_table_v6 ncclTunerPlugin_v6 = {
    {NAME, {.v5 = init_v6}, {.v4 = info_v6}, finalize}, chunk_v6};
