/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated NCCL in graphs, its times and the knobs for tests of tools. */
#include "test/unit/fake_nccl.h"

/* ---- graphs, time, knobs
 * -----------------------------------------------------------------------------------------------
 */

static int mixing_nodes; /* expected beside the kernels */
static void replay(struct rank *r)
{
    OK(r->init);
    int host[4] = {1, 1, 1, 1}, *p = device_memory(64);
    CUgraph graph;
    CUgraphExec exec;
    size_t n = 0;
    put(p, host, 16);
    OK(cu.cuStreamBeginCapture_v2(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < 3; i++)
        OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamEndCapture(r->stream, &graph));
    OK(cu.cuGraphGetNodes(graph, NULL, &n));
    CUgraphNode nodes[32];
    OK(cu.cuGraphGetNodes(graph, nodes, &n));
    int kernels = 0, others = 0;
    for (size_t i = 0; i < n; i++) {
        CUgraphNodeType type;
        OK(cu.cuGraphNodeGetType(nodes[i], &type));
        type == CU_GRAPH_NODE_TYPE_KERNEL ? kernels++ : others++;
    }
    CHECK(kernels == 3 && others == mixing_nodes);
    OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2; i++)
        OK(cu.cuGraphLaunch(exec, r->stream));
    OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream)); /* eager behind graphs */
    OK(cu.cuStreamSynchronize(r->stream));
    get(host, p, 16);
    CHECK(host[0] == 128 && host[3] == 128); /* 2 to the 7th */
    OK(cu.cuGraphExecDestroy(exec));
    OK(cu.cuGraphDestroy(graph));
    OK(ncclCommDestroy(r->comm));
}
TEST(captured_collectives_compute_at_each_replay)
{
    mixing_nodes = 4; /* one wait, and one record behind each collective */
    load(NULL);
    ranks(2, replay);
}
TEST(without_graph_mixing_there_are_no_event_nodes, "NCCL_GRAPH_MIXING_SUPPORT=0")
{
    load(NULL);
    ranks(2, replay);
}

static float duration_us;
static size_t timed_bytes;
/*
 * The time of one collective on the virtual clock, from a graph of a hundred. A first launch brings
 * the ranks together and puts the device's clock ahead of the host's, so that the second is
 * measured undisturbed by how fast this machine is.
 */
static void time_one(struct rank *r)
{
    enum { CALLS = 100 };
    OK(r->init);
    char *p = device_memory(4 << 20);
    CUevent a, b;
    CUgraph graph;
    CUgraphExec exec;
    float ms = 0;
    OK(cu.cuEventCreate(&a, 0));
    OK(cu.cuEventCreate(&b, 0));
    OK(cu.cuStreamBeginCapture_v2(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < CALLS; i++)
        OK(ncclAllReduce(p, p, timed_bytes / 2, ncclBfloat16, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamEndCapture(r->stream, &graph));
    OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    pthread_barrier_wait(&barrier);
    OK(cu.cuGraphLaunch(exec, r->stream));
    OK(cu.cuEventRecord(a, r->stream));
    OK(cu.cuGraphLaunch(exec, r->stream));
    OK(cu.cuEventRecord(b, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    OK(cu.cuEventElapsedTime(&ms, a, b));
    if (r->rank == 0)
        duration_us = ms * 1000 / CALLS;
    OK(cu.cuGraphExecDestroy(exec));
    OK(cu.cuGraphDestroy(graph));
    OK(ncclCommDestroy(r->comm));
}

static void run_timing(void)
{
    load(NULL);
    timed_bytes = (size_t)atol(getenv("BYTES"));
    ranks(atoi(getenv("RANKS")), time_one);
    _exit(duration_us > 4200  ? 210
          : duration_us > 100 ? (int)(100 + duration_us / 40)
                              : (int)duration_us);
}
/* Microseconds, coarser above a hundred. */
#define TIME(...) in_child(run_timing, "NCCLSHIM_FAKE_SKIP_DATA=1", __VA_ARGS__, NULL)
#define SEVEN                                                                        \
    "NCCL_PROTO=LL", "NCCL_ALGO=Ring", "NCCL_P2P_LEVEL=SYS", "NCCL_MIN_NCHANNELS=1", \
        "NCCL_MAX_NCHANNELS=2", "NCCL_BUFFSIZE=131072", "NCCL_NTHREADS=64"
static void settings_help_one_size_and_ruin_another(void **state)
{
    (void)state;
    int usual = TIME("RANKS=2", "BYTES=43008"), usual_large = TIME("RANKS=2", "BYTES=4194304");
    assert_in_range(usual, 10, 30);
    assert_true(TIME("RANKS=2", "BYTES=43008", SEVEN) > 2 * usual);
    assert_true(TIME("RANKS=2", "BYTES=4194304", SEVEN) >
                usual_large + 80); /* more than ten times */
    assert_true(TIME("RANKS=2", "BYTES=43008", "NCCL_P2P_LEVEL=SYS") < usual);
    int eight = TIME("RANKS=8", "BYTES=43008");
    assert_true(TIME("RANKS=8", "BYTES=43008", "NCCL_ALGO=Tree") < eight - 10);
    assert_true(TIME("RANKS=8", "BYTES=4194304", "NCCL_ALGO=Tree") >
                TIME("RANKS=8", "BYTES=4194304"));
    assert_int_equal(TIME("RANKS=2", "BYTES=43008", "NCCLSHIM_FAKE_SEED=5"),
                     TIME("RANKS=2", "BYTES=43008", "NCCLSHIM_FAKE_SEED=5"));
}

static void a_straggler_holds_up_everyone(void **state)
{
    (void)state;
    int usual = TIME("RANKS=2", "BYTES=1024"),
        late = TIME("RANKS=2", "BYTES=1024", "NCCLSHIM_FAKE_STRAGGLER=1:50000");
    assert_in_range(late, usual + 45, usual + 60);
}

static void run_wrong(void)
{
    load(NULL);
    ranks(2, big_sum);
}
static void the_knobs_make_wrong_sums_and_hangs(void **state)
{
    (void)state;
    assert_int_equal(in_child(run_wrong, "NCCLSHIM_FAKE_WRONG=NCCL_PROTO=LL", NULL), 0);
    assert_int_equal(
        in_child(run_wrong, "NCCLSHIM_FAKE_WRONG=NCCL_PROTO=LL", "NCCL_PROTO=LL", NULL), 1);
    assert_int_equal(
        in_child(run_wrong, "NCCLSHIM_FAKE_WRONG=NCCL_NTHREADS=128", "NCCL_NTHREADS=128", NULL), 1);
    assert_int_equal(in_child(run_wrong, "NCCLSHIM_FAKE_HANG=NCCL_ALGO=Tree", NULL), 0);
}

static void hanging(struct rank *r)
{
    OK(r->init);
    int *p = device_memory(64);
    OK(ncclAllReduce(p, p, 4, ncclInt32, ncclSum, r->comm, r->stream));
    usleep(300000);
    OK(ncclCommAbort(r->comm));
}
TEST(a_hanging_setting_is_ended_by_abort, "NCCLSHIM_FAKE_HANG=NCCL_ALGO=Tree", "NCCL_ALGO=Tree")
{
    load(NULL);
    ranks(2, hanging);
}

#define RATE_CALLS 40000
static void rate(struct rank *r)
{
    struct timespec a, b;
    OK(r->init);
    char *p = device_memory(64);
    pthread_barrier_wait(&barrier);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < RATE_CALLS; i++)
        OK(ncclAllReduce(p, p, 4, ncclBfloat16, ncclSum, r->comm, r->stream));
    OK(cu.cuStreamSynchronize(r->stream));
    clock_gettime(CLOCK_MONOTONIC, &b);
    double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    if (r->rank == 0)
        print_message("           %.0f eager collectives a second, 2 ranks as threads\n",
                      RATE_CALLS / s);
    OK(ncclCommDestroy(r->comm));
}
TEST(small_collectives_are_quick)
{
    load(NULL);
    ranks(2, rate);
}

int main(void)
{
    find_stand_ins();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captured_collectives_compute_at_each_replay),
        cmocka_unit_test(without_graph_mixing_there_are_no_event_nodes),
        cmocka_unit_test(settings_help_one_size_and_ruin_another),
        cmocka_unit_test(a_straggler_holds_up_everyone),
        cmocka_unit_test(the_knobs_make_wrong_sums_and_hangs),
        cmocka_unit_test(a_hanging_setting_is_ended_by_abort),
        cmocka_unit_test(small_collectives_are_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
