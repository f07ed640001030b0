/* SPDX-License-Identifier: Apache-2.0 */
/* ncclConfig_t: which fields of a caller's object count, what is valid, what the environment
 * changes. */
#include "test/fake/nccl_fake.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_CHANNELS 64
#define MAX_CGA 8
#define UNDEF NCCL_CONFIG_UNDEF_INT

/* sizeof(ncclConfig_t) of this version. */
static size_t config_size(void)
{
    return FAKE_VER >= 23003   ? 96
           : FAKE_VER >= 22902 ? 88
           : FAKE_VER >= 22803 ? 80
           : FAKE_VER >= 22703 ? 72
           : FAKE_VER >= 21801 ? 48
           : FAKE_VER >= 21701 ? 40
                               : 24;
}

static const ncclConfig_t initializer = {
    .magic = NCCL_API_MAGIC,
    .version = FAKE_NCCL_VERSION,
    .blocking = UNDEF,
    .cgaClusterSize = UNDEF,
    .minCTAs = UNDEF,
    .maxCTAs = UNDEF,
    .splitShare = UNDEF,
    .trafficClass = UNDEF,
    .collnetEnable = UNDEF,
    .CTAPolicy = UNDEF,
    .shrinkShare = UNDEF,
    .nvlsCTAs = UNDEF,
    .nChannelsPerNetPeer = UNDEF,
    .nvlinkCentricSched = UNDEF,
    .graphUsageMode = UNDEF,
    .numRmaCtx = UNDEF,
    .maxP2pPeers = UNDEF,
    .graphStreamOrdering = UNDEF,
};

/* Fields newer than the caller's version, or than this library, are padding: not read. */
static void drop_newer_fields(ncclConfig_t *c, unsigned version)
{
    unsigned v = version < (unsigned)FAKE_NCCL_VERSION ? version : (unsigned)FAKE_NCCL_VERSION;
#define DROP(field) c->field = initializer.field
    if (v < 21400)
        DROP(blocking);
    if (v < 21700)
        DROP(cgaClusterSize), DROP(minCTAs), DROP(maxCTAs), DROP(netName);
    /* NCCL has no gate of its own for splitShare: the size of the object is what protects it. */
    if (v < 22500)
        DROP(trafficClass);
    if (v < 22700)
        DROP(commName), DROP(collnetEnable), DROP(CTAPolicy), DROP(shrinkShare), DROP(nvlsCTAs);
    if (v < 22800)
        DROP(nChannelsPerNetPeer), DROP(nvlinkCentricSched);
    if (v < 22900)
        DROP(graphUsageMode), DROP(numRmaCtx);
    if (v < 23000)
        DROP(maxP2pPeers);
    if (v < 23005)
        DROP(graphStreamOrdering);
#undef DROP
}

static bool within(int v, int lo, int hi)
{
    return v == UNDEF || (v >= lo && v <= hi);
}

static ncclResult_t validate(const ncclConfig_t *c)
{
#define CHECK(ok, fmt, ...)                       \
    if (!(ok)) {                                  \
        WARN("Invalid config " fmt, __VA_ARGS__); \
        return ncclInvalidArgument;               \
    }
    CHECK(within(c->blocking, 0, 1), "blocking attribute value %d", c->blocking);
    CHECK(within(c->cgaClusterSize, 0, INT_MAX), "cgaClusterSize attribute value %d",
          c->cgaClusterSize);
    /* Raw values are compared, and undefined is the smallest: a minimum alone always fails. */
    CHECK(within(c->minCTAs, 1, INT_MAX) && within(c->maxCTAs, 1, INT_MAX) &&
              c->minCTAs <= c->maxCTAs,
          "min/max channels attribute value %d/%d", c->minCTAs, c->maxCTAs);
    CHECK(within(c->splitShare, 0, 1), "splitShare attribute value %d", c->splitShare);
    CHECK(within(c->collnetEnable, 0, 1), "collnetEnable attribute value %d", c->collnetEnable);
    CHECK(within(c->CTAPolicy, 0, FAKE_VER >= 22902 ? 3 : 2), "policy attribute value %d",
          c->CTAPolicy);
    CHECK(within(c->shrinkShare, 0, 1), "shrinkShare attribute value %d", c->shrinkShare);
    CHECK(within(c->nvlsCTAs, 1, INT_MAX), "nvlsCTAs attribute value %d", c->nvlsCTAs);
    CHECK(within(c->nChannelsPerNetPeer, 1, MAX_CHANNELS), "nChannelsPerNetPeer attribute value %d",
          c->nChannelsPerNetPeer);
    CHECK(within(c->nvlinkCentricSched, 0, 1), "nvlinkCentricSched attribute value %d",
          c->nvlinkCentricSched);
    CHECK(within(c->graphUsageMode, 0, 2), "graphUsageMode attribute value %d", c->graphUsageMode);
    CHECK(within(c->numRmaCtx, 0, INT_MAX), "numRmaCtx attribute value %d", c->numRmaCtx);
    CHECK(within(c->maxP2pPeers, 1, INT_MAX), "maxP2pPeers attribute value %d", c->maxP2pPeers);
    CHECK(within(c->graphStreamOrdering, 0, 1), "graphStreamOrdering attribute value %d",
          c->graphStreamOrdering);
#undef CHECK
    return ncclSuccess;
}

static void fill_defaults(ncclConfig_t *c)
{
#define DEFAULT(field, value, text)                                     \
    do {                                                                \
        if (c->field == UNDEF)                                          \
            c->field = (value);                                         \
        else                                                            \
            INFO(NCCL_ENV, "Comm config " text " set to %d", c->field); \
    } while (0)
    DEFAULT(blocking, 1, "Blocking");
    DEFAULT(cgaClusterSize, 4, "CGA cluster size");
    DEFAULT(minCTAs, 1, "Min CTAs");
    DEFAULT(maxCTAs, MAX_CHANNELS, "Max CTAs");
    if (c->netName)
        INFO(NCCL_ENV, "Comm config Net name set to %s", c->netName);
    DEFAULT(splitShare, 0, "Split share");
    DEFAULT(trafficClass, UNDEF, "Traffic class");
    if (c->commName)
        INFO(NCCL_ENV, "Comm config Comm name set to %s", c->commName);
    DEFAULT(collnetEnable, 0, "Collnet enable");
    DEFAULT(CTAPolicy, 0, "CTA policy flags");
    DEFAULT(shrinkShare, 0, "shrinkShare");
    DEFAULT(nvlsCTAs, UNDEF, "nvlsCTAs");
    DEFAULT(nChannelsPerNetPeer, UNDEF, "nChannelsPerNetPeer");
    DEFAULT(nvlinkCentricSched, 0, "nvlinkCentricSched");
    DEFAULT(graphUsageMode, 2, "graphUsageMode");
    DEFAULT(numRmaCtx, 1, "numRmaCtx");
    DEFAULT(maxP2pPeers, UNDEF, "maxP2pPeers");
    DEFAULT(graphStreamOrdering, UNDEF, "graphStreamOrdering");
#undef DEFAULT
}

/* The environment beats the config, field by field. */
static void override(enum fake_var var, const char *env, int *field, const char *name, int lo,
                     int hi)
{
    int v = (int)fake_param(var);
    if (v == UNDEF)
        return;
    if (v < lo || v > hi) {
        INFO(NCCL_ENV, "%s %d is not valid, leaving it set at %d", env, v, *field);
        return;
    }
    if (*field != UNDEF)
        INFO(NCCL_ENV, "Comm config %s reset to %s=%d", name, env, v);
    *field = v;
}

static void apply_environment(ncclComm_t comm)
{
    ncclConfig_t *c = &comm->config;
    int blocking = (int)fake_param(VAR_NCCL_COMM_BLOCKING);
    if (blocking == 0 || blocking == 1)
        c->blocking = blocking;
    int cga = (int)fake_param(VAR_NCCL_CGA_CLUSTER_SIZE);
    if (cga >= 0)
        c->cgaClusterSize = cga > MAX_CGA ? MAX_CGA : cga;
#define OVERRIDE(env, field, lo, hi) override(VAR_##env, #env, &c->field, #field, lo, hi)
    OVERRIDE(NCCL_MIN_CTAS, minCTAs, 1, INT_MAX);
    OVERRIDE(NCCL_MAX_CTAS, maxCTAs, 1, INT_MAX);
    OVERRIDE(NCCL_NCHANNELS_PER_NET_PEER, nChannelsPerNetPeer, 1, INT_MAX);
    OVERRIDE(NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE, nvlinkCentricSched, 0, 1);
#if FAKE_VER >= 22902
    int mixing = (int)fake_param(VAR_NCCL_GRAPH_MIXING_SUPPORT);
    if (mixing == 0 || mixing == 1) {
        INFO(NCCL_ENV, "Comm config graphUsageMode reset to %d by NCCL_GRAPH_MIXING_SUPPORT=%d",
             mixing ? 2 : 0, mixing);
        c->graphUsageMode = mixing ? 2 : 0;
    }
    OVERRIDE(NCCL_NUM_RMA_CTX, numRmaCtx, 0, INT_MAX);
    OVERRIDE(NCCL_P2P_MAX_PEERS, maxP2pPeers, 1, INT_MAX);
    OVERRIDE(NCCL_GRAPH_STREAM_ORDERING, graphStreamOrdering, 0, 1);
#endif
    const char *net = fake_string(VAR_NCCL_NET);
    free(comm->net_name);
    comm->net_name = net || c->netName ? strdup(net ? net : c->netName) : NULL;
    if (net && c->netName)
        INFO(NCCL_ENV, "Comm config netName reset to NCCL_NET=%s", net);
    c->netName = comm->net_name;
    OVERRIDE(NCCL_COMM_SPLIT_SHARE_RESOURCES, splitShare, INT_MIN, INT_MAX);
    OVERRIDE(NCCL_COMM_SHRINK_SHARE_RESOURCES, shrinkShare, INT_MIN, INT_MAX);
    const char *collnet = fake_string(VAR_NCCL_COLLNET_ENABLE);
    if (collnet) {
        c->collnetEnable = (int)strtol(collnet, NULL, 0);
        INFO(NCCL_ENV, "NCCL_COLLNET_ENABLE set by environment to %d.", c->collnetEnable);
    }
#if FAKE_VER >= 22703
    static char policy[32];
    static atomic_bool asked;
    if (!atomic_exchange(&asked, true)) {
        const char *p = fake_string(VAR_NCCL_CTA_POLICY);
        if (p)
            strncpy(policy, p, sizeof(policy) - 1);
    }
    if (policy[0])
        c->CTAPolicy = !strcasecmp(policy, "EFFICIENCY") || !strcmp(policy, "1") ? 1
                       : !strcasecmp(policy, "ZERO") || !strcmp(policy, "2")     ? 2
                                                                                 : 0;
#endif
    OVERRIDE(NCCL_NVLS_NCHANNELS, nvlsCTAs, INT_MIN, INT_MAX);
#undef OVERRIDE
    if (c->minCTAs > MAX_CHANNELS)
        c->minCTAs = MAX_CHANNELS;
    if (c->maxCTAs > MAX_CHANNELS)
        c->maxCTAs = MAX_CHANNELS;
    if (c->minCTAs > c->maxCTAs) { /* of the two CTA variables the maximum wins */
        INFO(NCCL_ENV, "minCTAs %d is larger than maxCTAs %d, set both to %d", c->minCTAs,
             c->maxCTAs, c->maxCTAs);
        c->minCTAs = c->maxCTAs;
    }
    if (c->splitShare != 0 && c->splitShare != 1)
        c->splitShare = 0;
    if (c->collnetEnable != 0 && c->collnetEnable != 1)
        c->collnetEnable = 0;
    comm->check_pointers = fake_param(VAR_NCCL_CHECK_POINTERS) == 1;
    const char *mode = fake_string(VAR_NCCL_CHECK_MODE);
    if (mode && (!strcasecmp(mode, "DEBUG_LOCAL") || !strcasecmp(mode, "DEBUG_GLOBAL")))
        comm->check_pointers = true;
    if (c->graphStreamOrdering == UNDEF)
        c->graphStreamOrdering = 1;
}

ncclResult_t fake_config_parse(ncclComm_t comm, const ncclConfig_t *user)
{
    ncclConfig_t c = initializer;
    if (user) {
        size_t size;
        memcpy(&size, user, sizeof(size));
        if (size > config_size())
            size = config_size();
        c.magic = 0;
        memcpy(&c, user, size);
        if (c.magic != NCCL_API_MAGIC) {
            WARN("ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
            return ncclInvalidArgument;
        }
        drop_newer_fields(&c, c.version);
    }
    NCCLCHECK(validate(&c));
    fill_defaults(&c);
    c.size = config_size();
    c.version = FAKE_NCCL_VERSION;
    comm->config = c;
    apply_environment(comm);
    return ncclSuccess;
}

ncclResult_t fake_config_copy(ncclComm_t child, const struct ncclComm *parent)
{
    child->config = parent->config;
    apply_environment(child);
    return ncclSuccess;
}
