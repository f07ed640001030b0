/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated driver: contexts, streams, events, memory, faults. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "test/fake/cuda_testing.h"

/* ---- starting ---- */

static int before_init(void)
{
    int n;
    CHILD_WANTS(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
    CHILD_WANTS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    CHILD_WANTS(cuInit(0), CUDA_SUCCESS);
    CHILD_WANTS(cuDeviceGetCount(&n), CUDA_SUCCESS);
    return 0;
}

static void calls_before_init_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run_self("NCCLSHIM_FAKE_GPUS=3", "before_init"), 0);
}

static int three_devices(void)
{
    int n, major;
    CUdevice device;
    CHILD_WANTS(cuInit(0), CUDA_SUCCESS);
    CHILD_WANTS(cuDeviceGetCount(&n), CUDA_SUCCESS);
    CHILD_WANTS(cuDeviceGet(&device, 3), CUDA_ERROR_INVALID_DEVICE);
    CHILD_WANTS(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 2),
                CUDA_SUCCESS);
    return n == 3 && major == 9 ? 0 : 2;
}

static void the_number_of_devices_is_a_setting(void **state)
{
    (void)state;
    NEEDS_SIMULATOR();
    assert_int_equal(run_self("NCCLSHIM_FAKE_GPUS=3", "three_devices"), 0);
}

static void a_call_without_a_context_is_refused(void **state)
{
    struct bench *b = *state;
    CUstream stream;
    CUdeviceptr memory;
    WORKS(cuCtxSetCurrent(NULL));
    GIVES(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    GIVES(cuMemAlloc(&memory, 16), CUDA_ERROR_INVALID_CONTEXT);
    WORKS(cuCtxSetCurrent(b->ctx));
}

static void a_destroyed_context_says_so(void **state)
{
    CUcontext ctx, popped;
    CUstream stream;
    (void)state;
    WORKS(cuCtxCreate(&ctx, NULL, 0, 0));
    WORKS(cuCtxPushCurrent(ctx));
    WORKS(cuCtxDestroy(ctx)); /* pops one of the two */
    GIVES(cuStreamCreate(&stream, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    WORKS(cuCtxPopCurrent(&popped));
}

static void *current_elsewhere(void *arg)
{
    CUcontext ctx;
    if (cuCtxGetCurrent(&ctx) == CUDA_SUCCESS && ctx == NULL) {
        *(int *)arg = 1;
    }
    return NULL;
}

static void the_current_context_is_a_thread_s_own(void **state)
{
    pthread_t thread;
    int right = 0;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, current_elsewhere, &right), 0);
    pthread_join(thread, NULL);
    assert_int_equal(right, 1);
}

static void the_primary_context_lives_until_the_last_release(void **state)
{
    struct bench *b = *state;
    CUcontext again;
    unsigned flags;
    int active;
    WORKS(cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(again, b->ctx);
    WORKS(cuDevicePrimaryCtxRelease(0));
    WORKS(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 1);
    int n;
    WORKS(cuDeviceGetCount(&n));
    if (n > 1) {
        WORKS(cuDevicePrimaryCtxGetState(n - 1, &flags, &active));
        assert_int_equal(active, 0);
    }
}

static void a_kernel_of_another_context_is_refused(void **state)
{
    struct bench *b = *state;
    CUcontext other;
    CUstream stream;
    WORKS(cuCtxCreate(&other, NULL, 0, 0));
    WORKS(cuStreamCreate(&stream, 0));
    GIVES(launch_count(b, stream, 0), CUDA_ERROR_INVALID_HANDLE);
    WORKS(cuCtxDestroy(other));
}

/* ---- streams ---- */

static void work_in_a_stream_runs_in_order(void **state)
{
    struct bench *b = *state;
    for (int i = 0; i < 100; i++) {
        WORKS(launch_at(b->stamp, b->stream, b->device_cells + 8u * (unsigned)i));
    }
    WORKS(cuStreamSynchronize(b->stream));
    for (int i = 1; i < 100; i++) {
        assert_true(cell(b, i) > cell(b, i - 1));
    }
}

static void the_clock_is_the_time_of_day_in_steps_of_32_ns(void **state)
{
    struct bench *b = *state;
    struct timespec now;
    WORKS(launch_at(b->stamp, b->stream, b->device_cells));
    WORKS(cuStreamSynchronize(b->stream));
    clock_gettime(CLOCK_REALTIME, &now);
    double apart = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - (double)cell(b, 0) * 1e-9;
    assert_true(apart > -1 && apart < 1);
    assert_int_equal(cell(b, 0) % 32, 0);
}

static void a_stream_is_not_ready_while_a_kernel_runs(void **state)
{
    struct bench *b = *state;
    WORKS(launch_hold(b, b->stream, 0));
    GIVES(cuStreamQuery(b->stream), CUDA_ERROR_NOT_READY);
    let_go(b, 0);
    WORKS(cuStreamSynchronize(b->stream));
    WORKS(cuStreamQuery(b->stream));
}

static void synchronizing_takes_the_time_that_the_kernel_took(void **state)
{
    struct bench *b = *state;
    double start = seconds();
    WORKS(launch_at(b->spin, b->stream, 30000000));
    WORKS(cuStreamSynchronize(b->stream));
    assert_true(seconds() - start > 0.029);
}

static void the_legacy_stream_waits_for_blocking_streams(void **state)
{
    struct bench *b = *state;
    CUstream blocking;
    WORKS(cuStreamCreate(&blocking, 0));
    WORKS(launch_hold(b, blocking, 0));
    WORKS(launch_count(b, NULL, 1));
    WORKS(launch_hold(b, b->stream, 2)); /* non-blocking: nobody waits for it */
    usleep(20000);
    assert_int_equal(cell(b, 1), 0);
    let_go(b, 0);
    WORKS(cuStreamSynchronize(NULL));
    assert_int_equal(cell(b, 1), 1);
    GIVES(cuStreamQuery(b->stream), CUDA_ERROR_NOT_READY);
    let_go(b, 2);
    WORKS(cuStreamSynchronize(b->stream));
    WORKS(cuStreamDestroy(blocking));
}

static void blocking_streams_wait_for_the_legacy_stream(void **state)
{
    struct bench *b = *state;
    CUstream blocking;
    WORKS(cuStreamCreate(&blocking, 0));
    WORKS(launch_hold(b, CU_STREAM_LEGACY, 0));
    WORKS(launch_count(b, blocking, 1));
    WORKS(launch_count(b, b->stream, 2));
    WORKS(cuStreamSynchronize(b->stream));
    assert_int_equal(cell(b, 2), 1);
    assert_int_equal(cell(b, 1), 0);
    let_go(b, 0);
    WORKS(cuStreamSynchronize(blocking));
    assert_int_equal(cell(b, 1), 1);
    WORKS(cuStreamDestroy(blocking));
}

static void *use_own_stream(void *arg)
{
    struct bench *b = arg;
    WORKS(cuCtxSetCurrent(b->ctx));
    WORKS(launch_count(b, CU_STREAM_PER_THREAD, 1));
    WORKS(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}

static void each_thread_has_a_default_stream_of_its_own(void **state)
{
    struct bench *b = *state;
    pthread_t thread;
    WORKS(launch_hold(b, CU_STREAM_PER_THREAD, 0));
    assert_int_equal(pthread_create(&thread, NULL, use_own_stream, b), 0);
    pthread_join(thread, NULL);
    assert_int_equal(cell(b, 1), 1);
    let_go(b, 0);
    WORKS(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

static void a_destroyed_stream_still_finishes_its_work(void **state)
{
    struct bench *b = *state;
    CUstream stream;
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(launch_hold(b, stream, 0));
    WORKS(launch_count(b, stream, 1));
    WORKS(cuStreamDestroy(stream));
    let_go(b, 0);
    for (int i = 0; i < 1000 && cell(b, 1) == 0; i++) {
        usleep(1000);
    }
    assert_int_equal(cell(b, 1), 1);
}

static void destroyed_handles_are_refused(void **state)
{
    struct bench *b = *state;
    CUstream stream;
    CUevent event;
    NEEDS_SIMULATOR(); /* a real driver may crash instead */
    WORKS(cuStreamCreate(&stream, 0));
    WORKS(cuStreamDestroy(stream));
    GIVES(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    GIVES(launch_count(b, stream, 0), CUDA_ERROR_INVALID_HANDLE);
    WORKS(cuEventCreate(&event, 0));
    WORKS(cuEventDestroy(event));
    GIVES(cuEventRecord(event, b->stream), CUDA_ERROR_INVALID_HANDLE);
    GIVES(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
}

static void call_cuda(void *arg)
{
    int n;
    *(CUresult *)arg = cuDeviceGetCount(&n);
}

static void a_host_function_runs_in_order_and_may_not_call_cuda(void **state)
{
    struct bench *b = *state;
    CUresult seen = CUDA_ERROR_UNKNOWN;
    WORKS(launch_count(b, b->stream, 0));
    WORKS(cuLaunchHostFunc(b->stream, call_cuda, &seen));
    WORKS(cuStreamSynchronize(b->stream));
    GIVES(seen, CUDA_ERROR_NOT_PERMITTED);
}

/* ---- events ---- */

static void events_measure_what_lies_between(void **state)
{
    struct bench *b = *state;
    CUevent start, end;
    float ms;
    WORKS(cuEventCreate(&start, 0));
    WORKS(cuEventCreate(&end, 0));
    GIVES(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
    WORKS(cuEventRecord(start, b->stream));
    WORKS(launch_at(b->spin, b->stream, 2000000));
    WORKS(launch_hold(b, b->stream, 0));
    WORKS(cuEventRecord(end, b->stream));
    GIVES(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
    let_go(b, 0);
    WORKS(cuEventSynchronize(end));
    WORKS(cuEventElapsedTime(&ms, start, end));
    assert_true(ms >= 2.0f && ms < 1000.0f);
    WORKS(cuEventDestroy(start));
    WORKS(cuEventDestroy(end));
}

static void a_stream_waits_for_an_event_of_another(void **state)
{
    struct bench *b = *state;
    CUstream other;
    CUevent event;
    WORKS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    WORKS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    WORKS(cuStreamWaitEvent(other, event, 0)); /* never recorded: nothing to wait for */
    WORKS(launch_hold(b, b->stream, 0));
    WORKS(cuEventRecord(event, b->stream));
    GIVES(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    WORKS(cuStreamWaitEvent(other, event, 0));
    WORKS(launch_count(b, other, 1));
    usleep(20000);
    assert_int_equal(cell(b, 1), 0);
    let_go(b, 0);
    WORKS(cuStreamSynchronize(other));
    assert_int_equal(cell(b, 1), 1);
    WORKS(cuEventQuery(event));
    WORKS(cuStreamDestroy(other));
    WORKS(cuEventDestroy(event));
}

/* ---- memory ---- */

static void copies_and_fills_do_what_they_say(void **state)
{
    struct bench *b = *state;
    uint32_t in[4] = {1, 2, 3, 4}, out[4] = {0};
    CUdeviceptr one, two;
    WORKS(cuMemAlloc(&one, 16));
    WORKS(cuMemAlloc(&two, 16));
    WORKS(cuMemcpyHtoD(one, in, 16));
    WORKS(cuMemsetD32Async(one + 4, 7, 2, b->stream));
    WORKS(cuMemcpyDtoDAsync(two, one, 16, b->stream));
    WORKS(cuMemcpyDtoHAsync(out, two, 16, b->stream));
    WORKS(cuStreamSynchronize(b->stream));
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 7);
    assert_int_equal(out[2], 7);
    assert_int_equal(out[3], 4);
    WORKS(cuMemFree(one));
    WORKS(cuMemFree(two));
    GIVES(cuMemFree(two), CUDA_ERROR_INVALID_VALUE);
}

static void host_memory_is_registered_once(void **state)
{
    CUdeviceptr device;
    unsigned type;
    (void)state;
    void *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    GIVES(cuMemHostUnregister(page), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    WORKS(cuMemHostRegister(page, 8192, CU_MEMHOSTREGISTER_DEVICEMAP));
    GIVES(cuMemHostRegister(page, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    GIVES(cuMemHostUnregister((char *)page + 64), CUDA_ERROR_INVALID_VALUE);
    WORKS(cuMemHostGetDevicePointer(&device, page, 0));
    WORKS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    WORKS(cuMemHostUnregister(page));
    munmap(page, 8192);
}

static CUresult register_file(const char *folder)
{
    char path[256];
    snprintf(path, sizeof path, "%s/fakecuda-XXXXXX", folder);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    CUresult result = cuMemHostRegister(page, 4096, CU_MEMHOSTREGISTER_DEVICEMAP);
    if (result == CUDA_SUCCESS) {
        WORKS(cuMemHostUnregister(page));
    }
    unlink(path);
    if (result == CUDA_SUCCESS) { /* its file is gone, its file system is known all the same */
        WORKS(cuMemHostRegister(page, 4096, 0));
        WORKS(cuMemHostUnregister(page));
    }
    munmap(page, 4096);
    return result;
}

static void a_file_is_registered_from_tmpfs_not_from_disk(void **state)
{
    (void)state;
    WORKS(register_file("/dev/shm"));
    GIVES(register_file("/var/tmp"), CUDA_ERROR_INVALID_VALUE);
}

static int bad_address(void)
{
    void *state;
    struct bench *b;
    CUstream other;
    bench_setup(&state);
    b = state;
    CHILD_WANTS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHILD_WANTS(launch_at(b->count, b->stream, 4096), CUDA_SUCCESS);
    CHILD_WANTS(cuStreamSynchronize(b->stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHILD_WANTS(launch_count(b, other, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHILD_WANTS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static void an_illegal_address_breaks_the_context_for_good(void **state)
{
    (void)state;
    assert_int_equal(run_self("UNUSED=1", "bad_address"), 0);
}

/* ---- processes, faults, look-up ---- */

static void nothing_works_in_a_forked_child(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        CUcontext ctx;
        _exit(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                      cuDevicePrimaryCtxRetain(&ctx, 0) == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static int injected(void)
{
    CUevent event;
    void *state;
    bench_setup(&state);
    CHILD_WANTS(cuEventCreate(&event, 0), CUDA_SUCCESS);
    CHILD_WANTS(cuEventCreate(&event, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CHILD_WANTS(cuEventCreate(&event, 0), CUDA_SUCCESS);
    CHILD_WANTS(cuStreamQuery(NULL), CUDA_ERROR_UNKNOWN);
    CHILD_WANTS(cuStreamQuery(NULL), CUDA_ERROR_UNKNOWN);
    return fakecuda_calls("cuEventCreate") == 3 && fakecuda_calls("cuMemHostAlloc") == 1 &&
                   fakecuda_calls("cuNeverHeardOf") == 0
               ? 0
               : 2;
}

static void faults_come_where_they_were_asked_for(void **state)
{
    (void)state;
    NEEDS_SIMULATOR();
    assert_int_equal(run_self("NCCLSHIM_FAKE_FAIL=cuEventCreate:2:2,cuStreamQuery:*", "injected"),
                     0);
}

static void calls_are_counted_in_a_file(void **state)
{
    char path[] = "/tmp/fakecuda-counts-XXXXXX", variable[128], text[4096] = "";
    (void)state;
    NEEDS_SIMULATOR();
    int fd = mkstemp(path);
    snprintf(variable, sizeof variable, "NCCLSHIM_FAKE_COUNTS=%s", path);
    assert_int_equal(run_self(variable, "before_init"), 0);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    assert_non_null(strstr(text, "cuInit 2\n"));
    assert_non_null(strstr(text, "cuDeviceGetCount 2\n"));
    close(fd);
    unlink(path);
}

static void functions_are_found_by_base_name_and_version(void **state)
{
    CUdriverProcAddressQueryResult status;
    void *old, *new, *own;
    (void)state;
    WORKS(cuGetProcAddress("cuMemAlloc", &new, 12000, 0, &status));
    assert_ptr_equal(new, cuMemAlloc);
    WORKS(cuGetProcAddress("cuStreamGetCaptureInfo", &old, 12000, 0, &status));
    WORKS(cuGetProcAddress("cuStreamGetCaptureInfo", &new, 12030, 0, &status));
    assert_ptr_not_equal(old, new);
    WORKS(cuGetProcAddress("cuLaunchKernel", &own, 12000,
                           CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
    assert_ptr_not_equal(own, cuLaunchKernel);
    WORKS(cuGetProcAddress("cuGraphAddNode", &old, 11000, 0, &status));
    assert_null(old);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    WORKS(cuGetProcAddress("cuNeverHeardOf", &old, 12000, 0, &status));
    assert_null(old);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

static void *load_a_module(void *arg)
{
    struct bench *b = arg;
    CUmodule module;
    WORKS(cuCtxSetCurrent(b->ctx));
    WORKS(cuModuleLoadData(&module, bench_ptx));
    __atomic_store_n(&b->cells[9], 1, __ATOMIC_RELEASE);
    return NULL;
}

static int slow_load(void)
{
    void *state;
    pthread_t thread;
    bench_setup(&state);
    struct bench *b = state;
    CHILD_WANTS(launch_count(b, b->stream, 1), CUDA_SUCCESS);
    CHILD_WANTS(launch_hold(b, b->stream, 0), CUDA_SUCCESS);
    usleep(20000);
    pthread_create(&thread, NULL, load_a_module, b);
    for (int i = 0; i < 100 && cell(b, 9) == 0; i++)
        usleep(10000); /* a loaded machine may take its time to load what need not wait */
    bool waited = cell(b, 9) == 0;
    let_go(b, 0);
    pthread_join(thread, NULL);
    return cell(b, 9) != 1 ? 3 : waited ? 0 : 2;
}

static void loading_can_be_made_to_wait_for_kernels(void **state)
{
    (void)state;
    NEEDS_SIMULATOR();
    assert_int_equal(run_self("NCCLSHIM_FAKE_SYNC_LOAD=1", "slow_load"), 0);
    assert_int_equal(run_self("NCCLSHIM_FAKE_SYNC_LOAD=0", "slow_load"), 2);
}

static int exit_while_busy(void)
{
    void *state;
    bench_setup(&state);
    struct bench *b = state;
    CHILD_WANTS(launch_hold(b, b->stream, 0), CUDA_SUCCESS);
    usleep(10000);
    exit(7);
}

static void exit_does_not_wait_for_a_kernel_that_never_ends(void **state)
{
    (void)state;
    NEEDS_SIMULATOR();
    assert_int_equal(run_self("UNUSED=1", "exit_while_busy"), 7);
}

static int child(const char *what)
{
    static const struct {
        const char *name;
        int (*fn)(void);
    } all[] = {{"before_init", before_init}, {"three_devices", three_devices},
               {"bad_address", bad_address}, {"injected", injected},
               {"slow_load", slow_load},     {"exit_while_busy", exit_while_busy}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].name, what) == 0) {
            return all[i].fn();
        }
    }
    return 127;
}

#define ON_BENCH(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_before_init_are_refused),
        cmocka_unit_test(the_number_of_devices_is_a_setting),
        ON_BENCH(a_call_without_a_context_is_refused),
        ON_BENCH(a_destroyed_context_says_so),
        ON_BENCH(the_current_context_is_a_thread_s_own),
        ON_BENCH(the_primary_context_lives_until_the_last_release),
        ON_BENCH(a_kernel_of_another_context_is_refused),
        ON_BENCH(work_in_a_stream_runs_in_order),
        ON_BENCH(the_clock_is_the_time_of_day_in_steps_of_32_ns),
        ON_BENCH(a_stream_is_not_ready_while_a_kernel_runs),
        ON_BENCH(synchronizing_takes_the_time_that_the_kernel_took),
        ON_BENCH(the_legacy_stream_waits_for_blocking_streams),
        ON_BENCH(blocking_streams_wait_for_the_legacy_stream),
        ON_BENCH(each_thread_has_a_default_stream_of_its_own),
        ON_BENCH(a_destroyed_stream_still_finishes_its_work),
        ON_BENCH(destroyed_handles_are_refused),
        ON_BENCH(a_host_function_runs_in_order_and_may_not_call_cuda),
        ON_BENCH(events_measure_what_lies_between),
        ON_BENCH(a_stream_waits_for_an_event_of_another),
        ON_BENCH(copies_and_fills_do_what_they_say),
        ON_BENCH(host_memory_is_registered_once),
        ON_BENCH(a_file_is_registered_from_tmpfs_not_from_disk),
        cmocka_unit_test(an_illegal_address_breaks_the_context_for_good),
        ON_BENCH(nothing_works_in_a_forked_child),
        cmocka_unit_test(faults_come_where_they_were_asked_for),
        cmocka_unit_test(calls_are_counted_in_a_file),
        ON_BENCH(functions_are_found_by_base_name_and_version),
        cmocka_unit_test(loading_can_be_made_to_wait_for_kernels),
        cmocka_unit_test(exit_does_not_wait_for_a_kernel_that_never_ends),
    };
    if (argc > 1) {
        return child(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
