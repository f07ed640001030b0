/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Births and deaths of communicators. Every function that makes one is wrapped on its own, since
 * inside NCCL they do not call one another through exported names.
 */
#include "shim/preload/wrap.h"

#include <stdlib.h>

#include "shim/preload/commenv.h"
#include "shim/preload/group.h"
#include "shim/preload/say.h"

/* NCCLSHIM_STRICT=1 and a bad profile: better no server than one that runs untuned unnoticed. */
static bool refused(ncclResult_t *result)
{
    if (!shim.refuse)
        return false;
    say_once(SAY_STRICT, "NCCLSHIM_STRICT=1 and the profile is bad: communicators are refused");
    *result = ncclInvalidUsage;
    return true;
}

/*
 * Around a real call that makes a communicator. In a group NCCL does the work at the outermost end,
 * so there the birth is only remembered.
 */
#define BIRTH(result, b, lib, call)                                                                \
    do {                                                                                           \
        bool grouped = group_open(lib);                                                            \
        comm_env_begin(&(b), grouped);                                                             \
        shim_inside++;                                                                             \
        (result) = (call);                                                                         \
        shim_inside--;                                                                             \
        comm_env_end();                                                                            \
        if (grouped && ((result) == ncclSuccess || (result) == ncclInProgress)) {                  \
            birth_current = NULL;                                                                  \
            group_add_birth(lib, &(b));                                                            \
        } else {                                                                                   \
            birth_end(&(b), result);                                                               \
        }                                                                                          \
    } while (0)

/* What each of them begins with: `fn` of the copy that the call is for, and room for the birth. */
#define FIND(NAME, PARENT)                                                                         \
    NAME##_fn fn;                                                                                  \
    struct birth b;                                                                                \
    ncclResult_t r;                                                                                \
    lib = lib_for(lib, PARENT);                                                                    \
    fn = (NAME##_fn)real_for(lib, FN_##NAME, &r);                                                  \
    if (!fn || refused(&r))                                                                        \
    return r

/* The config to hand over: ours where the profile wishes something, else the caller's own. */
static void *config_for(struct birth *b, void *callers)
{
    return b->use_config ? (void *)b->config.bytes : callers;
}

ncclResult_t own_CommInitRankConfig(struct nccl_lib *lib, ncclComm_t *comm, int nranks,
                                    ncclUniqueId id, int rank, void *config)
{
    FIND(CommInitRankConfig, NULL);

    if (shim_inside || !comm)
        return fn(comm, nranks, id, rank, config);
    birth_begin(&b,
                &(struct birth_facts){.lib = lib, .ranks = nranks, .rank = rank, .id = &id,
                                      .config = config, .takes_config = true},
                comm);
    BIRTH(r, b, lib, fn(comm, nranks, id, rank, config_for(&b, config)));
    return r;
}

ncclResult_t own_CommInitRank(struct nccl_lib *lib, ncclComm_t *comm, int nranks, ncclUniqueId id,
                              int rank)
{
    CommInitRankConfig_fn with_config;
    FIND(CommInitRank, NULL);

    if (shim_inside || !comm)
        return fn(comm, nranks, id, rank);
    with_config = (CommInitRankConfig_fn)lib_fn(lib, FN_CommInitRankConfig);
    birth_begin(&b,
                &(struct birth_facts){.lib = lib, .ranks = nranks, .rank = rank, .id = &id,
                                      .takes_config = with_config != NULL},
                comm);
    /* The config form only where there is something to give: it opens a group of its own. */
    BIRTH(r, b, lib,
          b.use_config ? with_config(comm, nranks, id, rank, b.config.bytes)
                       : fn(comm, nranks, id, rank));
    return r;
}

ncclResult_t own_CommInitRankScalable(struct nccl_lib *lib, ncclComm_t *comm, int nranks, int rank,
                                      int nid, ncclUniqueId *ids, void *config)
{
    FIND(CommInitRankScalable, NULL);

    if (shim_inside || !comm)
        return fn(comm, nranks, rank, nid, ids, config);
    birth_begin(&b,
                &(struct birth_facts){.lib = lib, .ranks = nranks, .rank = rank,
                                      .id = nid > 0 ? ids : NULL, .config = config,
                                      .takes_config = true},
                comm);
    BIRTH(r, b, lib, fn(comm, nranks, rank, nid, ids, config_for(&b, config)));
    return r;
}

/* ---- one call, many communicators -------------------------------------------------------------- */

/*
 * The primary context of an ordinal, as NCCL's own init of that device would make it. Held until
 * the real init is over: a context that nobody holds is destroyed, with all that we put into it.
 */
static bool device_hold(int ordinal, CUcontext *ctx)
{
    const struct driver *d = driver_get();
    CUdevice dev;

    return d && d->device_get(&dev, ordinal) == CUDA_SUCCESS &&
           d->primary_retain(ctx, dev) == CUDA_SUCCESS;
}

static void device_release(int ordinal)
{
    const struct driver *d = driver_get();
    CUdevice dev;

    if (d && d->device_get(&dev, ordinal) == CUDA_SUCCESS)
        d->primary_release(dev);
}

static bool enter(CUcontext ctx)
{
    return ctx && driver_get()->ctx_push(ctx) == CUDA_SUCCESS;
}

static void leave(void)
{
    CUcontext popped;

    driver_get()->ctx_pop(&popped);
}

struct init_all {
    struct birth birth;
    int ordinal;
    CUcontext ctx; /* NULL = could not be held */
};

/* ncclCommInitAll takes no config; the same by its parts does. */
static ncclResult_t init_all_by_parts(struct nccl_lib *lib, ncclComm_t *comms, int ndev,
                                      struct init_all *each)
{
    CommInitRankConfig_fn init = (CommInitRankConfig_fn)lib_fn(lib, FN_CommInitRankConfig);
    GroupStart_fn start = (GroupStart_fn)lib_fn(lib, FN_GroupStart);
    GroupEnd_fn end = (GroupEnd_fn)lib_fn(lib, FN_GroupEnd);
    GetUniqueId_fn unique = (GetUniqueId_fn)lib_fn(lib, FN_GetUniqueId);
    ncclResult_t r, first = ncclSuccess;
    ncclUniqueId id;

    r = unique(&id);
    if (r == ncclSuccess)
        r = start();
    if (r != ncclSuccess)
        return r;
    for (int i = 0; i < ndev && first == ncclSuccess; i++) {
        if (!enter(each[i].ctx)) {
            first = ncclUnhandledCudaError;
            break;
        }
        first = init(&comms[i], ndev, id, i, each[i].birth.config.bytes);
        leave();
    }
    r = end();
    return first != ncclSuccess ? first : r;
}

ncclResult_t own_CommInitAll(struct nccl_lib *lib, ncclComm_t *comms, int ndev, const int *devlist)
{
    struct init_all *each;
    CommInitAll_fn fn;
    ncclResult_t r;
    bool parts;

    lib = lib_for(lib, NULL);
    fn = (CommInitAll_fn)real_for(lib, FN_CommInitAll, &r);
    if (!fn || refused(&r))
        return r;
    if (shim_inside || !comms || ndev <= 0 || ndev > GPU_MAX || group_open(lib))
        return fn(comms, ndev, devlist);
    each = calloc((size_t)ndev, sizeof(*each));
    if (!each)
        return fn(comms, ndev, devlist);
    for (int i = 0; i < ndev; i++) {
        each[i].ordinal = devlist ? devlist[i] : i;
        if (!device_hold(each[i].ordinal, &each[i].ctx))
            each[i].ctx = NULL;
        bool entered = enter(each[i].ctx);
        birth_begin(&each[i].birth,
                    &(struct birth_facts){.lib = lib, .ranks = ndev, .rank = i,
                                          .takes_config = lib_fn(lib, FN_CommInitRankConfig) != NULL},
                    &comms[i]);
        if (entered)
            leave();
    }
    birth_current = NULL;
    parts = each[0].birth.use_config;
    shim_inside++;
    r = parts ? init_all_by_parts(lib, comms, ndev, each) : fn(comms, ndev, devlist);
    shim_inside--;
    for (int i = 0; i < ndev; i++) {
        birth_end(&each[i].birth, r);
        if (each[i].ctx)
            device_release(each[i].ordinal); /* a communicator holds its context itself by now */
    }
    free(each);
    return r;
}

/* ---- children ---------------------------------------------------------------------------------- */

ncclResult_t own_CommSplit(struct nccl_lib *lib, ncclComm_t comm, int color, int key,
                           ncclComm_t *newcomm, void *config)
{
    struct comm *parent = comm_find(comm);
    FIND(CommSplit, parent);

    if (shim_inside || !newcomm || color == NCCL_SPLIT_NOCOLOR)
        return fn(comm, color, key, newcomm, config);
    /* How many share the colour is not known before NCCL has asked all ranks. */
    birth_begin(&b,
                &(struct birth_facts){.lib = lib, .ranks = NCCLSHIM_UNKNOWN, .rank = NCCLSHIM_UNKNOWN,
                                      .parent = parent, .has_parent = true, .config = config,
                                      .takes_config = true},
                newcomm);
    BIRTH(r, b, lib, fn(comm, color, key, newcomm, config_for(&b, config)));
    return r;
}

ncclResult_t own_CommShrink(struct nccl_lib *lib, ncclComm_t comm, int *exclude, int count,
                            ncclComm_t *newcomm, void *config, int flags)
{
    struct comm *parent = comm_find(comm);
    FIND(CommShrink, parent);

    if (shim_inside || !newcomm)
        return fn(comm, exclude, count, newcomm, config, flags);
    birth_begin(&b,
                &(struct birth_facts){.lib = lib,
                                      .ranks = parent && parent->ranks > 0 ? parent->ranks - count
                                                                           : NCCLSHIM_UNKNOWN,
                                      .rank = NCCLSHIM_UNKNOWN, .parent = parent,
                                      .has_parent = true, .config = config, .takes_config = true},
                newcomm);
    BIRTH(r, b, lib, fn(comm, exclude, count, newcomm, config_for(&b, config), flags));
    return r;
}

ncclResult_t own_CommGrow(struct nccl_lib *lib, ncclComm_t comm, int nranks, const ncclUniqueId *id,
                          int rank, ncclComm_t *newcomm, void *config)
{
    struct comm *parent = comm ? comm_find(comm) : NULL;
    FIND(CommGrow, parent);

    if (shim_inside || !newcomm)
        return fn(comm, nranks, id, rank, newcomm, config);
    birth_begin(&b,
                &(struct birth_facts){.lib = lib, .ranks = nranks,
                                      .rank = rank >= 0 ? rank : parent ? parent->rank : NCCLSHIM_UNKNOWN,
                                      .id = id, .parent = parent, .has_parent = comm != NULL,
                                      .config = config, .takes_config = true},
                newcomm);
    BIRTH(r, b, lib, fn(comm, nranks, id, rank, newcomm, config_for(&b, config)));
    return r;
}

/* ---- what the program asks, we learn too -------------------------------------------------------- */

/* Children of a split do not know their size and rank until somebody asks; the shim never does. */
#define LEARN(NAME, FIELD, VALUE)                                                                  \
    ncclResult_t own_##NAME(struct nccl_lib *lib, ncclComm_t comm, int *VALUE)                     \
    {                                                                                              \
        struct comm *c = comm_find(comm);                                                          \
        ncclResult_t r;                                                                            \
        NAME##_fn fn = (NAME##_fn)real_for(lib_for(lib, c), FN_##NAME, &r);                        \
        if (!fn)                                                                                   \
            return r;                                                                              \
        r = fn(comm, VALUE);                                                                       \
        if (r == ncclSuccess && c && c->FIELD < 0) {                                               \
            c->FIELD = *VALUE;                                                                     \
            if (c->entry)                                                                          \
                c->entry->FIELD = *VALUE;                                                          \
        }                                                                                          \
        return r;                                                                                  \
    }

LEARN(CommCount, ranks, count)
LEARN(CommUserRank, rank, number)

/* ---- deaths ------------------------------------------------------------------------------------ */

#define DEATH(NAME, PARAMS, ARGS, ENDS)                                                            \
    ncclResult_t own_##NAME(struct nccl_lib *lib, UNBRACKET PARAMS)                                \
    {                                                                                              \
        struct comm *c = comm_find(comm);                                                          \
        ncclResult_t r;                                                                            \
        NAME##_fn fn = (NAME##_fn)real_for(lib_for(lib, c), FN_##NAME, &r);                        \
        if (!fn)                                                                                   \
            return r;                                                                              \
        if (ENDS && !shim_inside)                                                                  \
            comm_end(comm); /* before: afterwards the address may be another's */                  \
        shim_inside++;                                                                             \
        r = fn ARGS;                                                                               \
        shim_inside--;                                                                             \
        return r;                                                                                  \
    }

DEATH(CommFinalize, (ncclComm_t comm), (comm), false)
DEATH(CommDestroy, (ncclComm_t comm), (comm), true)
DEATH(CommAbort, (ncclComm_t comm), (comm), true)
DEATH(CommRevoke, (ncclComm_t comm, int flags), (comm, flags), false)
