/* SPDX-License-Identifier: Apache-2.0 */
/* C01 and the config half of C04: callers with the ncclConfig_t of any version. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/preload/config.h"

static int int_at(const void *base, size_t offset)
{
    int n;

    memcpy(&n, (const char *)base + offset, sizeof(n));
    return n;
}

static void put_int(void *base, size_t offset, int n)
{
    memcpy((char *)base + offset, &n, sizeof(n));
}

/* A caller's struct of `size` bytes at the very end of a page; the next page is not accessible. */
static unsigned char *config_at_page_end(size_t size, unsigned version)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct nccl_config_head head = {size, NCCL_CONFIG_MAGIC, version, INT_MIN};
    unsigned char *at = two + page - size;

    assert_int_equal(mprotect(two + page, page, PROT_NONE), 0);
    memset(at, 0x5a, size); /* also what stands for padding */
    memcpy(at, &head, size < sizeof(head) ? size : 20);
    return at;
}

static struct config_wish wish_max(int n)
{
    struct config_wish w = {.set = 1u << CONFIG_MAX_CTAS};

    w.number[CONFIG_MAX_CTAS] = n;
    return w;
}

static void the_2_18_struct_at_the_end_of_a_page_is_copied_and_not_written(void **state)
{
    unsigned char *callers = config_at_page_end(48, 21801), before[48];
    struct config_wish w = wish_max(4);
    struct config_copy c;

    (void)state;
    put_int(callers, 24, INT_MIN);
    memcpy(before, callers, 48);
    config_copy_of(&c, callers);
    assert_true(c.valid);
    assert_int_equal(config_apply(&c, &w, 22809), 0);
    assert_int_equal(c.head.size, 48);
    assert_int_equal(c.head.version, 21801);
    assert_int_equal(config_number(&c, CONFIG_MAX_CTAS), 4);
    assert_memory_equal(callers, before, 48);
}

static void the_2_14_struct_is_raised_with_everything_between_undefined(void **state)
{
    unsigned char *callers = config_at_page_end(24, 21403);
    struct config_wish w = wish_max(4);
    struct config_copy c;

    (void)state;
    config_copy_of(&c, callers);
    assert_int_equal(config_apply(&c, &w, 22809), 0);
    assert_int_equal(c.head.version, 22809);
    assert_int_equal(c.head.size, 80);
    assert_int_equal(int_at(c.bytes, 20), INT_MIN); /* old padding */
    assert_int_equal(int_at(c.bytes, 24), INT_MIN);
    assert_int_equal(int_at(c.bytes, 28), 4);
    assert_int_equal(int_at(c.bytes, 44), INT_MIN);
    assert_int_equal(int_at(c.bytes, 76), INT_MIN);
    assert_null(config_comm_name(&c));
}

static void padding_of_an_old_struct_never_becomes_a_live_field(void **state)
{
    unsigned char *callers = config_at_page_end(48, 21801);
    struct config_wish w = {.set = 1u << CONFIG_NVLS_CTAS};
    struct config_copy c;

    (void)state;
    w.number[CONFIG_NVLS_CTAS] = 2;
    config_copy_of(&c, callers);
    assert_int_equal(int_at(c.bytes, 44), 0x5a5a5a5a);
    assert_int_equal(config_apply(&c, &w, 22703), 0);
    assert_int_equal(config_number(&c, CONFIG_TRAFFIC_CLASS), INT_MIN);
    assert_int_equal(config_number(&c, CONFIG_NVLS_CTAS), 2);
    assert_int_equal(c.head.version, 22703);
    assert_int_equal(c.head.size, 72);
}

static void a_config_larger_than_ours_keeps_its_tail(void **state)
{
    unsigned char *callers = config_at_page_end(160, 24000);
    struct config_wish w = wish_max(4);
    struct config_copy c;

    (void)state;
    put_int(callers, 24, INT_MIN);
    config_copy_of(&c, callers);
    assert_int_equal(config_apply(&c, &w, 22809), 0);
    assert_int_equal(c.head.size, 160);
    assert_int_equal(c.head.version, 24000);
    assert_int_equal(c.bytes[159], 0x5a);
    assert_int_equal(config_number(&c, CONFIG_MAX_CTAS), 4);
}

static void wrong_magic_and_impossible_sizes_are_left_to_nccl(void **state)
{
    unsigned char *callers = config_at_page_end(48, 21801);
    struct config_wish w = wish_max(4);
    const unsigned magic = 7;
    struct config_copy c;
    size_t size;

    (void)state;
    memcpy(callers + 8, &magic, sizeof(magic));
    config_copy_of(&c, callers);
    assert_false(c.valid);
    assert_int_equal(config_apply(&c, &w, 22809), 1u << CONFIG_MAX_CTAS);

    callers = config_at_page_end(48, 21801);
    for (size = 0; size < 3; size++) {
        const size_t sizes[] = {0, 23, (size_t)1 << 40};
        memcpy(callers, &sizes[size], sizeof(size_t));
        config_copy_of(&c, callers);
        assert_false(c.valid);
    }
}

static void without_a_config_the_default_of_the_loaded_version_is_made(void **state)
{
    const struct {
        int version;
        size_t size;
    } expect[] = {{21403, 24}, {21701, 40}, {22304, 48}, {22703, 72}, {22809, 80},
                  {22907, 88}, {23007, 96}, {23203, 96}};
    struct config_copy c;

    (void)state;
    for (size_t i = 0; i < sizeof(expect) / sizeof(expect[0]); i++) {
        config_default(&c, expect[i].version);
        assert_int_equal(c.head.size, expect[i].size);
        assert_int_equal(c.head.magic, NCCL_CONFIG_MAGIC);
        assert_int_equal(c.head.blocking, INT_MIN);
        assert_true((int)c.head.version <= 23007);
        assert_true((int)c.head.version == expect[i].version || expect[i].version > 23007);
    }
}

static void min_ctas_alone_brings_a_maximum_with_it(void **state)
{
    struct config_wish w = {.set = 1u << CONFIG_MIN_CTAS};
    struct config_copy c;

    (void)state;
    w.number[CONFIG_MIN_CTAS] = 8;
    config_default(&c, 22809);
    assert_int_equal(config_apply(&c, &w, 22809), 0);
    assert_int_equal(config_number(&c, CONFIG_MIN_CTAS), 8);
    assert_int_equal(config_number(&c, CONFIG_MAX_CTAS), 64); /* undefined is INT_MIN: NCCL would refuse */
}

static void a_maximum_below_the_programs_minimum_lowers_it(void **state)
{
    struct config_wish w = wish_max(4);
    struct config_copy c;

    (void)state;
    config_default(&c, 22809);
    put_int(c.bytes, 24, 16);
    assert_int_equal(config_apply(&c, &w, 22809), 0);
    assert_int_equal(config_number(&c, CONFIG_MIN_CTAS), 4);
}

static void a_field_the_library_does_not_have_is_told_and_not_given(void **state)
{
    struct config_wish w = {.set = 1u << CONFIG_NVLS_CTAS | 1u << CONFIG_MAX_CTAS};
    struct config_copy c;

    (void)state;
    w.number[CONFIG_MAX_CTAS] = 4;
    config_default(&c, 22304);
    assert_int_equal(config_apply(&c, &w, 22304), 1u << CONFIG_NVLS_CTAS);
    assert_int_equal(c.head.size, 48);
    assert_int_equal(config_number(&c, CONFIG_MAX_CTAS), 4);
}

static void blocking_is_what_the_program_said(void **state)
{
    unsigned char *callers = config_at_page_end(48, 21801);
    struct config_wish w = wish_max(4);
    struct config_copy c;

    (void)state;
    put_int(callers, 16, 0);
    config_copy_of(&c, callers);
    config_apply(&c, &w, 22809);
    assert_int_equal(config_blocking(&c), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_2_18_struct_at_the_end_of_a_page_is_copied_and_not_written),
        cmocka_unit_test(the_2_14_struct_is_raised_with_everything_between_undefined),
        cmocka_unit_test(padding_of_an_old_struct_never_becomes_a_live_field),
        cmocka_unit_test(a_config_larger_than_ours_keeps_its_tail),
        cmocka_unit_test(wrong_magic_and_impossible_sizes_are_left_to_nccl),
        cmocka_unit_test(without_a_config_the_default_of_the_loaded_version_is_made),
        cmocka_unit_test(min_ctas_alone_brings_a_maximum_with_it),
        cmocka_unit_test(a_maximum_below_the_programs_minimum_lowers_it),
        cmocka_unit_test(a_field_the_library_does_not_have_is_told_and_not_given),
        cmocka_unit_test(blocking_is_what_the_program_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
