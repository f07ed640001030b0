/* SPDX-License-Identifier: Apache-2.0 */
/* The language of profiles: what a text becomes, and what is refused. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/base/names.h"
#include "shim/profile/profile.h"
#include "shim/profile/write.h"
#include "test/unit/profile_equal.h"

static struct profile *good(const char *text)
{
    struct profile *p;
    struct error e = {"", 0, ""};

    if (profile_parse(text, strlen(text), "test.ini", &p, &e))
        fail_msg("line %d: %s", e.line, e.text);
    return p;
}

static void bad(const char *text, int line, const char *part)
{
    struct profile *p;
    struct error e = {"", 0, ""};

    if (!profile_parse(text, strlen(text), "test.ini", &p, &e))
        fail_msg("was accepted: %s", text);
    assert_null(p);
    assert_string_equal(e.file, "test.ini");
    if (!strstr(e.text, part))
        fail_msg("'%s' is not in: %s", part, e.text);
    assert_int_equal(e.line, line);
}

static const char *value_of(const struct profile *p, const char *name)
{
    for (size_t i = 0; i < p->env_count; i++)
        if (!strcmp(p->env[i].name, name))
            return p->env[i].value;
    return NULL;
}

static void the_example_of_the_design_loads(void **state)
{
    (void)state;
    struct profile *p = good("[profile]\n"
                             "description = Small all-reduce first: ring, LL, two channels\n"
                             "nccl        = >=2.21        ; checked against the library\n"
                             "[env]\n"
                             "NCCL_P2P_LEVEL = SYS\n"
                             "[env override]\n"
                             "NCCL_DEBUG = WARN\n"
                             "[comm]\n"
                             "max_ctas = 16\n"
                             "[comm tp]                   ; first section whose conditions hold\n"
                             "ranks    = 8\n"
                             "name     = tp*\n"
                             "max_ctas = 4\n"
                             "NCCL_GRAPH_FILE = /etc/nccl/turin-8.xml\n"
                             "[tune]\n"
                             "allreduce 0-64K   = ring ll channels=2\n"
                             "allreduce 64K-1M  = tree\n"
                             "allgather         = ring simple\n"
                             "[log]\n"
                             "sample   = 1                ; stamp one call in N\n"
                             "capacity = 512K             ; records\n");
    assert_int_equal(p->nccl.least, 22100);
    assert_int_equal(p->nccl.most, INT_MAX);
    assert_string_equal(value_of(p, "NCCL_P2P_LEVEL"), "SYS");
    assert_false(p->env[0].override);
    assert_true(p->env[1].override);
    assert_int_equal(p->comm_count, 2);
    assert_string_equal(p->comm[0].label, "");
    assert_int_equal(p->comm[1].number[CONFIG_MAX_CTAS], 4);
    assert_int_equal(p->comm[1].when.ranks_min, 8);
    assert_string_equal(p->comm[1].when.name, "tp*");
    assert_string_equal(p->comm[1].env[0].value, "/etc/nccl/turin-8.xml");
    assert_int_equal(p->tune_count, 3);
    assert_int_equal(p->tune[0].bytes_max, 65536);
    assert_int_equal(p->tune[0].channels, 2);
    assert_int_equal(p->tune[1].algo, ALGO_TREE);
    assert_int_equal(p->tune[1].proto, -1);
    assert_true(p->tune[2].bytes_max == UINT64_MAX);
    assert_int_equal(p->log.capacity, 512 * 1024);
    profile_free(p);
}

static void a_value_of_a_list_may_hold_a_semicolon(void **state)
{
    (void)state;
    struct profile *p =
        good("[env]\nNCCL_PROTO = LL,Simple ; allreduce:Simple\nNCCL_IB_HCA ==mlx5_2:1\n");

    assert_string_equal(value_of(p, "NCCL_PROTO"), "LL,Simple;allreduce:Simple");
    assert_string_equal(value_of(p, "NCCL_IB_HCA"), "=mlx5_2:1");
    profile_free(p);
}

static void sizes_become_bytes_where_nccl_wants_bytes(void **state)
{
    (void)state;
    struct profile *p = good("[env]\nNCCL_BUFFSIZE = 4M\nNCCL_LL_BUFFSIZE = 0x80000\n");

    assert_string_equal(value_of(p, "NCCL_BUFFSIZE"), "4194304");
    assert_string_equal(p->env[0].raw, "4M");
    assert_string_equal(value_of(p, "NCCL_LL_BUFFSIZE"), "524288");
    profile_free(p);
    bad("[env]\nNCCL_NTHREADS = 1K\n", 2, "NCCL would read 1");
}

static void what_nccl_would_misread_is_refused_with_what_it_would_read(void **state)
{
    (void)state;
    bad("[env]\nNCCL_BUFFSIZE = 1e6\n", 2, "NCCL would read 1;");
    bad("[env]\nNCCL_IB_TIMEOUT = 022\n", 2, "NCCL would read 18");
    bad("[env]\n\nNCCL_P2P_DISABLE = true\n", 3, "NCCL would read 0");
    bad("[env]\nNCCL_MAX_NCHANNELS = 8 channels\n", 2, "NCCL would read 8");
    bad("[env]\nNCCL_MAX_NCHANNELS = +8\n", 2, "NCCL would read 8");
}

static void one_pair_of_quotes_goes_and_others_are_refused(void **state)
{
    (void)state;
    struct profile *p = good("[env]\nNCCL_IB_HCA = \"mlx5_0,mlx5_1\"\nNCCL_NET = ' AWS Libfabric'\n"
                             "NCCL_DEBUG_FILE = \"/tmp/a ; b\"\nNCCL_CONF_FILE = \"\"\n");

    assert_string_equal(value_of(p, "NCCL_IB_HCA"), "mlx5_0,mlx5_1");
    assert_string_equal(value_of(p, "NCCL_NET"), " AWS Libfabric");
    assert_string_equal(value_of(p, "NCCL_DEBUG_FILE"), "/tmp/a ; b");
    assert_string_equal(value_of(p, "NCCL_CONF_FILE"), "");
    profile_free(p);
    bad("[env]\nNCCL_IB_HCA = \"a,b\n", 2, "no partner");
    bad("[env]\nNCCL_IB_HCA = a,b\"\n", 2, "quote mark");
    bad("[env]\nNCCL_IB_HCA = \"a\" b\n", 2, "behind the closing quote");
}

static void a_comment_behind_a_value_needs_a_blank_before_it(void **state)
{
    (void)state;
    struct profile *p = good("[profile]\ndescription = a;b # c ; d\n[env]\nNCCL_DEBUG = WARN\n");

    assert_string_equal(p->description, "a;b # c");
    profile_free(p);
}

static void a_key_without_value_is_refused(void **state)
{
    (void)state;
    bad("[env]\nNCCL_DEBUG =\n", 2, "has no value");
    bad("[env]\nNCCL_DEBUG\n", 2, "no '='");
    bad("[log]\nsample = ; nothing\n", 2, "has no value");
}

static void the_whole_file_counts_or_nothing(void **state)
{
    (void)state;
    bad("[env]\nNCCL_DEBUG = WARN\n[wrong]\n", 3, "no section is called [wrong]");
    bad("NCCL_DEBUG = WARN\n", 1, "before the first section");
    bad("[env]\nNCCL_DEBUG = WARN\n NCCL_PROTO = LL\n", 3, "indented");
    bad("[env]\nNCCL_DEBUG = WARN\n[comm\n", 3, "no closing bracket");
    bad("[env]\nNCCL_DEBUG = WARN\nNCCL_DEBUG = WARN\n", 3, "the first is in line 2");
    bad("; only a comment\n", 0, "no section");
    bad("[env]\n", 0, "no key");
}

static void bytes_that_are_no_utf8_text_are_refused(void **state)
{
    (void)state;
    static const char zero[] = "[env]\nNCCL_DEBUG = W\0ARN\n";
    struct profile *p;
    struct error e;

    assert_int_equal(profile_parse(zero, sizeof(zero) - 1, "test.ini", &p, &e), -1);
    assert_int_equal(e.line, 2);
    bad("\xff\xfe[\1", 1, "UTF-16");
    bad("\xef\xbb\xbf\xef\xbb\xbf[env]\n", 1, "two byte order marks");
    bad("[env]\rNCCL_DEBUG = WARN\r", 1, "carriage return");
    bad("[env]\n; \xc3\x28\n", 2, "no UTF-8");
    bad("[env]\n; \xc0\x80 \n", 2, "no UTF-8");
    bad("[env]\n; \xed\xa0\x80\n", 2, "no UTF-8");
    profile_free(good("\xef\xbb\xbf[env]\r\nNCCL_DEBUG = WARN\r\n; gr\xc3\xb6\xc3\x9f"
                      "e\r\n"));
}

static void long_lines_arrive_whole_up_to_64_kib(void **state)
{
    (void)state;
    size_t n = 65536 - strlen("NCCL_NET=");
    char *text = malloc(n + 64);
    struct profile *p;
    int head = sprintf(text, "[env]\nNCCL_NET=");

    memset(text + head, 'x', n);
    strcpy(text + head + n, "\n");
    p = good(text);
    assert_int_equal(strlen(value_of(p, "NCCL_NET")), n);
    profile_free(p);
    strcpy(text + head + n, "x\n");
    bad(text, 2, "longer than 64 KiB");
    free(text);
}

static void names_that_no_profile_may_set_are_refused(void **state)
{
    (void)state;
    bad("[env]\nLD_PRELOAD = x\n", 2, "never a profile's");
    bad("[env]\nNCCLSHIM_LOG = off\n", 2, "never a profile's");
    bad("[profile]\nallow_unknown = PATH\n[env]\nPATH = x\n", 2, "never a profile's");
    bad("[env]\nCUDA_DEVICE_MAX_CONNECTIONS = 1\n", 2, "allow_unknown");
    profile_free(good("[env]\nCUDA_DEVICE_MAX_CONNECTIONS = 1\n[profile]\nallow_unknown = "
                      "CUDA_DEVICE_MAX_CONNECTIONS\n"));
}

static void a_misspelt_name_is_refused_with_the_nearest(void **state)
{
    (void)state;
    bad("[env]\nNCCL_MIN_NCHANELS = 8\n", 2, "did you mean 'NCCL_MIN_NCHANNELS'?");
    bad("[env]\nCCL_PROTO = LL\n", 2, "did you mean 'NCCL_PROTO'?");
    bad("[log]\nsampel = 8\n", 2, "did you mean 'sample'?");
}

static void danger_needs_a_word_of_consent(void **state)
{
    (void)state;
    bad("[env]\nNCCL_NTHREADS = 480\n", 2, "allow_unsafe = yes");
    bad("[env]\nNCCL_PROTO = ^LL\n", 2, "allow_unsafe = yes");
    bad("[env]\nNCCL_COMM_ID = 10.0.0.1:5\n", 2, "allow_unsafe = yes");
    profile_free(good("[profile]\nallow_unsafe = yes\n[env]\nNCCL_NTHREADS = 480\n"));
    profile_free(good("[env]\nNCCL_NTHREADS = 64\n"));
}

static void a_profile_that_contradicts_itself_is_refused(void **state)
{
    (void)state;
    bad("[env]\nNCCL_MIN_NCHANNELS = 16\nNCCL_MAX_NCHANNELS = 4\n", 2, "the minimum wins");
    bad("[env]\nNCCL_ALGO = Tree\n", 2, "broadcast");
    bad("[env]\nNCCL_PROTO = Simple\n[tune]\nallreduce = ring ll\n", 4, "can never work");
    profile_free(good("[env]\nNCCL_ALGO = allreduce:tree\n"));
}

static void bounds_are_inclusive_and_the_first_rule_wins(void **state)
{
    (void)state;
    struct profile *p = good("[tune]\nallreduce 0-32K = tree ll\nallreduce 32K-1M = ring\n");
    struct comm_facts f = {.ranks = 8, .nodes = 1, .index = 0, .name = ""};

    assert_ptr_equal(profile_tune_match(p, OP_ALL_REDUCE, 0, &f), &p->tune[0]);
    assert_ptr_equal(profile_tune_match(p, OP_ALL_REDUCE, 32768, &f), &p->tune[0]);
    assert_ptr_equal(profile_tune_match(p, OP_ALL_REDUCE, 32769, &f), &p->tune[1]);
    assert_ptr_equal(profile_tune_match(p, OP_ALL_REDUCE, 1 << 20, &f), &p->tune[1]);
    profile_free(p);
}

static void a_size_without_a_rule_is_left_alone(void **state)
{
    (void)state;
    struct profile *p = good("[tune]\nallreduce 0-32K = tree ll\n");
    struct comm_facts f = {.ranks = 8, .nodes = 1, .index = 0, .name = ""};

    assert_null(profile_tune_match(p, OP_ALL_REDUCE, 32769, &f));
    assert_null(profile_tune_match(p, OP_ALL_GATHER, 16384, &f));
    profile_free(p);
}

static void a_rule_that_is_never_used_is_refused(void **state)
{
    (void)state;
    bad("[tune]\nallreduce 0-1M = ring\nallreduce 1K-2K = tree\n", 3, "never used");
    bad("[tune]\nallreduce 0-64K = ring\nallreduce 64K- = tree\nallreduce 1K-1M = ring\n", 4,
        "never used");
    profile_free(
        good("[tune]\nallreduce 0-64K = ring\nallreduce 65538- = tree\nallreduce 1K-1M = ring\n"));
    profile_free(good("[tune a]\nranks = 8\nallreduce = tree\n[tune]\nallreduce = ring\n"));
}

static void conditions_must_all_hold(void **state)
{
    (void)state;
    struct profile *p =
        good("[comm tp]\nranks = 2-8\nnodes = 1\nname = tp*\nparent = \"\"\nindex = 0-1\n"
             "max_ctas = 4\n[comm child]\nparent = wor?d\nmax_ctas = 2\n[comm]\nmax_ctas = 9\n");
    struct comm_facts f = {.ranks = 8, .nodes = 1, .index = 1, .name = "tp0", .parent = NULL};

    assert_string_equal(profile_comm_match(p, &f)->label, "tp");
    f.nodes = -1; /* not known yet */
    assert_null(profile_comm_match(p, &f));
    f.nodes = 1, f.index = -1; /* nor this */
    assert_null(profile_comm_match(p, &f));
    f.index = 1, f.ranks = 9;
    assert_null(profile_comm_match(p, &f));
    f.ranks = 8, f.index = 2;
    assert_null(profile_comm_match(p, &f));
    f.index = 0, f.name = "pp";
    assert_null(profile_comm_match(p, &f));
    f.name = "tp", f.parent = "world";
    assert_string_equal(profile_comm_match(p, &f)->label, "child");
    assert_int_equal(profile_comm_base(p)->number[CONFIG_MAX_CTAS], 9);
    profile_free(p);
}

static void what_is_written_reads_back_to_the_same(void **state)
{
    (void)state;
    struct profile *p =
        good("[profile]\ndescription = \"a ; b \"\nallow_unknown = FOO, BAR\n[env]\n"
             "FOO = ' x # y'\nNCCL_NET = it's me\nNCCL_BUFFSIZE = 4M\n"
             "[comm tp]\nranks = 1-\nname = \"\"\nmin_ctas = 1\n[comm]\nnet_name = \" IB\"\n"
             "[tune x]\nranks = 1-\nallreduce -64K = channels=2\n[tune]\nallreduce 64K- = tree\n"
             "[log]\nops = send,recv\neager = no\nmin_bytes = 43008\n");
    struct profile *again;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_int_equal(profile_write(p, out), 0);
    fclose(out);
    again = good(text);
    assert_true(same_profile(p, again));
    assert_string_equal(value_of(again, "FOO"), " x # y");
    assert_string_equal(again->description, "a ; b ");
    profile_free(again);
    profile_free(p);
    free(text);
}

static void none_is_built_in(void **state)
{
    (void)state;
    static const char *const names[] = {NULL, "", "none"};
    struct profile *p;
    struct error e;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(profile_load(names[i], &p, &e), 0);
        assert_string_equal(p->name, "none");
        assert_string_equal(p->path, "");
        assert_int_equal(p->env_count, 0);
        assert_int_equal(p->log.sample, 1);
        assert_true(p->log.eager && p->log.captured);
        profile_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_design_loads),
        cmocka_unit_test(a_value_of_a_list_may_hold_a_semicolon),
        cmocka_unit_test(sizes_become_bytes_where_nccl_wants_bytes),
        cmocka_unit_test(what_nccl_would_misread_is_refused_with_what_it_would_read),
        cmocka_unit_test(one_pair_of_quotes_goes_and_others_are_refused),
        cmocka_unit_test(a_comment_behind_a_value_needs_a_blank_before_it),
        cmocka_unit_test(a_key_without_value_is_refused),
        cmocka_unit_test(the_whole_file_counts_or_nothing),
        cmocka_unit_test(bytes_that_are_no_utf8_text_are_refused),
        cmocka_unit_test(long_lines_arrive_whole_up_to_64_kib),
        cmocka_unit_test(names_that_no_profile_may_set_are_refused),
        cmocka_unit_test(a_misspelt_name_is_refused_with_the_nearest),
        cmocka_unit_test(danger_needs_a_word_of_consent),
        cmocka_unit_test(a_profile_that_contradicts_itself_is_refused),
        cmocka_unit_test(bounds_are_inclusive_and_the_first_rule_wins),
        cmocka_unit_test(a_size_without_a_rule_is_left_alone),
        cmocka_unit_test(a_rule_that_is_never_used_is_refused),
        cmocka_unit_test(conditions_must_all_hold),
        cmocka_unit_test(what_is_written_reads_back_to_the_same),
        cmocka_unit_test(none_is_built_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
