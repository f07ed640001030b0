/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of NCCL's variables against the libraries at hand: that of the CUDA installation, and
 * every libnccl.so.2 in the folders that NCCLSHIM_TEST_NCCL_DIR (colon list) names.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/base/size.h"
#include "shim/profile/choice.h"
#include "shim/profile/env_value.h"
#include "shim/profile/nccl_vars.h"
#include "shim/profile/version.h"

static char *read_file(const char *path, size_t *size)
{
    FILE *in = fopen(path, "re");
    char *bytes = NULL;

    if (!in)
        return NULL;
    fseek(in, 0, SEEK_END);
    *size = (size_t)ftell(in);
    rewind(in);
    bytes = malloc(*size);
    if (bytes && fread(bytes, 1, *size, in) != *size) {
        free(bytes);
        bytes = NULL;
    }
    fclose(in);
    return bytes;
}

static int version_of(const char *bytes, size_t size)
{
    const char *at = memmem(bytes, size, "NCCL version 2.", 15);
    char text[16] = "";

    while (at && !(at[15] >= '0' && at[15] <= '9'))
        at = memmem(at + 1, size - (size_t)(at + 1 - bytes), "NCCL version 2.", 15);
    if (at)
        snprintf(text, sizeof(text), "%.*s", (int)strspn(at + 13, "0123456789."), at + 13);
    return version_parse(text, NULL);
}

/* Some names are glued to what stands before them, none to what follows. */
static bool has_name(const char *bytes, size_t size, const char *name)
{
    const char *c = bytes, *end = bytes + size;

    for (; (c = memmem(c, (size_t)(end - c), name, strlen(name) + 1)); c++)
        if (c < bytes + 5 || memcmp(c - 5, "NCCL_", 5)) /* 2.14 has an NCCL_NCCL_... */
            return true;
    return false;
}

/* Names that are only in builds with the proxy's own profiler. */
static bool looked_up(const struct nccl_var *v)
{
    return strcmp(v->name, "NCCL_PROXY_PROFILE") != 0;
}

static int compare(const char *path)
{
    const struct nccl_var *v;
    size_t size;
    char *bytes = read_file(path, &size), text[VERSION_TEXT_MAX];
    int version, wrong = 0;

    if (!bytes)
        return -1;
    version = version_of(bytes, size);
    assert_int_not_equal(version, 0);
    for (size_t i = 0; (v = nccl_var_at(i)); i++) {
        bool here = has_name(bytes, size, v->name);
        if (looked_up(v) && here != nccl_var_in(v, version)) {
            print_error("%s %s in %s (%s), the table says otherwise\n", v->name,
                        here ? "is" : "is not", path, version_text(version, text, sizeof(text)));
            wrong++;
        }
    }
    free(bytes);
    print_message("[  INFO    ] %s: %s\n", version_text(version, text, sizeof(text)), path);
    return wrong;
}

static int compare_folder(const char *folder, int *seen)
{
    static const char *const patterns[] = {"%s/libnccl.so.2", "%s/*/libnccl.so.2",
                                           "%s/*/lib/libnccl.so.2"};
    int wrong = 0;

    for (int i = 0; i < 3; i++) {
        char pattern[600];
        glob_t found;
        snprintf(pattern, sizeof(pattern), patterns[i], folder);
        if (glob(pattern, 0, NULL, &found))
            continue;
        for (size_t k = 0; k < found.gl_pathc; k++) {
            int rc = compare(found.gl_pathv[k]);
            *seen += rc >= 0;
            wrong += rc > 0 ? rc : 0;
        }
        globfree(&found);
    }
    return wrong;
}

static void the_table_agrees_with_the_libraries_at_hand(void **state)
{
    const char *list = getenv("NCCLSHIM_TEST_NCCL_DIR");
    int seen = 0, wrong = compare_folder("/usr/local/cuda/lib", &seen);
    char folder[512];

    (void)state;
    for (const char *c = list; c && *c; c += strcspn(c, ":") + (c[strcspn(c, ":")] == ':')) {
        snprintf(folder, sizeof(folder), "%.*s", (int)strcspn(c, ":"), c);
        wrong += compare_folder(folder, &seen);
    }
    if (!seen)
        skip();
    assert_int_equal(wrong, 0);
}

static void every_name_stands_once_and_has_its_prefix(void **state)
{
    const struct nccl_var *v, *w;

    (void)state;
    for (size_t i = 0; (v = nccl_var_at(i)); i++) {
        assert_int_equal(strncmp(v->name, "NCCL_", 5), 0);
        assert_ptr_equal(nccl_var_find(v->name), v);
        for (size_t k = i + 1; (w = nccl_var_at(k)); k++)
            assert_string_not_equal(v->name, w->name);
        assert_true(v->least <= v->most);
        assert_true(!v->last || v->first <= v->last);
        assert_true((v->type == VAR_WORD) == (*v->words != '\0'));
    }
}

static void the_variables_of_one_communicator_are_those_that_nccl_asks_for_anew(void **state)
{
    static const char *const per_comm[] = {"NCCL_ALGO",
                                           "NCCL_PROTO",
                                           "NCCL_GRAPH_FILE",
                                           "NCCL_TOPO_FILE",
                                           "NCCL_THREAD_THRESHOLDS",
                                           "NCCL_NET",
                                           "NCCL_COLLNET_ENABLE",
                                           "NCCL_CHECK_MODE",
                                           "NCCL_GRAPH_DUMP_FILE",
                                           "NCCL_TOPO_DUMP_FILE"};
    static const char *const others[] = {"NCCL_BUFFSIZE", "NCCL_P2P_LEVEL", "NCCL_DEBUG",
                                         "NCCL_LAUNCH_MODE"};

    (void)state;
    for (size_t i = 0; i < sizeof(per_comm) / sizeof(per_comm[0]); i++)
        assert_true(nccl_var_per_comm(nccl_var_find(per_comm[i])));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(nccl_var_per_comm(nccl_var_find(others[i])));
}

static void sizes_read_back_exactly(void **state)
{
    static const uint64_t sizes[] = {0,     1,       1023,       1024,      43008,
                                     65536, 1 << 20, 3ull << 30, UINT64_MAX};
    static const char *const wrong[] = {
        "", "K", "1KB", "1.5M", "-1", " 1", "1 K", "1T", "99999999999999999999", "17179869184G"};
    char text[SIZE_TEXT_MAX];
    uint64_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_int_equal(size_parse(size_text(sizes[i], text, sizeof(text)), &n), 0);
        assert_true(n == sizes[i]);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(size_parse(wrong[i], &n), -1);
    assert_int_equal(size_parse("8MiB", &n), 0);
    assert_int_equal(n, 8 << 20);
    assert_string_equal(size_text(43008, text, sizeof(text)), "42K");
}

static void versions_compare_in_the_order_of_releases(void **state)
{
    struct version_range r;
    int last;

    (void)state;
    assert_int_equal(version_parse("2.28.9", NULL), 22809);
    assert_int_equal(version_parse("2.8.3", NULL), 2803);
    assert_int_equal(version_parse("2.28", &last), 22800);
    assert_int_equal(last, 22899);
    assert_int_equal(version_parse("2", NULL), 0);
    assert_int_equal(version_parse("2.28.9a", NULL), 0);
    assert_int_equal(version_range_parse(">2.21, <=2.28", &r), 0);
    assert_int_equal(r.least, 22200);
    assert_int_equal(r.most, 22899);
    assert_int_equal(version_range_parse("2.28", &r), 0);
    assert_int_equal(r.least, 22800);
    assert_int_equal(version_range_parse("<2.28", &r), 0);
    assert_int_equal(r.most, 22799);
    assert_int_equal(version_range_parse(">2.28.3", &r), 0);
    assert_int_equal(r.least, 22804);
    assert_int_equal(version_range_parse(">=2.28,", &r), -1);
    assert_int_equal(version_range_parse("<2.21, >2.28", &r), -1);
}

static void a_list_of_choices_is_read_as_nccl_reads_it(void **state)
{
    struct choice c;
    char why[256];
    int all_reduce = choice_index(OP_ALL_REDUCE), broadcast = choice_index(OP_BROADCAST);

    (void)state;
    assert_int_equal(choice_parse("ring,collnetdirect;allreduce:tree", false, &c, why, sizeof(why)),
                     0);
    assert_int_equal(c.on[broadcast], 1u << ALGO_RING | 1u << ALGO_COLLNET_DIRECT);
    assert_int_equal(c.on[all_reduce], 1u << ALGO_TREE);
    assert_int_equal(choice_parse("^LL128;allreduce:LL128", true, &c, why, sizeof(why)), 0);
    assert_int_equal(c.on[broadcast], 1u << PROTO_LL | 1u << PROTO_SIMPLE);
    assert_int_equal(c.on[all_reduce], 1u << PROTO_LL128);
    assert_int_equal(choice_parse("allreduce:^LL", true, &c, why, sizeof(why)), 0);
    assert_int_equal(c.on[broadcast], CHOICE_ALL_PROTOS);
    assert_false(c.said[broadcast]);
    assert_int_equal(choice_parse("ring, tree", false, &c, why, sizeof(why)), -1);
    assert_int_equal(choice_parse("ring;tree", false, &c, why, sizeof(why)), -1);
    assert_int_equal(choice_parse("", false, &c, why, sizeof(why)), -1);
    assert_int_equal(choice_parse("allreduce:ring;allreduce:tree", false, &c, why, sizeof(why)),
                     -1);
}

static void what_the_shell_has_is_read_as_nccl_reads_it(void **state)
{
    char why[256];

    (void)state;
    assert_int_equal(env_value_misread(nccl_var_find("NCCL_BUFFSIZE"), "8M", why, sizeof(why)), -1);
    assert_non_null(strstr(why, "NCCL reads 8;"));
    assert_int_equal(
        env_value_misread(nccl_var_find("NCCL_BUFFSIZE"), "0x800000", why, sizeof(why)), 0);
    assert_int_equal(env_value_misread(nccl_var_find("NCCL_ALGO"), "ring, tree", why, sizeof(why)),
                     -1);
    assert_int_equal(env_value_misread(nccl_var_find("NCCL_P2P_LEVEL"), "sys", why, sizeof(why)),
                     -1);
    assert_int_equal(env_value_misread(nccl_var_find("NCCL_P2P_LEVEL"), "", why, sizeof(why)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_agrees_with_the_libraries_at_hand),
        cmocka_unit_test(every_name_stands_once_and_has_its_prefix),
        cmocka_unit_test(the_variables_of_one_communicator_are_those_that_nccl_asks_for_anew),
        cmocka_unit_test(sizes_read_back_exactly),
        cmocka_unit_test(versions_compare_in_the_order_of_releases),
        cmocka_unit_test(a_list_of_choices_is_read_as_nccl_reads_it),
        cmocka_unit_test(what_the_shell_has_is_read_as_nccl_reads_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
