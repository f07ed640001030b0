/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated driver's PTX machine: each family of instructions, and what is refused. */
#include "test/fake/cuda_testing.h"

static char text[8192];

static const char *wrap(const char *version, const char *target, const char *body)
{
    snprintf(text, sizeof text,
             ".version %s\n.target %s\n.address_size 64\n"
             ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
             "  .reg .b16 %%h<8>; .reg .b32 %%r<16>; .reg .b64 %%rd<16>; .reg .f32 %%f<8>;\n"
             "  .reg .pred %%p<4>;\n"
             "  ld.param.u64 %%rd14, [in]; ld.param.u64 %%rd15, [out];\n"
             "  cvta.to.global.u64 %%rd14, %%rd14; cvta.to.global.u64 %%rd15, %%rd15;\n"
             "%s\n  ret;\n}\n",
             version, target, body);
    return text;
}

static CUresult load(const char *version, const char *target, const char *body)
{
    CUmodule module;
    CUresult result = cuModuleLoadData(&module, wrap(version, target, body));
    if (result == CUDA_SUCCESS) {
        WORKS(cuModuleUnload(module));
    }
    return result;
}

/* Runs `body` with cells 0..7 at %rd14 and cells 8..15 at %rd15, which then hold the outcome. */
static void run_shape(struct bench *b, const char *body, unsigned grid, unsigned block)
{
    CUmodule module;
    CUfunction function;
    uint64_t in = b->device_cells, out = b->device_cells + 64;
    void *params[] = {&in, &out};
    WORKS(cuModuleLoadData(&module, wrap("7.8", "sm_90", body)));
    WORKS(cuModuleGetFunction(&function, module, "k"));
    WORKS(cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, b->stream, params, NULL));
    WORKS(cuStreamSynchronize(b->stream));
    WORKS(cuModuleUnload(module));
}

static void run(struct bench *b, const char *body)
{
    run_shape(b, body, 1, 1);
}

static uint64_t out(struct bench *b, int i)
{
    return cell(b, 8 + i);
}

static void loads_and_stores_of_each_width(void **state)
{
    struct bench *b = *state;
    b->cells[0] = UINT64_C(0x8182838485868788);
    run(b, "ld.global.u8 %r1, [%rd14]; cvt.u64.u32 %rd1, %r1; st.global.u64 [%rd15], %rd1;\n"
           "ld.global.s8 %r1, [%rd14+1]; st.global.u32 [%rd15+8], %r1;\n"
           "ld.global.u16 %h1, [%rd14+2]; st.global.u16 [%rd15+16], %h1;\n"
           "ld.u32 %r2, [%rd14+4]; st.u32 [%rd15+24], %r2;\n"
           "ld.global.s32 %rd2, [%rd14+4]; st.global.u64 [%rd15+32], %rd2;\n"
           "ld.volatile.global.u64 %rd3, [%rd14]; st.volatile.global.u64 [%rd15+40], %rd3;\n"
           "st.global.u8 [%rd15+48], 7;");
    assert_int_equal(out(b, 0), 0x88);
    assert_int_equal(out(b, 1), 0xffffff87);
    assert_int_equal(out(b, 2), 0x8586);
    assert_int_equal(out(b, 3), 0x81828384);
    assert_true(out(b, 4) == UINT64_C(0xffffffff81828384));
    assert_true(out(b, 5) == b->cells[0]);
    assert_int_equal(out(b, 6), 7);
}

static void vectors_are_loaded_and_stored(void **state)
{
    struct bench *b = *state;
    b->cells[0] = UINT64_C(0x0000000200000001);
    b->cells[1] = UINT64_C(0x0000000400000003);
    run(b, "ld.global.v2.u64 {%rd1, %rd2}, [%rd14]; st.global.v2.u64 [%rd15], {%rd2, %rd1};\n"
           "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd14];\n"
           "st.global.v4.b32 [%rd15+16], {%r4,%r3,%r2,%r1};");
    assert_true(out(b, 0) == b->cells[1] && out(b, 1) == b->cells[0]);
    assert_true(out(b, 2) == UINT64_C(0x0000000300000004));
    assert_true(out(b, 3) == UINT64_C(0x0000000100000002));
}

static void ordered_accesses_work(void **state)
{
    struct bench *b = *state;
    b->cells[0] = 41;
    run(b, "ld.relaxed.sys.global.u64 %rd1, [%rd14]; ld.acquire.gpu.global.u32 %r1, [%rd14];\n"
           "st.release.sys.global.u64 [%rd15], %rd1; st.relaxed.gpu.global.u32 [%rd15+8], %r1;\n"
           "fence.acq_rel.sys; fence.sc.gpu; membar.gl;");
    assert_int_equal(out(b, 0), 41);
    assert_int_equal(out(b, 1), 41);
}

static void atomics_return_the_old_value(void **state)
{
    struct bench *b = *state;
    b->cells[0] = 10;
    b->cells[1] = 20;
    b->cells[2] = 30;
    b->cells[3] = 40;
    run(b, "atom.global.add.u64 %rd1, [%rd14], 5; st.global.u64 [%rd15], %rd1;\n"
           "atom.relaxed.sys.global.exch.b64 %rd1, [%rd14+8], 21; st.global.u64 [%rd15+8], %rd1;\n"
           "atom.global.cas.b32 %r1, [%rd14+16], 30, 31; st.global.u32 [%rd15+16], %r1;\n"
           "atom.global.cas.b64 %rd1, [%rd14+16], 30, 99; st.global.u64 [%rd15+24], %rd1;\n"
           "atom.acq_rel.gpu.global.max.u32 %r1, [%rd14+24], 7; st.global.u32 [%rd15+32], %r1;\n"
           "red.relaxed.sys.global.add.u32 [%rd14+24], 2; red.global.max.u64 [%rd14+32], 9;");
    assert_int_equal(out(b, 0), 10);
    assert_int_equal(b->cells[0], 15);
    assert_int_equal(out(b, 1), 20);
    assert_int_equal(b->cells[1], 21);
    assert_int_equal(out(b, 2), 30);
    assert_int_equal(b->cells[2], 31);
    assert_int_equal(out(b, 3), 31);
    assert_int_equal(out(b, 4), 40);
    assert_int_equal(b->cells[3], 42);
    assert_int_equal(b->cells[4], 9);
}

static void integers_are_added_multiplied_and_divided(void **state)
{
    struct bench *b = *state;
    b->cells[0] = 0xfffffff6; /* -10 */
    b->cells[1] = 3;
    run(b,
        "ld.global.u32 %r1, [%rd14]; ld.global.u32 %r2, [%rd14+8]; ld.global.u64 %rd2, [%rd14];\n"
        "add.u32 %r3, %r1, 20; sub.s32 %r4, 5, %r2; mov.b64 %rd1, {%r3, %r4};\n"
        "st.global.u64 [%rd15], %rd1;\n"
        "mul.wide.s32 %rd1, %r1, %r2; st.global.u64 [%rd15+8], %rd1;\n"
        "mul.wide.u32 %rd1, %r1, %r2; st.global.u64 [%rd15+16], %rd1;\n"
        "div.s32 %r3, %r1, %r2; rem.s32 %r4, %r1, %r2; mov.b64 %rd1, {%r3, %r4};\n"
        "st.global.u64 [%rd15+24], %rd1;\n"
        "mad.lo.u32 %r3, %r2, 7, 100; mul.hi.u32 %r4, %r1, 2; mov.b64 %rd1, {%r3, %r4};\n"
        "st.global.u64 [%rd15+32], %rd1;\n"
        "mad.wide.u32 %rd1, %r2, 32, %rd2; st.global.u64 [%rd15+40], %rd1;\n"
        "min.s32 %r3, %r1, %r2; max.s32 %r4, %r1, %r2; mov.b64 %rd1, {%r3, %r4};\n"
        "st.global.u64 [%rd15+48], %rd1;\n"
        "mul.lo.u64 %rd1, %rd2, 4294967297; st.global.u64 [%rd15+56], %rd1;");
    assert_true(out(b, 0) == UINT64_C(0x000000020000000a));
    assert_int_equal((int64_t)out(b, 1), -30);
    assert_true(out(b, 2) == UINT64_C(0x2ffffffe2));
    assert_true(out(b, 3) == UINT64_C(0xfffffffffffffffd));
    assert_true(out(b, 4) == UINT64_C(0x0000000100000079));
    assert_true(out(b, 5) == UINT64_C(0xfffffff6) + 96);
    assert_true(out(b, 6) == UINT64_C(0x00000003fffffff6));
    assert_true(out(b, 7) == UINT64_C(0xfffffff6) * UINT64_C(4294967297));
}

static void bits_are_shifted_and_combined(void **state)
{
    struct bench *b = *state;
    b->cells[0] = 0x80000001;
    b->cells[14] = b->cells[15] = 1;
    run(b, "ld.global.u32 %r1, [%rd14];\n"
           "shl.b32 %r3, %r1, 1; shr.u32 %r4, %r1, 1; mov.b64 %rd1, {%r3, %r4};\n"
           "st.global.u64 [%rd15], %rd1;\n"
           "shr.s32 %r3, %r1, 4; shl.b32 %r4, %r1, 40; mov.b64 %rd1, {%r3, %r4};\n"
           "st.global.u64 [%rd15+8], %rd1;\n"
           "and.b32 %r3, %r1, 0xff; or.b32 %r4, %r1, 6; mov.b64 %rd1, {%r3, %r4};\n"
           "st.global.u64 [%rd15+16], %rd1;\n"
           "xor.b32 %r3, %r1, %r1; not.b32 %r4, %r1; mov.b64 %rd1, {%r3, %r4};\n"
           "st.global.u64 [%rd15+24], %rd1;\n"
           "mov.u64 %rd2, 0x1122334455667788; mov.b64 {%r3, %r4}, %rd2;\n"
           "st.global.u32 [%rd15+32], %r3; st.global.u32 [%rd15+40], %r4;\n"
           "mov.u32 %r5, 70; shl.b64 %rd1, %rd2, %r5; st.global.u64 [%rd15+48], %rd1;\n"
           "shr.s64 %rd1, %rd2, %r5; st.global.u64 [%rd15+56], %rd1;");
    assert_true(out(b, 0) == UINT64_C(0x4000000000000002));
    assert_true(out(b, 1) == UINT64_C(0x00000000f8000000));
    assert_true(out(b, 2) == UINT64_C(0x8000000700000001));
    assert_true(out(b, 3) == UINT64_C(0x7ffffffe00000000));
    assert_int_equal(out(b, 4), 0x55667788);
    assert_int_equal(out(b, 5), 0x11223344);
    assert_int_equal(out(b, 6), 0); /* by 70 bits: nothing is left */
    assert_int_equal(out(b, 7), 0);
}

static void widths_are_converted(void **state)
{
    struct bench *b = *state;
    b->cells[0] = 0xffffff80;
    run(b, "ld.global.u32 %r1, [%rd14];\n"
           "cvt.u64.u32 %rd1, %r1; st.global.u64 [%rd15], %rd1;\n"
           "cvt.s64.s32 %rd1, %r1; st.global.u64 [%rd15+8], %rd1;\n"
           "cvt.u32.u64 %r2, %rd1; st.global.u32 [%rd15+16], %r2;\n"
           "cvt.u16.u32 %h1, %r1; cvt.u32.u16 %r2, %h1; st.global.u32 [%rd15+24], %r2;\n"
           "cvt.s32.s8 %r2, %r1; st.global.u32 [%rd15+32], %r2;");
    assert_int_equal(out(b, 0), 0xffffff80);
    assert_int_equal((int64_t)out(b, 1), -128);
    assert_int_equal(out(b, 2), 0xffffff80);
    assert_int_equal(out(b, 3), 0xff80);
    assert_int_equal(out(b, 4), 0xffffff80);
}

static void floats_are_computed(void **state)
{
    struct bench *b = *state;
    float value = 1.5f, results[4];
    memcpy(&b->cells[0], &value, 4);
    run(b, "ld.global.f32 %f1, [%rd14]; add.f32 %f2, %f1, 0f40000000; mul.f32 %f3, %f1, %f1;\n"
           "fma.rn.f32 %f4, %f1, %f1, %f2; sub.f32 %f5, %f1, %f2;\n"
           "st.global.v4.f32 [%rd15], {%f2, %f3, %f4, %f5};\n"
           "setp.gt.f32 %p1, %f1, %f2; selp.b32 %r1, 1, 2, %p1; st.global.u32 [%rd15+16], %r1;");
    memcpy(results, &b->cells[8], sizeof results);
    assert_true(results[0] == 3.5f && results[1] == 2.25f);
    assert_true(results[2] == 5.75f && results[3] == -2.0f);
    assert_int_equal(out(b, 2), 2);
}

static void predicates_guard_and_branches_loop(void **state)
{
    struct bench *b = *state;
    b->cells[0] = 10;
    run(b, "ld.global.u32 %r1, [%rd14]; mov.u32 %r2, 0;\n"
           "$again: // adds up 10..1\n"
           "add.u32 %r2, %r2, %r1; sub.u32 %r1, %r1, 1;\n"
           "setp.ne.u32 %p1, %r1, 0; @%p1 bra $again;\n"
           "st.global.u32 [%rd15], %r2;\n"
           "setp.lt.s32 %p2, -1, 0; setp.lt.u32 %p3, 4294967295, 0;\n"
           "@%p2 st.global.u32 [%rd15+8], 1; @%p3 st.global.u32 [%rd15+16], 1;\n"
           "@!%p3 st.global.u32 [%rd15+24], 1;\n"
           "and.pred %p1, %p2, %p3; @!%p1 st.global.u32 [%rd15+32], 1;\n"
           "bra.uni end; st.global.u32 [%rd15+40], 1;\n"
           "end:");
    assert_int_equal(out(b, 0), 55);
    assert_int_equal(out(b, 1), 1);
    assert_int_equal(out(b, 2), 0);
    assert_int_equal(out(b, 3), 1);
    assert_int_equal(out(b, 4), 1);
    assert_int_equal(out(b, 5), 0);
}

static void every_thread_of_the_grid_runs(void **state)
{
    struct bench *b = *state;
    run_shape(b,
              "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x;\n"
              "mov.u32 %r4, %nctaid.x; mad.lo.u32 %r5, %r3, %r2, %r1;\n"
              "mul.wide.u32 %rd1, %r5, 4; add.u64 %rd2, %rd15, %rd1;\n"
              "add.u32 %r6, %r5, %r4; st.global.u32 [%rd2], %r6;\n"
              "red.global.add.u32 [%rd14], 1;",
              2, 3);
    assert_int_equal(b->cells[0], 6);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(((uint32_t *)&b->cells[8])[i], i + 2);
    }
}

static void clocks_and_sleeps_advance(void **state)
{
    struct bench *b = *state;
    run(b, "mov.u64 %rd1, %globaltimer; nanosleep.u32 100000; mov.u64 %rd2, %globaltimer;\n"
           "st.global.u64 [%rd15], %rd1; st.global.u64 [%rd15+8], %rd2;\n"
           "mov.u32 %r1, %globaltimer_lo; st.global.u32 [%rd15+16], %r1;\n"
           "mov.u64 %rd3, %clock64; mov.u64 %rd4, %clock64; sub.u64 %rd5, %rd4, %rd3;\n"
           "st.global.u64 [%rd15+24], %rd5;");
    assert_true(out(b, 1) > out(b, 0));
    assert_true(out(b, 1) - out(b, 0) < 1000000);
    assert_true((uint32_t)out(b, 2) - (uint32_t)out(b, 1) < 1000000);
    assert_true(out(b, 3) > 0 && out(b, 3) < 10000);
}

static void a_module_variable_keeps_its_value(void **state)
{
    struct bench *b = *state;
    CUmodule module;
    CUfunction function;
    CUdeviceptr address;
    size_t bytes;
    uint64_t value;
    WORKS(cuModuleLoadData(&module, ".version 6.0\n.target sm_60\n.address_size 64\n"
                                    ".visible .global .align 8 .u64 total = 5;\n"
                                    ".visible .entry k() { .reg .b64 %rd<2>;\n"
                                    "mov.u64 %rd1, total; red.global.add.u64 [%rd1], 2; ret; }\n"));
    WORKS(cuModuleGetFunction(&function, module, "k"));
    WORKS(cuModuleGetGlobal(&address, &bytes, module, "total"));
    assert_int_equal(bytes, 8);
    WORKS(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, b->stream, NULL, NULL));
    WORKS(cuStreamSynchronize(b->stream));
    WORKS(cuMemcpyDtoH(&value, address, 8));
    assert_int_equal(value, 7);
    GIVES(cuModuleGetFunction(&function, module, "nobody"), CUDA_ERROR_NOT_FOUND);
    WORKS(cuModuleUnload(module));
}

static void letting_dependents_start_early_is_counted(void **state)
{
    struct bench *b = *state;
    NEEDS_SIMULATOR();
    uint64_t before = fakecuda_early_releases();
    run(b, "griddepcontrol.wait;");
    assert_true(fakecuda_early_releases() == before);
    run(b, "griddepcontrol.launch_dependents;");
    assert_true(fakecuda_early_releases() == before + 1);
}

/* ---- what is refused ---- */

static void text_that_is_no_ptx_is_refused(void **state)
{
    CUmodule module;
    (void)state;
    GIVES(cuModuleLoadData(&module, "hello"), CUDA_ERROR_INVALID_IMAGE);
    GIVES(load("7.8", "sm_90", "frobnicate.u32 %r1, %r2;"), CUDA_ERROR_INVALID_PTX);
    GIVES(load("7.8", "sm_90", "add.u32 %r1, %r2, %unknown;"), CUDA_ERROR_INVALID_PTX);
    GIVES(load("7.8", "sm_90", "bra nowhere;"), CUDA_ERROR_INVALID_PTX);
    GIVES(load("7.8", "sm_90", "add.u32 %rd1, %r1, 2;"), CUDA_ERROR_INVALID_PTX);
    GIVES(load("7.8", "sm_90", "add.u32 %r1, %f1, 2;"), CUDA_ERROR_INVALID_PTX);
    GIVES(load("7.8", "sm_90", "ld.relaxed.global.u32 %r1, [%rd1];"), CUDA_ERROR_INVALID_PTX);
    GIVES(load("7.8", "sm_90", "atom.global.add.s64 %rd1, [%rd2], 1;"), CUDA_ERROR_INVALID_PTX);
    GIVES(load("7.8", "sm_90", "ld.param.u64 %rd1, [nobody];"), CUDA_ERROR_INVALID_PTX);
}

static void what_is_too_new_for_its_target_is_refused(void **state)
{
    (void)state;
    GIVES(load("7.8", "sm_80", "griddepcontrol.wait;"), CUDA_ERROR_INVALID_PTX);
    GIVES(load("7.7", "sm_80", "griddepcontrol.wait;"), CUDA_ERROR_INVALID_PTX);
    GIVES(load("6.0", "sm_60", "ld.relaxed.sys.global.u32 %r1, [%rd14];"), CUDA_ERROR_INVALID_PTX);
    GIVES(load("6.0", "sm_60", "fence.acq_rel.sys;"), CUDA_ERROR_INVALID_PTX);
    GIVES(load("6.0", "sm_60", "nanosleep.u32 10;"), CUDA_ERROR_INVALID_PTX);
    WORKS(load("6.0", "sm_60", "red.sys.global.add.u32 [%rd14], 1; membar.sys;"));
    GIVES(load("99.0", "sm_90", ""), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

static void the_error_log_says_where(void **state)
{
    char log[512] = "";
    CUmodule module;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    (void)state;
    GIVES(cuModuleLoadDataEx(&module, wrap("7.8", "sm_90", "frobnicate.u32 %r1, %r2;"), 2, options,
                             values),
          CUDA_ERROR_INVALID_PTX);
    assert_non_null(strstr(log, "9"));
}

static void a_target_above_the_device_is_refused(void **state)
{
    (void)state;
    GIVES(load("8.6", "sm_100", ""), CUDA_ERROR_INVALID_PTX);
    WORKS(load("6.0", "sm_60", ""));
}

static int broken(const char *body, CUresult wanted)
{
    void *state;
    bench_setup(&state);
    struct bench *b = state;
    CUmodule module;
    CUfunction function;
    uint64_t in = b->device_cells, to = in;
    void *params[] = {&in, &to};
    CHILD_WANTS(cuModuleLoadData(&module, wrap("7.8", "sm_90", body)), CUDA_SUCCESS);
    CHILD_WANTS(cuModuleGetFunction(&function, module, "k"), CUDA_SUCCESS);
    CHILD_WANTS(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, b->stream, params, NULL),
                CUDA_SUCCESS);
    CHILD_WANTS(cuStreamSynchronize(b->stream), wanted);
    return 0;
}

static void traps_and_bad_addresses_end_the_context(void **state)
{
    (void)state;
    assert_int_equal(run_self("UNUSED=1", "trap"), 0);
    assert_int_equal(run_self("UNUSED=1", "misaligned"), 0);
}

#define ON_BENCH(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_BENCH(loads_and_stores_of_each_width),
        ON_BENCH(vectors_are_loaded_and_stored),
        ON_BENCH(ordered_accesses_work),
        ON_BENCH(atomics_return_the_old_value),
        ON_BENCH(integers_are_added_multiplied_and_divided),
        ON_BENCH(bits_are_shifted_and_combined),
        ON_BENCH(widths_are_converted),
        ON_BENCH(floats_are_computed),
        ON_BENCH(predicates_guard_and_branches_loop),
        ON_BENCH(every_thread_of_the_grid_runs),
        ON_BENCH(clocks_and_sleeps_advance),
        ON_BENCH(a_module_variable_keeps_its_value),
        ON_BENCH(letting_dependents_start_early_is_counted),
        ON_BENCH(text_that_is_no_ptx_is_refused),
        ON_BENCH(what_is_too_new_for_its_target_is_refused),
        ON_BENCH(the_error_log_says_where),
        ON_BENCH(a_target_above_the_device_is_refused),
        cmocka_unit_test(traps_and_bad_addresses_end_the_context),
    };
    if (argc > 1) {
        return strcmp(argv[1], "trap") == 0
                   ? broken("trap;", CUDA_ERROR_LAUNCH_FAILED)
                   : broken("st.global.u64 [%rd14+4], 1;", CUDA_ERROR_MISALIGNED_ADDRESS);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
