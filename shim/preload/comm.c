/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/comm.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/digest.h"
#include "shim/preload/settings.h"

static struct comm pool[COMM_LIVE_MAX];
static _Atomic uint32_t pool_hint;
static _Atomic int births; /* counts communicators of this process */

__thread struct birth *birth_current __attribute__((tls_model("initial-exec")));

/* ---- handles: buckets of a few, so that deaths leave no tombstones ---------------------------- */

#define BUCKETS 1024u
#define BUCKET_ROOM 16u

static struct {
    _Atomic(ncclComm_t) handle;
    _Atomic(struct comm *) comm;
} buckets[BUCKETS][BUCKET_ROOM];

static unsigned bucket_of(ncclComm_t handle)
{
    return (unsigned)(((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15ull >> 54);
}

struct comm *comm_find(ncclComm_t handle)
{
    unsigned b = bucket_of(handle);

    for (unsigned i = 0; i < BUCKET_ROOM; i++)
        if (atomic_load_explicit(&buckets[b][i].handle, memory_order_acquire) == handle)
            return atomic_load_explicit(&buckets[b][i].comm, memory_order_acquire);
    return NULL;
}

static bool handle_add(ncclComm_t handle, struct comm *c)
{
    unsigned b = bucket_of(handle);

    for (unsigned i = 0; i < BUCKET_ROOM; i++) {
        struct comm *none = NULL;
        if (!atomic_compare_exchange_strong(&buckets[b][i].comm, &none, c))
            continue;
        atomic_store_explicit(&buckets[b][i].handle, handle, memory_order_release);
        return true;
    }
    return false;
}

static struct comm *handle_remove(ncclComm_t handle)
{
    unsigned b = bucket_of(handle);

    for (unsigned i = 0; i < BUCKET_ROOM; i++) {
        ncclComm_t seen = handle;
        if (!atomic_compare_exchange_strong(&buckets[b][i].handle, &seen, NULL))
            continue;
        return atomic_exchange(&buckets[b][i].comm, NULL);
    }
    return NULL;
}

/* ---- places ----------------------------------------------------------------------------------- */

static struct comm *take_place(void)
{
    uint32_t from = atomic_load_explicit(&pool_hint, memory_order_relaxed);

    for (uint32_t n = 0; n < COMM_LIVE_MAX; n++) {
        uint32_t i = (from + n) % COMM_LIVE_MAX;
        int free = 0;
        if (!atomic_compare_exchange_strong(&pool[i].state, &free, 1))
            continue;
        atomic_store_explicit(&pool_hint, i + 1, memory_order_relaxed);
        memset((char *)&pool[i] + sizeof(pool[i].state), 0, sizeof(pool[i]) - sizeof(pool[i].state));
        return &pool[i];
    }
    return NULL;
}

static void give_place(struct comm *c)
{
    atomic_store_explicit(&c->door, 0, memory_order_relaxed);
    atomic_store_explicit(&c->state, 0, memory_order_release);
}

static void set_state(struct comm *c, enum ncclshim_comm_state state)
{
    if (c->entry)
        atomic_store_explicit((_Atomic uint32_t *)&c->entry->state, state, memory_order_release);
}

static void add_flag(struct comm *c, uint32_t flag)
{
    if (c->entry)
        atomic_fetch_or_explicit((_Atomic uint32_t *)&c->entry->flags, flag, memory_order_relaxed);
}

/* ---- birth ------------------------------------------------------------------------------------ */

static void fill_entry(struct comm *c, const struct birth_facts *f)
{
    struct ncclshim_comm *e = c->entry;

    e->library = f->lib ? (uint32_t)lib_number(f->lib) : (uint32_t)NCCLSHIM_UNKNOWN;
    e->parent = f->parent && f->parent->entry ? (int32_t)f->parent->number : -1;
    e->rank = c->rank;
    e->ranks = c->ranks;
    e->nodes = NCCLSHIM_UNKNOWN;
    e->device = c->gpu ? c->gpu->device : NCCLSHIM_UNKNOWN;
    e->ring = c->gpu ? (int32_t)c->gpu->ring_number : NCCLSHIM_UNKNOWN;
    e->asked_min_ctas = e->asked_max_ctas = NCCLSHIM_UNDEF;
    e->given_min_ctas = e->given_max_ctas = NCCLSHIM_UNDEF;
    e->channels = NCCLSHIM_UNKNOWN;
    e->id_digest = f->id ? digest_bytes(DIGEST_START, f->id, sizeof(*f->id)) : 0;
    e->created_ns = log_now_ns();
    e->settings_digest = settings_digest();
    snprintf(e->name, sizeof(e->name), "%s", c->name);
}

static void note_comm_text(struct comm *c, enum ncclshim_comm_text kind, const char *text)
{
    struct log_writer *log = shim_log_if_open();

    if (log && c->entry)
        log_note(log, NCCLSHIM_NOTE_COMM_TEXT, c->number, kind, 0, NULL, 0, text, strlen(text) + 1);
}

static void tell_missing(struct comm *c, uint32_t missing)
{
    for (int i = 0; i < CONFIG_FIELD_COUNT; i++) {
        if (!(missing & (1u << i)))
            continue;
        add_flag(c, NCCLSHIM_COMM_CONFIG_LOST);
        if (shim_log_if_open() && c->entry)
            log_warn(shim_log_if_open(), (int)c->number,
                     "[comm] %s could not be given to this communicator (NCCL %d has it from %d on, "
                     "or the program's own config could not be copied)",
                     config_fields[i].key, lib_version(c->lib),
                     config_fields[i].since);
    }
}

/* NCCL takes a positive value of its variable before the config's (init.cc, envConfigOverride). */
static int ctas_in_force(const struct config_copy *c, enum config_field field, const char *variable)
{
    const char *text = getenv(variable);
    long n = text ? strtol(text, NULL, 0) : 0;

    return n > 0 && n <= INT_MAX ? (int)n : config_number(c, field);
}

static _Atomic uint64_t sections_used; /* bit n: section n of the profile matched a communicator */

static void note_section(struct comm *c, const struct comm_section *s)
{
    size_t n = (size_t)(s - shim.profile->comm);

    if (n < 64)
        atomic_fetch_or(&sections_used, 1ull << n);
    if (c)
        note_comm_text(c, NCCLSHIM_COMM_SECTION, s->label);
}

void comm_tell_unused_sections(struct log_writer *log)
{
    const struct profile *p = shim.profile;

    for (size_t n = 0; atomic_load(&births) && n < p->comm_count && n < 64; n++)
        if (p->comm[n].label[0] && !(atomic_load(&sections_used) & 1ull << n))
            log_warn(log, -1, "[comm %s] matched no communicator", p->comm[n].label);
}

/* The config to hand to NCCL: only when the profile wishes something; else the caller's own way. */
static void decide_config(struct birth *b, const struct birth_facts *f, const struct comm_facts *facts)
{
    struct comm *c = b->comm;
    struct config_wish wish;
    uint32_t missing;

    b->section = profile_comm_match(shim.profile, facts);
    config_wish(shim.profile, facts, &wish);
    if (b->section)
        note_section(c, b->section);
    if (!wish.set)
        return;
    if (c && c->entry) {
        if (wish.set & (1u << CONFIG_MIN_CTAS))
            c->entry->asked_min_ctas = wish.number[CONFIG_MIN_CTAS];
        if (wish.set & (1u << CONFIG_MAX_CTAS))
            c->entry->asked_max_ctas = wish.number[CONFIG_MAX_CTAS];
    }
    if (!f->takes_config || !b->config.valid) {
        missing = wish.set;
    } else {
        missing = config_apply(&b->config, &wish, lib_version(f->lib));
        b->use_config = missing != wish.set;
    }
    if (c && c->entry && b->use_config) {
        c->entry->given_min_ctas = ctas_in_force(&b->config, CONFIG_MIN_CTAS, "NCCL_MIN_CTAS");
        c->entry->given_max_ctas = ctas_in_force(&b->config, CONFIG_MAX_CTAS, "NCCL_MAX_CTAS");
    }
    if (c && missing)
        tell_missing(c, missing);
}

/* What this communicator would be made of if we did nothing. */
static void base_config(struct birth *b, const struct birth_facts *f)
{
    if (f->config)
        config_copy_of(&b->config, f->config);
    else if (f->has_parent && f->parent && f->parent->config.valid)
        b->config = f->parent->config;
    else if (!f->has_parent)
        config_default(&b->config, lib_version(f->lib));
    /* else: a child of a parent we do not know; what it inherits can't be told, so hands off */
}

void birth_begin(struct birth *b, const struct birth_facts *f, ncclComm_t *out)
{
    struct comm_facts facts;
    struct log_writer *log = shim_log();
    const char *name;

    atomic_store_explicit(&shim_was_called, 1, memory_order_relaxed);
    memset(b, 0, sizeof(*b));
    b->out = out;
    base_config(b, f);
    b->comm = take_place();
    name = config_comm_name(&b->config);
    facts = (struct comm_facts){
        .ranks = f->ranks,
        .nodes = -1,
        .index = atomic_fetch_add(&births, 1),
        .name = name ? name : "",
        .parent = f->has_parent ? (f->parent ? f->parent->name : "") : NULL,
    };
    if (b->comm) {
        struct comm *c = b->comm;
        c->lib = f->lib;
        c->ranks = f->ranks;
        c->rank = f->rank;
        c->index = facts.index;
        c->nonblocking = config_blocking(&b->config) == 0;
        snprintf(c->name, sizeof(c->name), "%s", facts.name);
        c->gpu = gpu_prepare();
        c->entry = log ? log_comm_add(log, &c->number) : NULL;
        if (c->entry) {
            fill_entry(c, f);
            set_state(c, NCCLSHIM_COMM_STARTING);
            if (strlen(facts.name) >= sizeof(c->name))
                note_comm_text(c, NCCLSHIM_COMM_NAME, facts.name);
        }
        shim_note_library(f->lib);
    }
    decide_config(b, f, &facts);
    if (b->comm) {
        b->comm->config = b->config;
        atomic_store_explicit(&b->comm->door, 1, memory_order_release);
    }
    birth_current = b;
}

void birth_end(struct birth *b, ncclResult_t result)
{
    bool good = result == ncclSuccess || result == ncclInProgress;
    bool born = good && b->out && *b->out;
    struct comm *c = b->comm;

    if (birth_current == b)
        birth_current = NULL;
    if (born)
        comm_end(*b->out); /* a communicator that died unseen had this address */
    if (!c)
        return;
    if (!born) {
        set_state(c, good ? NCCLSHIM_COMM_ENDED : NCCLSHIM_COMM_FAILED);
        if (c->entry && good)
            c->entry->ended_ns = c->entry->created_ns; /* no colour: there is no child */
        give_place(c);
        return;
    }
    if (result == ncclInProgress || c->nonblocking) {
        c->nonblocking = true;
        add_flag(c, NCCLSHIM_COMM_NONBLOCKING);
    } else if (!c->gpu) {
        /* No context was current before: NCCL has made one. Here nothing of this communicator can
         * be running yet on this rank. */
        c->gpu = gpu_prepare();
        if (c->entry && c->gpu) {
            c->entry->device = c->gpu->device;
            c->entry->ring = (int32_t)c->gpu->ring_number;
        }
    }
    if (!c->nonblocking) /* what NCCL had to say it has said */
        atomic_store_explicit(&c->door, 0, memory_order_relaxed);
    if (c->entry)
        c->entry->ready_ns = log_now_ns();
    set_state(c, NCCLSHIM_COMM_READY);
    if (!handle_add(*b->out, c))
        give_place(c);
}

/* Known from a plugin door alone: its handle has not been seen yet. The only one, or NULL. */
static struct comm *only_without_handle(const struct nccl_lib *lib)
{
    struct comm *only = NULL;

    for (int i = 0; i < COMM_LIVE_MAX; i++) {
        struct comm *c = &pool[i];
        if (!atomic_load_explicit(&c->state, memory_order_acquire) || c->lib != lib || !lib ||
            !atomic_load(&c->without_handle))
            continue;
        if (only)
            return NULL;
        only = c;
    }
    return only;
}

struct comm *comm_adopt(ncclComm_t handle, struct nccl_lib *lib)
{
    struct log_writer *log = shim_log();
    struct birth_facts f = {.lib = lib, .ranks = NCCLSHIM_UNKNOWN, .rank = NCCLSHIM_UNKNOWN};
    struct comm *c = only_without_handle(lib);

    atomic_store_explicit(&shim_was_called, 1, memory_order_relaxed);
    if (c && atomic_exchange(&c->without_handle, 0))
        return handle_add(handle, c) ? c : NULL;
    c = log ? take_place() : NULL;
    if (!c)
        return NULL;
    c->lib = lib;
    c->ranks = c->rank = NCCLSHIM_UNKNOWN;
    c->index = atomic_fetch_add(&births, 1);
    c->entry = log_comm_add(log, &c->number);
    if (c->entry) {
        fill_entry(c, &f);
        c->entry->flags = NCCLSHIM_COMM_ADOPTED;
        set_state(c, NCCLSHIM_COMM_READY);
    }
    shim_note_library(lib);
    if (!handle_add(handle, c)) {
        give_place(c);
        return NULL;
    }
    return c;
}

void comm_end(ncclComm_t handle)
{
    struct comm *c = handle ? handle_remove(handle) : NULL;

    if (!c)
        return;
    if (c->entry)
        c->entry->ended_ns = log_now_ns();
    set_state(c, NCCLSHIM_COMM_ENDED);
    give_place(c);
}

/* ---- plugin doors ----------------------------------------------------------------------------- */

static void learn(struct comm *c, uint64_t hash, const char *name, int nodes)
{
    if (!c->entry)
        return;
    atomic_store_explicit((_Atomic uint64_t *)&c->entry->hash, hash, memory_order_relaxed);
    c->entry->nodes = nodes;
    if (name && *name && !c->name[0]) {
        snprintf(c->name, sizeof(c->name), "%s", name);
        snprintf(c->entry->name, sizeof(c->entry->name), "%s", name);
    }
}

/*
 * One on its way into life, or one whose non-blocking init has returned to the program while NCCL
 * still works on it. Births of one group arrive on threads of NCCL's, several at once: each takes
 * another.
 */
static struct comm *starting_with(int ranks, int rank)
{
    for (int i = 0; i < COMM_LIVE_MAX; i++) {
        struct comm *c = &pool[i];
        int offered = 1;
        if (atomic_load_explicit(&c->door, memory_order_acquire) != offered)
            continue;
        if ((c->ranks == ranks || c->ranks < 0) && (c->rank == rank || c->rank < 0) &&
            atomic_compare_exchange_strong(&c->door, &offered, 2))
            return c;
    }
    return NULL;
}

struct comm *comm_for_plugin(uint64_t hash, const char *name, int nodes, int ranks, int rank)
{
    /* None: NCCL is inside another object and shows no name. It still tells of its calls. */
    struct birth_facts f = {.lib = lib_loaded(), .ranks = ranks, .rank = rank};
    struct comm *c = birth_current ? birth_current->comm : starting_with(ranks, rank);
    struct log_writer *log;

    atomic_store_explicit(&shim_nccl_began, 1, memory_order_relaxed);
    if (c)
        atomic_store_explicit(&c->door, 2, memory_order_relaxed);
    if (c && (c->ranks < 0 || c->rank < 0) && c->entry) { /* children of split, shrink and grow */
        c->ranks = c->entry->ranks = ranks;
        c->rank = c->entry->rank = rank;
    }
    if (!c) { /* nobody called a wrapper: its init bypassed us */
        log = shim_log();
        c = log ? take_place() : NULL;
        if (!c)
            return NULL;
        c->lib = f.lib;
        c->ranks = ranks;
        c->rank = rank;
        c->index = atomic_fetch_add(&births, 1);
        atomic_store(&c->without_handle, 1);
        c->entry = log_comm_add(log, &c->number);
        if (c->entry) {
            fill_entry(c, &f);
            c->entry->flags = NCCLSHIM_COMM_ADOPTED;
            set_state(c, NCCLSHIM_COMM_READY);
        }
        if (f.lib)
            shim_note_library(f.lib);
    }
    learn(c, hash, name, nodes);
    return c;
}

/* Places are taken one after the other: those behind the number of births were never touched. */
void comm_forget(void)
{
    int used = atomic_load_explicit(&births, memory_order_relaxed);

    for (int i = 0; i < used && i < COMM_LIVE_MAX; i++) {
        /* Handles stay known (a child may still call destroy), but nothing is written. */
        pool[i].entry = NULL;
        pool[i].gpu = NULL;
    }
}
