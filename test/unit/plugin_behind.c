/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin as a user may have one, for test_plugin_behind.c. BEHIND_MASK, BEHIND_FAIL steer it.
 * Tuner: calls of 1000 bytes get ring LL and 5 channels. Env: NCCL_FROM_BEHIND is "yes", and
 * BEHIND_PROFILER is what it says for NCCL_PROFILER_PLUGIN.
 */
#include "test/unit/plugin_behind.h"

#include <stdlib.h>
#include <string.h>

#include "shim/plugin/abi_env.h"
#include "shim/plugin/abi_profiler.h"
#include "shim/plugin/abi_tuner.h"

#define EXPORT __attribute__((visibility("default")))

extern struct behind_seen behind_seen;
EXPORT struct behind_seen behind_seen;

static int fails(const char *what)
{
    const char *f = getenv("BEHIND_FAIL");

    return f && !strcmp(f, what);
}

#if PROFILER
static char context_object, handles[64];

static ncclResult_t begin(int version, void **context, int *mask)
{
    const char *m = getenv("BEHIND_MASK");

    behind_seen.init++;
    behind_seen.init_version = version;
    behind_seen.mask = mask;
    if (fails("profiler"))
        return ncclSystemError;
    *mask = m ? (int)strtol(m, NULL, 0) : 0;
    *context = &context_object;
    return ncclSuccess;
}

__attribute__((unused)) static ncclResult_t init_v1(void **context, int *mask)
{
    return begin(PROFILER, context, mask);
}

__attribute__((unused)) static ncclResult_t init_v4(void **context, int *mask, const char *name,
                                                    uint64_t hash, int nodes, int ranks, int rank,
                                                    nccl_logger_fn log)
{
    (void)name, (void)log;
    behind_seen.hash = hash;
    behind_seen.nodes = nodes;
    behind_seen.ranks = ranks;
    behind_seen.rank = rank;
    return begin(4, context, mask);
}

__attribute__((unused)) static ncclResult_t init_v5(void **context, uint64_t hash, int *mask,
                                                    const char *name, int nodes, int ranks,
                                                    int rank, nccl_logger_fn log)
{
    (void)name, (void)log;
    behind_seen.hash = hash;
    behind_seen.nodes = nodes;
    behind_seen.ranks = ranks;
    behind_seen.rank = rank;
    return begin(PROFILER, context, mask);
}

static ncclResult_t start(void *context, void **handle, void *event)
{
    const struct profiler_head *head = event;

    if (context != &context_object)
        abort();
    behind_seen.last_type = PROFILER >= 5 ? head->type_v5 : head->type_v1;
    behind_seen.types |= behind_seen.last_type;
    behind_seen.parent = head->parent;
    if (behind_seen.last_type == PROFILER_COLL && PROFILER >= 4) {
        const struct profiler_event_v4 *e = event; /* v5 and v6 have it at the same place */
        behind_seen.channels = e->coll.channels;
        behind_seen.func = e->coll.func;
        behind_seen.algo = e->coll.algo;
    }
    *handle = &handles[behind_seen.start++ % 64];
    return ncclSuccess;
}

static ncclResult_t stop(void *handle)
{
    if ((char *)handle < handles || (char *)handle >= handles + 64)
        abort();
    behind_seen.stop++;
    return ncclSuccess;
}

static ncclResult_t record(void *handle, int state, void *args)
{
    (void)args;
    if ((char *)handle < handles || (char *)handle >= handles + 64)
        abort();
    behind_seen.record++;
    behind_seen.state = state;
    return ncclSuccess;
}

static ncclResult_t finalize(void *context)
{
    if (context != &context_object)
        abort();
    behind_seen.finalize++;
    return ncclSuccess;
}

#define PASTE(a, b) a##b
#define NAMED(a, b) PASTE(a, b)
#define PROFILER_NAME NAMED(ncclProfiler_v, PROFILER)
extern const struct profiler_table PROFILER_NAME;
EXPORT const struct profiler_table PROFILER_NAME = {"behind",
#if PROFILER >= 5
                                                    {.v5 = init_v5},
#elif PROFILER == 4
                                                    {.v4 = init_v4},
#else
                                                    {.v1 = init_v1},
#endif
                                                    start,           stop, record, finalize};
#endif

#if TUNER
static ncclResult_t tuner_begin(void **context)
{
    behind_seen.tuner_init++;
    *context = &behind_seen;
    return fails("tuner_init") ? ncclSystemError : ncclSuccess;
}

__attribute__((unused)) static ncclResult_t tuner_init_v2(size_t ranks, size_t nodes,
                                                          nccl_logger_fn log, void **context)
{
    (void)ranks, (void)nodes, (void)log;
    return tuner_begin(context);
}

__attribute__((unused)) static ncclResult_t tuner_init_v5(void **context, uint64_t hash,
                                                          size_t ranks, size_t nodes,
                                                          nccl_logger_fn log, void *domain,
                                                          void *constants)
{
    (void)hash, (void)ranks, (void)nodes, (void)log, (void)domain, (void)constants;
    return tuner_begin(context);
}

static ncclResult_t asked(void *context, int version)
{
    if (context != &behind_seen)
        abort();
    behind_seen.ask++;
    behind_seen.asked_version = version;
    return fails("tuner") ? ncclInternalError : ncclSuccess;
}

__attribute__((unused)) static ncclResult_t info_v2(void *context, int func, size_t bytes,
                                                    int collnet, int nvls, int pipe_ops, int *algo,
                                                    int *proto, int *channels)
{
    (void)func, (void)pipe_ops;
    if (collnet || nvls)
        abort();
    if (bytes == 1000) {
        *algo = 1;
        *proto = 0;
        *channels = 5;
    }
    return asked(context, 2);
}

__attribute__((unused)) static ncclResult_t info_v4(void *context, int func, size_t bytes,
                                                    int pipe_ops, float **table, int algos,
                                                    int protos, int registered, int *channels)
{
    (void)func, (void)pipe_ops, (void)algos;
    behind_seen.registered = registered;
    if (bytes == 1000) {
        ((float *)table)[1 * protos + 0] = 0;
        *channels = 5;
    }
    return asked(context, TUNER);
}

__attribute__((unused)) static ncclResult_t info_v3(void *context, int func, size_t bytes,
                                                    int pipe_ops, float **table, int algos,
                                                    int protos, int *channels)
{
    return info_v4(context, func, bytes, pipe_ops, table, algos, protos, 0, channels);
}

static ncclResult_t tuner_finalize(void *context)
{
    if (context != &behind_seen)
        abort();
    behind_seen.tuner_finalize++;
    return ncclSuccess;
}

#if TUNER == 6
static ncclResult_t chunk(void *context, int func, size_t bytes, int algo, int proto, int channels,
                          size_t *out)
{
    (void)context, (void)func, (void)bytes, (void)algo, (void)proto, (void)channels;
    *out = 4321;
    return ncclSuccess;
}
extern const struct tuner_table_v6 ncclTunerPlugin_v6;
EXPORT const struct tuner_table_v6 ncclTunerPlugin_v6 = {
    {"behind", {.v5 = tuner_init_v5}, {.v4 = info_v4}, tuner_finalize}, chunk};
#elif TUNER == 5
extern const struct tuner_table ncclTunerPlugin_v5;
EXPORT const struct tuner_table ncclTunerPlugin_v5 = {
    "behind", {.v5 = tuner_init_v5}, {.v4 = info_v4}, tuner_finalize};
#elif TUNER == 4
extern const struct tuner_table ncclTunerPlugin_v4;
EXPORT const struct tuner_table ncclTunerPlugin_v4 = {
    "behind", {.v2 = tuner_init_v2}, {.v4 = info_v4}, tuner_finalize};
#elif TUNER == 3
extern const struct tuner_table ncclTunerPlugin_v3;
EXPORT const struct tuner_table ncclTunerPlugin_v3 = {
    "behind", {.v2 = tuner_init_v2}, {.v3 = info_v3}, tuner_finalize};
#else
extern const struct tuner_table ncclTunerPlugin_v2;
EXPORT const struct tuner_table ncclTunerPlugin_v2 = {
    "behind", {.v2 = tuner_init_v2}, {.v2 = info_v2}, tuner_finalize};
#endif
#endif

#if ENV
__attribute__((unused)) static ncclResult_t env_init_v1(uint8_t major, uint8_t minor, uint8_t patch,
                                                        const char *suffix)
{
    (void)major, (void)minor, (void)patch, (void)suffix;
    behind_seen.env_init++;
    return fails("env") ? ncclSystemError : ncclSuccess;
}

__attribute__((unused)) static ncclResult_t env_init_v2(uint8_t major, uint8_t minor, uint8_t patch,
                                                        const char *suffix, nccl_logger_fn log)
{
    (void)log;
    return env_init_v1(major, minor, patch, suffix);
}

static ncclResult_t env_finalize(void)
{
    behind_seen.env_finalize++;
    return ncclSuccess;
}

static const char *env_get(const char *name)
{
    behind_seen.env_get++;
    if (!strcmp(name, "NCCL_FROM_BEHIND"))
        return "yes";
    if (!strcmp(name, "NCCL_PROFILER_PLUGIN"))
        return getenv("BEHIND_PROFILER");
    return getenv(name);
}

#if ENV == 2
extern const struct env_table ncclEnvPlugin_v2;
EXPORT const struct env_table ncclEnvPlugin_v2 = {
    "behind", {.v2 = env_init_v2}, env_finalize, env_get};
#else
extern const struct env_table ncclEnvPlugin_v1;
EXPORT const struct env_table ncclEnvPlugin_v1 = {
    "behind", {.v1 = env_init_v1}, env_finalize, env_get};
#endif
#endif
