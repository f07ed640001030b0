/* SPDX-License-Identifier: Apache-2.0 */
/* E09: rules on masked entries, sizes without a rule, too many channels, overlaps; tuner v2 to v6.
 */
#include "shim/plugin/plugin.h"
#include "test/unit/test_plugin_tuner.h"

#define UP_TO_32K "[tune]\nallreduce 0-32K = tree ll channels=2\n"

static void bounds(void)
{
    struct world w = box();

    use(UP_TO_32K);
    for (int v = FIRST; v <= LAST; v++) {
        struct answer small = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, 16 * K);
        struct answer edge = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, 32 * K);
        struct answer above = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, 32 * K + 1);
        struct answer large = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, 64 * M);
        CHECK(small.algo == ALGO_TREE && small.proto == PROTO_LL && small.channels == 2);
        CHECK(edge.algo == ALGO_TREE && edge.proto == PROTO_LL && edge.channels == 2);
        CHECK(untouched(&above, &w) && untouched(&large, &w));
        CHECK(v == 2 ? above.algo == -1 : above.algo == ALGO_RING && above.proto == PROTO_SIMPLE);
    }
}
static void E09_bounds_are_inclusive_and_a_size_without_a_rule_is_left_alone(void **state)
{
    (void)state;
    in_child(bounds);
}

static void masked(void)
{
    struct world w = box();
    struct log_writer *log;

    use(UP_TO_32K);
    log = open_log();
    w.costs[ALGO_TREE][PROTO_LL] = -1.0f;
    for (int v = 3; v <= LAST; v++) {
        struct answer a = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, 16 * K);
        CHECK(untouched(&a, &w));
    }
    CHECK_INT(rule(log, 0).masked, 4);
    CHECK_INT(rule(log, 0).matched, 0);
    CHECK_INT(note_count(log, NCCLSHIM_NOTE_WARNING), 1); /* said once */
    close_log(log);
}
static void E09_a_masked_entry_stays_masked_and_is_counted(void **state)
{
    (void)state;
    in_child(masked);
}

static void pinned(void)
{
    struct world w = box();
    struct log_writer *log;

    use(UP_TO_32K);
    log = open_log();
    setenv("NCCL_ALGO", "Ring", 1); /* NCCL masks all but rings then; v2 shows no table */
    for (int p = 0; p < PROTOS; p++)
        w.costs[ALGO_TREE][p] = -1.0f;
    for (int v = FIRST; v <= LAST; v++) {
        struct answer a = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, 16 * K);
        CHECK(untouched(&a, &w));
        CHECK(v == 2 ? a.algo == -1 : a.algo == ALGO_RING);
    }
    CHECK_INT(rule(log, 0).masked, 5);
    close_log(log);
}
static void E09_the_users_own_choice_wins_and_is_reported(void **state)
{
    (void)state;
    in_child(pinned);
}

static void too_many(void)
{
    struct world w = box();
    struct log_writer *log;

    use("[tune]\nallreduce 0-32K = ring ll channels=256\n");
    log = open_log();
    for (int v = FIRST; v <= LAST; v++)
        CHECK_INT(ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, 16 * K).channels, 64);
    CHECK_INT(rule(log, 0).capped, 5);
    CHECK_INT(rule(log, 0).matched, 5);
    CHECK_INT(note_count(log, NCCLSHIM_NOTE_WARNING), 1);
    setenv("NCCL_MAX_CTAS", "4", 1);
    CHECK_INT(ask_once(6, &w, NCCL_FUNC_ALL_REDUCE, 16 * K).channels, 4);
    close_log(log);
}
static void E09_channels_above_what_is_allowed_are_capped(void **state)
{
    (void)state;
    in_child(too_many);
}

static void overlapping(void)
{
    struct world w = box();

    use("[tune]\nallreduce 8K-64K = tree ll channels=2\nallreduce 0-1M = ring ll channels=4\n");
    for (int v = FIRST; v <= LAST; v++) {
        struct answer both = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, 8 * K);
        struct answer second = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, 4 * K);
        CHECK(both.algo == ALGO_TREE && both.channels == 2);
        CHECK(second.algo == ALGO_RING && second.proto == PROTO_LL && second.channels == 4);
    }
}
static void E09_of_overlapping_rules_the_first_wins(void **state)
{
    (void)state;
    in_child(overlapping);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(E09_bounds_are_inclusive_and_a_size_without_a_rule_is_left_alone),
        cmocka_unit_test(E09_a_masked_entry_stays_masked_and_is_counted),
        cmocka_unit_test(E09_the_users_own_choice_wins_and_is_reported),
        cmocka_unit_test(E09_channels_above_what_is_allowed_are_capped),
        cmocka_unit_test(E09_of_overlapping_rules_the_first_wins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
