/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/group.h"

#include <string.h>

#include "shim/preload/call.h"

#define GROUPS 64       /* open at once in the process; further ones are counted, not timed */
#define GROUP_PARTS 128 /* calls of one group; further ones are counted, not listed */
#define GROUP_COMMS 32
#define GROUP_BIRTHS 64

struct part {
    struct call_desc desc;
    struct choice choice;
    uint8_t member; /* index of its communicator in the group */
};

struct member {
    struct comm *comm;
    uint32_t calls;
    uint64_t bytes;
    struct call_desc desc; /* the single call, or the whole group's */
    struct call call;
};

struct group {
    _Atomic int taken;
    uint32_t part_count, member_count, birth_count;
    struct part parts[GROUP_PARTS];
    struct member members[GROUP_COMMS];
    struct birth births[GROUP_BIRTHS];
};

static struct group pool[GROUPS];

struct thread_groups {
    unsigned depth[LIB_MAX];
    struct group *open[LIB_MAX];
};
static __thread struct thread_groups mine __attribute__((tls_model("initial-exec")));

bool group_open(const struct nccl_lib *lib)
{
    return mine.depth[lib_number(lib)] > 0;
}

void group_start(struct nccl_lib *lib)
{
    int n = lib_number(lib);

    if (mine.depth[n]++)
        return;
    for (int i = 0; i < GROUPS; i++) {
        int free = 0;
        if (atomic_compare_exchange_strong(&pool[i].taken, &free, 1)) {
            pool[i].part_count = pool[i].member_count = pool[i].birth_count = 0;
            mine.open[n] = &pool[i];
            return;
        }
    }
}

static struct member *member_of(struct group *g, struct comm *c)
{
    for (uint32_t i = 0; i < g->member_count; i++)
        if (g->members[i].comm == c)
            return &g->members[i];
    if (g->member_count == GROUP_COMMS)
        return NULL;
    memset(&g->members[g->member_count], 0, sizeof(g->members[0]));
    g->members[g->member_count].comm = c;
    return &g->members[g->member_count++];
}

void group_add(struct nccl_lib *lib, struct comm *c, const struct call_desc *d)
{
    struct group *g = mine.open[lib_number(lib)];
    struct member *m = g ? member_of(g, c) : NULL;

    if (!m)
        return;
    m->calls++;
    m->bytes += d->bytes;
    m->desc = *d; /* the stream of the last call: NCCL launches there, and the others wait for it */
    if (g->part_count < GROUP_PARTS) {
        struct part *p = &g->parts[g->part_count++];
        p->desc = *d;
        p->choice = (struct choice){NCCLSHIM_NO_CHOICE, NCCLSHIM_NO_CHOICE, 0, 0};
        p->member = (uint8_t)(m - g->members);
    }
}

void group_add_birth(struct nccl_lib *lib, const struct birth *b)
{
    struct group *g = mine.open[lib_number(lib)];

    if (g && g->birth_count < GROUP_BIRTHS)
        g->births[g->birth_count++] = *b;
    else if (b->comm) /* no place to remember it: its handle is never learnt */
        birth_end(&(struct birth){.comm = b->comm}, ncclSuccess);
}

bool group_is_of(const struct comm *c)
{
    return c && c->lib && mine.open[lib_number(c->lib)];
}

void group_note_choice(struct comm *c, int op, uint64_t bytes, const struct choice *choice)
{
    struct group *g = group_is_of(c) ? mine.open[lib_number(c->lib)] : NULL;

    for (uint32_t i = 0; g && i < g->part_count; i++) {
        struct part *p = &g->parts[i];
        if (g->members[p->member].comm == c && (int)p->desc.op == op &&
            (!bytes || p->desc.count * dtype_bytes(p->desc.dtype) == bytes) &&
            p->choice.algo == NCCLSHIM_NO_CHOICE) {
            p->choice = *choice;
            return;
        }
    }
}

void group_before_end(struct nccl_lib *lib)
{
    struct group *g = mine.open[lib_number(lib)];
    struct log_writer *log = shim_log_if_open();

    if (mine.depth[lib_number(lib)] != 1 || !g || !log)
        return;
    for (uint32_t i = 0; i < g->member_count; i++) {
        struct member *m = &g->members[i];
        if (m->calls > 1) {
            m->desc.op = OP_GROUP;
            m->desc.bytes = m->bytes;
            m->desc.count = m->calls;
            m->desc.root = (int)m->calls;
            m->desc.redop = 255;
            m->desc.in_place = false;
        }
        call_begin(&m->call, log, m->comm, &m->desc, 0);
    }
}

/* The parts of a group of several calls: counted, tied to the group's site, without a time. */
static void count_parts(struct group *g, uint32_t member, struct log_writer *log, ncclResult_t result)
{
    struct member *m = &g->members[member];

    for (uint32_t i = 0; i < g->part_count; i++) {
        struct part *p = &g->parts[i];
        struct site_ref ref;
        if (p->member != member)
            continue;
        if (m->call.capture)
            ref = site_captured(log, m->comm, &p->desc, NCCLSHIM_SITE_PART,
                                m->call.capture->number, m->call.site.site ? m->call.site.site->index : 0);
        else
            ref = site_eager(log, m->comm, &p->desc, NCCLSHIM_SITE_PART);
        if (!ref.site)
            continue;
        ref.site->group = m->call.site.site ? m->call.site.number + 1 : 0;
        site_choice(ref.site, &p->choice);
        if (result == ncclSuccess || result == ncclInProgress)
            site_count(ref.site, false);
    }
}

/* What NCCL chose for all calls of a member; unknown where they differ. */
static struct choice common_choice(const struct group *g, uint32_t member)
{
    const struct choice none = {NCCLSHIM_NO_CHOICE, NCCLSHIM_NO_CHOICE, 0, 0}, *first = NULL;

    for (uint32_t i = 0; i < g->part_count; i++) {
        const struct part *p = &g->parts[i];
        if (p->member != member)
            continue;
        if (first && memcmp(first, &p->choice, sizeof(none)))
            return none;
        first = &p->choice;
    }
    return first ? *first : none;
}

static void end_member(struct group *g, uint32_t i, struct log_writer *log, ncclResult_t result)
{
    struct member *m = &g->members[i];

    m->comm->choice = common_choice(g, i);
    call_end(&m->call, &m->desc, result);
    if (m->calls < 2)
        return;
    if (m->comm->entry) /* call_end counted the group as one */
        atomic_fetch_add_explicit((_Atomic uint64_t *)&m->comm->entry->wrapped_calls, m->calls - 1,
                                  memory_order_relaxed);
    if (m->call.site.site)
        m->call.site.site->group = m->call.site.number + 1;
    count_parts(g, i, log, result);
}

void group_after_end(struct nccl_lib *lib, ncclResult_t result)
{
    int n = lib_number(lib);
    struct group *g = mine.open[n];
    struct log_writer *log = shim_log_if_open();

    if (mine.depth[n] == 0) /* an end without a start: NCCL has said so */
        return;
    if (--mine.depth[n] || !g)
        return;
    mine.open[n] = NULL;
    for (uint32_t i = 0; log && i < g->member_count; i++)
        if (g->members[i].call.log) /* begun */
            end_member(g, i, log, result);
    for (uint32_t i = 0; i < g->birth_count; i++)
        birth_end(&g->births[i], result);
    atomic_store_explicit(&g->taken, 0, memory_order_release);
}

void group_drop(struct nccl_lib *lib)
{
    int n = lib_number(lib);
    struct group *g = mine.open[n];

    if (mine.depth[n] == 0 || --mine.depth[n] || !g)
        return;
    mine.open[n] = NULL;
    for (uint32_t i = 0; i < g->birth_count; i++)
        birth_end(&g->births[i], ncclSuccess);
    atomic_store_explicit(&g->taken, 0, memory_order_release);
}
