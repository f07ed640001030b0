/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated driver: what may and what may not be done while a stream is captured. */
#include <pthread.h>

#include "test/fake/cuda_testing.h"

static const CUstreamCaptureMode GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL;
static const CUstreamCaptureMode LOCAL = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
static const CUstreamCaptureMode RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED;

/* The capture on `stream` ends, with this result. */
static void ends(CUstream stream, CUresult result)
{
    CUgraph graph = NULL;
    GIVES(cuStreamEndCapture(stream, &graph), result);
    assert_true((graph != NULL) == (result == CUDA_SUCCESS));
    if (graph != NULL) {
        WORKS(cuGraphDestroy(graph));
    }
}

static size_t nodes_of(CUgraph graph)
{
    size_t n = 0;
    WORKS(cuGraphGetNodes(graph, NULL, &n));
    return n;
}

static void captured_work_does_not_run(void **state)
{
    struct bench *b = *state;
    CUgraph graph;
    WORKS(cuStreamBeginCapture(b->stream, GLOBAL));
    WORKS(launch_count(b, b->stream, 0));
    WORKS(launch_count(b, b->stream, 0));
    WORKS(cuStreamEndCapture(b->stream, &graph));
    WORKS(cuStreamSynchronize(b->stream));
    assert_int_equal(nodes_of(graph), 2);
    assert_int_equal(cell(b, 0), 0);
    WORKS(cuGraphDestroy(graph));
}

/* ---- unsafe calls ---- */

static CUresult unsafe_alloc(struct bench *b)
{
    CUdeviceptr memory;
    (void)b;
    return cuMemAlloc(&memory, 64);
}

static CUresult unsafe_host_alloc(struct bench *b)
{
    void *memory;
    (void)b;
    return cuMemHostAlloc(&memory, 64, 0);
}

static CUresult unsafe_register(struct bench *b)
{
    static _Alignas(4096) char page[4096];
    (void)b;
    return cuMemHostRegister(page, sizeof page, 0);
}

static CUresult unsafe_load(struct bench *b)
{
    CUmodule module;
    (void)b;
    return cuModuleLoadData(&module, bench_ptx);
}

static CUresult unsafe_context(struct bench *b)
{
    (void)b;
    return cuCtxSynchronize();
}

static CUresult unsafe_other_stream(struct bench *b)
{
    CUstream other;
    (void)b;
    WORKS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CUresult result = cuStreamSynchronize(other);
    WORKS(cuStreamDestroy(other));
    return result;
}

static CUevent recorded_before;

static CUresult unsafe_event_query(struct bench *b)
{
    (void)b;
    return cuEventQuery(recorded_before);
}

typedef CUresult (*unsafe_call)(struct bench *b);

static void spoils(struct bench *b, unsafe_call call)
{
    WORKS(cuStreamBeginCapture(b->stream, GLOBAL));
    GIVES(call(b), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    GIVES(launch_count(b, b->stream, 0), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    ends(b->stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void an_allocation_during_a_strict_capture_invalidates_it(void **state)
{
    spoils(*state, unsafe_alloc);
    spoils(*state, unsafe_host_alloc);
}

static void registering_memory_during_a_strict_capture_invalidates_it(void **state)
{
    spoils(*state, unsafe_register);
}

static void loading_a_module_during_a_strict_capture_invalidates_it(void **state)
{
    NEEDS_SIMULATOR(); /* a driver that loads lazily allows this, an eager one refuses */
    spoils(*state, unsafe_load);
}

static void synchronizing_anything_during_a_strict_capture_invalidates_it(void **state)
{
    spoils(*state, unsafe_context);
    spoils(*state, unsafe_other_stream);
}

static void a_query_during_a_strict_capture_invalidates_it(void **state)
{
    struct bench *b = *state;
    WORKS(cuEventCreate(&recorded_before, CU_EVENT_DISABLE_TIMING));
    WORKS(cuEventRecord(recorded_before, b->stream));
    WORKS(cuStreamSynchronize(b->stream));
    spoils(b, unsafe_event_query);
    WORKS(cuEventDestroy(recorded_before));
}

static void instantiating_during_a_strict_capture_invalidates_it(void **state)
{
    struct bench *b = *state;
    CUgraphExec exec;
    CUgraph graph;
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuStreamBeginCapture(b->stream, LOCAL));
    GIVES(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends(b->stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    WORKS(cuGraphDestroy(graph));
}

static void harmless_calls_leave_a_strict_capture_alone(void **state)
{
    struct bench *b = *state;
    CUevent event;
    CUstream other;
    CUfunction function;
    CUdeviceptr pointer;
    uint64_t value = 1;
    WORKS(cuStreamBeginCapture(b->stream, GLOBAL));
    WORKS(cuEventCreate(&event, 0));
    WORKS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    WORKS(launch_count(b, other, 0)); /* eager, beside the capture */
    WORKS(cuEventRecord(event, other));
    WORKS(cuMemcpyHtoD(b->device_cells + 8, &value, 8));
    WORKS(cuModuleGetFunction(&function, b->module, "spin"));
    WORKS(cuMemHostGetDevicePointer(&pointer, b->cells, 0));
    GIVES(cuStreamBeginCapture(b->stream, GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
    WORKS(cuStreamDestroy(other));
    WORKS(cuEventDestroy(event));
    ends(b->stream, CUDA_SUCCESS);
}

static void external_records_and_waits_are_for_captures_alone(void **state)
{
    struct bench *b = *state;
    CUevent event;
    WORKS(cuEventCreate(&event, 0));
    GIVES(cuEventRecordWithFlags(event, b->stream, CU_EVENT_RECORD_EXTERNAL),
          CUDA_ERROR_ILLEGAL_STATE);
    GIVES(cuStreamWaitEvent(b->stream, event, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_ILLEGAL_STATE);
    WORKS(cuEventDestroy(event));
}

static void querying_the_captured_stream_invalidates_it_in_any_mode(void **state)
{
    struct bench *b = *state;
    WORKS(cuStreamBeginCapture(b->stream, RELAXED));
    GIVES(cuStreamQuery(b->stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends(b->stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    WORKS(cuStreamBeginCapture(b->stream, RELAXED));
    GIVES(cuStreamSynchronize(b->stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends(b->stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void a_relaxed_capture_allows_unsafe_calls(void **state)
{
    struct bench *b = *state;
    CUdeviceptr memory;
    WORKS(cuStreamBeginCapture(b->stream, RELAXED));
    WORKS(cuMemAlloc(&memory, 64));
    ends(b->stream, CUDA_SUCCESS);
    WORKS(cuMemFree(memory));
}

static void a_thread_in_relaxed_mode_may_do_unsafe_calls(void **state)
{
    struct bench *b = *state;
    CUstreamCaptureMode mode = RELAXED;
    CUdeviceptr memory;
    WORKS(cuStreamBeginCapture(b->stream, GLOBAL));
    WORKS(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, GLOBAL);
    WORKS(cuMemAlloc(&memory, 64));
    WORKS(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, RELAXED);
    ends(b->stream, CUDA_SUCCESS);
    WORKS(cuMemFree(memory));
}

/* ---- other threads ---- */

struct errand {
    struct bench *bench;
    CUstreamCaptureMode mode; /* of the thread */
    unsafe_call call;
    CUresult result;
};

static void *do_errand(void *arg)
{
    struct errand *errand = arg;
    WORKS(cuCtxSetCurrent(errand->bench->ctx));
    WORKS(cuThreadExchangeStreamCaptureMode(&errand->mode));
    errand->result = errand->call(errand->bench);
    return NULL;
}

static CUresult in_another_thread(struct bench *b, CUstreamCaptureMode mode, unsafe_call call)
{
    struct errand errand = {b, mode, call, CUDA_ERROR_UNKNOWN};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, do_errand, &errand), 0);
    pthread_join(thread, NULL);
    return errand.result;
}

static void a_global_capture_binds_every_thread(void **state)
{
    struct bench *b = *state;
    WORKS(cuStreamBeginCapture(b->stream, GLOBAL));
    GIVES(in_another_thread(b, GLOBAL, unsafe_alloc), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends(b->stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void a_thread_local_capture_binds_its_own_thread_alone(void **state)
{
    struct bench *b = *state;
    WORKS(cuStreamBeginCapture(b->stream, LOCAL));
    WORKS(in_another_thread(b, GLOBAL, unsafe_alloc));
    ends(b->stream, CUDA_SUCCESS);
    WORKS(cuStreamBeginCapture(b->stream, LOCAL));
    GIVES(unsafe_alloc(b), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends(b->stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void a_thread_in_local_or_relaxed_mode_does_not_mind_others(void **state)
{
    struct bench *b = *state;
    WORKS(cuStreamBeginCapture(b->stream, GLOBAL));
    WORKS(in_another_thread(b, LOCAL, unsafe_alloc));
    WORKS(in_another_thread(b, RELAXED, unsafe_alloc));
    ends(b->stream, CUDA_SUCCESS);
}

static CUresult end_it(struct bench *b)
{
    CUgraph graph;
    return cuStreamEndCapture(b->stream, &graph);
}

static void a_capture_ends_in_the_thread_that_began_it(void **state)
{
    struct bench *b = *state;
    WORKS(cuStreamBeginCapture(b->stream, LOCAL));
    GIVES(in_another_thread(b, GLOBAL, end_it), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    ends(b->stream, CUDA_ERROR_ILLEGAL_STATE); /* it has ended all the same */
    WORKS(cuStreamBeginCapture(b->stream, RELAXED));
    WORKS(in_another_thread(b, GLOBAL, end_it));
}

/* ---- the legacy stream ---- */

static void the_legacy_stream_can_not_be_captured(void **state)
{
    (void)state;
    GIVES(cuStreamBeginCapture(NULL, RELAXED), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void using_the_legacy_stream_beside_a_blocking_capture_invalidates_it(void **state)
{
    struct bench *b = *state;
    CUstream blocking;
    WORKS(cuStreamCreate(&blocking, 0));
    WORKS(cuStreamBeginCapture(blocking, RELAXED));
    GIVES(launch_count(b, NULL, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    ends(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    WORKS(cuStreamBeginCapture(b->stream, RELAXED));
    WORKS(launch_count(b, NULL, 0)); /* a non-blocking capture doesn't mind */
    ends(b->stream, CUDA_SUCCESS);
    WORKS(cuStreamDestroy(blocking));
    WORKS(cuCtxSynchronize());
}

static void asking_the_legacy_stream_beside_a_blocking_capture_harms_nothing(void **state)
{
    CUstreamCaptureStatus status;
    CUstream blocking;
    (void)state;
    WORKS(cuStreamCreate(&blocking, 0));
    WORKS(cuStreamBeginCapture(blocking, RELAXED));
    GIVES(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    GIVES(cuStreamGetCaptureInfo(NULL, &status, NULL, NULL, NULL, NULL, NULL),
          CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    ends(blocking, CUDA_SUCCESS);
    WORKS(cuStreamDestroy(blocking));
}

/* ---- forks and joins ---- */

struct fork {
    CUstream side;
    CUevent out, back;
};

static void fork_off(struct bench *b, struct fork *fork)
{
    WORKS(cuStreamCreate(&fork->side, CU_STREAM_NON_BLOCKING));
    WORKS(cuEventCreate(&fork->out, CU_EVENT_DISABLE_TIMING));
    WORKS(cuEventCreate(&fork->back, CU_EVENT_DISABLE_TIMING));
    WORKS(cuStreamBeginCapture(b->stream, GLOBAL));
    WORKS(launch_count(b, b->stream, 0));
    WORKS(cuEventRecord(fork->out, b->stream));
    WORKS(cuStreamWaitEvent(fork->side, fork->out, 0));
    WORKS(launch_count(b, fork->side, 1));
}

static void fork_done(struct fork *fork)
{
    WORKS(cuStreamDestroy(fork->side));
    WORKS(cuEventDestroy(fork->out));
    WORKS(cuEventDestroy(fork->back));
}

static void a_fork_that_joins_becomes_a_diamond(void **state)
{
    struct bench *b = *state;
    struct fork fork;
    CUgraph graph;
    CUgraphNode from[8], to[8], last[8];
    size_t n = 8;
    fork_off(b, &fork);
    WORKS(launch_count(b, b->stream, 2));
    WORKS(cuEventRecord(fork.back, fork.side));
    WORKS(cuStreamWaitEvent(b->stream, fork.back, 0));
    WORKS(launch_count(b, b->stream, 3));
    WORKS(cuStreamEndCapture(b->stream, &graph));
    WORKS(cuGraphGetEdges(graph, from, to, NULL, &n));
    assert_int_equal(n, 4);
    n = 8;
    WORKS(cuGraphGetNodes(graph, last, &n));
    assert_int_equal(n, 4);
    WORKS(cuGraphNodeGetDependencies(last[3], NULL, NULL, &n));
    assert_int_equal(n, 2);
    WORKS(cuGraphDestroy(graph));
    fork_done(&fork);
}

static void a_fork_that_never_joins_is_refused(void **state)
{
    struct bench *b = *state;
    struct fork fork;
    CUstreamCaptureStatus status;
    fork_off(b, &fork);
    ends(b->stream, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    WORKS(cuStreamIsCapturing(fork.side, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    fork_done(&fork);
}

static void only_the_first_stream_ends_a_capture(void **state)
{
    struct bench *b = *state;
    struct fork fork;
    fork_off(b, &fork);
    ends(fork.side, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CUgraph graph;
    (void)cuStreamEndCapture(b->stream, &graph);
    fork_done(&fork);
}

static void two_captures_do_not_merge(void **state)
{
    struct bench *b = *state;
    CUstream other;
    CUevent event;
    WORKS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    WORKS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    WORKS(cuStreamBeginCapture(b->stream, RELAXED));
    WORKS(cuStreamBeginCapture(other, RELAXED));
    WORKS(launch_count(b, other, 0));
    WORKS(cuEventRecord(event, other));
    GIVES(cuStreamWaitEvent(b->stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    ends(b->stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    ends(other, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    WORKS(cuStreamDestroy(other));
    WORKS(cuEventDestroy(event));
}

static void a_capture_may_not_wait_for_work_outside(void **state)
{
    struct bench *b = *state;
    CUstream other;
    CUevent event;
    WORKS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    WORKS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    WORKS(cuEventRecord(event, other));
    WORKS(cuStreamBeginCapture(b->stream, RELAXED));
    GIVES(cuStreamWaitEvent(b->stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    ends(b->stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    WORKS(cuStreamBeginCapture(b->stream, RELAXED));
    WORKS(cuStreamWaitEvent(b->stream, event, CU_EVENT_WAIT_EXTERNAL));
    ends(b->stream, CUDA_SUCCESS);
    WORKS(cuStreamDestroy(other));
    WORKS(cuEventDestroy(event));
}

/* ---- events ---- */

static void an_event_recorded_in_a_capture_has_no_time(void **state)
{
    struct bench *b = *state;
    CUevent before, captured;
    CUgraph graph;
    float ms;
    WORKS(cuEventCreate(&before, 0));
    WORKS(cuEventCreate(&captured, 0));
    WORKS(cuEventRecord(before, b->stream));
    WORKS(cuStreamSynchronize(b->stream));
    WORKS(cuStreamBeginCapture(b->stream, RELAXED));
    WORKS(launch_count(b, b->stream, 0));
    WORKS(cuEventRecord(captured, b->stream));
    WORKS(cuStreamEndCapture(b->stream, &graph));
    assert_int_equal(nodes_of(graph), 1); /* the record made no node */
    GIVES(cuEventQuery(captured), CUDA_ERROR_INVALID_VALUE);
    GIVES(cuEventSynchronize(captured), CUDA_ERROR_INVALID_VALUE);
    GIVES(cuStreamWaitEvent(b->stream, captured, 0), CUDA_ERROR_INVALID_VALUE);
    GIVES(cuEventElapsedTime(&ms, before, captured), CUDA_ERROR_INVALID_VALUE);
    WORKS(cuEventRecord(captured, b->stream)); /* an eager record makes it whole again */
    WORKS(cuEventSynchronize(captured));
    WORKS(cuGraphDestroy(graph));
    WORKS(cuEventDestroy(before));
    WORKS(cuEventDestroy(captured));
}

static void querying_an_event_of_a_running_capture_invalidates_it(void **state)
{
    struct bench *b = *state;
    CUevent event;
    WORKS(cuEventCreate(&event, 0));
    WORKS(cuStreamBeginCapture(b->stream, RELAXED));
    WORKS(cuEventRecord(event, b->stream));
    GIVES(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    ends(b->stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    WORKS(cuEventDestroy(event));
}

/* ---- asking and steering ---- */

static void capture_info_shows_the_frontier(void **state)
{
    struct bench *b = *state;
    CUstreamCaptureStatus status;
    cuuint64_t id = 0, again = 0;
    CUgraph graph;
    CUgraphNode empty;
    const CUgraphNode *deps;
    const CUgraphEdgeData *edges;
    size_t n = 9;
    WORKS(cuStreamGetCaptureInfo(b->stream, &status, NULL, NULL, NULL, NULL, NULL));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    WORKS(cuStreamBeginCapture(b->stream, GLOBAL));
    WORKS(launch_count(b, b->stream, 0));
    WORKS(cuStreamGetCaptureInfo(b->stream, &status, &id, &graph, &deps, &edges, &n));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_equal(n, 1);
    CUgraphNode first = deps[0];
    WORKS(cuGraphAddEmptyNode(&empty, graph, &first, 1));
    WORKS(cuStreamUpdateCaptureDependencies(b->stream, &empty, NULL, 1,
                                            CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    WORKS(cuStreamGetCaptureInfo(b->stream, &status, &again, NULL, &deps, &edges, &n));
    assert_int_equal(n, 1);
    assert_ptr_equal(deps[0], empty);
    assert_true(id == again);
    ends(b->stream, CUDA_SUCCESS);
}

static void a_stream_callback_can_not_be_captured(void **state)
{
    struct bench *b = *state;
    WORKS(cuStreamBeginCapture(b->stream, RELAXED));
    GIVES(cuStreamAddCallback(b->stream, (CUstreamCallback)(uintptr_t)abort, NULL, 0),
          CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends(b->stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void ending_what_never_began_is_refused(void **state)
{
    struct bench *b = *state;
    ends(b->stream, CUDA_ERROR_ILLEGAL_STATE);
}

static void a_capture_may_go_into_a_graph_that_exists(void **state)
{
    struct bench *b = *state;
    CUgraph graph, same;
    CUgraphNode first;
    size_t n = 0;
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuGraphAddEmptyNode(&first, graph, NULL, 0));
    WORKS(cuStreamBeginCaptureToGraph(b->stream, graph, &first, NULL, 1, RELAXED));
    WORKS(launch_count(b, b->stream, 0));
    WORKS(cuStreamEndCapture(b->stream, &same));
    assert_ptr_equal(graph, same);
    WORKS(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
    assert_int_equal(n, 1);
    WORKS(cuGraphDestroy(graph));
}

#define ON_BENCH(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BENCH(captured_work_does_not_run),
        ON_BENCH(an_allocation_during_a_strict_capture_invalidates_it),
        ON_BENCH(registering_memory_during_a_strict_capture_invalidates_it),
        ON_BENCH(loading_a_module_during_a_strict_capture_invalidates_it),
        ON_BENCH(synchronizing_anything_during_a_strict_capture_invalidates_it),
        ON_BENCH(a_query_during_a_strict_capture_invalidates_it),
        ON_BENCH(instantiating_during_a_strict_capture_invalidates_it),
        ON_BENCH(harmless_calls_leave_a_strict_capture_alone),
        ON_BENCH(external_records_and_waits_are_for_captures_alone),
        ON_BENCH(querying_the_captured_stream_invalidates_it_in_any_mode),
        ON_BENCH(a_relaxed_capture_allows_unsafe_calls),
        ON_BENCH(a_thread_in_relaxed_mode_may_do_unsafe_calls),
        ON_BENCH(a_global_capture_binds_every_thread),
        ON_BENCH(a_thread_local_capture_binds_its_own_thread_alone),
        ON_BENCH(a_thread_in_local_or_relaxed_mode_does_not_mind_others),
        ON_BENCH(a_capture_ends_in_the_thread_that_began_it),
        ON_BENCH(the_legacy_stream_can_not_be_captured),
        ON_BENCH(using_the_legacy_stream_beside_a_blocking_capture_invalidates_it),
        ON_BENCH(asking_the_legacy_stream_beside_a_blocking_capture_harms_nothing),
        ON_BENCH(a_fork_that_joins_becomes_a_diamond),
        ON_BENCH(a_fork_that_never_joins_is_refused),
        ON_BENCH(only_the_first_stream_ends_a_capture),
        ON_BENCH(two_captures_do_not_merge),
        ON_BENCH(a_capture_may_not_wait_for_work_outside),
        ON_BENCH(an_event_recorded_in_a_capture_has_no_time),
        ON_BENCH(querying_an_event_of_a_running_capture_invalidates_it),
        ON_BENCH(capture_info_shows_the_frontier),
        ON_BENCH(a_stream_callback_can_not_be_captured),
        ON_BENCH(ending_what_never_began_is_refused),
        ON_BENCH(a_capture_may_go_into_a_graph_that_exists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
