/* SPDX-License-Identifier: Apache-2.0 */
/* What tune reads and writes: spaces, candidates, the profile that comes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/names.h"
#include "shim/profile/profile.h"
#include "shim/prove/tune/tune.h"

static const struct {
    const char *text;
    int line;
    const char *words;
} mistakes[] = {
    {"NCCL_NTHREADS = 256\n", 1, "before any section"},
    {"[env]\n\nNCCL_NTHREAD = 256\n", 3, "NCCL_NTHREADS"},
    {"[env]\nNCCL_NTHREADS = 256 many\n", 2, "many"},
    {"[env]\nNCCL_NTHREADS = 480\n", 2, "480"},         /* wrong sums */
    {"[env]\nNCCL_BUFFSIZE = 1000000\n", 2, "1000000"}, /* wrong sums */
    {"[env]\nNCCL_PROTO = LL\n", 2, "[tune]"},
    {"[env]\nNCCL_NTHREADS = 256\nNCCL_NTHREADS = 512\n", 3, "second time"},
    {"[env]\nNCCL_NTHREADS = 256 256\n", 2, "twice"},
    {"[env]\nNCCL_NTHREADS =\n", 2, "no values"},
    {"[env]\nNCCL_NTHREADS\n", 2, "NAME = VALUE"},
    {"[environment]\n", 1, "no section"},
    {"[env]\nNCCL_P2P_LEVEL = FAR\n", 2, "FAR"},
    {"[comm]\nmax_cta = 4\n", 2, "max_ctas"},
    {"[comm]\nmax_ctas = 100\n", 2, "100"},
    {"[tune]\nprotocol = ll fast\n", 2, "fast"},
    {"[tune]\nalgorithms = ring\n", 2, "algorithm"},
    {"[tune]\nchannels = 2 65\n", 2, "65"},
    {"[tune]\nchunk = 64KB\n", 2, "64KB"},
    {"[tune]\nprotocol = ll\nprotocol = simple\n", 3, "second time"},
    {"; nothing\n", 0, "nothing to try"},
};

static void a_mistake_is_told_with_its_line(void **state)
{
    struct tune_space s;
    struct error e;

    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        memset(&e, 0, sizeof(e));
        if (space_parse(&s, mistakes[i].text, "s.ini", &e) == 0)
            fail_msg("accepted: %s", mistakes[i].text);
        if (e.line != mistakes[i].line || strcmp(e.file, "s.ini") ||
            !strstr(e.text, mistakes[i].words))
            fail_msg("%s -> %s:%d: %s", mistakes[i].text, e.file, e.line, e.text);
    }
}

static void a_space_reads_back_as_it_was_written(void **state)
{
    static struct tune_space first, again;
    char *text = NULL;
    size_t size = 0;
    struct error e;

    (void)state;
    for (int i = 0; i < 2; i++) {
        FILE *out = open_memstream(&text, &size);
        space_default(&first);
        assert_true(first.setting_count >= 6 && first.algos && first.protos &&
                    first.channel_count && first.chunk_count);
        space_write(&first, out);
        fclose(out);
        assert_int_equal(space_parse(&again, text, "again", &e), 0);
        assert_memory_equal(&first, &again, sizeof(first));
        free(text);
        text = NULL;
    }
}

/* ---- pruning ----------------------------------------------------------------------------------
 */

static char told[4096];

static void tell(void *user, const char *line)
{
    (void)user;
    strncat(told, line, sizeof(told) - strlen(told) - 1);
}

static bool has(const struct tune_space *s, const char *name)
{
    for (size_t i = 0; i < s->setting_count; i++)
        if (!strcmp(s->settings[i].name, name))
            return true;
    return false;
}

static struct tune_space pruned(struct space_facts f)
{
    struct tune_space s;

    told[0] = '\0';
    space_default(&s);
    space_prune(&s, &f, tell, NULL);
    return s;
}

static void graph_mixing_is_tried_only_where_its_condition_can_hold(void **state)
{
    struct tune_space s = pruned((struct space_facts){.version = 22809, .graphs = true});

    (void)state;
    assert_true(has(&s, "NCCL_GRAPH_MIXING_SUPPORT"));
    s = pruned((struct space_facts){.version = 22809, .graphs = true, .mixed = true});
    assert_false(has(&s, "NCCL_GRAPH_MIXING_SUPPORT"));
    assert_non_null(strstr(told, "--waits-for-graphs"));
    s = pruned(
        (struct space_facts){.version = 22809, .graphs = true, .mixed = true, .waits = true});
    assert_true(has(&s, "NCCL_GRAPH_MIXING_SUPPORT"));
    s = pruned((struct space_facts){.version = 22809});
    assert_false(has(&s, "NCCL_GRAPH_MIXING_SUPPORT"));
}

static void what_the_shell_sets_is_not_tried_and_told(void **state)
{
    char *env[] = {(char[]){"NCCL_NTHREADS=128"}, (char[]){"NCCL_P2P_DISABLE=1"},
                   (char[]){"NCCL_PROTO=Simple"}, NULL};
    struct tune_space s = pruned((struct space_facts){.version = 22809, .env = env});

    (void)state;
    assert_false(has(&s, "NCCL_NTHREADS"));
    assert_false(has(&s, "NCCL_P2P_LEVEL"));
    assert_true(has(&s, "NCCL_BUFFSIZE"));
    assert_non_null(strstr(told, "NCCL_NTHREADS was not tried"));
    assert_non_null(strstr(told, "NCCL_PROTO"));
}

static void old_versions_get_no_rules_and_no_chunks(void **state)
{
    struct tune_space s = pruned((struct space_facts){.version = 22005});

    (void)state;
    assert_true(!s.algos && !s.protos && !s.channel_count);
    s = pruned((struct space_facts){.version = 22809});
    assert_true(s.algos && s.channel_count && !s.chunk_count);
    s = pruned((struct space_facts){.version = 23003});
    assert_true(s.chunk_count);
}

static void a_small_budget_gets_a_coarser_space(void **state)
{
    struct tune_space s;

    (void)state;
    space_default(&s);
    assert_false(space_thin(&s, 1000));
    assert_true(space_thin(&s, space_cost(&s) - 20));
    assert_true(s.channel_count < 6 && s.channel_count > 2 && s.setting_count == 7);
    space_default(&s);
    assert_true(space_thin(&s, 1)); /* as coarse as can be: still a value of everything */
    assert_int_equal(s.channel_count, 2);
    assert_int_equal(s.channels[0], 2);
    assert_int_equal(s.channels[1], 8);
    for (size_t i = 0; i < s.setting_count; i++)
        assert_int_equal(s.settings[i].count, 1);
    assert_int_equal(s.chunk_count, 1);
}

/* ---- candidates and profiles ------------------------------------------------------------------
 */

static void make_work(struct tune_work *w)
{
    static const uint64_t bytes[] = {43008, 4 << 20, 43008};
    static const int ops[] = {OP_ALL_REDUCE, OP_ALL_REDUCE, OP_ALL_GATHER};

    memset(w, 0, sizeof(*w));
    for (size_t i = 0; i < 3; i++) {
        w->classes[i] = (struct tune_class){ops[i], bytes[i]};
        strcpy(w->rows[i].op, op_name((unsigned)ops[i]));
        w->rows[i].bytes = bytes[i];
        w->rows[i].share = 1 / 3.0;
        w->rows[i].class = (int)i;
    }
    w->class_count = w->row_count = 3;
}

static struct candidate some_candidate(const struct tune_space *s)
{
    struct candidate c;

    candidate_init(&c);
    for (size_t i = 0; i < s->setting_count; i++)
        if (!strcmp(s->settings[i].name, "NCCL_BUFFSIZE") ||
            !strcmp(s->settings[i].name, "max_ctas"))
            c.value[i] = 1;
    c.rule[0] = (struct tune_choice){ALGO_RING, PROTO_LL, 2, 0};
    c.rule[2] = (struct tune_choice){-1, PROTO_SIMPLE, 0, 65536};
    return c;
}

static void a_candidate_becomes_a_profile_that_says_the_same(void **state)
{
    struct comm_facts any = {.ranks = 2, .nodes = 1, .name = ""};
    struct tune_space s;
    struct tune_work w;
    struct candidate c;
    const struct tune_rule *r;
    struct profile *p;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct error e;

    (void)state;
    space_default(&s);
    make_work(&w);
    c = some_candidate(&s);
    candidate_write(&c, &s, &w, out);
    fclose(out);
    if (profile_parse(text, size, "c.ini", &p, &e) < 0)
        fail_msg("%s\n%s", e.text, text);
    assert_int_equal(p->env_count, 1);
    assert_string_equal(p->env[0].name, "NCCL_BUFFSIZE");
    assert_string_equal(p->env[0].value, "2097152");
    assert_int_equal(profile_comm_base(p)->number[CONFIG_MAX_CTAS], 16);
    assert_int_equal(p->tune_count, 2);
    r = profile_tune_match(p, OP_ALL_REDUCE, 43008, &any);
    assert_true(r && r->algo == ALGO_RING && r->proto == PROTO_LL && r->channels == 2);
    assert_null(profile_tune_match(p, OP_ALL_REDUCE, 43009, &any));
    r = profile_tune_match(p, OP_ALL_GATHER, 43008, &any);
    assert_true(r && r->algo == -1 && r->proto == PROTO_SIMPLE && r->chunk_bytes == 65536);
    profile_free(p);
    free(text);
}

static void a_contradiction_is_found_before_anything_is_run(void **state)
{
    struct tune_space s;
    struct tune_work w;
    struct candidate c;
    struct error e;

    (void)state;
    assert_int_equal(
        space_parse(&s, "[env]\nNCCL_MIN_NCHANNELS = 16\nNCCL_MAX_NCHANNELS = 4\n", "s", &e), 0);
    make_work(&w);
    candidate_init(&c);
    c.value[0] = 0;
    assert_int_equal(candidate_check(&c, &s, &w, &e), 0);
    c.value[1] = 0;
    assert_int_equal(candidate_check(&c, &s, &w, &e), -1);
}

static void a_rule_reaches_to_twice_its_size_but_not_past_the_middle(void **state)
{
    struct tune_work w;
    uint64_t least, most, third;

    (void)state;
    make_work(&w);
    tune_range(&w, 0, &least, &most);
    assert_true(least == 0 && most == 128 << 10);
    tune_range(&w, 1, &least, &most);
    assert_true(least == 2 << 20 && most == 8 << 20);
    w.classes[2] = (struct tune_class){OP_ALL_REDUCE, 65536}; /* now there is one in between */
    tune_range(&w, 0, &least, &most);
    tune_range(&w, 2, &third, &least);
    assert_true(most >= 43008 && most < 65536 && third == most + 1);
}

/* With everything filled in that a real search would fill in. */
static void the_winner_is_written_with_its_evidence_and_loads(void **state)
{
    static struct tune t;
    char folder[] = "/tmp/test-tune-XXXXXX", text[4096];
    struct tune_trial x;
    struct profile *p;
    struct error e;
    FILE *in;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(t.folder.path, sizeof(t.folder.path), "%s", folder);
    space_default(&t.space);
    make_work(&t.work);
    strcpy(t.gpu, "Simulated; GPU");
    strcpy(t.nccl, "2.28.9");
    strcpy(t.source, "run a;b \"c\" # d");
    strcpy(t.placement, "processes");
    t.version = 22809;
    t.ranks = 8;
    t.simulated = true;
    t.proof_runs = 5;
    t.search.s = &t.space;
    t.search.w = t.search.book.w = &t.work;
    memset(&x, 0, sizeof(x));
    candidate_init(&x.c);
    for (int i = 0; i < 2; i++) {
        for (size_t r = 0; r < 3; r++)
            x.rows[r] = (struct tune_sample){log(i ? 50e3 : 100e3), 0.001};
        assert_non_null(book_add(&t.search.book, &x));
        x.c = some_candidate(&t.space);
    }
    t.search.best = x.c;
    if (tune_write(&t, &e) < 0)
        fail_msg("%s", e.text);
    in = fopen(t.profile, "re");
    assert_non_null(in);
    text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
    fclose(in);
    assert_non_null(strstr(text, "; found by `ncclshim tune`"));
    assert_non_null(strstr(text, "SIMULATED"));
    assert_non_null(strstr(text, "allreduce 0-128K = ring ll channels=2"));
    assert_int_equal(profile_load(t.profile, &p, &e), 0);
    assert_int_equal(p->nccl.least, 22800);
    assert_int_equal(p->tune_count, 2);
    profile_free(p);
    unlink(t.profile);
    rmdir(folder);
    book_free(&t.search.book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistake_is_told_with_its_line),
        cmocka_unit_test(a_space_reads_back_as_it_was_written),
        cmocka_unit_test(graph_mixing_is_tried_only_where_its_condition_can_hold),
        cmocka_unit_test(what_the_shell_sets_is_not_tried_and_told),
        cmocka_unit_test(old_versions_get_no_rules_and_no_chunks),
        cmocka_unit_test(a_small_budget_gets_a_coarser_space),
        cmocka_unit_test(a_candidate_becomes_a_profile_that_says_the_same),
        cmocka_unit_test(a_contradiction_is_found_before_anything_is_run),
        cmocka_unit_test(a_rule_reaches_to_twice_its_size_but_not_past_the_middle),
        cmocka_unit_test(the_winner_is_written_with_its_evidence_and_loads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
