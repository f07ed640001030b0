/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators made from communicators: split, shrink, grow. */
#include "test/fake/nccl_fake.h"

#include <stdlib.h>
#include <string.h>

#if FAKE_VER >= 21801
/* NULL takes the parent's whole configuration; anything else takes nothing from it. */
static ncclResult_t new_child(ncclComm_t parent, const ncclConfig_t *config, ncclComm_t *out)
{
    ncclComm_t child = fake_comm_new();
    ncclResult_t res = config ? fake_config_parse(child, config) : fake_config_copy(child, parent);
    if (res != ncclSuccess) {
        fake_comm_unref(child);
        return res;
    }
    child->ctx = parent->ctx;
    child->cuda_dev = parent->cuda_dev;
    child->init_state = ncclInternalError;
    *out = child;
    return ncclSuccess;
}

static ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                          const ncclConfig_t *config)
{
    ncclComm_t child = NULL;
    NCCLCHECK(fake_comm_check(comm, "ncclCommSplit"));
    if (!newcomm) {
        WARN("ncclCommSplit : newcomm argument is NULL");
        return ncclInvalidArgument;
    }
    NCCLCHECK(fake_comm_ready(comm));
    *newcomm = NULL;
    if (color == NCCL_SPLIT_NOCOLOR)
        INFO(NCCL_INIT,
             "Rank %d has color with NCCL_SPLIT_NOCOLOR, not creating a new communicator",
             comm->rank);
    else
        NCCLCHECK(new_child(comm, config, &child));
    comm->split_count++;
    struct fake_init what = {.comm = child,
                             .func = "ncclCommSplit",
                             .parent = comm,
                             .is_split = true,
                             .color = color,
                             .key = key,
                             .newcomm = newcomm};
    return fake_init_launch(comm, &what);
}

FAKE_API(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
         ncclConfig_t *config)
{
    API_ENTER(ncclCommSplit);
    NCCLCHECK(fake_group_start());
    ncclResult_t res = fake_group_error(split(comm, color, key, newcomm, config));
    ncclResult_t end = fake_group_end(NULL);
    return end != ncclSuccess ? end : res;
}
#endif

#if FAKE_VER >= 22703
static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static ncclResult_t shrink(ncclComm_t comm, int *exclude, int n, ncclComm_t *newcomm,
                           const ncclConfig_t *config)
{
    ncclComm_t child = NULL;
    NCCLCHECK(fake_comm_check(comm, "ncclCommShrink"));
    if (!newcomm || !exclude || n <= 0)
        return ncclInvalidArgument;
    qsort(exclude, (size_t)n, sizeof(int), by_value);
    if (bsearch(&comm->rank, exclude, (size_t)n, sizeof(int), by_value))
        return ncclInvalidArgument;
    NCCLCHECK(fake_comm_ready(comm));
    *newcomm = NULL;
    NCCLCHECK(new_child(comm, config, &child));
    /* The excluded ranks may be dead: the child's name must follow from what this rank knows. */
    struct fake_init what = {.comm = child,
                             .func = "ncclCommShrink",
                             .parent = comm,
                             .key = comm->rank,
                             .nranks = comm->nranks - n,
                             .rank = comm->rank,
                             .newcomm = newcomm};
    for (int i = 0; i < n; i++)
        what.rank -= exclude[i] < comm->rank;
    uint64_t h = fake_hash(exclude, (size_t)n * sizeof(int), 21 + (uint64_t)comm->child_count++);
    h = fake_hash(comm->id, sizeof(comm->id), h);
    memcpy(what.id, &h, sizeof(h));
    return fake_init_launch(comm, &what);
}

FAKE_API(ncclResult_t, ncclCommShrink, ncclComm_t comm, int *exclude, int n, ncclComm_t *newcomm,
         ncclConfig_t *config, int flags)
{
    API_ENTER(ncclCommShrink);
    NCCLCHECK(fake_group_start());
    if (comm && comm->start_magic == FAKE_MAGIC && (flags & NCCL_SHRINK_ABORT)) {
        atomic_store(&comm->abort_flag, 1);
        fake_shm_wake(comm->shm);
        fake_exec_wait_idle(comm, false);
        atomic_store(&comm->abort_flag, 0);
        fake_comm_set_async(comm, ncclSuccess);
    }
    ncclResult_t res = fake_group_error(shrink(comm, exclude, n, newcomm, config));
    ncclResult_t end = fake_group_end(NULL);
    return end != ncclSuccess ? end : res;
}
#endif

#if FAKE_VER >= 22902
/* The id of the next grown communicator: known to all ranks of the old one, and given to the new
 * ones. */
static void grow_id(const struct ncclComm *comm, int generation, char id[NCCL_UNIQUE_ID_BYTES])
{
    uint64_t h = fake_hash(comm->id, sizeof(comm->id), 31 + (uint64_t)generation);
    memset(id, 0, NCCL_UNIQUE_ID_BYTES);
    memcpy(id, &h, sizeof(h));
}

FAKE_API(ncclResult_t, ncclCommGetUniqueId, ncclComm_t comm, ncclUniqueId *id)
{
    API_ENTER(ncclCommGetUniqueId);
    NCCLCHECK(fake_comm_check(comm, "ncclCommGetUniqueId"));
    NCCLCHECK(fake_comm_ready(comm));
    if (!id)
        return ncclInvalidArgument;
    grow_id(comm, comm->child_count + 1, id->internal);
    return ncclSuccess;
}

static ncclResult_t grow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank,
                         ncclComm_t *newcomm, const ncclConfig_t *config)
{
    struct fake_init what = {.func = "ncclCommGrow", .nranks = nranks};
    if (comm) {
        NCCLCHECK(fake_comm_check(comm, "ncclCommGrow"));
        NCCLCHECK(fake_comm_ready(comm));
        if (rank != -1) {
            WARN("ncclCommGrow: existing ranks must pass rank=-1, got %d", rank);
            return ncclInvalidArgument;
        }
        grow_id(comm, ++comm->child_count, what.id);
        what.rank = comm->rank;
        NCCLCHECK(new_child(comm, config, &what.comm));
    } else {
        CUdevice dev;
        if (rank < 0 || rank >= nranks || !id) {
            WARN("ncclCommGrow: new ranks must pass a rank in 0..%d and a uniqueId, got %d",
                 nranks - 1, rank);
            return ncclInvalidArgument;
        }
        NCCLCHECK(fake_init_once());
        NCCLCHECK(fake_current_device(&dev));
        return fake_init_rank(newcomm, nranks, id, rank, dev, config, "ncclCommGrow");
    }
    what.comm->init_state = ncclInProgress;
    *newcomm = what.comm;
    return fake_init_launch(what.comm, &what);
}

FAKE_API(ncclResult_t, ncclCommGrow, ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank,
         ncclComm_t *newcomm, ncclConfig_t *config)
{
    API_ENTER(ncclCommGrow);
    if (!newcomm || nranks <= 0 || (comm && nranks <= comm->nranks)) {
        WARN("ncclCommGrow: total ranks %d is less than current ranks", nranks);
        return ncclInvalidArgument;
    }
    *newcomm = NULL;
    NCCLCHECK(fake_group_start());
    ncclResult_t res = fake_group_error(grow(comm, nranks, id, rank, newcomm, config));
    ncclResult_t end = fake_group_end(NULL);
    return end != ncclSuccess ? end : res;
}
#endif
