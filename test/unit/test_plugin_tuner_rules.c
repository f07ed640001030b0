/* SPDX-License-Identifier: Apache-2.0 */
/* What a [tune] rule can say, through tuner v2 to v6. */
#include "shim/plugin/plugin.h"
#include "test/unit/test_plugin_tuner.h"

static void half(void)
{
    struct world w = box();

    use("[tune]\nallreduce 0-1K = tree\nallreduce 2K-4K = ll\nallreduce 8K-16K = channels=3\n");
    for (int v = 3; v <= LAST; v++) {
        struct answer algo = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, K);
        struct answer proto = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, 2 * K);
        struct answer channels = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, 8 * K);
        CHECK(algo.algo == ALGO_TREE && algo.proto == PROTO_SIMPLE && algo.channels == 0);
        CHECK(proto.algo == ALGO_RING && proto.proto == PROTO_LL && proto.channels == 0);
        CHECK(!memcmp(channels.costs, w.costs, sizeof(w.costs)) && channels.channels == 3);
    }
}
static void half_a_rule_leaves_the_other_half_to_nccl(void **state)
{
    (void)state;
    in_child(half);
}

static void ties(void)
{
    struct world w = box();

    use("[tune]\nallreduce = ring ll\n");
    w.costs[ALGO_TREE][PROTO_LL] = 0.0f; /* another tuner's wish, in front of ours */
    for (int v = 3; v <= LAST; v++) {
        struct answer a = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, K);
        CHECK(a.algo == ALGO_RING && a.proto == PROTO_LL);
        CHECK(a.costs[ALGO_TREE][PROTO_LL] > 0);
    }
}
static void a_rule_wins_over_an_earlier_entry_that_costs_nothing(void **state)
{
    (void)state;
    in_child(ties);
}

static void other_operations(void)
{
    struct world w = box();
    const int funcs[] = {NCCL_FUNC_BROADCAST, NCCL_FUNC_REDUCE, NCCL_FUNC_ALL_GATHER,
                         NCCL_FUNC_REDUCE_SCATTER};

    use("[tune]\nallreduce = tree ll\nbroadcast = ring ll channels=1\nreduce = ring ll channels=2\n"
        "allgather = ring ll channels=3\nreducescatter = ring ll channels=4\n");
    for (int v = FIRST; v <= LAST; v++)
        for (int i = 0; i < 4; i++) {
            struct answer a = ask_once(v, &w, funcs[i], M);
            CHECK(a.algo == ALGO_RING && a.proto == PROTO_LL);
            CHECK_INT(a.channels, i + 1);
        }
    for (int v = FIRST; v <= LAST; v++)
        for (int func = -1; func < 20; func++)
            if (func < 0 || func > NCCL_FUNC_ALL_REDUCE) {
                struct answer a = ask_once(v, &w, func, M);
                CHECK(untouched(&a, &w));
            }
}
static void every_operation_has_its_own_rules_and_unknown_ones_have_none(void **state)
{
    (void)state;
    in_child(other_operations);
}

static void conditions(void)
{
    struct world w = box();
    struct comm c;
    struct birth b;

    use("[tune eight]\nranks = 8\nname = tp*\nallreduce = tree ll channels=2\n"
        "[tune nodes]\nnodes = 2-\nallreduce = ring ll channels=5\n");
    for (int v = FIRST; v <= LAST; v++) {
        struct answer a = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, K);
        void *context;
        CHECK(untouched(&a, &w)); /* no name is known */
        begin_birth(&b, &c, NULL);
        strcpy(c.name, "tp0");
        context = begin(v, &w);
        birth_current = NULL;
        CHECK_INT(ask(v, context, &w, NCCL_FUNC_ALL_REDUCE, K).channels, 2);
        table_of(v)->finalize(context);
        w.nodes = 2;
        CHECK_INT(ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, K).channels, 5);
        w.nodes = 1;
    }
}
static void rules_ask_for_ranks_nodes_and_names(void **state)
{
    (void)state;
    in_child(conditions);
}

static void v2_caution(void)
{
    struct world w = box();
    struct log_writer *log;
    struct answer a;

    use("[tune]\nallreduce 0-1K = ring ll128\nallreduce 2K-4K = nvls\nallreduce 8K-9K = tree\n");
    log = open_log();
    a = ask_once(2, &w, NCCL_FUNC_ALL_REDUCE, K);
    CHECK(a.algo == -1 && a.proto == -1); /* 2.21 would not ask whether LL128 is safe here */
    a = ask_once(2, &w, NCCL_FUNC_ALL_REDUCE, 2 * K);
    CHECK(a.algo == -1);
    a = ask_once(2, &w, NCCL_FUNC_ALL_REDUCE, 8 * K);
    CHECK(a.algo == -1 && a.channels == 0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(rule(log, i).masked, 1);
    close_log(log);
}
static void the_oldest_interface_is_not_given_what_can_not_be_checked(void **state)
{
    (void)state;
    in_child(v2_caution);
}

static void smaller_table(void)
{
    struct world w = box();

    use("[tune]\nallgather = pat\n");
    w.algos = 6; /* NCCL 2.22 has no PAT */
    CHECK(untouched(&(struct answer[]){ask_once(3, &w, NCCL_FUNC_ALL_GATHER, K)}[0], &w));
}
static void an_algorithm_beyond_the_table_is_ruled_out(void **state)
{
    (void)state;
    in_child(smaller_table);
}

static void chunks(void)
{
    struct world w = box();
    void *context;
    size_t chunk = 512 * K;

    use("[tune]\nallreduce 0-32M = ring simple chunk=128K\nallgather = ring simple chunk=100\n");
    context = begin(6, &w);
    ask(6, context, &w, NCCL_FUNC_ALL_REDUCE, 16 * M);
    /* NCCL asks for each channel's part. */
    ncclTunerPlugin_v6.chunk(context, NCCL_FUNC_ALL_REDUCE, 2 * M, ALGO_RING, PROTO_SIMPLE, 1,
                             &chunk);
    CHECK_INT(chunk, 128 * K);
    chunk = 7;
    ncclTunerPlugin_v6.chunk(context, NCCL_FUNC_ALL_REDUCE, 2 * M, ALGO_RING, PROTO_LL, 1, &chunk);
    CHECK_INT(chunk, 7); /* another protocol was taken */
    ask(6, context, &w, NCCL_FUNC_ALL_REDUCE, 64 * M);
    ncclTunerPlugin_v6.chunk(context, NCCL_FUNC_ALL_REDUCE, 2 * M, ALGO_RING, PROTO_SIMPLE, 1,
                             &chunk);
    CHECK_INT(chunk, 7); /* the call has no rule, whatever its parts look like */
    ask(6, context, &w, NCCL_FUNC_ALL_GATHER, M);
    ncclTunerPlugin_v6.chunk(context, NCCL_FUNC_ALL_GATHER, M, ALGO_RING, PROTO_SIMPLE, 1, &chunk);
    CHECK_INT(chunk, 2048); /* less than one grain would make NCCL divide by 0 */
    ncclTunerPlugin_v6.v5.finalize(context);
}
static void chunk_sizes_follow_the_call_not_its_parts(void **state)
{
    (void)state;
    in_child(chunks);
}

static void nothing(void)
{
    struct world w = box();
    size_t chunk = 9;

    shim.profile = NULL;
    for (int v = FIRST; v <= LAST; v++) {
        struct answer a = ask_once(v, &w, NCCL_FUNC_ALL_REDUCE, K);
        CHECK(untouched(&a, &w));
        a = ask(v, NULL, &w, NCCL_FUNC_ALL_REDUCE, K); /* an init that failed elsewhere */
        CHECK(untouched(&a, &w));
        CHECK_INT(table_of(v)->finalize(NULL), ncclSuccess);
    }
    CHECK_INT(ncclTunerPlugin_v6.chunk(NULL, 4, K, 1, 2, 1, &chunk), ncclSuccess);
    CHECK_INT(chunk, 9);
}
static void without_rules_nothing_is_touched(void **state)
{
    (void)state;
    in_child(nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_a_rule_leaves_the_other_half_to_nccl),
        cmocka_unit_test(a_rule_wins_over_an_earlier_entry_that_costs_nothing),
        cmocka_unit_test(every_operation_has_its_own_rules_and_unknown_ones_have_none),
        cmocka_unit_test(rules_ask_for_ranks_nodes_and_names),
        cmocka_unit_test(the_oldest_interface_is_not_given_what_can_not_be_checked),
        cmocka_unit_test(an_algorithm_beyond_the_table_is_ruled_out),
        cmocka_unit_test(chunk_sizes_follow_the_call_not_its_parts),
        cmocka_unit_test(without_rules_nothing_is_touched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
