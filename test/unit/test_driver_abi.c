/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim declares what it uses of the CUDA driver itself (shim/preload/driver.h): here numbers,
 * layouts, exported names and counts of parameters are compared with the cuda.h at hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Ours, under other names, so that both can be in one file. */
#define CUresult our_CUresult
#define CUuuid_st our_CUuuid_st
#define CUuuid our_CUuuid
#define CUlaunchAttribute our_CUlaunchAttribute
#define CUlaunchConfig our_CUlaunchConfig
#define CUDA_SUCCESS OUR_CUDA_SUCCESS
#define CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED OUR_ALREADY_REGISTERED
#define CU_STREAM_NON_BLOCKING OUR_NON_BLOCKING
#define CU_MEMHOSTREGISTER_PORTABLE OUR_PORTABLE
#define CU_MEMHOSTREGISTER_DEVICEMAP OUR_DEVICEMAP
#define CU_STREAM_CAPTURE_STATUS_NONE OUR_STATUS_NONE
#define CU_STREAM_CAPTURE_STATUS_ACTIVE OUR_STATUS_ACTIVE
#define CU_STREAM_CAPTURE_MODE_GLOBAL OUR_MODE_GLOBAL
#define CU_STREAM_CAPTURE_MODE_RELAXED OUR_MODE_RELAXED
#define CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR OUR_MAJOR
#define CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR OUR_MINOR
#define CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT OUR_DOMAIN_COUNT
#define CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION OUR_SERIALIZATION
#define CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP OUR_DOMAIN_MAP
#include "shim/preload/driver.h"
#undef CUresult
#undef CUuuid_st
#undef CUuuid
#undef CUlaunchAttribute
#undef CUlaunchConfig
#undef CUDA_SUCCESS
#undef CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
#undef CU_STREAM_NON_BLOCKING
#undef CU_MEMHOSTREGISTER_PORTABLE
#undef CU_MEMHOSTREGISTER_DEVICEMAP
#undef CU_STREAM_CAPTURE_STATUS_NONE
#undef CU_STREAM_CAPTURE_STATUS_ACTIVE
#undef CU_STREAM_CAPTURE_MODE_GLOBAL
#undef CU_STREAM_CAPTURE_MODE_RELAXED
#undef CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
#undef CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
#undef CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT
#undef CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
#undef CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
#include <cuda.h>

static void numbers_are_those_of_cuda_h(void **state)
{
    (void)state;
    assert_int_equal(OUR_CUDA_SUCCESS, CUDA_SUCCESS);
    assert_int_equal(OUR_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    assert_int_equal(OUR_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
    assert_int_equal(OUR_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
    assert_int_equal(OUR_DEVICEMAP, CU_MEMHOSTREGISTER_DEVICEMAP);
    assert_int_equal(OUR_STATUS_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
    assert_int_equal(OUR_STATUS_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_equal(OUR_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_int_equal(OUR_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_int_equal(OUR_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    assert_int_equal(OUR_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
#if CUDA_VERSION >= 11080
    assert_int_equal(OUR_SERIALIZATION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
#endif
#if CUDA_VERSION >= 12000
    assert_int_equal(OUR_DOMAIN_COUNT, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
    assert_int_equal(OUR_DOMAIN_MAP, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
#endif
}

#define SAME_PLACE(ours, member, type, theirs) \
    assert_int_equal(offsetof(ours, member), offsetof(type, theirs))

static void layouts_are_those_of_cuda_h(void **state)
{
    (void)state;
    assert_int_equal(sizeof(our_CUresult), sizeof(CUresult));
    assert_int_equal(sizeof(our_CUuuid), sizeof(CUuuid));
#if CUDA_VERSION >= 11080
    assert_int_equal(sizeof(our_CUlaunchAttribute), sizeof(CUlaunchAttribute));
    SAME_PLACE(our_CUlaunchAttribute, id, CUlaunchAttribute, id);
    SAME_PLACE(our_CUlaunchAttribute, value, CUlaunchAttribute, value);
    assert_int_equal(sizeof(our_CUlaunchConfig), sizeof(CUlaunchConfig));
    SAME_PLACE(our_CUlaunchConfig, grid, CUlaunchConfig, gridDimX);
    SAME_PLACE(our_CUlaunchConfig, block, CUlaunchConfig, blockDimX);
    SAME_PLACE(our_CUlaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
    SAME_PLACE(our_CUlaunchConfig, stream, CUlaunchConfig, hStream);
    SAME_PLACE(our_CUlaunchConfig, attributes, CUlaunchConfig, attrs);
    SAME_PLACE(our_CUlaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
#endif
}

/* Zeroes for as many parameters as our list has: the compiler refuses another number of them. */
#define COUNT(...) COUNT_(__VA_ARGS__, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
#define COUNT_(a, b, c, d, e, f, g, h, i, j, k, n, ...) n
#define ZEROES(n) ZEROES_(n)
#define ZEROES_(n) ZEROES_##n
#define ZEROES_1 (0)
#define ZEROES_2 (0, 0)
#define ZEROES_3 (0, 0, 0)
#define ZEROES_4 (0, 0, 0, 0)
#define ZEROES_5 (0, 0, 0, 0, 0)
#define ZEROES_6 (0, 0, 0, 0, 0, 0)
#define ZEROES_7 (0, 0, 0, 0, 0, 0, 0)
#define ZEROES_11 (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define TEXT(name) TEXT_(name)
#define TEXT_(name) #name

/* cuda.h's own name for each member, from which its macros make the exported one. */
#define cuda_ctx_get_current cuCtxGetCurrent
#define cuda_ctx_push cuCtxPushCurrent
#define cuda_ctx_pop cuCtxPopCurrent
#define cuda_ctx_get_device cuCtxGetDevice
#define cuda_device_get cuDeviceGet
#define cuda_device_get_count cuDeviceGetCount
#define cuda_device_get_attribute cuDeviceGetAttribute
#define cuda_device_get_name cuDeviceGetName
#define cuda_device_get_uuid cuDeviceGetUuid
#define cuda_device_get_pci cuDeviceGetPCIBusId
#define cuda_device_total_mem cuDeviceTotalMem
#define cuda_primary_retain cuDevicePrimaryCtxRetain
#define cuda_primary_release cuDevicePrimaryCtxRelease
#define cuda_module_load cuModuleLoadData
#define cuda_module_unload cuModuleUnload
#define cuda_module_get_function cuModuleGetFunction
#define cuda_mem_alloc cuMemAlloc
#define cuda_mem_free cuMemFree
#define cuda_memset_d8_async cuMemsetD8Async
#define cuda_memcpy_dtoh_async cuMemcpyDtoHAsync
#define cuda_host_register cuMemHostRegister
#define cuda_host_unregister cuMemHostUnregister
#define cuda_host_device_pointer cuMemHostGetDevicePointer
#define cuda_stream_create cuStreamCreate
#define cuda_stream_destroy cuStreamDestroy
#define cuda_stream_sync cuStreamSynchronize
#define cuda_stream_begin_capture cuStreamBeginCapture
#define cuda_stream_end_capture cuStreamEndCapture
#define cuda_exchange_capture_mode cuThreadExchangeStreamCaptureMode
#define cuda_graph_instantiate cuGraphInstantiateWithFlags
#define cuda_graph_launch cuGraphLaunch
#define cuda_graph_exec_destroy cuGraphExecDestroy
#define cuda_graph_destroy cuGraphDestroy
#define cuda_launch cuLaunchKernel
/* What cuda.h has only in some versions, or under another version's name: nothing to compare there. */
static CUresult NOTHING(int first, ...)
{
    return first ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
#if CUDA_VERSION >= 12000
#define cuda_ctx_get_id cuCtxGetId
#else
#define cuda_ctx_get_id NOTHING
#endif
#if CUDA_VERSION >= 11080
#define cuda_launch_ex cuLaunchKernelEx
#else
#define cuda_launch_ex NOTHING
#endif
#if CUDA_VERSION >= 13000
#define cuda_stream_capture_info NOTHING
#define cuda_stream_capture_info3 cuStreamGetCaptureInfo
#else
#define cuda_stream_capture_info cuStreamGetCaptureInfo
#define cuda_stream_capture_info3 NOTHING
#endif

static void functions_have_the_names_and_parameters_of_cuda_h(void **state)
{
    size_t results = 0, count = 0;

    (void)state;
#define X(member, name, must, params)                                    \
    results += sizeof(cuda_##member ZEROES(COUNT params));               \
    count++;                                                             \
    if (strcmp(TEXT(cuda_##member), "NOTHING") && strcmp(name, "cuDeviceGetUuid")) \
        assert_string_equal(name, TEXT(cuda_##member));
    NCCLSHIM_DRIVER(X)
#undef X
    assert_int_equal(results, count * sizeof(CUresult));
    assert_int_equal(NOTHING(0), CUDA_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_cuda_h),
        cmocka_unit_test(layouts_are_those_of_cuda_h),
        cmocka_unit_test(functions_have_the_names_and_parameters_of_cuda_h),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
