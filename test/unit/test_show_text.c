/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/show/plot.h"
#include "shim/show/table.h"
#include "shim/show/term.h"

static void a_time_has_three_digits_and_the_unit_that_fits(void **unused)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {
        {0, "0 ns"},
        {999, "999 ns"},
        {1000, "1.00 us"},
        {7904, "7.90 us"},
        {9994, "9.99 us"},
        {9996, "10.0 us"},
        {99940, "99.9 us"},
        {99960, "100 us"},
        {204000, "204 us"},
        {999499, "999 us"},
        {999500, "1.00 ms"},
        {1210000, "1.21 ms"},
        {29800000, "29.8 ms"},
        {999499999, "999 ms"},
        {999500000, "1.00 s"},
        {2460ull * 1000000000, "41 min"},
        {119ull * 1000000000, "119 s"},
        {9000ull * 1000000000, "2.50 h"},
    };
    char buf[UNIT_SIZE];

    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(unit_ns(cases[i].ns, buf), cases[i].text);
}

static void a_size_is_exact_where_it_can_be(void **unused)
{
    char buf[UNIT_SIZE];

    (void)unused;
    assert_string_equal(unit_bytes(0, buf), "0 B");
    assert_string_equal(unit_bytes(1023, buf), "1023 B");
    assert_string_equal(unit_bytes(43008, buf), "42 KiB");
    assert_string_equal(unit_bytes(4 << 20, buf), "4 MiB");
    assert_string_equal(unit_bytes(43009, buf), "42.0 KiB");
    assert_string_equal(unit_bytes(1536, buf), "1.50 KiB");
    assert_string_equal(unit_bytes(UINT64_MAX, buf), "16 EiB");
}

static void counts_and_shares_read_as_people_write_them(void **unused)
{
    char buf[UNIT_SIZE];

    (void)unused;
    assert_string_equal(unit_count(0, buf), "0");
    assert_string_equal(unit_count(999, buf), "999");
    assert_string_equal(unit_count(9322020, buf), "9,322,020");
    assert_string_equal(unit_count(UINT64_MAX, buf), "18,446,744,073,709,551,615");
    assert_string_equal(unit_percent(0.94, buf), "94 %");
    assert_string_equal(unit_percent(0.0123, buf), "1.2 %");
    assert_string_equal(unit_percent(0.00001, buf), "<0.01 %");
    assert_string_equal(unit_percent(0, buf), "0 %");
    assert_string_equal(unit_gbps(0, buf), "-");
}

static void control_characters_are_made_visible(void **unused)
{
    char buf[128];

    (void)unused;
    assert_string_equal(safe_text("tp \x1b[31mred\n\x7f", buf, sizeof(buf)),
                        "tp \\x1b[31mred\\x0a\\x7f");
    assert_string_equal(safe_text("\xc2\x9b"
                                  "1m",
                                  buf, sizeof(buf)),
                        "\\u{9b}1m"); /* C1: CSI in one character */
    assert_string_equal(safe_text("a\xe2\x80\xae"
                                  "b",
                                  buf, sizeof(buf)),
                        "a\\u{202e}b"); /* right to left */
    assert_string_equal(safe_text("\xff\xc0\x80\xed\xa0\x80", buf, sizeof(buf)),
                        "\\xff\\xc0\\x80\\xed\\xa0\\x80");
    assert_string_equal(safe_text("Gr\xc3\xbc\xc3\x9f"
                                  "e \xe6\xbc\xa2",
                                  buf, sizeof(buf)),
                        "Gr\xc3\xbc\xc3\x9f"
                        "e \xe6\xbc\xa2");
}

static void a_text_is_cut_at_a_whole_character(void **unused)
{
    char buf[6];

    (void)unused;
    assert_string_equal(safe_text("abc\xe6\xbc\xa2", buf, sizeof(buf)), "abc");
    assert_string_equal(safe_text("abcd\x1b", buf, sizeof(buf)), "abcd");
    assert_int_equal(text_columns("a\xe6\xbc\xa2"), 3);
    assert_int_equal(text_fit("a\xe6\xbc\xa2"
                              "b",
                              2),
                     1);
}

static char *printed(const struct table *t, int width)
{
    char *text = NULL;
    size_t size;
    struct term term = {.out = open_memstream(&text, &size), .width = width};

    table_print(t, &term, 2);
    fclose(term.out);
    return text;
}

static void a_table_leaves_out_what_matters_least_then_cuts(void **unused)
{
    struct table t;
    char *text;

    (void)unused;
    table_init(&t);
    table_column(&t, "name", TABLE_LEFT | TABLE_FLEXIBLE, 0);
    table_column(&t, "empty", 0, 0);
    table_column(&t, "p50", 0, 0);
    table_column(&t, "p90", 0, 2);
    table_column(&t, "max", 0, 1);
    table_cell(&t, "a-very-long-name");
    table_cell(&t, "%s", "");
    table_cell(&t, "1 us");
    table_cell(&t, "2 us");
    table_cell(&t, "3 us");
    text = printed(&t, 80);
    assert_string_equal(
        text, "  name               p50   p90   max\n  a-very-long-name  1 us  2 us  3 us\n");
    free(text);
    text = printed(&t, 32);
    assert_string_equal(text, "  name               p50   max\n  a-very-long-name  1 us  3 us\n");
    free(text);
    text = printed(&t, 18);
    assert_string_equal(text, "  name         p50\n  a-very-lo…  1 us\n");
    free(text);
    table_free(&t);
}

static void an_axis_takes_whole_steps_around_the_data(void **unused)
{
    struct log_range r = log_range_of(21000, 380000);

    (void)unused;
    assert_int_equal(r.low, 20000);
    assert_int_equal(r.high, 500000);
    r = log_range_of(20000, 20000);
    assert_int_equal(r.low, 20000);
    assert_true(r.high > r.low);
    r = log_range_of(0, 0);
    assert_true(r.high > r.low && r.low > 0);
    r = log_range_of(UINT64_MAX, UINT64_MAX); /* a damaged log; the ticks must come to an end */
    assert_true(r.high > r.low && r.high <= 500000000000000ull);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_has_three_digits_and_the_unit_that_fits),
        cmocka_unit_test(a_size_is_exact_where_it_can_be),
        cmocka_unit_test(counts_and_shares_read_as_people_write_them),
        cmocka_unit_test(control_characters_are_made_visible),
        cmocka_unit_test(a_text_is_cut_at_a_whole_character),
        cmocka_unit_test(a_table_leaves_out_what_matters_least_then_cuts),
        cmocka_unit_test(an_axis_takes_whole_steps_around_the_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
