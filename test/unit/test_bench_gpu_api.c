/* SPDX-License-Identifier: Apache-2.0 */
/* bench's own declarations of CUDA and NCCL against the headers at hand, and how ranks are found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cuda.h>
#include <nccl.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/prove/bench/bench_launcher.h"
#include "shim/prove/bench/gpu_api.h"

static void numbers_are_those_of_the_headers(void **state)
{
    (void)state;
    assert_int_equal(GPUAPI_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
    assert_int_equal(GPUAPI_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_int_equal(GPUAPI_EVENT_DEFAULT, CU_EVENT_DEFAULT);
    assert_int_equal(GPUAPI_NCCL_IN_PROGRESS, ncclInProgress);
    assert_int_equal(sizeof(gpuapi_id), sizeof(ncclUniqueId));
    assert_int_equal(sizeof(gpuapi_ptr), sizeof(CUdeviceptr));
    assert_int_equal(DTYPE_BFLOAT16, ncclBfloat16);
    assert_int_equal(REDOP_AVG, ncclAvg);
}

static void each_failure_is_told_with_the_name_of_the_function(void **state)
{
    struct error e = {0};

    (void)state;
    assert_int_equal(gpuapi_load("libnccl.so.2", &e), 0);
    assert_int_equal(gpuapi_cu.init(0), 0);
    gpuapi_cuda_failed(&e, "mem_alloc(&x, 3)", 2);
    assert_non_null(strstr(e.text, "cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY (2)"));
    gpuapi_nccl_failed(&e, "comm_init(...)", ncclInvalidUsage);
    assert_non_null(strstr(e.text, "ncclCommInitRank failed: invalid usage"));
}

static void what_can_not_be_loaded_is_told(void **state)
{
    struct error e = {0};

    (void)state;
    assert_int_equal(gpuapi_load("/nowhere/libnccl.so.2", &e), -1);
    assert_non_null(strstr(e.text, "NCCLSHIM_NCCL"));
    assert_int_equal(gpuapi_load("libcuda.so.1", &e), -1);
    assert_non_null(strstr(e.text, "is it NCCL?"));
}

/* ---- launchers ------------------------------------------------------------------------------- */

static int clear(void **state)
{
    static const char *const names[] = {"RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_RUN_ID",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "PMIX_NAMESPACE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MPI_LOCALRANKID",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_LOCALID",
                                        "SLURM_STEP_ID",
                                        "SLURM_JOB_ID",
                                        "NCCLSHIM_RENDEZVOUS"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    return 0;
}

static void nobody_started_us(void **state)
{
    struct bench_launcher l;
    struct error e = {0};

    (void)state;
    assert_int_equal(bench_launcher_find(&l, &e), 0);
    setenv("SLURM_PROCID", "0", 1); /* a batch script, not a step */
    setenv("SLURM_NTASKS", "8", 1);
    assert_int_equal(bench_launcher_find(&l, &e), 0);
    setenv("RANK", "0", 1); /* somebody's variable that happens to have that name */
    assert_int_equal(bench_launcher_find(&l, &e), 0);
}

static void torchrun_keeps_its_store_on_the_port(void **state)
{
    struct bench_launcher l;
    struct error e = {0};

    (void)state;
    setenv("RANK", "3", 1);
    setenv("WORLD_SIZE", "4", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("MASTER_ADDR", "node7", 1);
    setenv("MASTER_PORT", "29500", 1);
    assert_int_equal(bench_launcher_find(&l, &e), 1);
    assert_int_equal(l.rank, 3);
    assert_int_equal(l.ranks, 4);
    assert_int_equal(l.local_rank, 1);
    assert_string_equal(l.host, "node7");
    assert_int_equal(l.port, 29500);
    setenv("TORCHELASTIC_RUN_ID", "none", 1);
    assert_int_equal(bench_launcher_find(&l, &e), 1);
    assert_int_equal(l.port, 29501);
    setenv("RANK", "4", 1);
    assert_int_equal(bench_launcher_find(&l, &e), -1);
    assert_non_null(strstr(e.text, "RANK"));
}

static void mpirun_and_srun_meet_by_a_file(void **state)
{
    struct bench_launcher l, other;
    struct error e = {0};

    (void)state;
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("PMIX_NAMESPACE", "job-1", 1);
    assert_int_equal(bench_launcher_find(&l, &e), 1);
    assert_int_equal(l.local_rank, -1);
    assert_string_equal(l.host, "");
    assert_memory_equal(l.file, "/dev/shm/ncclshim-bench-", 24);
    assert_true(l.one_host);
    setenv("PMIX_NAMESPACE", "job-2", 1);
    assert_int_equal(bench_launcher_find(&other, &e), 1);
    assert_string_not_equal(l.file, other.file);
    setenv("NCCLSHIM_RENDEZVOUS", "/shared/folder", 1);
    assert_int_equal(bench_launcher_find(&l, &e), 1);
    assert_memory_equal(l.file, "/shared/folder/ncclshim-bench-", 30);
    assert_false(l.one_host);
    clear(NULL);
    setenv("SLURM_PROCID", "5", 1);
    setenv("SLURM_NTASKS", "8", 1);
    setenv("SLURM_LOCALID", "1", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    assert_int_equal(bench_launcher_find(&l, &e), 1);
    assert_string_equal(l.name, "Slurm");
    assert_int_equal(l.rank, 5);
    assert_int_equal(l.local_rank, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_headers),
        cmocka_unit_test(what_can_not_be_loaded_is_told),
        cmocka_unit_test(each_failure_is_told_with_the_name_of_the_function),
        cmocka_unit_test_setup_teardown(nobody_started_us, clear, clear),
        cmocka_unit_test_setup_teardown(torchrun_keeps_its_store_on_the_port, clear, clear),
        cmocka_unit_test_setup_teardown(mpirun_and_srun_meet_by_a_file, clear, clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
