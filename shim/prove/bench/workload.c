/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/bench/workload.h"

#include <stdlib.h>
#include <string.h>

#include "shim/base/digest.h"
#include "shim/base/grow.h"
#include "shim/base/size.h"

void workload_init(struct workload *w)
{
    memset(w, 0, sizeof(*w));
}

void workload_free(struct workload *w)
{
    free(w->steps);
    workload_init(w);
}

int workload_add_comm(struct workload *w, const char *name)
{
    struct workload_comm *c = &w->comms[w->comm_count];

    if (w->comm_count == WORKLOAD_COMMS)
        return -1;
    memset(c, 0, sizeof(*c));
    snprintf(c->name, sizeof(c->name), "%s", name);
    return (int)w->comm_count++;
}

int workload_add_step(struct workload *w, const struct workload_step *s)
{
    struct workload_step *more =
        w->step_count < WORKLOAD_STEPS ? GROW(w->steps, w->step_count) : NULL;

    if (!more)
        return -1;
    *more = *s;
    return 0;
}

/* ---- who is in ------------------------------------------------------------------------------- */

int workload_place(const struct workload_comm *c, int ranks, int rank, int *group_ranks)
{
    int n = 0, place = -1;

    if (c->groups == 0) {
        *group_ranks = ranks;
        return rank;
    }
    for (int i = 0; i < ranks && i < WORKLOAD_RANKS; i++) {
        if (c->group_of[i] != c->group_of[rank] || c->group_of[i] < 0)
            continue;
        if (i == rank)
            place = n;
        n++;
    }
    *group_ranks = n;
    return place;
}

int workload_comm_ranks(const struct workload_comm *c, int ranks)
{
    int most = 0, n;

    for (int i = 0; i < ranks; i++)
        if (workload_place(c, ranks, i, &n) >= 0 && n > most)
            most = n;
    return most;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

bool workload_op_reduces(unsigned op)
{
    return op == OP_ALL_REDUCE || op == OP_REDUCE_SCATTER || op == OP_REDUCE;
}

bool workload_op_has_root(unsigned op)
{
    return op == OP_BROADCAST || op == OP_REDUCE || op == OP_GATHER || op == OP_SCATTER;
}

bool workload_op_playable(unsigned op)
{
    return op <= OP_SCATTER;
}

/* How many times `count` each buffer holds. */
static unsigned parts_sent(unsigned op, int n)
{
    return op == OP_REDUCE_SCATTER || op == OP_ALL_TO_ALL || op == OP_SCATTER ? (unsigned)n : 1;
}

static unsigned parts_received(unsigned op, int n)
{
    return op == OP_ALL_GATHER || op == OP_ALL_TO_ALL || op == OP_GATHER ? (unsigned)n : 1;
}

uint64_t workload_send_bytes(const struct workload_step *s, int n)
{
    return s->count * dtype_bytes(s->dtype) * parts_sent(s->op, n);
}

uint64_t workload_recv_bytes(const struct workload_step *s, int n)
{
    return s->count * dtype_bytes(s->dtype) * parts_received(s->op, n);
}

uint64_t workload_bytes(const struct workload_step *s, int n)
{
    uint64_t sent = workload_send_bytes(s, n), received = workload_recv_bytes(s, n);

    return sent > received ? sent : received;
}

bool workload_same_call(const struct workload_step *a, const struct workload_step *b)
{
    return a->comm == b->comm && a->op == b->op && a->dtype == b->dtype && a->redop == b->redop &&
           a->in_place == b->in_place && a->root == b->root && a->count == b->count;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_step(const struct workload *w, uint32_t i, int ranks, struct error *e)
{
    const struct workload_step *s = &w->steps[i];
    const struct workload_comm *c = &w->comms[s->comm];
    int least = ranks, n;

    for (int r = 0; r < ranks; r++)
        if (workload_place(c, ranks, r, &n) >= 0 && n < least)
            least = n;
    if (s->root >= least)
        return error_set(e, NULL, 0,
                         "step %u (%s): root %d is no rank of communicator %s with %d ranks", i + 1,
                         op_name(s->op), s->root, c->name, least);
    if (s->count == 0 || workload_bytes(s, ranks) > 1ull << 36)
        return error_set(e, NULL, 0, "step %u (%s): %llu elements are not from 1 to 64 GiB", i + 1,
                         op_name(s->op), (unsigned long long)s->count);
    return 0;
}

static int check_comm(const struct workload_comm *c, int ranks, struct error *e)
{
    for (int r = ranks; c->groups && r < WORKLOAD_RANKS; r++)
        if (c->group_of[r] >= 0)
            return error_set(e, NULL, 0,
                             "communicator %s has rank %d in a group of its own choice, but "
                             "there are %d ranks: use --ranks %d or more",
                             c->name, r, ranks, r + 1);
    return 0;
}

int workload_check(const struct workload *w, int ranks, struct error *e)
{
    if (ranks < 1 || ranks > WORKLOAD_RANKS)
        return error_set(e, NULL, 0, "%d ranks: bench plays with 1 to %d", ranks, WORKLOAD_RANKS);
    if (!w->step_count)
        return error_set(e, NULL, 0, "the workload has no step that can be played%s%s",
                         w->left_out[0] ? "; left out: " : "", w->left_out);
    for (uint32_t i = 0; i < w->comm_count; i++)
        if (check_comm(&w->comms[i], ranks, e) < 0)
            return -1;
    for (uint32_t i = 0; i < w->step_count; i++)
        if (check_step(w, i, ranks, e) < 0)
            return -1;
    return 0;
}

/* ---- from sizes ------------------------------------------------------------------------------ */

static int add_size(struct workload *w, const struct workload_sizes *s, uint64_t bytes,
                    struct error *e)
{
    struct workload_step step = {.op = s->op, .dtype = s->dtype, .redop = REDOP_SUM, .runs = 1,
                                 .in_place = s->op != OP_ALL_TO_ALL};
    uint64_t parts;
    int rc = 0;

    parts = parts_sent(s->op, s->ranks) > parts_received(s->op, s->ranks)
                ? parts_sent(s->op, s->ranks)
                : parts_received(s->op, s->ranks);
    step.count = bytes / dtype_bytes(s->dtype) / parts; /* rounded down, as nccl-tests does */
    if (step.count == 0)
        return error_set(e, NULL, 0,
                         "--sizes: %llu bytes are less than one %s for each of %d ranks",
                         (unsigned long long)bytes, dtype_name(s->dtype), s->ranks);
    if (s->graph) {
        step.graph = w->step_count + 1;
        rc = workload_add_step(w, &step);
    }
    step.graph = 0;
    if (s->eager && rc == 0)
        rc = workload_add_step(w, &step);
    return rc < 0 ? error_set(e, NULL, 0, "--sizes: too many sizes") : 0;
}

static int add_range(struct workload *w, const struct workload_sizes *s, char *word,
                     struct error *e)
{
    char *dash = strchr(word, '-');
    uint64_t low, high;

    if (dash)
        *dash = '\0';
    if (size_parse(word, &low) < 0 || (dash && size_parse(dash + 1, &high) < 0))
        return error_set(e, NULL, 0, "--sizes: '%s%s%s' is no size or range: write 42K, 8K-64M or "
                                     "8K,42K,4M", word, dash ? "-" : "", dash ? dash + 1 : "");
    if (!dash)
        high = low;
    if (low == 0 || low > high || high > 1ull << 36)
        return error_set(e, NULL, 0,
                         "--sizes: '%s%s%s' does not go up from 1 byte or more to 64G at "
                         "most",
                         word, dash ? "-" : "", dash ? dash + 1 : "");
    for (uint64_t bytes = low; bytes <= high; bytes *= 2)
        if (add_size(w, s, bytes, e) < 0)
            return -1;
    return 0;
}

int workload_from_sizes(struct workload *w, const struct workload_sizes *s, struct error *e)
{
    char *copy = strdup(s->list), *save = NULL, *word;
    int rc = 0;

    workload_init(w);
    if (!copy)
        return error_set(e, NULL, 0, "out of memory");
    workload_add_comm(w, "world");
    snprintf(w->source, sizeof(w->source), "sizes %s", s->list);
    for (word = strtok_r(copy, ",", &save); word && rc == 0; word = strtok_r(NULL, ",", &save))
        rc = add_range(w, s, word, e);
    free(copy);
    if (rc == 0 && !w->step_count)
        rc = error_set(e, NULL, 0, "--sizes: '%s' holds no size", s->list);
    if (rc < 0)
        workload_free(w);
    return rc;
}

/* ---- the rest -------------------------------------------------------------------------------- */

void workload_keep(struct workload *w, int captured)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < w->step_count; i++)
        if ((w->steps[i].graph != 0) == (captured != 0))
            w->steps[kept++] = w->steps[i];
    w->step_count = kept;
}

uint64_t workload_digest(const struct workload *w)
{
    uint64_t h = DIGEST_START;

    for (uint32_t i = 0; i < w->comm_count; i++)
        h = digest_bytes(h, w->comms[i].group_of, sizeof(w->comms[i].group_of)) +
            w->comms[i].groups;
    for (uint32_t i = 0; i < w->step_count; i++) {
        const struct workload_step *s = &w->steps[i];
        uint64_t words[] = {s->comm, s->op, s->dtype, s->redop, s->in_place, (uint64_t)s->root,
                            s->count, s->group, s->graph, s->gap_ns, s->runs};

        h = digest_bytes(h, words, sizeof(words));
    }
    return h;
}
