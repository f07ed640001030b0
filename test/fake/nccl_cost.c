/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost model: what NCCL predicts, and what a call really takes on the simulated machine.
 *
 * Every number here is INVENTED FOR SIMULATION. It is loosely shaped after a host whose GPUs talk
 * over PCIe, through host memory unless NCCL_P2P_LEVEL reaches further, and it says nothing about
 * any real machine. What it keeps of reality is the kind of answer:
 *   - NCCL takes the smallest prediction; the prediction ignores threads, buffers and the peer
 * path, and takes the tree for as deep as the ring is long. So some settings beat the default for
 * small sizes.
 *   - Few channels, few threads and LL, put together, help a tiny message little and ruin a large
 * one.
 */
#include "test/fake/nccl_fake.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CHANNELS 8
#define MAX_CHANNELS 64

static const struct {
    double launch_us;                   /* of the kernel, before anything moves */
    double channel_us;                  /* each channel's block adds this */
    double hop_us[FAKE_NUM_PROTOS];     /* one step between two ranks */
    double shm_hop_us;                  /* more, when it goes through host memory */
    double net_hop_us;                  /* more, when it leaves the host */
    double p2p_gbs, shm_gbs, net_gbs;   /* what all channels together can carry */
    double thread_gbs[FAKE_NUM_PROTOS]; /* what one thread moves; LL's stores carry flags */
    double efficiency[FAKE_NUM_PROTOS]; /* the part of the path that is payload */
    double chunk_us;                    /* hand-shake of one Simple chunk, over its channels */
    double mixing_us;                   /* NCCL's own event node behind a captured call */
    double tree_bandwidth;              /* a tree's part of a ring's bandwidth */
} real = {
    .launch_us = 4.6,
    .channel_us = 0.11,
    .hop_us = {1.0, 2.6, 5.2},
    .shm_hop_us = 0.7,
    .net_hop_us = 9.0,
    .p2p_gbs = 26,
    .shm_gbs = 19,
    .net_gbs = 6,
    .thread_gbs = {0.008, 0.010, 0.011},
    .efficiency = {0.45, 0.90, 1.0},
    .chunk_us = 0.9,
    .mixing_us = 2.0,
    .tree_bandwidth = 0.62,
};
/* What NCCL believes of it: a machine with peer access everywhere and all threads at work. */
static const double believed_base_us[FAKE_NUM_ALGOS][FAKE_NUM_PROTOS] = {
    [ALGO_TREE] = {6.8, 14.0, 8.4}, [ALGO_RING] = {6.6, 14.0, 8.4}};
static const double believed_hop_us[FAKE_NUM_ALGOS][FAKE_NUM_PROTOS] = {
    [ALGO_TREE] = {1.0, 1.9, 4.0}, [ALGO_RING] = {1.0, 2.5, 5.7}};
static const double believed_gbs = 22, believed_ll = 0.38, believed_ll128 = 0.92,
                    believed_tree = 0.85;

const char *const fake_algo_words[FAKE_NUM_ALGOS] = {
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
const char *const fake_proto_words[FAKE_NUM_PROTOS] = {"LL", "LL128", "Simple"};
/* Algorithms this version knows by name. */
#define KNOWN_ALGOS (FAKE_VER >= 22304 ? 7 : FAKE_VER >= 21801 ? 6 : FAKE_VER >= 21701 ? 5 : 4)

const char *fake_func_name(ncclFunc_t f)
{
    static const char *const names[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                        "AllReduce", "SendRecv", "Send",      "Recv",
                                        "AlltoAll",  "Scatter",  "Gather"};
    return names[f];
}

const char *fake_algo_name(int algo)
{
    static const char *const names[] = {
        "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
    return algo >= 0 && algo < FAKE_NUM_ALGOS ? names[algo] : "Unknown";
}

const char *fake_proto_name(int proto)
{
    static const char *const names[] = {"LL", "LL128", "SIMPLE"};
    return proto >= 0 && proto < FAKE_NUM_PROTOS ? names[proto] : "Unknown";
}

const char *fake_type_name(ncclDataType_t type)
{
    static const char *const names[] = {"ncclInt8",     "ncclUint8",      "ncclInt32",
                                        "ncclUint32",   "ncclInt64",      "ncclUint64",
                                        "ncclFloat16",  "ncclFloat32",    "ncclFloat64",
                                        "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
    /* NCCL's own table has no word for the unsigned byte. */
    return type == ncclUint8 ? "Unknown" : names[type];
}

static int nthreads(const char *name, int64_t env, int min, int max)
{
    if (env <= 0)
        return max;
    if (env % 32) {
        INFO(NCCL_GRAPH | NCCL_ENV, "Invalid %s %d (must be a multiple of 32)", name, (int)env);
        return max;
    }
    if (env > max || env < min)
        INFO(NCCL_GRAPH | NCCL_ENV, "Invalid %s %d (%s %d).", name, (int)env,
             env > max ? "maximum" : "minimum", env > max ? max : min);
    return env > max ? max : env < min ? min : (int)env;
}

/* The path up to which peers reach each other directly. On this machine they are SYS apart. */
static bool peers_are_direct(void)
{
    static const char *const levels[] = {"LOC", "NVL", "NVB", "C2C", "PIX",
                                         "PXB", "P2C", "PXN", "PHB", "SYS"};
    static atomic_int answer; /* static in NCCL as well: 1 direct, 2 not */
    int known = atomic_load(&answer);
    if (known)
        return known == 1;
    bool direct = false;
    const char *off = fake_string(VAR_NCCL_P2P_DISABLE), *level = NULL;
    if (off && strtol(off, NULL, 0) == 1) {
        INFO(NCCL_ALL, "NCCL_P2P_DISABLE set by environment to %ld", strtol(off, NULL, 0));
    } else if ((level = fake_string(VAR_NCCL_P2P_LEVEL))) {
        int l = -1;
        for (int i = 0; i < 10; i++)
            if (!strcmp(level, levels[i]))
                l = i;
        if (l < 0 && *level >= '0' && *level <= '9') /* old numbers: 0 LOC .. 4 and more SYS */
            l = (int[]){0, 4, 5, 8, 9, 9}[strtol(level, NULL, 0) > 5 ? 5 : strtol(level, NULL, 0)];
        if (l >= 0)
            INFO(NCCL_ALL, "NCCL_P2P_LEVEL set by environment to %s", levels[l]);
        direct = l == 9;
    }
    atomic_store(&answer, direct ? 1 : 2);
    return direct;
}

static int channels(const ncclComm_t comm)
{
    int64_t lo = 0, hi = MAX_CHANNELS;
    if (fake_param_is_set(VAR_NCCL_MIN_NRINGS))
        lo = fake_param(VAR_NCCL_MIN_NRINGS);
    if (fake_param_is_set(VAR_NCCL_MIN_NCHANNELS))
        lo = fake_param(VAR_NCCL_MIN_NCHANNELS);
    if (fake_param_is_set(VAR_NCCL_MAX_NRINGS))
        hi = fake_param(VAR_NCCL_MAX_NRINGS);
    if (fake_param_is_set(VAR_NCCL_MAX_NCHANNELS))
        hi = fake_param(VAR_NCCL_MAX_NCHANNELS);
    lo = lo < 0 ? 0 : lo > MAX_CHANNELS ? MAX_CHANNELS : lo;
    hi = hi < 1 ? 1 : hi > MAX_CHANNELS ? MAX_CHANNELS : hi;
    int n = DEFAULT_CHANNELS;
    if (n > hi)
        n = (int)hi;
    if (n > comm->config.maxCTAs)
        n = comm->config.maxCTAs;
    /* Then rings are duplicated up to the minimum, which so wins over every maximum. */
    if (n < lo)
        n = (int)lo;
    if (n < comm->config.minCTAs)
        n = comm->config.minCTAs;
    return n;
}

static bool exists(const ncclComm_t comm, int f, int a, int p)
{
    (void)p;
    if (f == ncclFuncAllReduce)
        return a == ALGO_RING || a == ALGO_TREE;
    (void)comm;
    return a == ALGO_RING;
}

ncclResult_t fake_machine_setup(ncclComm_t comm)
{
    struct fake_machine *m = &comm->machine;
    int algos[FAKE_NUM_FUNCS][8], protos[FAKE_NUM_FUNCS][8];
    m->p2p = peers_are_direct();
    m->net = comm->nnodes > 1;
    m->nchannels = channels(comm);
    m->graph_mixing = FAKE_VER >= 22902 ? comm->config.graphUsageMode == 2
                                        : !fake_param_is_set(VAR_NCCL_GRAPH_MIXING_SUPPORT) ||
                                              fake_param(VAR_NCCL_GRAPH_MIXING_SUPPORT) != 0;
    int simple = nthreads("NCCL_NTHREADS", fake_param(VAR_NCCL_NTHREADS), 64, 512);
    int ll128 = nthreads("NCCL_LL128_NTHREADS", fake_param(VAR_NCCL_LL128_NTHREADS), 160, 640);
    for (int a = 0; a < FAKE_NUM_ALGOS; a++) {
        int t[] = {simple, ll128, a <= ALGO_RING ? simple : 640};
        memcpy(m->max_threads[a], t, sizeof(t));
        int threshold[] = {8 * (a == ALGO_RING ? comm->nranks : 1), 8, 64};
        memcpy(m->thread_threshold[a], threshold, sizeof(threshold));
    }
    /* -2 is the default; anything else is taken as it is, zero and negatives too. */
    int64_t b[] = {fake_param(VAR_NCCL_LL_BUFFSIZE), fake_param(VAR_NCCL_LL128_BUFFSIZE),
                   fake_param(VAR_NCCL_BUFFSIZE)};
    static const int64_t usual[] = {512 * 8 * 8 * 16, 640 * 120 * 8 * 8, 4 << 20};
    for (int p = 0; p < FAKE_NUM_PROTOS; p++)
        m->buff_bytes[p] = b[p] == -2 ? usual[p] : b[p];

    for (int f = 0; f < FAKE_NUM_FUNCS; f++) {
        for (int a = 0; a < 8; a++)
            algos[f][a] = 1;
        protos[f][PROTO_LL] = protos[f][PROTO_SIMPLE] = 1;
        protos[f][PROTO_LL128] = 2; /* automatic: off on this machine unless it is named */
    }
    const char *text = fake_string(VAR_NCCL_PROTO);
    if (text) {
        INFO(NCCL_ENV, "NCCL_PROTO set by environment to %s", text);
        NCCLCHECK(fake_parse_list(text, fake_proto_words, FAKE_NUM_PROTOS, protos));
    }
    text = fake_string(VAR_NCCL_ALGO);
    if (text) {
        INFO(NCCL_ENV, "NCCL_ALGO set by environment to %s", text);
        NCCLCHECK(fake_parse_list(text, fake_algo_words, KNOWN_ALGOS, algos));
    }
    for (int f = 0; f < FAKE_NUM_FUNCS; f++)
        for (int a = 0; a < FAKE_NUM_ALGOS; a++)
            for (int p = 0; p < FAKE_NUM_PROTOS; p++)
                m->allowed[f][a][p] = exists(comm, f, a, p) && algos[f][a] && protos[f][p] == 1;
    text = fake_string(VAR_NCCL_THREAD_THRESHOLDS);
    if (text) {
        INFO(NCCL_ENV, "NCCL_THREAD_THRESHOLDS set by environment to %s", text);
        long t[6] = {-2, -2, -2, -2, -2, -2};
        sscanf(text, "%ld %ld %ld %ld %ld %ld", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5]);
        for (int i = 0; i < 6; i++)
            if (t[i] >= 0)
                m->thread_threshold[i / 3][i % 3] = (int)t[i];
    }
    INFO(NCCL_INIT, "threadThresholds %d/%d/%d | %d/%d/%d | 512 | 512",
         m->thread_threshold[ALGO_TREE][0], m->thread_threshold[ALGO_TREE][1],
         m->thread_threshold[ALGO_TREE][2], m->thread_threshold[ALGO_RING][0],
         m->thread_threshold[ALGO_RING][1], m->thread_threshold[ALGO_RING][2]);
    return ncclSuccess;
}

static int log2_up(int n)
{
    int l = 0;
    while (1 << l < n)
        l++;
    return l;
}

static int ring_steps(ncclFunc_t f, int n)
{
    return f == ncclFuncAllReduce                          ? 2 * (n - 1)
           : f == ncclFuncBroadcast || f == ncclFuncReduce ? n
                                                           : n - 1;
}

/* Bytes that cross each rank's link. Sizes of all-gather and reduce-scatter are totals, as NCCL's
 * are. */
static double ring_traffic(ncclFunc_t f, int n, double bytes)
{
    if (f == ncclFuncBroadcast || f == ncclFuncReduce)
        return bytes;
    return bytes * (f == ncclFuncAllReduce ? 2.0 : 1.0) * (n - 1) / n;
}

static float predict_us(const ncclComm_t comm, ncclFunc_t f, int a, int p, size_t bytes, int ntasks)
{
    if (!comm->machine.allowed[f][a][p])
        return -1.0f;
    int n = comm->nranks, steps = a == ALGO_TREE ? 2 * (n - 1) : ring_steps(f, n);
    double gbs = believed_gbs * (p == PROTO_LL      ? believed_ll
                                 : p == PROTO_LL128 ? believed_ll128
                                                    : 1.0);
    double traffic = a == ALGO_TREE ? 2.0 * (double)bytes : ring_traffic(f, n, (double)bytes);
    if (a == ALGO_TREE)
        gbs *= believed_tree;
    return (float)((believed_base_us[a][p] + steps * believed_hop_us[a][p]) * ntasks +
                   traffic / (gbs * 1e3));
}

static void shape(const ncclComm_t comm, size_t bytes, struct fake_choice *c)
{
    const struct fake_machine *m = &comm->machine;
    size_t threshold = (size_t)m->thread_threshold[c->algo][c->proto];
    int nc = m->nchannels, nt = m->max_threads[c->algo][c->proto];
    while (bytes < (size_t)nc * (size_t)nt * threshold && nc >= 2)
        nc--;
    while (bytes < (size_t)nc * (size_t)nt * threshold && nt % 128 == 0)
        nt /= 2;
    if (c->proto == PROTO_SIMPLE)
        nt += c->algo == ALGO_TREE ? 128 : 32;
    if (nt < 96)
        nt = 96;
    if (c->algo == ALGO_TREE)
        nt = 640;
    c->max_channels = nc;
    c->nwarps = nt / 32;
}

/* The scheduler gives each channel at least 16 KiB of traffic (LL counts four times). */
static int used_channels(ncclFunc_t f, int n, size_t bytes, const struct fake_choice *c, int limit)
{
    size_t per_byte = (size_t)(f == ncclFuncAllReduce ? 2 : 1) * (c->proto == PROTO_LL ? 4 : 1);
    size_t cells = (bytes * per_byte + (16 << 10) - 1) / (16 << 10);
    int nc = c->max_channels < limit ? c->max_channels : limit;
    (void)n;
    return cells < (size_t)nc ? (cells ? (int)cells : 1) : nc;
}

ncclResult_t fake_choose(ncclComm_t comm, ncclFunc_t func, ncclDataType_t type, size_t bytes,
                         int ntasks, bool captured, struct fake_choice *out)
{
    float table[FAKE_NUM_ALGOS][FAKE_NUM_PROTOS];
    int tuner_channels = 0;
    for (int a = 0; a < FAKE_NUM_ALGOS; a++)
        for (int p = 0; p < FAKE_NUM_PROTOS; p++)
            table[a][p] = predict_us(comm, func, a, p, bytes, ntasks);
    if (fake_tuner_present(comm)) /* an error of the plugin is an error of the user's call */
        NCCLCHECK(fake_tuner_ask(comm, func, bytes, ntasks, table,
                                 captured && fake_param(VAR_NCCL_GRAPH_REGISTER), &tuner_channels));
    memset(out, 0, sizeof(*out));
    out->algo = out->proto = -1;
    float best = FAKE_VER >= 23003 ? 3.4e38f : 3600000000.0f;
    for (int a = 0; a < FAKE_NUM_ALGOS; a++)
        for (int p = 0; p < FAKE_NUM_PROTOS; p++)
            if (table[a][p] >= 0.0f && table[a][p] < best) {
                best = table[a][p];
                out->algo = a;
                out->proto = p;
            }
    if (out->algo < 0) {
        const char *algo = fake_string(VAR_NCCL_ALGO), *proto = fake_string(VAR_NCCL_PROTO);
        WARN(
            "Error : no algorithm/protocol available for function %s with datatype %s.%s%s%s%s%s%s",
            fake_func_name(func), fake_type_name(type), algo ? " NCCL_ALGO was set to " : "",
            algo ? algo : "", algo ? "." : "", proto ? " NCCL_PROTO was set to " : "",
            proto ? proto : "", proto ? "." : "");
        return algo || proto ? ncclInvalidUsage : ncclInternalError;
    }
    out->predicted_us = best;
    shape(comm, bytes, out);
    if (tuner_channels > 0)
        out->max_channels = tuner_channels;
    out->nchannels = used_channels(func, comm->nranks, bytes, out, comm->machine.nchannels);
    if (comm->has_tuner) {
        size_t chunk = (size_t)(comm->machine.buff_bytes[out->proto] / 8);
        size_t limit = chunk;
        NCCLCHECK(
            fake_tuner_chunk(comm, func, bytes, out->algo, out->proto, out->nchannels, &chunk));
        out->chunk_bytes = chunk < limit ? chunk : limit;
    }
    return ncclSuccess;
}

uint64_t fake_duration_ns(const struct ncclComm *comm, ncclFunc_t func, size_t bytes,
                          const struct fake_choice *c, bool captured)
{
    const struct fake_machine *m = &comm->machine;
    int n = comm->nranks;
    if (n == 1)
        return (uint64_t)(1500 + (double)bytes / 900);
    if (func > ncclFuncAllReduce) { /* a message between two ranks */
        double gbs = m->net ? real.net_gbs : m->p2p ? real.p2p_gbs : real.shm_gbs;
        double hop =
            real.hop_us[bytes <= 16384 ? PROTO_LL : PROTO_SIMPLE] + (m->net   ? real.net_hop_us
                                                                     : m->p2p ? 0
                                                                              : real.shm_hop_us);
        return (uint64_t)(1e3 * (real.launch_us + hop + (double)bytes / (gbs * 1e3)));
    }
    bool tree = c->algo == ALGO_TREE;
    int p = c->proto, steps = tree ? 2 * log2_up(n) : ring_steps(func, n);
    double hop = real.hop_us[p] + (m->net ? real.net_hop_us : m->p2p ? 0 : real.shm_hop_us);
    double path = m->net ? real.net_gbs : m->p2p ? real.p2p_gbs : real.shm_gbs;
    int threads = c->nwarps * 32;
    if (!tree && threads > m->max_threads[c->algo][p] && p != PROTO_SIMPLE)
        threads = m->max_threads[c->algo][p];
    double by_threads = c->nchannels * threads * real.thread_gbs[p];
    double gbs = fmin(path * real.efficiency[p], by_threads) * (tree ? real.tree_bandwidth : 1.0);
    double traffic = tree ? (double)bytes * 1.6 : ring_traffic(func, n, (double)bytes);
    double us =
        real.launch_us + real.channel_us * c->nchannels + steps * hop + traffic / (gbs * 1e3);
    /* Each buffer holds eight chunks; a small one means many hand-shakes. LL goes through one step
     * at a time. */
    double buffer = (double)(m->buff_bytes[p] > 4096 ? m->buff_bytes[p] : 4096);
    double chunk = c->chunk_bytes ? (double)c->chunk_bytes : buffer / 8;
    if (chunk < 1024)
        chunk = 1024;
    us += real.chunk_us * (p == PROTO_LL ? 2.0 : 1.0) * floor(traffic / (chunk * c->nchannels));
    if (captured && m->graph_mixing)
        us += real.mixing_us;
    return (uint64_t)(us * 1e3);
}

/* A few percent, rarely much more; the same on all ranks, and again for the same seed. */
uint64_t fake_noise_ns(uint64_t duration_ns, int nranks, uint64_t seq)
{
    static atomic_ullong seed; /* + 1, so that 0 is "not asked yet" */
    unsigned long long s = atomic_load(&seed);
    if (!s)
        atomic_store(&seed, s = (unsigned long long)fake_knob("NCCLSHIM_FAKE_SEED", 1) + 1);
    uint64_t x = (s << 8 ^ (uint64_t)nranks) + seq * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    uint64_t noise = duration_ns * (x & 1023) / 1024 * 3 / 100;
    if ((x >> 10) % 200 == 0)
        noise += duration_ns / 2;
    return noise;
}
