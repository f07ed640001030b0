/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tuner plugins, interfaces v1 to v6: which of them this version takes (newest first), and what it
 * gives to and accepts from each. Layouts are those of NCCL's public plugin headers.
 */
#include "test/fake/nccl_fake.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    int nNvlDomains, minRanksPerNvlDomain, maxRanksPerNvlDomain;
} nvl_domain_v5;
typedef struct {
    double baseLatencies[7][3], hwLatencies[3][7][3];
    double llMaxBws[4][3], perChMaxRingLL128Bws[4][3], perChMaxTreeLL128Bws[4][3],
        perChMaxTreeBws[4][3], perChMaxNVLSTreeBws[4][3];
} constants_v5;

typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t log);
    ncclResult_t (*getCollInfo)(ncclFunc_t, size_t nBytes, int collNet, int nvls, int numPipeOps,
                                int *algo, int *proto, int *nChannels);
    ncclResult_t (*destroy)(void);
} tuner_v1;
typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t log, void **ctx);
    ncclResult_t (*getCollInfo)(void *ctx, ncclFunc_t, size_t nBytes, int collNet, int nvls,
                                int numPipeOps, int *algo, int *proto, int *nChannels);
    ncclResult_t (*destroy)(void *ctx);
} tuner_v2;
typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t log, void **ctx);
    ncclResult_t (*getCollInfo)(void *ctx, ncclFunc_t, size_t nBytes, int numPipeOps, float **table,
                                int numAlgo, int numProto, int *nChannels);
    ncclResult_t (*destroy)(void *ctx);
} tuner_v3;
typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t log, void **ctx);
    ncclResult_t (*getCollInfo)(void *ctx, ncclFunc_t, size_t nBytes, int numPipeOps, float **table,
                                int numAlgo, int numProto, int regBuff, int *nChannels);
    ncclResult_t (*destroy)(void *ctx);
} tuner_v4;
typedef struct { /* v6 has one member more */
    const char *name;
    ncclResult_t (*init)(void **ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                         ncclDebugLogger_t log, nvl_domain_v5 *, constants_v5 *);
    ncclResult_t (*getCollInfo)(void *ctx, ncclFunc_t, size_t nBytes, int numPipeOps, float **table,
                                int numAlgo, int numProto, int regBuff, int *nChannels);
    ncclResult_t (*finalize)(void *ctx);
    ncclResult_t (*getChunkSize)(void *ctx, ncclFunc_t, size_t nBytes, int algo, int proto,
                                 int nChannels, size_t *chunk);
} tuner_v6;

/* The interfaces that this version looks for; 0 to 0 before 2.19. */
#define NEWEST               \
    (FAKE_VER >= 23003   ? 6 \
     : FAKE_VER >= 22803 ? 5 \
     : FAKE_VER >= 22403 ? 4 \
     : FAKE_VER >= 22203 ? 3 \
     : FAKE_VER >= 22105 ? 2 \
     : FAKE_VER >= 21901 ? 1 \
                         : 0)
#define OLDEST (FAKE_VER >= 22105 ? 2 : 1)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum { READY, LOADED, FAILED } state; /* one plugin for the process; a failure is for good */
static void *lib;
static const void *table_of; /* the plugin's exported table, of interface `version` */
static int version;

static void load(void)
{
    static const char *const names[] = {"",
                                        "ncclTunerPlugin_v1",
                                        "ncclTunerPlugin_v2",
                                        "ncclTunerPlugin_v3",
                                        "ncclTunerPlugin_v4",
                                        "ncclTunerPlugin_v5",
                                        "ncclTunerPlugin_v6"};
    state = FAILED;
    const char *value = fake_string(VAR_NCCL_TUNER_PLUGIN);
    if (value) {
        INFO(NCCL_ENV | NCCL_TUNING, "NCCL_TUNER_PLUGIN set by environment to %s", value);
        if (!strcasecmp(value, "none"))
            return;
    }
    lib = fake_plugin_open(PLUGIN_TUNER, value);
    if (!lib)
        return;
    for (version = NEWEST; version >= OLDEST; version--)
        if ((table_of = fake_plugin_symbol(lib, names[version])))
            break;
    if (!table_of) {
        INFO(NCCL_INIT | NCCL_TUNING, "External tuner plugin %s is unsupported",
             fake_plugin_path(PLUGIN_TUNER));
        fake_plugin_close(PLUGIN_TUNER, lib);
        return;
    }
    INFO(NCCL_INIT | NCCL_TUNING, "TUNER/Plugin: Using %s (v%d)", *(const char *const *)table_of,
         version);
    INFO(NCCL_INIT | NCCL_TUNING, "Successfully loaded external tuner plugin %s",
         fake_plugin_path(PLUGIN_TUNER));
    state = LOADED;
}

ncclResult_t fake_tuner_init(ncclComm_t comm)
{
    if (!NEWEST)
        return ncclSuccess;
    pthread_mutex_lock(&lock);
    if (state == READY)
        load();
    bool there = state == LOADED;
    pthread_mutex_unlock(&lock);
    if (!there)
        return ncclSuccess;
    size_t n = (size_t)comm->nranks, nodes = (size_t)comm->nnodes;
    ncclResult_t res;
    if (version == 1) {
        res = ((const tuner_v1 *)table_of)->init(n, nodes, fake_log);
    } else if (version <= 4) {
        res = ((const tuner_v2 *)table_of)->init(n, nodes, fake_log, &comm->tuner_ctx);
    } else {
        nvl_domain_v5 domain = {comm->nranks, 1,
                                1}; /* no NVLink here: each GPU is its own domain */
        constants_v5 *constants = calloc(1, sizeof(*constants));
        res = ((const tuner_v6 *)table_of)
                  ->init(&comm->tuner_ctx, comm->comm_hash, n, nodes, fake_log, &domain, constants);
        free(constants);
    }
    comm->has_tuner = res == ncclSuccess;
    return res;
}

void fake_tuner_fini(ncclComm_t comm)
{
    if (!comm->has_tuner)
        return;
    comm->has_tuner = false;
    if (version == 1)
        ((const tuner_v1 *)table_of)->destroy();
    else if (version <= 4)
        ((const tuner_v2 *)table_of)->destroy(comm->tuner_ctx);
    else
        ((const tuner_v6 *)table_of)->finalize(comm->tuner_ctx);
}

bool fake_tuner_present(const struct ncclComm *comm)
{
    return comm->has_tuner;
}

ncclResult_t fake_tuner_ask(ncclComm_t comm, ncclFunc_t func, size_t bytes, int ntasks,
                            float table[FAKE_NUM_ALGOS][FAKE_NUM_PROTOS], int reg_buff,
                            int *nchannels)
{
    float **flat = (float **)(void *)table; /* NCCL passes its flat table as float** */
    void *ctx = comm->tuner_ctx;
    int algo = -1, proto = -1;
    if (version >= 5)
        return ((const tuner_v6 *)table_of)
            ->getCollInfo(ctx, func, bytes, ntasks, flat, FAKE_NUM_ALGOS, FAKE_NUM_PROTOS, reg_buff,
                          nchannels);
    if (version == 4)
        return ((const tuner_v4 *)table_of)
            ->getCollInfo(ctx, func, bytes, ntasks, flat, FAKE_NUM_ALGOS, FAKE_NUM_PROTOS, reg_buff,
                          nchannels);
    if (version == 3)
        return ((const tuner_v3 *)table_of)
            ->getCollInfo(ctx, func, bytes, ntasks, flat, FAKE_NUM_ALGOS, FAKE_NUM_PROTOS,
                          nchannels);
    ncclResult_t res =
        version == 2 ? ((const tuner_v2 *)table_of)
                           ->getCollInfo(ctx, func, bytes, 0, 0, ntasks, &algo, &proto, nchannels)
                     : ((const tuner_v1 *)table_of)
                           ->getCollInfo(func, bytes, 0, 0, ntasks, &algo, &proto, nchannels);
    /* The adapter of the old interfaces respects what is switched off; the newer ones leave it to
     * the plugin. */
    if (res == ncclSuccess && algo >= 0 && algo < FAKE_NUM_ALGOS && proto >= 0 &&
        proto < FAKE_NUM_PROTOS && table[algo][proto] != -1.0f)
        table[algo][proto] = 0.0f;
    return res;
}

ncclResult_t fake_tuner_chunk(ncclComm_t comm, ncclFunc_t func, size_t bytes, int algo, int proto,
                              int nchannels, size_t *chunk)
{
    const tuner_v6 *t = table_of;
    if (version < 6 || !t->getChunkSize)
        return ncclSuccess;
    return t->getChunkSize(comm->tuner_ctx, func, bytes, algo, proto, nchannels, chunk);
}
