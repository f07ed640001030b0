/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated NCCL against what is known of the real one: data, ranks, groups. */
#include "test/unit/fake_nccl.h"

/* ---- without a driver
 * ------------------------------------------------------------------------------------ */

static void run_no_driver(void)
{
    int version = 0;
    ncclUniqueId a, b;
    void *n = open_lib("libnccl.so.2");
    NCCL_FUNCTIONS(FIND_N)
    OK(ncclGetVersion(&version));
    CHECK(version == 22809);
    OK(ncclGetUniqueId(&a));
    OK(ncclGetUniqueId(&b));
    CHECK(memcmp(&a, &b, sizeof(a)));
    OK(ncclGroupStart());
    OK(ncclGroupEnd());
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    CHECK(!strcmp(ncclGetErrorString(ncclInProgress), "NCCL operation in progress"));
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    ncclComm_t comm;
    if (!driver || !dlsym(driver, "fakecuda_launch"))
        CHECK(ncclCommInitRank(&comm, 1, a, 0) == ncclUnhandledCudaError);
}
static void version_id_and_groups_work_without_a_driver(void **state)
{
    (void)state;
    assert_int_equal(in_child(run_no_driver, NULL), 0);
}

TEST(each_version_exports_what_it_had_and_no_more)
{
    static const struct {
        const char *lib;
        int code;
        const char *newest, *not_yet;
    } v[] = {
        {"nccl-2803/libnccl.so.2", 2803, "ncclRecv", "ncclRedOpCreatePreMulSum"},
        {"nccl-21403/libnccl.so.2", 21403, "ncclCommFinalize", "ncclCommSplit"},
        {"nccl-21903/libnccl.so.2", 21903, "ncclMemAlloc", "ncclGroupSimulateEnd"},
        {"nccl-22304/libnccl.so.2", 22304, "ncclCommInitRankScalable", "ncclCommShrink"},
        {"libnccl.so.2", 22809, "ncclCommRevoke", "ncclCommGrow"},
        {"nccl-23007/libnccl.so.2", 23007, "ncclParamBind", "ncclNoSuchThing"},
    };
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        char p[64];
        int code = 0;
        void *lib = open_lib(v[i].lib);
        CHECK(lib);
        snprintf(p, sizeof(p), "p%s", v[i].newest);
        CHECK(dlsym(lib, v[i].newest) && dlsym(lib, p) && !dlsym(lib, v[i].not_yet));
        OK(((ncclResult_t(*)(int *))dlsym(lib, "ncclGetVersion"))(&code));
        CHECK(code == v[i].code);
        CHECK(!dlsym(lib, "fake_comm_new"));
    }
}

/* ---- data
 * -------------------------------------------------------------------------------------------------
 */

#define COUNT 1000
static float widen(ncclDataType_t type, const void *p, size_t i)
{
    uint32_t u;
    float f;
    switch (type) {
    case ncclInt8:
        return ((const int8_t *)p)[i];
    case ncclUint8:
        return ((const uint8_t *)p)[i];
    case ncclInt32:
        return (float)((const int32_t *)p)[i];
    case ncclUint32:
        return (float)((const uint32_t *)p)[i];
    case ncclInt64:
        return (float)((const int64_t *)p)[i];
    case ncclUint64:
        return (float)((const uint64_t *)p)[i];
    case ncclFloat32:
        return ((const float *)p)[i];
    case ncclFloat64:
        return (float)((const double *)p)[i];
    case ncclBfloat16:
        u = (uint32_t)((const uint16_t *)p)[i] << 16;
        memcpy(&f, &u, 4);
        return f;
    default: { /* sign, exponent, mantissa */
        unsigned man = type == ncclFloat16 ? 10 : type == ncclFloat8e4m3 ? 3 : 2;
        unsigned exp = type == ncclFloat8e4m3 ? 4 : 5;
        unsigned v = type == ncclFloat16 ? ((const uint16_t *)p)[i] : ((const uint8_t *)p)[i];
        int e = (int)(v >> man & ((1u << exp) - 1)), m = (int)(v & ((1u << man) - 1));
        f = (float)(e ? m + (1 << man) : m);
        for (int s = (e ? e : 1) - ((1 << (exp - 1)) - 1) - (int)man; s != 0; s += s < 0 ? 1 : -1)
            f = s < 0 ? f / 2 : f * 2;
        return v >> (man + exp) ? -f : f;
    }
    }
}

/* Small whole numbers: exact in every type. */
static void narrow(ncclDataType_t type, void *p, size_t i, int v)
{
    static const uint8_t e4m3[] = {0, 0x38, 0x40, 0x44, 0x48}, e5m2[] = {0, 0x3c, 0x40, 0x42, 0x44};
    float f = (float)v;
    uint32_t u;
    switch (type) {
    case ncclInt8:
    case ncclUint8:
        ((uint8_t *)p)[i] = (uint8_t)v;
        break;
    case ncclInt32:
    case ncclUint32:
        ((int32_t *)p)[i] = v;
        break;
    case ncclInt64:
    case ncclUint64:
        ((int64_t *)p)[i] = v;
        break;
    case ncclFloat32:
        ((float *)p)[i] = f;
        break;
    case ncclFloat64:
        ((double *)p)[i] = v;
        break;
    case ncclFloat16:
        ((uint16_t *)p)[i] = (uint16_t)(e5m2[v] << 8);
        break;
    case ncclBfloat16:
        memcpy(&u, &f, 4);
        ((uint16_t *)p)[i] = (uint16_t)(u >> 16);
        break;
    case ncclFloat8e4m3:
        ((uint8_t *)p)[i] = e4m3[v];
        break;
    case ncclFloat8e5m2:
        ((uint8_t *)p)[i] = e5m2[v];
        break;
    }
}

static void reduce_all_types(struct rank *r)
{
    OK(r->init);
    char *host = malloc(COUNT * 8);
    void *in = device_memory(COUNT * 8), *out = device_memory(COUNT * 8);
    for (ncclDataType_t type = 0; type <= ncclFloat8e5m2; type++)
        for (ncclRedOp_t op = ncclSum; op <= ncclAvg; op++) {
            for (size_t i = 0; i < COUNT; i++)
                narrow(type, host, i, (int)(i + (size_t)r->rank) % 3 + (r->n == 2) * 0);
            put(in, host, COUNT * 8);
            OK(ncclAllReduce(in, op % 2 ? in : out, COUNT, type, op, r->comm, r->stream));
            OK(cu.cuStreamSynchronize(r->stream));
            get(host, op % 2 ? in : out, COUNT * 8);
            for (size_t i = 0; i < COUNT; i++) {
                int want = 0, a = (int)i % 3, b = (int)(i + 1) % 3;
                want = op == ncclSum    ? a + b
                       : op == ncclProd ? a * b
                       : op == ncclMax  ? (a > b ? a : b)
                       : op == ncclMin  ? (a < b ? a : b)
                                        : 0;
                float got = widen(type, host, i);
                float average = type <= ncclUint64 ? (float)((a + b) / 2) : (float)(a + b) / 2;
                CHECK(got == (op == ncclAvg ? average : (float)want));
            }
        }
    OK(ncclCommDestroy(r->comm));
}
TEST(every_type_and_operator_gives_the_right_sum)
{
    load(NULL);
    ranks(2, reduce_all_types);
}

static void all_collectives(struct rank *r)
{
    OK(r->init);
    enum { M = 50000 };
    int n = r->n, *host = malloc((size_t)n * M * 4), *in = device_memory((size_t)n * M * 4),
        *out = device_memory((size_t)n * M * 4);
    for (int i = 0; i < n * M; i++)
        host[i] = r->rank * 1000003 + i;
    put(in, host, (size_t)n * M * 4);
#define SEE(call, bytes)                   \
    OK(call);                              \
    OK(cu.cuStreamSynchronize(r->stream)); \
    get(host, out, bytes)
    SEE(ncclAllReduce(in, out, M, ncclInt32, ncclSum, r->comm, r->stream), M * 4);
    for (int i = 0; i < M; i++)
        CHECK(host[i] == n * i + n * (n - 1) / 2 * 1000003);
    SEE(ncclReduce(in, out, M, ncclInt32, ncclMax, 1, r->comm, r->stream), M * 4);
    for (int i = 0; i < M && r->rank == 1; i++)
        CHECK(host[i] == (n - 1) * 1000003 + i);
    SEE(ncclBroadcast(in, out, M, ncclInt32, 2, r->comm, r->stream), M * 4);
    for (int i = 0; i < M; i++)
        CHECK(host[i] == 2 * 1000003 + i);
    SEE(ncclAllGather(in, out, M, ncclInt32, r->comm, r->stream), (size_t)n * M * 4);
    for (int i = 0; i < n * M; i++)
        CHECK(host[i] == i / M * 1000003 + i % M);
    SEE(ncclReduceScatter(in, out, M, ncclInt32, ncclSum, r->comm, r->stream), M * 4);
    for (int i = 0; i < M; i++)
        CHECK(host[i] == n * (r->rank * M + i) + n * (n - 1) / 2 * 1000003);
    SEE(ncclAlltoAll(in, out, M, ncclInt32, r->comm, r->stream), (size_t)n * M * 4);
    for (int i = 0; i < n * M; i++)
        CHECK(host[i] == i / M * 1000003 + r->rank * M + i % M);
    /* Two ranks talk, the others do not come. */
    if (r->rank == 0)
        OK(ncclSend(in, M, ncclInt32, 3, r->comm, r->stream));
    if (r->rank == 3) {
        SEE(ncclRecv(out, M, ncclInt32, 0, r->comm, r->stream), M * 4);
        CHECK(host[M - 1] == M - 1);
    }
    /* Each multiplies by its own factor before the sum. */
    int factor = r->rank + 1;
    ncclRedOp_t op;
    OK(ncclRedOpCreatePreMulSum(&op, &factor, ncclInt32, ncclScalarHostImmediate, r->comm));
    SEE(ncclAllReduce(in, out, 3, ncclInt32, op, r->comm, r->stream), 12);
    int want = 0;
    for (int q = 0; q < n; q++)
        want += (q + 1) * (q * 1000003 + 2);
    CHECK(host[2] == want);
    OK(async_error(r->comm));
    OK(ncclCommDestroy(r->comm));
}
TEST(every_collective_moves_the_right_data)
{
    load(NULL);
    ranks(4, all_collectives);
}

/* Four processes, of which `victim` kills itself before its collective. */
static int processes(int n, int victim, void (*body)(struct rank *), int worst)
{
    ncclUniqueId id;
    OK(ncclGetUniqueId(&id));
    pid_t pids[16];
    for (int i = 0; i < n; i++)
        if (!(pids[i] = fork())) {
            struct rank r = {.rank = i, .n = n, .id = id, .body = body};
            alarm(50);
            use_device(i);
            OK(cu.cuStreamCreate(&r.stream, CU_STREAM_NON_BLOCKING));
            r.init = ncclCommInitRank(&r.comm, n, id, i);
            if (i == victim)
                kill(getpid(), SIGKILL);
            body(&r);
            _exit(0);
        }
    for (int i = 0; i < n; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        if (i != victim && status)
            worst = status;
    }
    return worst;
}

TEST(ranks_in_several_processes_share_one_communicator)
{
    load(NULL);
    CHECK(processes(4, -1, big_sum, 0) == 0);
}

static void lost_peer(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64);
    OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    CHECK(async_error(r->comm) == ncclRemoteError);
    OK(ncclCommAbort(r->comm));
}
TEST(a_killed_rank_ends_in_a_remote_error_on_the_others, "NCCLSHIM_FAKE_TIMEOUT=2")
{
    load(NULL);
    CHECK(processes(3, 1, lost_peer, 0) == 0);
}

TEST(init_gives_up_when_a_rank_does_not_come, "NCCLSHIM_FAKE_TIMEOUT=1")
{
    ncclUniqueId id;
    ncclComm_t comm;
    load(NULL);
    use_device(0);
    OK(ncclGetUniqueId(&id));
    CHECK(ncclCommInitRank(&comm, 2, id, 0) == ncclSystemError);
    CHECK(comm == NULL);
}

static void stuck_rank(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64);
    if (r->rank == 0) {
        OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream));
        usleep(100000);
    }
    OK(ncclCommAbort(r->comm));
}
TEST(abort_frees_a_stuck_collective)
{
    load(NULL);
    ranks(2, stuck_rank);
}

/* Nobody waits between the calls: a piece of one call must not be overwritten by the next one. */
static void back_to_back(struct rank *r)
{
    enum { CALLS = 3000, SMALL = 40, LARGE = 6000 };
    OK(r->init);
    uint32_t want = 1, *host = malloc(LARGE * 4);
    uint32_t *small = device_memory(SMALL * 4), *large = device_memory(LARGE * 4);
    for (int i = 0; i < LARGE; i++)
        host[i] = 1;
    put(small, host, SMALL * 4);
    for (int i = 0; i < LARGE; i++)
        host[i] = 5;
    put(large, host, LARGE * 4);
    for (int i = 0; i < CALLS; i++) {
        OK(ncclAllReduce(small, small, SMALL, ncclUint32, ncclSum, r->comm, r->stream));
        OK(ncclAllReduce(large, large, LARGE, ncclUint32, ncclSum, r->comm, r->stream));
        want *= 3; /* never 0: three is odd */
    }
    OK(cu.cuStreamSynchronize(r->stream));
    get(host, small, SMALL * 4);
    for (int i = 0; i < SMALL; i++)
        CHECK(host[i] == want);
    get(host, large, LARGE * 4);
    for (int i = 0; i < LARGE; i++)
        CHECK(host[i] == 5 * want);
    OK(ncclCommDestroy(r->comm));
}
TEST(thousands_of_calls_back_to_back_stay_in_step)
{
    load(NULL);
    ranks(3, back_to_back);
}

static void different_counts(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64);
    OK(ncclAllReduce(p, p, r->rank ? 4 : 8, ncclInt32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    CHECK(async_error(r->comm) == ncclInvalidArgument);
    OK(ncclCommAbort(r->comm));
}
TEST(different_sizes_are_an_asynchronous_error)
{
    load(NULL);
    ranks(2, different_counts);
}

static void in_the_child_of_a_fork(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64), status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(5);
        _exit(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream) ==
                          ncclUnhandledCudaError &&
                      ncclCommDestroy(r->comm) == ncclUnhandledCudaError
                  ? 0
                  : 1);
    }
    waitpid(pid, &status, 0);
    CHECK(status == 0);
    OK(ncclCommDestroy(r->comm));
}
TEST(a_forked_child_gets_an_error_and_does_not_hang)
{
    load(NULL);
    ranks(1, in_the_child_of_a_fork);
}

/* ---- arguments and groups
 * ------------------------------------------------------------------------------------ */

static void bad_arguments(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64), other = 0;
    CHECK(ncclAllReduce(p, p, 1, ncclInt32, ncclSum, NULL, r->stream) == ncclInvalidArgument);
    CHECK(ncclBroadcast(p, p, 1, ncclInt32, 2, r->comm, r->stream) == ncclInvalidArgument);
    CHECK(ncclAllReduce(p, p, 1, (ncclDataType_t)12, ncclSum, r->comm, r->stream) ==
          ncclInvalidArgument);
    CHECK(ncclAllReduce(p, p, 1, ncclInt32, (ncclRedOp_t)77, r->comm, r->stream) ==
          ncclInvalidArgument);
    CHECK(ncclAllReduce(&other, p, 1, ncclInt32, ncclSum, r->comm, r->stream) ==
          ncclInvalidArgument); /* CHECK_POINTERS */
    OK(ncclGroupStart());
    OK(ncclGroupStart());
    OK(ncclAllReduce(p, p, 1, ncclInt32, ncclSum, r->comm, r->stream));
    CHECK(ncclAllReduce(p, p, 1, (ncclDataType_t)99, ncclSum, r->comm, r->stream) ==
          ncclInvalidArgument);
    OK(ncclGroupEnd()); /* the inner end launches nothing and fails nothing */
    CHECK(ncclGroupEnd() == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    OK(ncclAllReduce(p, p, 0, ncclInt32, ncclSum, r->comm, r->stream)); /* nothing: needs nobody */
    OK(cu.cuStreamSynchronize(r->stream));
    OK(ncclCommDestroy(r->comm));
}
TEST(wrong_arguments_are_refused_as_NCCL_refuses_them, "NCCL_CHECK_POINTERS=1")
{
    load(NULL);
    ranks(2, bad_arguments);
}

TEST(one_thread_drives_many_ranks_by_groups)
{
    enum { n = 4 };
    ncclComm_t c[n], sub[n];
    CUstream s[n];
    int *p[n], host[8];
    load(NULL);
    use_device(0);
    OK(ncclCommInitAll(c, n, NULL));
    for (int i = 0; i < n; i++) {
        use_device(i);
        OK(cu.cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
        p[i] = device_memory(64);
        for (int k = 0; k < 8; k++)
            host[k] = i + k;
        put(p[i], host, 32);
    }
    OK(ncclGroupStart());
    for (int i = 0; i < n; i++) { /* a ring of messages beside two sums of different sizes */
        OK(ncclAllReduce(p[i], p[i], 2, ncclInt32, ncclSum, c[i], s[i]));
        OK(ncclSend(p[i] + 4, 1, ncclInt32, (i + 1) % n, c[i], s[i]));
        OK(ncclRecv(p[i] + 8, 1, ncclInt32, (i + n - 1) % n, c[i], s[i]));
        OK(ncclAllReduce(p[i] + 2, p[i] + 2, 1, ncclInt32, ncclMax, c[i], s[i]));
    }
    OK(ncclGroupEnd());
    for (int i = 0; i < n; i++) {
        OK(cu.cuStreamSynchronize(s[i]));
        get(host, p[i], 32);
        CHECK(host[0] == 6 && host[1] == 10 && host[2] == 5);
        get(host, p[i] + 8, 4);
        CHECK(host[0] == (i + n - 1) % n + 4);
    }
    OK(ncclGroupStart());
    for (int i = 0; i < n; i++)
        OK(ncclCommSplit(c[i], i == 3 ? NCCL_SPLIT_NOCOLOR : i % 2, -i, &sub[i], NULL));
    OK(ncclGroupEnd());
    int count, rank;
    CHECK(sub[3] == NULL);
    OK(ncclCommCount(sub[0], &count));
    OK(ncclCommUserRank(sub[0], &rank));
    CHECK(count == 2 && rank == 1); /* rank 2 has the smaller key */
    for (int i = 0; i < n; i++)
        OK(ncclCommDestroy(c[i]));
}

TEST(two_ranks_on_one_device_are_refused_before_2_30, "NCCLSHIM_FAKE_GPUS=1")
{
    ncclComm_t c[2];
    int twice[] = {0, 0};
    load(NULL);
    use_device(0);
    CHECK(ncclCommInitAll(c, 2, twice) == ncclInvalidUsage);
}

TEST(two_ranks_share_a_device_from_2_30_on, "NCCLSHIM_FAKE_GPUS=1", "NCCL_MULTI_RANK_GPU_ENABLE=1")
{
    ncclComm_t c[2];
    int twice[] = {0, 0};
    load("nccl-23007/libnccl.so.2");
    use_device(0);
    OK(ncclCommInitAll(c, 2, twice));
    OK(ncclCommDestroy(c[0]));
    OK(ncclCommDestroy(c[1]));
}

static void grow_and_shrink(struct rank *r)
{
    ncclComm_t small = NULL, grown = NULL;
    static ncclUniqueId id;
    int exclude[] = {2}, count = 0;
    OK(r->init);
    if (r->rank != 2)
        OK(ncclCommShrink(r->comm, exclude, 1, &small, NULL, 0));
    pthread_barrier_wait(&barrier);
    if (r->rank == 0)
        OK(ncclCommGetUniqueId(small, &id));
    pthread_barrier_wait(&barrier);
    if (r->rank != 2)
        OK(ncclCommGrow(small, 3, NULL, -1, &grown, NULL));
    else
        OK(ncclCommGrow(NULL, 3, &id, 2, &grown, NULL));
    OK(ncclCommCount(grown, &count));
    CHECK(count == 3);
    OK(ncclCommDestroy(grown));
}
TEST(a_communicator_shrinks_and_grows)
{
    load("nccl-23007/libnccl.so.2");
    ranks(3, grow_and_shrink);
}

static void nonblocking(struct rank *r)
{
    ncclConfig_t c = config(80, 22809);
    ncclComm_t comm;
    static ncclUniqueId shared;
    int count, *p = device_memory(64);
    ncclResult_t res;
    OK(r->init);
    if (r->rank == 0)
        OK(ncclGetUniqueId(&shared));
    pthread_barrier_wait(&barrier);
    c.blocking = 0;
    if (r->rank == 0) { /* the other rank is not there: this one must not wait */
        CHECK(ncclCommInitRankConfig(&comm, 2, shared, 0, &c) == ncclInProgress);
        CHECK(async_error(comm) == ncclInProgress);
        CHECK(ncclCommCount(comm, &count) == ncclInvalidArgument);
    }
    pthread_barrier_wait(&barrier);
    if (r->rank == 1) { /* may be complete already, now that both are there */
        res = ncclCommInitRankConfig(&comm, 2, shared, 1, &c);
        CHECK(res == ncclSuccess || res == ncclInProgress);
    }
    while ((res = async_error(comm)) == ncclInProgress)
        usleep(100);
    OK(res);
    OK(ncclCommCount(comm, &count));
    CHECK(count == 2);
    res = ncclAllReduce(p, p, 4, ncclInt32, ncclSum, comm, r->stream);
    CHECK(res == ncclSuccess || res == ncclInProgress);
    while ((res = async_error(comm)) == ncclInProgress)
        usleep(100);
    OK(res);
    OK(cu.cuStreamSynchronize(r->stream));
    res = ncclCommFinalize(comm);
    CHECK(res == ncclSuccess || res == ncclInProgress);
    while ((res = async_error(comm)) == ncclInProgress)
        usleep(100);
    OK(ncclCommDestroy(comm));
}
TEST(non_blocking_communicators_are_in_progress_until_they_are_not)
{
    load(NULL);
    ranks(2, nonblocking);
}

int main(void)
{
    find_stand_ins();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_id_and_groups_work_without_a_driver),
        cmocka_unit_test(each_version_exports_what_it_had_and_no_more),
        cmocka_unit_test(every_type_and_operator_gives_the_right_sum),
        cmocka_unit_test(every_collective_moves_the_right_data),
        cmocka_unit_test(ranks_in_several_processes_share_one_communicator),
        cmocka_unit_test(a_killed_rank_ends_in_a_remote_error_on_the_others),
        cmocka_unit_test(init_gives_up_when_a_rank_does_not_come),
        cmocka_unit_test(abort_frees_a_stuck_collective),
        cmocka_unit_test(thousands_of_calls_back_to_back_stay_in_step),
        cmocka_unit_test(different_sizes_are_an_asynchronous_error),
        cmocka_unit_test(a_forked_child_gets_an_error_and_does_not_hang),
        cmocka_unit_test(wrong_arguments_are_refused_as_NCCL_refuses_them),
        cmocka_unit_test(one_thread_drives_many_ranks_by_groups),
        cmocka_unit_test(two_ranks_on_one_device_are_refused_before_2_30),
        cmocka_unit_test(two_ranks_share_a_device_from_2_30_on),
        cmocka_unit_test(a_communicator_shrinks_and_grows),
        cmocka_unit_test(non_blocking_communicators_are_in_progress_until_they_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
