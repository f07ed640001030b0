/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The [tune] rules through NCCL's tuner interface, all versions called directly. NCCL's side is the
 * table of costs as NCCL fills it: what it or the user has ruled out is -1, the smallest entry wins,
 * of equal ones the first.
 */
#include "test/unit/test_plugin_help.h"

#include "shim/base/names.h"
#include "shim/plugin/plugin.h"
#include "shim/profile/profile.h"

#define ALGOS 7
#define PROTOS 3
#define FIRST 2
#define LAST 6
#define K 1024ul
#define M (1024ul * 1024ul)

/* ---- NCCL's side ------------------------------------------------------------------------------- */

struct world {
    float costs[ALGOS][PROTOS]; /* before the question */
    size_t ranks, nodes;
    int algos;
};

struct answer {
    ncclResult_t result;
    float costs[ALGOS][PROTOS];
    int algo, proto; /* what NCCL then takes; in v2 the tuner's own answer */
    int channels;
};

/* One box without NVLink: rings and trees; ring Simple is the cheapest. */
static struct world box(void)
{
    struct world w = {.ranks = 8, .nodes = 1, .algos = ALGOS};

    for (int a = 0; a < ALGOS; a++)
        for (int p = 0; p < PROTOS; p++)
            w.costs[a][p] = a <= ALGO_RING && p != PROTO_LL128 ? 40.0f - 10 * a - 2 * p : -1.0f;
    return w;
}

static const struct tuner_table *table_of(int version)
{
    static const struct tuner_table *const tables[] = {
        &ncclTunerPlugin_v2, &ncclTunerPlugin_v3, &ncclTunerPlugin_v4, &ncclTunerPlugin_v5,
        &ncclTunerPlugin_v6.v5};

    return tables[version - FIRST];
}

static void *begin(int version, const struct world *w)
{
    const struct tuner_table *t = table_of(version);
    void *context = NULL;
    ncclResult_t r = version >= 5 ? t->init.v5(&context, 0x77, w->ranks, w->nodes, NULL, NULL, NULL)
                                  : t->init.v2(w->ranks, w->nodes, NULL, &context);

    CHECK_INT(r, ncclSuccess);
    return context;
}

static void nccl_takes(struct answer *a)
{
    float least = 3.6e9f;

    for (int i = 0; i < ALGOS; i++)
        for (int p = 0; p < PROTOS; p++)
            if (a->costs[i][p] >= 0 && a->costs[i][p] < least) {
                least = a->costs[i][p];
                a->algo = i;
                a->proto = p;
            }
}

static struct answer ask(int version, void *context, const struct world *w, int func, size_t bytes)
{
    const struct tuner_table *t = table_of(version);
    struct answer a = {.algo = -1, .proto = -1};
    float **flat = (float **)a.costs;

    memcpy(a.costs, w->costs, sizeof(a.costs));
    if (version == 2)
        a.result = t->info.v2(context, func, bytes, 0, 0, 1, &a.algo, &a.proto, &a.channels);
    else if (version == 3)
        a.result = t->info.v3(context, func, bytes, 1, flat, w->algos, PROTOS, &a.channels);
    else
        a.result = t->info.v4(context, func, bytes, 1, flat, w->algos, PROTOS, 0, &a.channels);
    CHECK_INT(a.result, ncclSuccess);
    if (version > 2)
        nccl_takes(&a);
    return a;
}

static struct answer ask_once(int version, const struct world *w, int func, size_t bytes)
{
    void *context = begin(version, w);
    struct answer a = ask(version, context, w, func, bytes);

    CHECK_INT(table_of(version)->finalize(context), ncclSuccess);
    return a;
}

static bool untouched(const struct answer *a, const struct world *w)
{
    return !memcmp(a->costs, w->costs, sizeof(a->costs)) && a->channels == 0;
}

/* ---- profiles ---------------------------------------------------------------------------------- */

static void use(const char *rules)
{
    struct profile *p = NULL;
    struct error e;
    char text[2048], why[512];

    snprintf(text, sizeof(text), "%s", rules);
    if (profile_parse(text, strlen(text), "test.ini", &p, &e)) {
        fprintf(stderr, "%s\n", error_str(&e, why, sizeof(why)));
        _exit(1);
    }
    shim.profile = p;
    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_PROTO");
    unsetenv("NCCL_MAX_CTAS");
    unsetenv("NCCL_MAX_NCHANNELS");
}

static struct ncclshim_rule rule(struct log_writer *log, int n)
{
    const struct ncclshim_note *have = note(log, NCCLSHIM_NOTE_RULE, n);
    struct ncclshim_rule r;

    CHECK(have && have->a == (uint32_t)n);
    memcpy(&r, have + 1, sizeof(r));
    return r;
}


/* ---- E09 --------------------------------------------------------------------------------------- */

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

/* ---- the rest of the language ------------------------------------------------------------------ */

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
    ncclTunerPlugin_v6.chunk(context, NCCL_FUNC_ALL_REDUCE, 2 * M, ALGO_RING, PROTO_SIMPLE, 1, &chunk);
    CHECK_INT(chunk, 128 * K);
    chunk = 7;
    ncclTunerPlugin_v6.chunk(context, NCCL_FUNC_ALL_REDUCE, 2 * M, ALGO_RING, PROTO_LL, 1, &chunk);
    CHECK_INT(chunk, 7); /* another protocol was taken */
    ask(6, context, &w, NCCL_FUNC_ALL_REDUCE, 64 * M);
    ncclTunerPlugin_v6.chunk(context, NCCL_FUNC_ALL_REDUCE, 2 * M, ALGO_RING, PROTO_SIMPLE, 1, &chunk);
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
        cmocka_unit_test(E09_bounds_are_inclusive_and_a_size_without_a_rule_is_left_alone),
        cmocka_unit_test(E09_a_masked_entry_stays_masked_and_is_counted),
        cmocka_unit_test(E09_the_users_own_choice_wins_and_is_reported),
        cmocka_unit_test(E09_channels_above_what_is_allowed_are_capped),
        cmocka_unit_test(E09_of_overlapping_rules_the_first_wins),
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
