/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/run/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/show/term.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b + 0x9E3779B97F4A7C15ull + (a << 6) + (a >> 2))) * 0x100000001b3ull;

    return h ^ h >> 29;
}

/*
 * What a communicator is known by on all its ranks: NCCL's hash, else the unique id it was made
 * from; else (a split, on a NCCL that tells neither) its place among the children of its parent.
 */
static uint64_t comm_key(const struct log_file *f, uint32_t number, unsigned depth)
{
    const struct ncclshim_comm *c = &f->comms[number];
    uint64_t children = 0;

    if (c->hash)
        return mix(1, c->hash);
    if (c->id_digest)
        return mix(2, c->id_digest);
    if (c->parent < 0 || (uint32_t)c->parent >= number || depth > 32)
        return mix(mix(3, f->head.created_ns), mix(f->head.pid, number));
    for (uint32_t i = 0; i < number; i++)
        children += f->comms[i].parent == c->parent;
    return mix(mix(comm_key(f, (uint32_t)c->parent, depth + 1), children), (uint64_t)c->ranks);
}

static int order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static bool counts(const struct ncclshim_comm *c)
{
    return c->state == NCCLSHIM_COMM_READY || c->state == NCCLSHIM_COMM_ENDED ||
           c->state == NCCLSHIM_COMM_STARTING;
}

static int take_comms(struct process_summary *s, const struct log_file *f)
{
    size_t same = 0, distinct = 0;

    s->comms = malloc((f->comm_count + 1) * sizeof(*s->comms));
    if (!s->comms)
        return -1;
    for (uint32_t i = 0; i < f->comm_count; i++) {
        const struct ncclshim_comm *c = &f->comms[i];
        if (!counts(c))
            continue;
        s->comms[s->comm_count++] = comm_key(f, i, 0);
        s->calls += c->wrapped_calls;
        s->not_intercepted += c->missed_calls;
    }
    qsort(s->comms, s->comm_count, sizeof(*s->comms), order);
    for (size_t i = 0; i < s->comm_count; i++) {
        same = i && s->comms[i] == s->comms[i - 1] ? same + 1 : 1;
        if (same == 1)
            s->comms[distinct++] = s->comms[i];
        if (same > s->ranks)
            s->ranks = (uint32_t)same;
    }
    s->comm_count = distinct;
    return 0;
}

static void take_notes(struct process_summary *s, const struct log_file *f)
{
    const struct ncclshim_note *n = NULL;
    char name[64];

    while ((n = log_note_next(f, n))) {
        if (n->type == NCCLSHIM_NOTE_GPU) {
            log_note_text(n, sizeof(struct ncclshim_gpu), name, sizeof(name));
            s->simulated |= !strncmp(name, "Simulated", 9);
        } else if (n->type == NCCLSHIM_NOTE_MISSED) {
            s->missed = true;
        }
    }
}

int process_summarize(struct process_summary *s, const struct log_file *f, const struct accum *a)
{
    process_summary_free(s);
    take_notes(s, f);
    s->without_site = f->head.sites_lost;
    if (a) {
        s->timed = a->records - a->bad;
        s->lost = a->lost;
        s->torn = a->torn;
    }
    return take_comms(s, f);
}

void process_summary_free(struct process_summary *s)
{
    free(s->comms);
    memset(s, 0, sizeof(*s));
}

static int count_comms(struct summary *s, const struct process_summary *const *list, size_t count)
{
    size_t all = 0, n = 0;
    uint64_t *keys;

    for (size_t i = 0; i < count; i++)
        all += list[i]->comm_count;
    keys = malloc((all + 1) * sizeof(*keys));
    if (!keys)
        return -1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < list[i]->comm_count; k++)
            keys[n++] = list[i]->comms[k];
    qsort(keys, n, sizeof(*keys), order);
    for (size_t i = 0; i < n; i++)
        s->comms += i == 0 || keys[i] != keys[i - 1];
    free(keys);
    return 0;
}

int summarize(struct summary *s, const struct process_summary *const *list, size_t count)
{
    memset(s, 0, sizeof(*s));
    s->processes = count;
    for (size_t i = 0; i < count; i++) {
        s->ranks += list[i]->ranks;
        s->timed += list[i]->timed;
        s->lost += list[i]->lost;
        s->torn += list[i]->torn;
        s->calls += list[i]->calls;
        s->not_intercepted += list[i]->not_intercepted;
        s->without_site += list[i]->without_site;
        s->simulated |= list[i]->simulated;
        s->missed += list[i]->missed;
    }
    return count_comms(s, list, count);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

void summary_text(const struct summary *s, char *buf, size_t size)
{
    char a[UNIT_SIZE], b[UNIT_SIZE], c[UNIT_SIZE], d[UNIT_SIZE], f[UNIT_SIZE], more[160] = "";
    size_t n = 0;

    if (s->torn)
        n += (size_t)snprintf(more + n, sizeof(more) - n, ", %s torn", unit_count(s->torn, a));
    if (s->without_site)
        n += (size_t)snprintf(more + n, sizeof(more) - n, ", %s without a call site",
                              unit_count(s->without_site, a));
    if (s->timed == 0 && s->calls)
        n += (size_t)snprintf(more + n, sizeof(more) - n, ", %s calls counted but not timed",
                              unit_count(s->calls, a));
    if (s->missed)
        snprintf(more + n, sizeof(more) - n, ", %zu process%s in which NCCL bypassed the shim",
                 s->missed, s->missed == 1 ? "" : "es");
    snprintf(buf, size,
             "%s rank%s%s, %s communicator%s, %s collective%s timed, %s lost%s, "
             "%s not intercepted",
             unit_count(s->ranks, a), plural(s->ranks), s->simulated ? " (simulated GPUs)" : "",
             unit_count(s->comms, b), plural(s->comms), unit_count(s->timed, c), plural(s->timed),
             unit_count(s->lost, d), more, unit_count(s->not_intercepted, f));
}
