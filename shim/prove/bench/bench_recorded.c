/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload from a recorded run. One rank's log gives the order: rank 0 of the largest
 * communicator; collectives come in the same order on every rank, or NCCL would hang. Its captured
 * graphs come as they were captured, like ones as one; its eager calls once each, with how often
 * they were made.
 *
 * Gaps are the medians of what was measured between the stamps of two calls, less what a further
 * kernel between them will cost by itself (twice the floor of an empty stamp pair).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/prove/bench/workload.h"
#include "shim/stats/run.h"

#define EAGER_GAP_MAX_NS 1000000u   /* longer ones are a server waiting for requests */
#define GRAPH_GAP_MAX_NS 10000000u

/* A GPU of a process: one rank of the whole. */
struct seat {
    uint32_t process;
    int32_t device;
};

struct recorded {
    const struct run *r;
    struct workload *w;
    struct seat seats[WORKLOAD_RANKS]; /* by rank */
    int seat_count;
    int comm_of[4096];     /* run comm -> workload comm; -1 = left out */
    struct seat base;
    uint32_t graphs;
    uint32_t eager_group; /* number of the last group of eager calls */
    uint64_t unplayable;   /* calls of other kinds */
    uint32_t lost_comms;
    struct error *e;
};

/* ---- ranks ----------------------------------------------------------------------------------- */

static int seat_of(struct recorded *c, const struct run_member *m, bool add)
{
    for (int i = 0; i < c->seat_count; i++)
        if (c->seats[i].process == m->process && c->seats[i].device == m->entry->device)
            return i;
    if (!add || c->seat_count == WORKLOAD_RANKS)
        return -1;
    c->seats[c->seat_count] = (struct seat){m->process, m->entry->device};
    return c->seat_count++;
}

static const struct run_comm *largest_comm(const struct run *r)
{
    const struct run_comm *best = NULL;

    for (uint32_t i = 0; i < r->comm_count; i++)
        if (r->comms[i].member_count && (!best || r->comms[i].ranks > best->ranks))
            best = &r->comms[i];
    return best;
}

/* The largest communicator's ranks give the order; whoever is not in it comes behind. */
static int find_seats(struct recorded *c)
{
    const struct run_comm *largest = largest_comm(c->r);

    if (!largest)
        return error_set(c->e, c->r->path, 0, "the run holds no communicator");
    for (uint32_t i = 0; i < largest->member_count; i++)
        seat_of(c, &largest->members[i], true);
    for (uint32_t k = 0; k < c->r->comm_count; k++)
        for (uint32_t i = 0; i < c->r->comms[k].member_count; i++)
            if (seat_of(c, &c->r->comms[k].members[i], true) < 0)
                return error_set(c->e, c->r->path, 0, "the run has more than %d ranks",
                                 WORKLOAD_RANKS);
    c->base = c->seats[0];
    /* Logs of other hosts may be missing: the communicator knows how many ranks there were. */
    c->w->ranks = (uint32_t)(largest->ranks > c->seat_count ? largest->ranks : c->seat_count);
    if (c->w->ranks > WORKLOAD_RANKS)
        return error_set(c->e, c->r->path, 0, "the run has %u ranks; bench plays with %d at most",
                         c->w->ranks, WORKLOAD_RANKS);
    return 0;
}

/* ---- communicators --------------------------------------------------------------------------- */

static bool has_base(struct recorded *c, const struct run_comm *rc)
{
    for (uint32_t i = 0; i < rc->member_count; i++)
        if (rc->members[i].process == c->base.process &&
            rc->members[i].entry->device == c->base.device)
            return true;
    return false;
}

/* Put a communicator's ranks into a group; false when one is in another group already. */
static bool add_group(struct recorded *c, struct workload_comm *wc, const struct run_comm *rc)
{
    int places[WORKLOAD_RANKS];

    if (rc->member_count != (uint32_t)rc->ranks || rc->ranks > WORKLOAD_RANKS)
        return false;
    for (uint32_t i = 0; i < rc->member_count; i++) {
        places[i] = seat_of(c, &rc->members[i], false);
        if (places[i] < 0 || wc->group_of[places[i]] >= 0)
            return false;
    }
    for (uint32_t i = 0; i < rc->member_count; i++)
        wc->group_of[places[i]] = (int16_t)wc->groups;
    wc->groups++;
    return true;
}

/* A name that is one word of the file, and no other communicator's. */
static void name_comm(const struct workload *w, uint32_t i, const struct run_comm *rc,
                      char name[WORKLOAD_NAME])
{
    size_t n = 0;

    for (const char *p = rc->name; *p && n < WORKLOAD_NAME - 8; p++)
        if (isalnum((unsigned char)*p) || strchr("_-.:", *p))
            name[n++] = *p;
    name[n] = '\0';
    if (!n)
        snprintf(name, WORKLOAD_NAME, "comm%u", i + 1);
    for (uint32_t k = 0; k < w->comm_count; k++)
        if (!strcmp(w->comms[k].name, name)) {
            snprintf(name + n, WORKLOAD_NAME - n, ".%u", i + 1);
            return;
        }
}

static void add_comm(struct recorded *c, uint32_t i)
{
    const struct run_comm *rc = &c->r->comms[i];
    struct workload_comm *wc;
    char name[WORKLOAD_NAME];
    int index;

    name_comm(c->w, i, rc, name);
    index = workload_add_comm(c->w, name);
    if (index < 0) {
        c->lost_comms++;
        return;
    }
    wc = &c->w->comms[index];
    memset(wc->group_of, 0, sizeof(wc->group_of));
    if ((uint32_t)rc->ranks == c->w->ranks) { /* all of them */
        c->comm_of[i] = index;
        return;
    }
    memset(wc->group_of, 0xff, sizeof(wc->group_of));
    if (!add_group(c, wc, rc)) {
        c->w->comm_count--;
        c->lost_comms++;
        return;
    }
    c->comm_of[i] = index;
    /* Its sisters: as ncclCommSplit makes them, each rank in one. They do what it does. */
    for (uint32_t k = 0; k < c->r->comm_count; k++)
        if (k != i && c->r->comms[k].ranks == rc->ranks && !has_base(c, &c->r->comms[k]) &&
            (!rc->named || !strcmp(c->r->comms[k].name, rc->name)))
            add_group(c, wc, &c->r->comms[k]);
}

static int find_comms(struct recorded *c)
{
    if (c->r->comm_count > sizeof(c->comm_of) / sizeof(c->comm_of[0]))
        return error_set(c->e, c->r->path, 0, "the run has too many communicators (%u)",
                         c->r->comm_count);
    memset(c->comm_of, 0xff, sizeof(c->comm_of));
    for (uint32_t i = 0; i < c->r->comm_count; i++)
        if (c->r->comms[i].ranks > 1 && has_base(c, &c->r->comms[i]))
            add_comm(c, i);
    return c->w->comm_count
               ? 0
               : error_set(c->e, c->r->path, 0, "no communicator of the run can be played");
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct call {
    uint32_t site;
    const struct ncclshim_site *s;
};

static int by_place(const void *a, const void *b)
{
    const struct call *x = a, *y = b;

    if (x->s->capture != y->s->capture)
        return x->s->capture < y->s->capture ? -1 : 1;
    if (x->s->capture && x->s->index != y->s->index)
        return x->s->index < y->s->index ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

static uint64_t gap_of(const struct recorded *c, const struct site_accum *a, bool captured)
{
    uint64_t gap = hist_quantile(&a->gap_ns, 0.5), own = 2 * (uint64_t)c->r->floor_ns;
    uint64_t most = captured ? GRAPH_GAP_MAX_NS : EAGER_GAP_MAX_NS;

    gap = gap > own ? gap - own : 0;
    return gap < most ? gap : most;
}

static const struct site_accum *accum_of(const struct run_process *p, uint32_t site)
{
    return site < p->acc.site_cap ? &p->acc.sites[site] : NULL;
}

/* The call as a step; false when it can't be one. */
static bool step_of(struct recorded *c, const struct call *call, bool first,
                    struct workload_step *step)
{
    const struct run_process *p = &c->r->processes[c->base.process];
    const struct ncclshim_site *s = call->s;
    const struct site_accum *a = accum_of(p, call->site);
    uint32_t comm = p->comm_of[s->comm];

    if (s->op == OP_GROUP) /* its parts follow */
        return false;
    if (!workload_op_playable(s->op) || s->dtype >= DTYPE_COUNT || !s->count || comm == RUN_NONE ||
        c->comm_of[comm] < 0) {
        c->unplayable += s->capture ? 1 : s->issued;
        return false;
    }
    *step = (struct workload_step){.comm = (uint32_t)c->comm_of[comm],
                                   .op = s->op,
                                   .dtype = s->dtype,
                                   .redop = s->redop < REDOP_COUNT ? s->redop : (uint8_t)REDOP_SUM,
                                   .in_place = (s->flags & NCCLSHIM_SITE_IN_PLACE) &&
                                               s->op != OP_ALL_TO_ALL,
                                   .count = s->count,
                                   .group = s->group,
                                   .runs = s->issued ? s->issued : 1};
    if (workload_op_has_root(s->op) && s->root > 0)
        step->root = s->root;
    if (!workload_op_reduces(s->op))
        step->redop = REDOP_SUM;
    if (a && !first && !(s->flags & NCCLSHIM_SITE_CHAINED))
        step->gap_ns = gap_of(c, a, s->capture != 0);
    return true;
}

/* Is it a graph like an earlier one? Then that one's first step, else NULL. */
static struct workload_step *like_graph(struct workload *w, uint32_t from)
{
    uint32_t n = w->step_count - from;

    for (uint32_t i = 0, end; i < from; i = end) {
        bool same = w->steps[i].graph != 0;

        for (end = i + 1;
             end < from && w->steps[end].graph == w->steps[i].graph && w->steps[i].graph;)
            end++;
        for (uint32_t k = 0; same && k < n; k++)
            same = end - i == n && workload_same_call(&w->steps[i + k], &w->steps[from + k]);
        if (same)
            return &w->steps[i];
    }
    return NULL;
}

static int add_capture(struct recorded *c, const struct call *calls, size_t n)
{
    const struct run_process *p = &c->r->processes[c->base.process];
    uint32_t from = c->w->step_count;
    struct workload_step step, *like;
    uint64_t runs = 0;

    for (size_t i = 0; i < n; i++) {
        const struct site_accum *a = accum_of(p, calls[i].site);

        if (a && a->runs_max > runs)
            runs = a->runs_max;
        if (!step_of(c, &calls[i], c->w->step_count == from, &step))
            continue;
        step.graph = c->graphs + 1;
        if (workload_add_step(c->w, &step) < 0)
            return error_set(c->e, c->r->path, 0, "the run has too many calls for one workload");
    }
    if (c->w->step_count == from || !runs) { /* captured, but never replayed */
        c->w->step_count = from;
        return 0;
    }
    like = like_graph(c->w, from);
    if (like) {
        uint32_t graph = like->graph;

        for (; like < &c->w->steps[from] && like->graph == graph; like++)
            like->runs += runs;
        c->w->step_count = from;
        return 0;
    }
    for (uint32_t i = from; i < c->w->step_count; i++)
        c->w->steps[i].runs = runs;
    c->graphs++;
    return 0;
}

/*
 * Eager calls are listed once, whichever group they came in; parts that were first seen one behind
 * the other are taken for one group.
 */
static int add_eager(struct recorded *c, const struct call *call, bool behind_part)
{
    struct workload_step step;

    if (!step_of(c, call, false, &step))
        return 0;
    step.group = 0;
    if (call->s->flags & NCCLSHIM_SITE_PART)
        step.group = behind_part ? c->eager_group : ++c->eager_group;
    return workload_add_step(c->w, &step) < 0
               ? error_set(c->e, c->r->path, 0, "the run has too many calls for one workload")
               : 0;
}

/* Eager calls first (capture 0), then the graphs: the order in which a server's step begins. */
static int find_steps(struct recorded *c)
{
    const struct log_file *log = c->r->processes[c->base.process].log;
    struct call *calls = malloc((log->site_count + 1) * sizeof(*calls));
    size_t count = 0, end;
    int rc = 0;

    if (!calls)
        return error_set(c->e, c->r->path, 0, "out of memory");
    for (uint32_t i = 0; i < log->site_count; i++)
        if (log->sites[i].state && log->sites[i].comm < log->comm_count &&
            log->comms[log->sites[i].comm].device == c->base.device)
            calls[count++] = (struct call){i, &log->sites[i]};
    qsort(calls, count, sizeof(*calls), by_place);
    for (size_t i = 0; i < count && rc == 0; i = end) {
        for (end = i + 1;
             end < count && calls[i].s->capture && calls[end].s->capture == calls[i].s->capture;)
            end++;
        rc = calls[i].s->capture
                 ? add_capture(c, &calls[i], end - i)
                 : add_eager(c, &calls[i], i && (calls[i - 1].s->flags & NCCLSHIM_SITE_PART));
    }
    free(calls);
    return rc;
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* The NCCL that the run used, when it is still there. */
static void find_nccl(struct recorded *c)
{
    const struct ncclshim_note *n = NULL;

    while ((n = log_note_next(c->r->processes[c->base.process].log, n)))
        if (n->type == NCCLSHIM_NOTE_LIBRARY && !c->w->nccl[0]) {
            log_note_text(n, 0, c->w->nccl, sizeof(c->w->nccl));
            if (c->w->nccl[0] != '/' || access(c->w->nccl, R_OK) < 0)
                c->w->nccl[0] = '\0';
        }
}

static void tell_left_out(struct recorded *c)
{
    char *text = c->w->left_out;
    size_t room = sizeof(c->w->left_out), at = 0;

    if (c->unplayable)
        at += (size_t)snprintf(text, room,
                               "%llu calls that are no collectives (send, recv, ...) or whose "
                               "communicator is not played",
                               (unsigned long long)c->unplayable);
    if (c->lost_comms && at < room)
        snprintf(text + at, room - at, "%s%u communicators with members that are not in the run",
                 at ? "; " : "", c->lost_comms);
}

static int take(struct recorded *c)
{
    if (find_seats(c) < 0 || find_comms(c) < 0 || find_steps(c) < 0)
        return -1;
    find_nccl(c);
    tell_left_out(c);
    c->w->sequence = true;
    snprintf(c->w->source, sizeof(c->w->source), "run %s", c->r->path);
    if (!c->w->step_count)
        return error_set(c->e, c->r->path, 0, "the run holds no collective that can be played%s%s",
                         c->w->left_out[0] ? ": " : "", c->w->left_out);
    return 0;
}

int workload_from_run(struct workload *w, const char *given, struct error *e)
{
    static const struct run_filter all = RUN_FILTER_ALL;
    struct recorded *c = calloc(1, sizeof(*c));
    struct run *r = NULL;
    int rc = c ? run_open_given(given, &all, &r, e) : error_set(e, NULL, 0, "out of memory");

    workload_init(w);
    if (rc == 0) {
        c->r = r;
        c->w = w;
        c->e = e;
        rc = take(c);
    }
    run_free(r);
    free(c);
    if (rc < 0)
        workload_free(w);
    return rc;
}
