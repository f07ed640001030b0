/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL_ALGO, NCCL_PROTO and [tune] rules: what is left, for which operation, and what never works.
 */
#include <stdio.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/profile/choice.h"
#include "shim/profile/judge.h"

#define LL128_BIT (1u << PROTO_LL128)

/* The pair that is in force somewhere: for all communicators, or within one section. */
struct pair {
    const struct judge *j;
    const struct setting *algo_set, *proto_set; /* NULL = not set */
    struct choice algo, proto;
    const char *section; /* "" = for all */
};

static void tell(const struct pair *p, enum severity severity, const struct setting *s,
                 const char *advice, const char *text)
{
    finding_add(p->j->out, severity, s->name, p->section, &s->place, s->origin, advice, "%s", text);
}

static void read_pair(struct pair *p)
{
    char why[256];

    if (!p->algo_set || choice_parse(p->algo_set->value, false, &p->algo, why, sizeof(why)))
        choice_default(false, &p->algo);
    if (!p->proto_set || choice_parse(p->proto_set->value, true, &p->proto, why, sizeof(why)))
        choice_default(true, &p->proto);
}

/* Algorithms that are left for an operation with at least one protocol. */
static uint8_t algos_left(const struct pair *p, int i)
{
    uint8_t left = 0;

    for (int a = 0; a < ALGO_COUNT; a++)
        if (p->algo.on[i] & 1u << a && choice_protos_of(choice_ops[i], a) & p->proto.on[i])
            left |= (uint8_t)(1u << a);
    return left;
}

static void list_ops(unsigned ops, char *buf, size_t size)
{
    size_t used = 0;

    *buf = '\0';
    for (int i = 0; i < CHOICE_OPS; i++)
        if (ops & 1u << i && used < size)
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
                                     op_name((unsigned)choice_ops[i]));
}

/* From 2.24 on there is no falling back to Ring. */
static void nothing_left(const struct pair *p)
{
    const struct setting *s = p->algo_set ? p->algo_set : p->proto_set;
    unsigned none = 0;
    bool old = older_than(p->j, 22400);
    char ops[128], text[400];

    for (int i = 0; i < CHOICE_OPS; i++)
        if (!algos_left(p, i))
            none |= 1u << i;
    if (!none)
        return;
    list_ops(none, ops, sizeof(ops));
    snprintf(text, sizeof(text), "%s%s %s",
             p->algo_set && p->proto_set ? "together with NCCL_PROTO, " : "", ops,
             old ? "would have no algorithm left; NCCL before 2.24 then takes Ring and forgets the "
                   "chosen protocol"
                 : "would have no algorithm left, and each such call fails (there is often a "
                   "broadcast at a server's start)");
    tell(p, old ? SEVERITY_WARN : SEVERITY_ERROR, s,
         p->algo_set && !p->algo.per_operation
             ? "speak of one operation only, as in NCCL_ALGO = allreduce:tree"
             : "leave it a combination that exists",
         text);
}

/* What is left depends on hardware that many boxes lack. */
static void only_special(const struct pair *p)
{
    static const uint8_t plain = 1u << ALGO_RING | 1u << ALGO_TREE;
    uint8_t special = 0;
    unsigned ops = 0;
    char text[384], names[128];

    if (!p->algo_set)
        return;
    for (int i = 0; i < CHOICE_OPS; i++) {
        uint8_t left = algos_left(p, i);
        if (left && !(left & plain)) {
            special |= left;
            ops |= 1u << i;
        }
    }
    if (!ops)
        return;
    list_ops(ops, names, sizeof(names));
    snprintf(text, sizeof(text), "%s can run only where there is %s%s%s%s%s", names,
             special & 1u << ALGO_NVLS ? "NVLink SHARP (NVLS) " : "",
             special & 1u << ALGO_NVLS_TREE ? "NVLink SHARP on more than one node (NVLSTree) " : "",
             special & (1u << ALGO_COLLNET_DIRECT | 1u << ALGO_COLLNET_CHAIN)
                 ? "a network that reduces (CollNet) "
                 : "",
             special & 1u << ALGO_PAT ? "one GPU a node (PAT) " : "", "- elsewhere the call fails");
    tell(p, SEVERITY_WARN, p->algo_set, "add Ring behind it", text);
}

static void forced_ll128(const struct pair *p)
{
    bool forced = p->proto.named & LL128_BIT;

    for (int i = 0; p->proto.negated && i < CHOICE_OPS; i++)
        forced |= p->proto.said[i] && p->proto.on[i] & LL128_BIT;
    if (!p->proto_set || !forced)
        return;
    tell(
        p, SEVERITY_DANGER, p->proto_set,
        "write LL,Simple, or ^LL128, or take ll128 in a [tune] rule, which leaves NCCL's check "
        "alone",
        p->proto.named & LL128_BIT
            ? "naming LL128 skips NCCL's check of the link: where 128-byte stores may be split, as "
              "over PCIe, data is wrong without a word"
            : "a list with ^ that does not name LL128 forces it on, past NCCL's check of the link: "
              "wrong data where 128-byte stores may be split, as over PCIe");
}

static void one_for_all(const struct pair *p)
{
    uint8_t all = CHOICE_ALL_PROTOS;

    for (int i = 0; i < CHOICE_OPS; i++)
        all &= p->proto.on[i];
    if (p->proto_set && all == 1u << PROTO_LL && !p->proto.per_operation)
        tell(p, SEVERITY_HINT, p->proto_set, "a [tune] rule gives LL to small sizes only",
             "LL for every size: large messages get slower");
}

static void grammar(const struct pair *p)
{
    const struct setting *sets[] = {p->algo_set, p->proto_set};
    const struct choice *choices[] = {&p->algo, &p->proto};

    for (int i = 0; i < 2; i++)
        if (sets[i] && choices[i]->per_operation && older_than(p->j, 22400))
            tell(p, SEVERITY_WARN, sets[i],
                 "write one list for all operations, or ask for nccl = >=2.24",
                 "NCCL before 2.24 does not know lists for one operation");
    if (p->algo_set && p->algo.named & 1u << ALGO_PAT && older_than(p->j, 22300))
        tell(p, SEVERITY_WARN, p->algo_set, "", "NCCL before 2.23 does not know PAT: init fails");
    if (p->algo_set && p->algo.named & 1u << ALGO_NVLS_TREE && older_than(p->j, 21800))
        tell(p, SEVERITY_WARN, p->algo_set, "",
             "NCCL before 2.18 does not know NVLSTree: init fails");
}

static void judge_pair(struct pair *p)
{
    read_pair(p);
    grammar(p);
    forced_ll128(p);
    nothing_left(p);
    only_special(p);
    one_for_all(p);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void on_rule(const struct judge *j, const struct tune_rule *t, enum severity severity,
                    const char *advice, const char *text)
{
    finding_add(j->out, severity, t->text, t->label, &t->place, NCCLSHIM_ORIGIN_PROFILE, advice,
                "%s", text);
}

static bool rule_possible(const struct pair *p, const struct tune_rule *t)
{
    int i = choice_index(t->op);

    for (int a = 0; a < ALGO_COUNT; a++) {
        uint8_t protos = choice_protos_of(t->op, a) & p->proto.on[i];
        if ((t->algo < 0 || t->algo == a) && p->algo.on[i] & 1u << a &&
            (t->proto < 0 ? protos : protos & 1u << t->proto))
            return true;
    }
    return false;
}

/* A pinned list acts before the tuner: what it rules out no rule brings back. */
static void pinned(const struct pair *p, const struct tune_rule *t)
{
    const struct setting *s = p->proto_set ? p->proto_set : p->algo_set;
    char text[256];

    if (!s || rule_possible(p, t))
        return;
    snprintf(text, sizeof(text),
             "the rule can never work: %s = %.60s%s%s%.60s rules it out, and goes "
             "before every tuner",
             s->name, s->value, s == p->proto_set && p->algo_set ? " with NCCL_ALGO" : "",
             s == p->proto_set && p->algo_set ? " = " : "",
             s == p->proto_set && p->algo_set ? p->algo_set->value : "");
    on_rule(p->j, t, from_profile(s) ? SEVERITY_ERROR : SEVERITY_WARN,
            "take the pinned list away, or the rule", text);
}

static int channel_cap(const struct judge *j)
{
    const struct comm_section *base = profile_comm_base(j->p);
    long long cap = 64, n;

    n = setting_number(settings_find(j->s, "NCCL_MAX_NCHANNELS"), cap);
    cap = n > 0 && n < cap ? n : cap;
    n = setting_number(settings_find(j->s, "NCCL_MAX_CTAS"),
                       base && base->set & 1u << CONFIG_MAX_CTAS ? base->number[CONFIG_MAX_CTAS]
                                                                 : cap);
    return (int)(n > 0 && n < cap ? n : cap);
}

static void judge_rule(const struct pair *p, const struct tune_rule *t)
{
    const struct judge *j = p->j;
    int cap = channel_cap(j);
    char text[128];

    pinned(p, t);
    if (older_than(j, 22100))
        on_rule(j, t, SEVERITY_WARN, "ask for nccl = >=2.21",
                "no effect: NCCL before 2.21 has no tuner interface that ncclshim speaks");
    if (t->chunk_bytes && older_than(j, 23000))
        on_rule(j, t, SEVERITY_WARN, "", "chunk= has no effect before NCCL 2.30");
    if (t->channels > cap) {
        snprintf(text, sizeof(text),
                 "%d channels are more than a communicator can have here (%d): "
                 "it gets those",
                 t->channels, cap);
        on_rule(j, t, SEVERITY_WARN, "", text);
    }
    if (t->proto == PROTO_LL128)
        on_rule(j, t, SEVERITY_HINT, "",
                "works only where NCCL itself allows LL128; elsewhere the rule counts as not "
                "applicable");
    if (t->algo < 0 && t->proto < 0 && t->channels == 1)
        on_rule(j, t, SEVERITY_HINT, "", "one channel throttles all but the smallest messages");
}

static void pinned_beside_rules(const struct pair *p)
{
    if (p->proto_set && p->j->p->tune_count)
        tell(p, SEVERITY_HINT, p->proto_set, "",
             "pinned beside [tune] rules: sizes without a rule get nothing but these");
    if (p->algo_set && p->j->p->tune_count)
        tell(p, SEVERITY_HINT, p->algo_set, "",
             "pinned beside [tune] rules: sizes without a rule get nothing but these");
}

/* ---- sections -------------------------------------------------------------------------------- */

static const struct env_setting *find_env(const struct comm_section *c, const char *name)
{
    for (size_t i = 0; c && i < c->env_count; i++)
        if (!strcmp(c->env[i].name, name))
            return &c->env[i];
    return NULL;
}

static struct setting as_setting(const struct env_setting *e)
{
    return (struct setting){
        .name = e->name, .value = e->value, .origin = NCCLSHIM_ORIGIN_COMM, .place = e->place};
}

static void judge_section(const struct pair *all, const struct comm_section *c)
{
    const struct comm_section *base = profile_comm_base(all->j->p);
    const struct env_setting *a = find_env(c, "NCCL_ALGO"), *q = find_env(c, "NCCL_PROTO");
    struct setting algo, proto;
    struct pair p = *all;

    if (!a && !q)
        return;
    if (!a && c != base)
        a = find_env(base, "NCCL_ALGO");
    if (!q && c != base)
        q = find_env(base, "NCCL_PROTO");
    p.section = c->label;
    if (a) {
        algo = as_setting(a);
        p.algo_set = &algo;
    }
    if (q) {
        proto = as_setting(q);
        p.proto_set = &proto;
    }
    judge_pair(&p);
}

void check_choices(const struct judge *j)
{
    struct pair all = {.j = j,
                       .algo_set = settings_find(j->s, "NCCL_ALGO"),
                       .proto_set = settings_find(j->s, "NCCL_PROTO"),
                       .section = ""};

    judge_pair(&all);
    pinned_beside_rules(&all);
    for (size_t i = 0; i < j->p->tune_count; i++)
        judge_rule(&all, &j->p->tune[i]);
    for (size_t i = 0; i < j->p->comm_count; i++)
        judge_section(&all, &j->p->comm[i]);
}
