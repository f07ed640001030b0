/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is worth a look. Each hint names the threshold that it crossed; docs/report.md lists them
 * all with the reasons for their values.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/overview.h"
#include "shim/show/term.h"

#define STRAGGLER_SHARE 0.5 /* one rank is last in half of the calls that have a clear last one */
#define DECIDED_SHARE 0.2   /* and at least a fifth of the calls have one */
#define WAIT_SHARE 0.3      /* of the time in the calls, when no single rank is behind it */
#define STRAGGLER_WAIT 0.1  /* the same, when one rank is */
#define TAIL_FACTOR 4.0     /* p99 over p50 */
#define TAIL_CALLS 1000u
#define FLOOR_SHARE 0.1    /* of p50 */
#define COMM_SHARE 0.2     /* of a forward pass */
#define SHORT_NS 100000u   /* calls for which one or two microseconds are worth having */
#define SMALL_BYTES 65536u /* LL's and LL128's home; above, Simple is the usual choice */
#define ROW_SHARE 0.05     /* rows below this share of the time are not spoken about */

static void hint(struct overview *f, const char *key, bool serious, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void hint(struct overview *f, const char *key, bool serious, const char *fmt, ...)
{
    struct hint *h;
    va_list ap;

    if (f->hint_count == HINTS_MAX)
        return;
    h = &f->hints[f->hint_count++];
    h->key = key;
    h->serious = serious;
    va_start(ap, fmt);
    vsnprintf(h->text, sizeof(h->text), fmt, ap);
    va_end(ap);
}

static uint64_t total_ns(const struct run *r)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->row_count; i++)
        sum += r->rows[i].ns.sum;
    return sum;
}

static const char *row_label(const struct run_row *row, char *buf, size_t size)
{
    char bytes[UNIT_SIZE];

    snprintf(buf, size, "%s %s", op_name(row->op), unit_bytes(row->bytes, bytes));
    return buf;
}

/* ---- can the numbers be trusted -------------------------------------------------------------- */

static void about_coverage(struct overview *f)
{
    const struct run *r = f->run;
    char a[UNIT_SIZE], b[UNIT_SIZE];

    if (r->missed_calls)
        hint(f, "not_intercepted", true,
             "NCCL counted %s calls that did not come through the shim. They are in no number "
             "above; "
             "see docs/report.md, \"not intercepted\".",
             unit_count(r->missed_calls, a));
    if (r->lost)
        hint(
            f, "lost", false,
            "%s of %s stamped calls were overwritten before they were read: percentiles are of the "
            "newest ones. Run the server under `ncclshim run`, or give the profile a larger "
            "[log] capacity.",
            unit_count(r->lost, a), unit_count(r->lost + r->timed, b));
    if (r->unsited)
        hint(f, "no_room", true,
             "%s calls found no room in the log's table of call sites and are in no number above.",
             unit_count(r->unsited, a));
    if (r->bad)
        hint(f, "bad_records", true,
             "%s records name no call site or end before they start; they were left out.",
             unit_count(r->bad, a));
}

static void about_unfinished(struct overview *f)
{
    const struct run *r = f->run;
    char label[64], n[UNIT_SIZE];

    for (uint32_t i = 0; i < r->process_count; i++)
        if (r->processes[i].lives)
            return; /* calls on their way are nothing to speak about */
    for (uint32_t i = 0; i < r->row_count; i++) {
        const struct run_row *row = &r->rows[i];
        if (!row->unfinished)
            continue;
        hint(f, "unfinished", false,
             "%s calls of %s were started or queued and have no end: the process was killed, or a "
             "rank did not come.",
             unit_count(row->unfinished, n), row_label(row, label, sizeof(label)));
        return;
    }
}

static void about_settings(struct overview *f)
{
    const struct run *r = f->run;
    const struct run_settings *s = &f->settings;
    const struct run_setting *graph = run_setting_named(s, "NCCL_GRAPH_MIXING_SUPPORT");
    const struct run_setting_value *usual;
    unsigned lost = 0, unread = 0, differ = 0;
    const char *lost_name = "", *unread_name = "", *differ_name = "";

    for (size_t i = 0; i < s->count; i++) {
        bool is_lost = false, ours = false;
        for (uint32_t p = 0; p < r->process_count; p++) {
            const struct run_setting_value *v = &s->items[i].by_process[p];
            is_lost |= v->lost;
            ours |= v->value &&
                    (v->origin == NCCLSHIM_ORIGIN_PROFILE || v->origin == NCCLSHIM_ORIGIN_OVERRIDE);
        }
        if (is_lost && !lost++)
            lost_name = s->items[i].name;
        if (ours && s->items[i].read == SETTING_NOT_READ && !unread++)
            unread_name = s->items[i].name;
        if (s->items[i].differs && !differ++)
            differ_name = s->items[i].name;
    }
    if (differ)
        hint(f, "settings_differ", true,
             "The processes do not have the same settings: %s%s. Ranks that disagree can hang or "
             "give wrong data; the table below tells who has what.",
             differ_name, differ > 1 ? " and others" : "");
    else if (s->digests_differ)
        hint(f, "digests_differ", true,
             "The processes' digests of their NCCL settings differ, though no setting on record "
             "does: "
             "look at NCCL's own configuration files on each host.");
    if (lost)
        hint(f, "setting_lost", false,
             "The profile's %s%s did not get its way: the environment already had another value. "
             "[env override] wins over it.",
             lost_name, lost > 1 ? " and others" : "");
    if (unread)
        hint(f, "setting_not_read", false,
             "NCCL never asked for %s%s: this version does not know it, or had no use for it here.",
             unread_name, unread > 1 ? " and others" : "");
    for (uint32_t i = 0; i < r->comm_count && graph; i++)
        if ((r->comms[i].flags & NCCLSHIM_COMM_MIXED_USE) && (usual = run_setting_usual(graph, r)) &&
            !strcmp(usual->value, "0")) {
            hint(f, "mixed_use", true,
                 "A communicator is used eagerly and in graphs with NCCL_GRAPH_MIXING_SUPPORT=0. "
                 "NCCL "
                 "forbids that while a graph is still running: results may be wrong. Unset it.");
            break;
        }
}

/* ---- the ranks ------------------------------------------------------------------------------- */

static void about_straggler(struct overview *f, uint32_t comm)
{
    const struct run *r = f->run;
    const struct arrivals *a = &f->arrivals[comm];
    const struct run_comm *c = &r->comms[comm];
    char name[128], late[UNIT_SIZE], share[UNIT_SIZE], wait[UNIT_SIZE];
    uint64_t wait_ns = 0, busy_ns = 0;
    uint32_t worst = 0;

    if (a->why_not[0] || !a->calls)
        return;
    for (uint32_t k = 0; k < c->member_count; k++) {
        wait_ns += a->ranks[k].wait_ns;
        busy_ns += a->ranks[k].busy_ns;
        if (a->ranks[k].last > a->ranks[worst].last)
            worst = k;
    }
    if (!busy_ns || (double)wait_ns < STRAGGLER_WAIT * (double)busy_ns)
        return;
    unit_percent((double)wait_ns / (double)busy_ns, wait);
    if ((double)a->decided >= DECIDED_SHARE * (double)a->calls && c->member_count > 2 &&
        (double)a->ranks[worst].last > STRAGGLER_SHARE * (double)a->decided) {
        hint(f, "straggler", false,
             "%s: rank %d comes last in %s of the calls, %s after the first one; %s of all "
             "communication time is waiting for it. Look at that GPU's clocks, its PCIe link and "
             "what "
             "else runs on its host core.",
             comm_label(r, comm, name, sizeof(name)), c->members[worst].rank,
             unit_percent((double)a->ranks[worst].last / (double)a->calls, share),
             unit_ns(hist_quantile(&a->ranks[worst].late_ns, 0.5), late), wait);
        return;
    }
    if ((double)wait_ns < WAIT_SHARE * (double)busy_ns)
        return;
    hint(f, "waiting", false,
         "%s: %s of the communication time is waiting for peers that come later (no single rank is "
         "to "
         "blame). Faster transfers would not help that part.",
         comm_label(r, comm, name, sizeof(name)), wait);
}

/*
 * NCCL_GRAPH_MIXING_SUPPORT=0 saves an event node a captured call, which counts for short ones;
 * NCCL allows it where a communicator is never used eagerly while a graph runs
 * (docs/measurements.md).
 */
static void about_graph_mixing(struct overview *f, uint32_t comm)
{
    const struct run *r = f->run;
    char name[128], p50[UNIT_SIZE];

    if (r->comms[comm].flags & NCCLSHIM_COMM_MIXED_USE ||
        run_setting_named(&f->settings, "NCCL_GRAPH_MIXING_SUPPORT"))
        return;
    for (uint32_t i = 0; i < r->row_count; i++) {
        const struct run_row *row = &r->rows[i];
        if (row->comm == comm && !row->captured && row->issued)
            return;
    }
    for (uint32_t i = 0; i < r->row_count; i++) {
        const struct run_row *row = &r->rows[i];
        uint64_t time = hist_quantile(&row->ns, 0.5);
        if (row->comm != comm || row->timed < TAIL_CALLS || time > SHORT_NS)
            continue;
        hint(f, "graph_mixing", false,
             "%s is used in graphs only, and its calls are short (%s): NCCL_GRAPH_MIXING_SUPPORT=0 "
             "may take "
             "1 to 2 us off each. Try the profile decode-graph, and read its condition first.",
             comm_label(r, comm, name, sizeof(name)), unit_ns(time, p50));
        return;
    }
}

static void about_comm(struct overview *f, uint32_t comm)
{
    const struct run_comm *c = &f->run->comms[comm];
    const struct ncclshim_comm *m = c->members[0].entry;
    char name[128];

    comm_label(f->run, comm, name, sizeof(name));
    if (c->flags & (NCCLSHIM_COMM_DEVICE_API | NCCLSHIM_COMM_SYMMETRIC))
        hint(f, "device_api", true,
             "%s %s: its GPU code may communicate without calling NCCL, which nothing here sees.",
             name,
             c->flags & NCCLSHIM_COMM_DEVICE_API ? "has a device communicator"
                                                 : "has symmetric windows");
    if (c->flags & NCCLSHIM_COMM_CONFIG_LOST)
        hint(f, "config_lost", false, "%s: the profile's [comm] keys could not be applied.", name);
    if (m->asked_max_ctas != NCCLSHIM_UNDEF && m->given_max_ctas != m->asked_max_ctas)
        hint(f, "max_ctas", false,
             "%s: the profile asked for max_ctas %d, NCCL was given %d (the environment beats the "
             "communicator's configuration).",
             name, m->asked_max_ctas, m->given_max_ctas);
    if (m->asked_min_ctas != NCCLSHIM_UNDEF && m->given_min_ctas != m->asked_min_ctas)
        hint(f, "min_ctas", false,
             "%s: the profile asked for min_ctas %d, NCCL was given %d (the environment beats the "
             "communicator's configuration).",
             name, m->asked_min_ctas, m->given_min_ctas);
    about_straggler(f, comm);
    about_graph_mixing(f, comm);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static void about_row(struct overview *f, const struct run_row *row, uint64_t all_ns)
{
    char label[64], a[UNIT_SIZE], b[UNIT_SIZE];
    uint64_t p50 = hist_quantile(&row->ns, 0.5), p99 = hist_quantile(&row->ns, 0.99);

    if (!row->timed || (double)row->ns.sum < ROW_SHARE * (double)all_ns)
        return;
    row_label(row, label, sizeof(label));
    if (row->expected_ns && p50 > 2 * row->expected_ns)
        hint(f, "slower_than_expected", false,
             "%s takes %s where %s is expected. Usual causes: few channels, protocol Simple on "
             "small "
             "messages, no peer access. Try `ncclshim tune`, and `ncclshim doctor`.",
             label, unit_ns(p50, a), unit_ns(row->expected_ns, b));
    if (row->proto == PROTO_SIMPLE && row->bytes <= SMALL_BYTES && row->op == OP_ALL_REDUCE)
        hint(
            f, "simple_for_small", false,
            "%s runs on protocol Simple, which is made for large messages; up to 64 KiB LL is "
            "usually "
            "faster. NCCL takes this path for slow: see `ncclshim doctor`, or try `ncclshim tune`.",
            label);
    if (row->timed >= TAIL_CALLS && (double)p99 > TAIL_FACTOR * (double)p50)
        hint(f, "tail", false,
             "%s: one call in a hundred takes %s or more, over %.0f times the median of %s: "
             "something "
             "disturbs it now and then (other traffic, clocks, a slow rank).",
             label, unit_ns(p99, a), TAIL_FACTOR, unit_ns(p50, b));
    if ((double)f->run->floor_ns > FLOOR_SHARE * (double)p50)
        hint(f, "floor", false,
             "%s: of the %s shown, %s is the stamps themselves (measured on an empty pair).", label,
             unit_ns(p50, a), unit_ns(f->run->floor_ns, b));
}

static void about_rules(struct overview *f)
{
    for (uint32_t i = 0; i < f->run->process_count; i++) {
        const struct log_file *log = f->run->processes[i].log;
        const struct ncclshim_note *n = NULL;
        struct ncclshim_rule rule;
        char text[256], safe[512];
        while ((n = log_note_next(log, n))) {
            if (n->type != NCCLSHIM_NOTE_RULE || n->bytes < sizeof(*n) + sizeof(rule))
                continue;
            memcpy(&rule, n + 1, sizeof(rule));
            log_note_text(n, sizeof(rule), text, sizeof(text));
            safe_text(text, safe, sizeof(safe));
            if (rule.masked)
                hint(f, "rule_masked", false,
                     "The rule `%s` was ruled out %llu times: NCCL or the environment does not "
                     "allow "
                     "that combination.",
                     safe, (unsigned long long)rule.masked);
            else if (!rule.matched)
                hint(f, "rule_unused", false, "The rule `%s` matched no call.", safe);
        }
        break; /* the rules are the same in all processes; the first one stands for them */
    }
}

static void about_copies(struct overview *f)
{
    bool versions = false;

    for (uint32_t i = 1; i < f->copy_count; i++)
        versions |= f->copies[i].version != f->copies[0].version;
    if (versions)
        hint(f, "nccl_versions", true,
             "More than one version of NCCL is in use. Ranks of one communicator must have the "
             "same.");
}

static void about_passes(struct overview *f)
{
    char share[UNIT_SIZE], label[96];
    const struct run_pass *p;

    if (!f->run->pass_count)
        return;
    p = &f->run->passes[0];
    if (!p->pass_ns.sum || (double)p->comm_ns.sum < COMM_SHARE * (double)p->pass_ns.sum)
        return;
    hint(f, "communication_share", false,
         "Communication takes %s of the pass of %s: making it faster shows in tokens/s. Try "
         "`ncclshim tune`.",
         unit_percent((double)p->comm_ns.sum / (double)p->pass_ns.sum, share),
         pass_label(p, label, sizeof(label)));
}

void hints_make(struct overview *f)
{
    uint64_t all_ns = total_ns(f->run);

    about_coverage(f);
    about_copies(f);
    about_settings(f);
    for (uint32_t i = 0; i < f->run->comm_count; i++)
        about_comm(f, i);
    for (uint32_t i = 0; i < f->run->row_count; i++)
        about_row(f, &f->run->rows[i], all_ns);
    about_rules(f);
    about_passes(f);
    about_unfinished(f);
}
