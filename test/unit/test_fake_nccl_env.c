/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated NCCL's configuration, environment and plugins. */
#include "test/unit/fake_nccl.h"

/* ---- configuration and environment
 * -------------------------------------------------------------------------------- */

static ncclResult_t init_one(const ncclConfig_t *c)
{
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    OK(ncclGetUniqueId(&id));
    ncclResult_t res = ncclCommInitRankConfig(&comm, 1, id, 0, (ncclConfig_t *)(uintptr_t)c);
    if (comm && res == ncclSuccess)
        OK(ncclCommDestroy(comm));
    return res;
}

TEST(an_old_callers_short_config_is_read_to_its_end_and_no_further)
{
    load(NULL);
    use_device(0);
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    ncclConfig_t c = config(24, 21403), *at = (ncclConfig_t *)(void *)(page + 4096 - 24);
    memcpy(at, &c, 24);
    OK(init_one(at));
    c = config(48, 21805);
    at = (ncclConfig_t *)(void *)(page + 4096 - 48);
    c.trafficClass = 12345; /* padding of that version */
    memcpy(at, &c, 48);
    OK(init_one(at));
    c = config(4096, 24000);
    memset(page, 0x55, 4096);
    memcpy(page, &c, 80);
    OK(init_one((ncclConfig_t *)(void *)page));
    c = config(80, 22809);
    c.magic = 1;
    CHECK(init_one(&c) == ncclInvalidArgument);
    c = config(80, 22809);
    c.minCTAs = 8; /* undefined is the smallest number: 8 is above it */
    CHECK(init_one(&c) == ncclInvalidArgument);
    c.maxCTAs = 8;
    OK(init_one(&c));
    c.blocking = 2;
    CHECK(init_one(&c) == ncclInvalidArgument);
    c = config(80, 21700);
    c.blocking = 1, c.nvlsCTAs = -7; /* newer than the version it claims: not looked at */
    OK(init_one(&c));
}

static char asked[400][64];
static int nasked;
static const char *plugin_getenv(const char *name)
{
    if (nasked < 400)
        snprintf(asked[nasked++], 64, "%s", name);
    return !strcmp(name, "NCCL_PROTO") ? "Simple" : getenv(name);
}
static ncclResult_t plugin_init(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix)
{
    return major == 2 && minor == 28 && patch == 9 && suffix ? ncclSuccess : ncclInternalError;
}
static ncclResult_t plugin_fini(void)
{
    return ncclSuccess;
}
struct env_plugin {
    const char *name;
    ncclResult_t (*init)(uint8_t, uint8_t, uint8_t, const char *);
    ncclResult_t (*finalize)(void);
    const char *(*getEnv)(const char *);
};
extern const struct env_plugin ncclEnvPlugin_v1;
__attribute__((visibility("default")))
const struct env_plugin ncclEnvPlugin_v1 = {"test", plugin_init, plugin_fini, plugin_getenv};

static int times_asked(const char *name)
{
    int n = 0;
    for (int i = 0; i < nasked; i++)
        n += !strcmp(asked[i], name);
    return n;
}

TEST(the_env_plugin_is_asked_and_obeyed, "NCCL_ENV_PLUGIN=STATIC_PLUGIN", "NCCL_BUFFSIZE=0x10")
{
    load(NULL);
    use_device(0);
    CHECK(nasked == 0);
    OK(ncclGroupStart());
    OK(ncclGroupEnd());
    CHECK(times_asked("NCCL_NVTX_DISABLE") == 1 && !times_asked("NCCL_SOCKET_IFNAME"));
    OK(init_one(NULL));
    CHECK(times_asked("NCCL_SOCKET_IFNAME") && times_asked("NCCL_COMM_ID"));
    OK(init_one(NULL));
    CHECK(times_asked("NCCL_BUFFSIZE") == 1); /* cached for the process */
    CHECK(times_asked("NCCL_PROTO") == 2 &&
          times_asked("NCCL_ALGO") == 2); /* each communicator asks */
    CHECK(times_asked("NCCL_GRAPH_FILE") == 8);
    CHECK(!times_asked("NCCL_DEBUG") && !times_asked("NCCL_MULTI_RANK_GPU_ENABLE"));
}

TEST(a_conf_file_does_not_beat_the_environment_and_is_not_trimmed,
     "NCCL_CONF_FILE=/tmp/fake-nccl-test.conf", "NCCL_ALGO=Ring")
{
    FILE *f = fopen("/tmp/fake-nccl-test.conf", "w");
    fputs("#NCCL_X1=1\nNCCL_ALGO=NoSuchAlgorithm\nNCCL_PROTO = LL\nNCCL_X2=a=b \n", f);
    fclose(f);
    load(NULL);
    use_device(0);
    OK(init_one(NULL));
    CHECK(!getenv("NCCL_X1") && !strcmp(getenv("NCCL_X2"), "a=b ") &&
          !strcmp(getenv("NCCL_PROTO "), " LL"));
    unlink("/tmp/fake-nccl-test.conf");
}

static void expect_init_failure(struct rank *r)
{
    CHECK(r->init == ncclInvalidUsage || r->init == ncclRemoteError);
}
static void run_bad_list(void)
{
    load(NULL);
    ranks(2, expect_init_failure);
}
static void tree_has_no_broadcast(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64);
    CHECK(ncclBroadcast(p, p, 4, ncclInt32, 0, r->comm, r->stream) == ncclInvalidUsage);
    OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    OK(ncclCommDestroy(r->comm));
}
static void run_tree(void)
{
    load(NULL);
    ranks(2, tree_has_no_broadcast);
}
static void plain_sum(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64);
    OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    OK(ncclCommDestroy(r->comm));
}
static void run_good_list(void)
{
    load(NULL);
    ranks(2, plain_sum);
}
static void lists_of_algorithms_follow_NCCLs_grammar(void **state)
{
    (void)state;
    assert_int_equal(in_child(run_bad_list, "NCCL_ALGO=ring, tree", NULL), 0);
    assert_int_equal(in_child(run_bad_list, "NCCL_ALGO=ring;tree", NULL), 0);
    assert_int_equal(in_child(run_bad_list, "NCCL_PROTO=sum:LL", NULL), 0);
    assert_int_equal(in_child(run_good_list, "NCCL_ALGO=ring;allreduce:^ring", NULL), 0);
    assert_int_equal(in_child(run_tree, "NCCL_ALGO=Tree", NULL), 0);
}

/* ---- plugins
 * -------------------------------------------------------------------------------------------------------
 */

struct tuner {
    const char *name;
    ncclResult_t (*init)(void **, uint64_t, size_t, size_t, ncclDebugLogger_t, void *, void *);
    ncclResult_t (*get)(void *, ncclFunc_t, size_t, int, float **, int, int, int, int *);
    ncclResult_t (*finalize)(void *);
};
static ncclResult_t tuner_init(void **ctx, uint64_t id, size_t nranks, size_t nodes,
                               ncclDebugLogger_t log, void *domain, void *constants)
{
    *ctx = &nasked;
    return id && nranks == 2 && nodes == 1 && log && domain && constants ? ncclSuccess
                                                                         : ncclInternalError;
}
static ncclResult_t tuner_get(void *ctx, ncclFunc_t func, size_t bytes, int ops, float **flat,
                              int na, int np, int reg, int *nc)
{
    float(*table)[3] = (float(*)[3])(void *)flat;
    (void)reg;
    if (ctx != &nasked || na != 7 || np != 3 || ops < 1)
        return ncclInternalError;
    if (func != ncclFuncAllReduce)
        return ncclInternalError;
    if (table[ALGO_NVLS][PROTO_SIMPLE] != -1.0f || table[ALGO_RING][PROTO_LL128] != -1.0f)
        return ncclInternalError;
    if (bytes == 65536) {
        table[ALGO_TREE][PROTO_SIMPLE] = 0.0f;
        *nc = 3;
    }
    return ncclSuccess;
}
static ncclResult_t tuner_fini(void *ctx)
{
    return ctx ? ncclSuccess : ncclInternalError;
}
extern const struct tuner ncclTunerPlugin_v5;
__attribute__((visibility("default")))
const struct tuner ncclTunerPlugin_v5 = {"test", tuner_init, tuner_get, tuner_fini};

/* The part of the v5 descriptor that the test looks at. */
struct descr {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool captured;
        } api;
        struct {
            uint64_t seq;
            const char *func;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algo, *proto;
        } coll;
    };
};
static struct {
    uint64_t type;
    void *parent;
    char text[64];
    int channels, stopped;
} events[100];
static int nevents;
static ncclResult_t profiler_init(void **ctx, uint64_t id, int *mask, const char *name, int nodes,
                                  int nranks, int rank, ncclDebugLogger_t log)
{
    *ctx = &events;
    *mask = 2 | 512; /* Coll and CollApi */
    return id && !name && nodes == 1 && nranks == 2 && rank < 2 && log ? ncclSuccess
                                                                       : ncclInternalError;
}
static ncclResult_t profiler_start(void *ctx, void **handle, void *descr)
{
    struct descr *d = descr;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (ctx != &events)
        return ncclInternalError;
    pthread_mutex_lock(&lock);
    int i = nevents++;
    events[i].type = d->type;
    events[i].parent = d->parent;
    if (d->type == 2) {
        snprintf(events[i].text, 64, "%s %s %s %zu", d->coll.func, d->coll.algo, d->coll.proto,
                 d->coll.count);
        events[i].channels = d->coll.channels;
    } else if (d->type == 512) {
        snprintf(events[i].text, 64, "%s %s %zu %d", d->api.func, d->api.datatype, d->api.count,
                 d->api.captured);
    }
    *handle = &events[i];
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}
static ncclResult_t profiler_stop(void *handle)
{
    events[((char *)handle - (char *)events) / (long)sizeof(events[0])].stopped++;
    return ncclSuccess;
}
static ncclResult_t profiler_record(void *handle, int what, void *args)
{
    return handle && what && !args ? ncclSuccess : ncclInternalError;
}
struct profiler {
    const char *name;
    ncclResult_t (*init)(void **, uint64_t, int *, const char *, int, int, int, ncclDebugLogger_t);
    ncclResult_t (*start)(void *, void **, void *);
    ncclResult_t (*stop)(void *);
    ncclResult_t (*record)(void *, int, void *);
    ncclResult_t (*finalize)(void *);
};
extern const struct profiler ncclProfiler_v5;
__attribute__((visibility("default"))) const struct profiler ncclProfiler_v5 = {
    "test", profiler_init, profiler_start, profiler_stop, profiler_record, tuner_fini};

static void tuned(struct rank *r)
{
    OK(r->init);
    char *p = device_memory(65536);
    OK(ncclAllReduce(p, p, 16384, ncclFloat32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    pthread_barrier_wait(&barrier);
    OK(ncclAllReduce(p, p, 1024, ncclFloat32, ncclSum, r->comm, r->stream));
    /* The plugin refuses anything else, and so the call fails. */
    CHECK(ncclBroadcast(p, p, 8, ncclInt8, 0, r->comm, r->stream) == ncclInternalError);
    OK(cu.cuStreamSynchronize(r->stream));
    OK(ncclCommDestroy(r->comm));
}
TEST(tuner_and_profiler_see_each_call_and_decide, "NCCL_TUNER_PLUGIN=STATIC_PLUGIN",
     "NCCL_PROFILER_PLUGIN=S")
{
    load(NULL);
    ranks(2, tuned);
    int tree = 0, ring = 0, api = 0;
    for (int i = 0; i < nevents; i++) {
        tree += !strcmp(events[i].text, "AllReduce TREE SIMPLE 16384") && events[i].channels == 3;
        ring += !strncmp(events[i].text, "AllReduce RING LL 1024", 22);
        api += !strcmp(events[i].text, "AllReduce ncclFloat32 16384 0");
        CHECK(events[i].stopped == 1);
        if (events[i].type == 2) /* the parent is the API event, that of the group is its own */
            CHECK(((uint64_t *)events[i].parent)[0] == 512);
    }
    CHECK(tree == 2 && ring == 2 && api == 2);
}

int main(void)
{
    find_stand_ins();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_callers_short_config_is_read_to_its_end_and_no_further),
        cmocka_unit_test(the_env_plugin_is_asked_and_obeyed),
        cmocka_unit_test(a_conf_file_does_not_beat_the_environment_and_is_not_trimmed),
        cmocka_unit_test(lists_of_algorithms_follow_NCCLs_grammar),
        cmocka_unit_test(tuner_and_profiler_see_each_call_and_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
