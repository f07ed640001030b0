/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated driver: graphs, their replay, and kernels that are host code. */
#include "test/fake/cuda_testing.h"

static CUgraphExec make_exec(CUgraph graph)
{
    CUgraphExec exec;
    WORKS(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

/* A graph of `n` counting kernels in a row, on cells from 0 on. */
static CUgraph capture_counts(struct bench *b, int n)
{
    CUgraph graph;
    WORKS(cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < n; i++) {
        WORKS(launch_count(b, b->stream, i));
    }
    WORKS(cuStreamEndCapture(b->stream, &graph));
    return graph;
}

static void each_replay_runs_every_node_once(void **state)
{
    struct bench *b = *state;
    CUgraph graph = capture_counts(b, 3);
    CUgraphExec exec = make_exec(graph);
    WORKS(cuGraphDestroy(graph)); /* the executable copy lives on */
    WORKS(cuGraphUpload(exec, b->stream));
    for (int i = 0; i < 50; i++) {
        WORKS(cuGraphLaunch(exec, b->stream));
    }
    WORKS(cuGraphExecDestroy(exec)); /* while it runs */
    WORKS(cuStreamSynchronize(b->stream));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cell(b, i), 50);
    }
    GIVES(cuGraphLaunch(exec, b->stream), CUDA_ERROR_INVALID_VALUE);
}

static void parameters_are_those_of_the_time_of_capture(void **state)
{
    struct bench *b = *state;
    CUgraph graph;
    uint64_t address = b->device_cells;
    void *params[] = {&address};
    WORKS(cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(cuLaunchKernel(b->count, 1, 1, 1, 1, 1, 1, 0, b->stream, params, NULL));
    WORKS(cuStreamEndCapture(b->stream, &graph));
    address += 8;
    CUgraphExec exec = make_exec(graph);
    WORKS(cuGraphLaunch(exec, b->stream));
    WORKS(cuStreamSynchronize(b->stream));
    assert_int_equal(cell(b, 0), 1);
    assert_int_equal(cell(b, 1), 0);

    CUgraphNode node;
    size_t n = 1;
    CUDA_KERNEL_NODE_PARAMS node_params;
    WORKS(cuGraphGetNodes(graph, &node, &n));
    WORKS(cuGraphKernelNodeGetParams(node, &node_params));
    assert_ptr_equal(node_params.func, b->count);
    assert_true(*(uint64_t *)node_params.kernelParams[0] == address - 8);
    node_params.kernelParams = params;
    WORKS(cuGraphExecKernelNodeSetParams(exec, node, &node_params));
    WORKS(cuGraphLaunch(exec, b->stream));
    WORKS(cuStreamSynchronize(b->stream));
    assert_int_equal(cell(b, 0), 1);
    assert_int_equal(cell(b, 1), 1);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
}

static void a_graph_never_runs_beside_itself(void **state)
{
    struct bench *b = *state;
    CUgraph graph;
    CUstream other;
    WORKS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    WORKS(cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(launch_count(b, b->stream, 1));
    WORKS(launch_hold(b, b->stream, 0));
    WORKS(cuStreamEndCapture(b->stream, &graph));
    CUgraphExec exec = make_exec(graph);
    WORKS(cuGraphLaunch(exec, b->stream));
    WORKS(cuGraphLaunch(exec, other));
    usleep(30000);
    assert_int_equal(cell(b, 1), 1);
    let_go(b, 0);
    WORKS(cuStreamSynchronize(other));
    assert_int_equal(cell(b, 1), 2);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
    WORKS(cuStreamDestroy(other));
}

/* ---- update ---- */

static CUgraphExecUpdateResult update(CUgraphExec exec, CUgraph graph)
{
    CUgraphExecUpdateResultInfo info;
    CUresult result = cuGraphExecUpdate(exec, graph, &info);
    GIVES(result, info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS
                      ? CUDA_SUCCESS
                      : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    return info.result;
}

static void a_capture_of_the_same_shape_updates_an_executable_graph(void **state)
{
    struct bench *b = *state;
    CUgraph one = capture_counts(b, 2), same = capture_counts(b, 2), longer = capture_counts(b, 3);
    CUgraph other;
    CUgraphExec exec = make_exec(one);
    assert_int_equal(update(exec, same), CU_GRAPH_EXEC_UPDATE_SUCCESS);
    assert_int_equal(update(exec, longer), CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    WORKS(cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(launch_count(b, b->stream, 5));
    WORKS(cuMemsetD32Async(b->device_cells, 0, 1, b->stream));
    WORKS(cuStreamEndCapture(b->stream, &other));
    assert_int_equal(update(exec, other), CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    WORKS(cuGraphLaunch(exec, b->stream));
    WORKS(cuStreamSynchronize(b->stream));
    assert_int_equal(cell(b, 0), 1);
    assert_int_equal(cell(b, 5), 0);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(one));
    WORKS(cuGraphDestroy(same));
    WORKS(cuGraphDestroy(longer));
    WORKS(cuGraphDestroy(other));
}

static void an_update_notices_other_dependencies(void **state)
{
    struct bench *b = *state;
    CUgraph row, loose;
    CUgraphNode nodes[3];
    (void)b;
    WORKS(cuGraphCreate(&row, 0));
    WORKS(cuGraphAddEmptyNode(&nodes[0], row, NULL, 0));
    WORKS(cuGraphAddEmptyNode(&nodes[1], row, &nodes[0], 1));
    WORKS(cuGraphCreate(&loose, 0));
    WORKS(cuGraphAddEmptyNode(&nodes[0], loose, NULL, 0));
    WORKS(cuGraphAddEmptyNode(&nodes[1], loose, NULL, 0));
    CUgraphExec exec = make_exec(row);
    assert_int_equal(update(exec, loose), CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(row));
    WORKS(cuGraphDestroy(loose));
}

static void a_cycle_can_not_be_instantiated(void **state)
{
    CUgraph graph;
    CUgraphNode nodes[2];
    CUgraphExec exec;
    (void)state;
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
    WORKS(cuGraphAddEmptyNode(&nodes[1], graph, &nodes[0], 1));
    CUresult result = cuGraphAddDependencies(graph, &nodes[1], &nodes[0], NULL, 1);
    if (result == CUDA_SUCCESS) {
        result = cuGraphInstantiate(&exec, graph, 0);
    }
    GIVES(result, CUDA_ERROR_INVALID_VALUE);
    WORKS(cuGraphDestroy(graph));
}

/* ---- life ---- */

static void count_down(void *arg)
{
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_SEQ_CST);
}

/* A destructor may run a little later, on another thread. */
static void becomes(int *value, int wanted)
{
    for (int i = 0; i < 1000 && __atomic_load_n(value, __ATOMIC_SEQ_CST) != wanted; i++) {
        usleep(1000);
    }
    assert_int_equal(__atomic_load_n(value, __ATOMIC_SEQ_CST), wanted);
}

static void a_user_object_lives_as_long_as_graph_clone_and_executable_copy(void **state)
{
    struct bench *b = *state;
    CUuserObject object;
    CUgraph graph = capture_counts(b, 1), clone;
    int gone = 0;
    WORKS(cuUserObjectCreate(&object, &gone, count_down, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    WORKS(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    WORKS(cuGraphClone(&clone, graph));
    CUgraphExec exec = make_exec(graph);
    WORKS(cuGraphDestroy(graph));
    WORKS(cuGraphDestroy(clone));
    WORKS(cuGraphLaunch(exec, b->stream));
    WORKS(cuStreamSynchronize(b->stream));
    assert_int_equal(gone, 0);
    WORKS(cuGraphExecDestroy(exec));
    becomes(&gone, 1);
}

/* ---- other nodes ---- */

static void external_records_keep_the_time_of_the_last_replay(void **state)
{
    struct bench *b = *state;
    CUevent start, end;
    CUgraph graph;
    float ms;
    WORKS(cuEventCreate(&start, 0));
    WORKS(cuEventCreate(&end, 0));
    WORKS(cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WORKS(cuEventRecordWithFlags(start, b->stream, CU_EVENT_RECORD_EXTERNAL));
    WORKS(launch_at(b->spin, b->stream, 1000000));
    WORKS(launch_count(b, b->stream, 0));
    WORKS(cuEventRecordWithFlags(end, b->stream, CU_EVENT_RECORD_EXTERNAL));
    WORKS(cuStreamEndCapture(b->stream, &graph));
    CUgraphExec exec = make_exec(graph);
    for (int i = 0; i < 3; i++) {
        WORKS(cuGraphLaunch(exec, b->stream));
        WORKS(cuEventSynchronize(end)); /* of this replay, not of the one before */
        assert_int_equal(cell(b, 0), i + 1);
        WORKS(cuEventElapsedTime(&ms, start, end));
        assert_true(ms >= 1.0f && ms < 1.2f);
    }
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
    WORKS(cuEventDestroy(start));
    WORKS(cuEventDestroy(end));
}

static void a_wait_node_waits_for_what_was_recorded_before_the_launch(void **state)
{
    struct bench *b = *state;
    CUgraph graph;
    CUgraphNode wait;
    CUevent event;
    CUstream other;
    WORKS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    WORKS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, event));
    WORKS(
        cuStreamBeginCaptureToGraph(other, graph, &wait, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(launch_count(b, other, 1));
    WORKS(cuStreamEndCapture(other, &graph));
    CUgraphExec exec = make_exec(graph);
    WORKS(launch_hold(b, b->stream, 0));
    WORKS(cuEventRecord(event, b->stream));
    WORKS(cuGraphLaunch(exec, other));
    usleep(20000);
    assert_int_equal(cell(b, 1), 0);
    let_go(b, 0);
    WORKS(cuStreamSynchronize(other));
    assert_int_equal(cell(b, 1), 1);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
    WORKS(cuStreamDestroy(other));
    WORKS(cuEventDestroy(event));
}

static void child_graphs_host_nodes_and_fills_run_in_their_place(void **state)
{
    struct bench *b = *state;
    int calls = 0;
    CUgraph graph, child = capture_counts(b, 2);
    CUgraphNode fill, inner, host;
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = b->device_cells, .value = 5, .elementSize = 1, .width = 1, .height = 1};
    CUDA_HOST_NODE_PARAMS call = {count_down, &calls};
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &set, b->ctx));
    WORKS(cuGraphAddChildGraphNode(&inner, graph, &fill, 1, child));
    WORKS(cuGraphAddHostNode(&host, graph, &inner, 1, &call));
    CUgraphExec exec = make_exec(graph);
    WORKS(cuGraphLaunch(exec, b->stream));
    WORKS(cuStreamSynchronize(b->stream));
    assert_int_equal(cell(b, 0), 6);
    assert_int_equal(cell(b, 1), 1);
    assert_int_equal(calls, 1);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
    WORKS(cuGraphDestroy(child));
}

static void a_graph_is_not_launched_into_a_capture(void **state)
{
    struct bench *b = *state;
    CUgraph inner = capture_counts(b, 2), outer;
    CUgraphExec exec = make_exec(inner);
    WORKS(cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    GIVES(cuGraphLaunch(exec, b->stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    GIVES(cuStreamEndCapture(b->stream, &outer), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(inner));
}

/* ---- programmatic launch ---- */

static CUresult launch_early(struct bench *b, int i)
{
    CUdeviceptr address = b->device_cells + 8u * (unsigned)i;
    void *params[] = {&address};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = b->stream,
                             .attrs = &attribute,
                             .numAttrs = 1};
    attribute.value.programmaticStreamSerializationAllowed = 1;
    return cuLaunchKernelEx(&config, b->count, params, NULL);
}

static void a_programmatic_launch_makes_a_programmatic_edge(void **state)
{
    struct bench *b = *state;
    CUgraph graph;
    CUgraphNode from, to;
    CUgraphEdgeData edge;
    size_t n = 1;
    WORKS(cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(launch_count(b, b->stream, 0));
    WORKS(launch_early(b, 1));
    WORKS(cuStreamEndCapture(b->stream, &graph));
    WORKS(cuGraphGetEdges(graph, &from, &to, &edge, &n));
    assert_int_equal(n, 1);
    assert_int_equal(edge.type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    assert_int_equal(edge.from_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
    GIVES(cuGraphGetEdges(graph, &from, &to, NULL, &n), CUDA_ERROR_LOSSY_QUERY);
    CUgraphExec exec = make_exec(graph);
    WORKS(cuGraphLaunch(exec, b->stream));
    WORKS(cuStreamSynchronize(b->stream));
    assert_int_equal(cell(b, 1), 1);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
}

static int old_device(void)
{
    void *state;
    bench_setup(&state);
    CHILD_WANTS(launch_early(state, 0), CUDA_ERROR_NOT_SUPPORTED);
    return 0;
}

static void a_programmatic_launch_needs_sm_90(void **state)
{
    (void)state;
    NEEDS_SIMULATOR();
    assert_int_equal(run_self("NCCLSHIM_FAKE_SM=80", "old_device"), 0);
}

/* ---- kernels that are host code ---- */

struct job {
    int runs, released;
    uint64_t last_start;
};

static uint64_t run_job(void *arg, uint64_t start_ns)
{
    struct job *job = arg;
    job->runs++;
    job->last_start = start_ns;
    return start_ns + 5000;
}

static void release_job(void *arg)
{
    count_down(&((struct job *)arg)->released);
}

static void a_host_kernel_runs_in_order_and_takes_its_virtual_time(void **state)
{
    struct bench *b = *state;
    struct job job = {0};
    NEEDS_SIMULATOR();
    WORKS(launch_at(b->stamp, b->stream, b->device_cells));
    WORKS(fakecuda_launch(b->stream, "job", run_job, &job, release_job));
    WORKS(launch_at(b->stamp, b->stream, b->device_cells + 8));
    WORKS(cuStreamSynchronize(b->stream));
    assert_int_equal(job.runs, 1);
    becomes(&job.released, 1);
    assert_true(job.last_start > cell(b, 0));
    assert_true(cell(b, 1) >= job.last_start + 5000 - 32);
}

static void a_captured_host_kernel_is_released_with_the_last_executable_copy(void **state)
{
    struct bench *b = *state;
    struct job job = {0};
    CUgraph graph;
    CUgraphNode node;
    CUgraphNodeType type;
    size_t n = 1;
    NEEDS_SIMULATOR();
    WORKS(cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WORKS(fakecuda_launch(b->stream, "job", run_job, &job, release_job));
    WORKS(cuStreamEndCapture(b->stream, &graph));
    WORKS(cuGraphGetNodes(graph, &node, &n));
    WORKS(cuGraphNodeGetType(node, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_KERNEL);
    CUDA_KERNEL_NODE_PARAMS params;
    const char *name;
    WORKS(cuGraphKernelNodeGetParams(node, &params));
    WORKS(cuFuncGetName(&name, params.func));
    assert_string_equal(name, "job");
    CUgraphExec exec = make_exec(graph);
    WORKS(cuGraphDestroy(graph));
    for (int i = 0; i < 10; i++) {
        WORKS(cuGraphLaunch(exec, b->stream));
    }
    WORKS(cuStreamSynchronize(b->stream));
    assert_int_equal(job.runs, 10);
    assert_int_equal(job.released, 0);
    WORKS(cuGraphExecDestroy(exec));
    becomes(&job.released, 1);
}

struct meeting {
    int present;
};

static uint64_t meet(void *arg, uint64_t start_ns)
{
    struct meeting *meeting = arg;
    __atomic_fetch_add(&meeting->present, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&meeting->present, __ATOMIC_SEQ_CST) < 2) {
        usleep(100);
    }
    return start_ns + 1000;
}

static void host_kernels_of_two_streams_may_wait_for_each_other(void **state)
{
    struct bench *b = *state;
    struct meeting meeting = {0};
    CUstream other;
    NEEDS_SIMULATOR();
    WORKS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    WORKS(fakecuda_launch(b->stream, "meet", meet, &meeting, NULL));
    WORKS(fakecuda_launch(other, "meet", meet, &meeting, NULL));
    WORKS(cuStreamSynchronize(b->stream));
    WORKS(cuStreamSynchronize(other));
    WORKS(cuStreamDestroy(other));
}

/* ---- conditions ---- */

struct loop {
    cuuint64_t handle;
    int rounds;
};

static uint64_t once_more(void *arg, uint64_t start_ns)
{
    struct loop *loop = arg;
    fakecuda_set_conditional(loop->handle, ++loop->rounds < 4);
    return start_ns;
}

static void a_while_node_runs_its_body_until_the_condition_ends(void **state)
{
    struct bench *b = *state;
    struct loop loop = {0};
    CUgraph graph, same;
    CUgraphNode node;
    CUgraphConditionalHandle handle;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    NEEDS_SIMULATOR();
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuGraphConditionalHandleCreate(&handle, graph, b->ctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    loop.handle = handle;
    params.conditional.handle = handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 1;
    params.conditional.ctx = b->ctx;
    WORKS(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
    WORKS(cuStreamBeginCaptureToGraph(b->stream, params.conditional.phGraph_out[0], NULL, NULL, 0,
                                      CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(launch_count(b, b->stream, 0));
    WORKS(fakecuda_launch(b->stream, "once more", once_more, &loop, NULL));
    WORKS(cuStreamEndCapture(b->stream, &same));
    CUgraphExec exec = make_exec(graph);
    for (int i = 0; i < 2; i++) {
        loop.rounds = 0;
        WORKS(cuGraphLaunch(exec, b->stream));
        WORKS(cuStreamSynchronize(b->stream));
        assert_int_equal(loop.rounds, 4);
    }
    assert_int_equal(cell(b, 0), 8);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
}

/* ---- speed ---- */

static int rate(void)
{
    enum { NODES = 366, LAUNCHES = 5000 };
    void *state;
    bench_setup(&state);
    struct bench *b = state;
    CUgraph graph;
    CUgraphExec exec;
    CHILD_WANTS(cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    for (int i = 0; i < NODES; i++) {
        CHILD_WANTS(launch_at(b->stamp, b->stream, b->device_cells), CUDA_SUCCESS);
    }
    CHILD_WANTS(cuStreamEndCapture(b->stream, &graph), CUDA_SUCCESS);
    CHILD_WANTS(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    double start = seconds();
    for (int i = 0; i < LAUNCHES; i++) {
        CHILD_WANTS(cuGraphLaunch(exec, b->stream), CUDA_SUCCESS);
    }
    CHILD_WANTS(cuStreamSynchronize(b->stream), CUDA_SUCCESS);
    printf("replay: %.1f million kernel nodes a second on one core\n",
           NODES * LAUNCHES / (seconds() - start) / 1e6);
    return 0;
}

static void replay_is_fast(void **state)
{
    (void)state;
    NEEDS_SIMULATOR();
    assert_int_equal(run_self("NCCLSHIM_FAKE_PACE=0", "rate"), 0);
}

#define ON_BENCH(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_BENCH(each_replay_runs_every_node_once),
        ON_BENCH(parameters_are_those_of_the_time_of_capture),
        ON_BENCH(a_graph_never_runs_beside_itself),
        ON_BENCH(a_capture_of_the_same_shape_updates_an_executable_graph),
        ON_BENCH(an_update_notices_other_dependencies),
        ON_BENCH(a_cycle_can_not_be_instantiated),
        ON_BENCH(a_user_object_lives_as_long_as_graph_clone_and_executable_copy),
        ON_BENCH(external_records_keep_the_time_of_the_last_replay),
        ON_BENCH(a_wait_node_waits_for_what_was_recorded_before_the_launch),
        ON_BENCH(child_graphs_host_nodes_and_fills_run_in_their_place),
        ON_BENCH(a_graph_is_not_launched_into_a_capture),
        ON_BENCH(a_programmatic_launch_makes_a_programmatic_edge),
        cmocka_unit_test(a_programmatic_launch_needs_sm_90),
        ON_BENCH(a_host_kernel_runs_in_order_and_takes_its_virtual_time),
        ON_BENCH(a_captured_host_kernel_is_released_with_the_last_executable_copy),
        ON_BENCH(host_kernels_of_two_streams_may_wait_for_each_other),
        ON_BENCH(a_while_node_runs_its_body_until_the_condition_ends),
        cmocka_unit_test(replay_is_fast),
    };
    if (argc > 1) {
        return strcmp(argv[1], "rate") == 0         ? rate()
               : strcmp(argv[1], "old_device") == 0 ? old_device()
                                                    : 127;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
