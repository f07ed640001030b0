/* SPDX-License-Identifier: Apache-2.0 */
/* Making a communicator: the id, the rendezvous of all ranks, and what NCCL reads and says on the
 * way. */
#include "test/fake/nccl_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

ncclResult_t fake_init_once(void)
{
    static atomic_flag asked = ATOMIC_FLAG_INIT;
    fake_env_init();
    fake_ask_stage(STAGE_UNIQUE_ID);
    if (!atomic_flag_test_and_set(&asked)) { /* the bootstrap looks for its network twice */
        fake_string(VAR_NCCL_COMM_ID);
        fake_string(VAR_NCCL_COMM_ID);
    }
    return ncclSuccess;
}

FAKE_API(ncclResult_t, ncclGetUniqueId, ncclUniqueId *id)
{
    API_ENTER(ncclGetUniqueId);
    NCCLCHECK(fake_init_once());
    if (!id) {
        WARN("GetUniqueId : out argument is NULL");
        return ncclInvalidArgument;
    }
    /* NCCL puts its bootstrap's address here; this library needs no more than a name that is nobody
     * else's. */
    memset(id, 0, sizeof(*id));
    const char *fixed = fake_string(VAR_NCCL_COMM_ID);
    uint64_t token[2];
    if (fixed) {
        INFO(NCCL_ENV, "NCCL_COMM_ID set by environment to %s", fixed);
        token[0] = fake_hash(fixed, strlen(fixed), 1);
        token[1] = fake_hash(fixed, strlen(fixed), 2);
    } else if (getrandom(token, sizeof(token), 0) != sizeof(token)) {
        return ncclSystemError;
    }
    memcpy(id->internal, token, sizeof(token));
    return ncclSuccess;
}

/* ---- the job ---- */

static uint64_t host_hash(void)
{
    char name[256] = "localhost";
    const char *fixed = fake_string(VAR_NCCL_HOSTID);
    if (fixed) {
        INFO(NCCL_ENV, "NCCL_HOSTID set by environment to %s", fixed);
        return fake_hash(fixed, strlen(fixed), 3);
    }
    gethostname(name, sizeof(name) - 1);
    return fake_hash(name, strlen(name), 3);
}

static ncclResult_t check_peers(ncclComm_t comm, const struct fake_peer *peers)
{
    bool shared = FAKE_VER >= 23003 && fake_param(VAR_NCCL_MULTI_RANK_GPU_ENABLE);
    const struct fake_peer *me = &peers[comm->rank];
    int hosts = 0;
    for (int r = 0; r < comm->nranks; r++) {
        const struct fake_peer *p = &peers[r];
        bool seen = false;
        for (int q = 0; q < r; q++)
            seen = seen || peers[q].host_hash == p->host_hash;
        hosts += !seen;
        if (p->version != me->version) {
            WARN("Mismatched NCCL version detected : rank %d version %d rank %d version %d", r,
                 p->version, comm->rank, me->version);
            return ncclInvalidUsage;
        }
        if (r != comm->rank && p->host_hash == me->host_hash && p->bus_id == me->bus_id &&
            !shared) {
            WARN("Duplicate GPU detected : rank %d and rank %d both on CUDA device %lx", comm->rank,
                 r, (unsigned long)me->bus_id);
            return ncclInvalidUsage;
        }
    }
    comm->nnodes = hosts;
    return ncclSuccess;
}

static ncclResult_t agree(ncclComm_t comm, ncclResult_t mine)
{
    int32_t one = (int32_t)mine, *all = calloc((size_t)comm->nranks, sizeof(*all));
    ncclResult_t res = fake_shm_allgather(comm->shm, &one, sizeof(one), all);
    for (int r = 0; r < comm->nranks && res == ncclSuccess; r++)
        if (all[r])
            res = mine != ncclSuccess ? mine : ncclRemoteError;
    free(all);
    return res;
}

/* Strings that NCCL asks for anew for each communicator (the graph file once for each search). */
static void ask_per_comm(void)
{
    fake_ask_stage(STAGE_INIT);
    fake_ask_stage(STAGE_IB);
    fake_ask_stage(STAGE_GIN);
    fake_string(VAR_NCCL_TOPO_FILE);
    fake_string(VAR_NCCL_TOPO_DUMP_FILE);
    fake_string(VAR_NCCL_NET_MERGE_LEVEL);
    fake_string(VAR_NCCL_NET_FORCE_MERGE);
    for (int search = 0; search < 4; search++)
        fake_string(VAR_NCCL_GRAPH_FILE);
    fake_string(VAR_NCCL_GRAPH_DUMP_FILE);
}

static ncclResult_t set_up(ncclComm_t comm)
{
    struct fake_peer me = {.host_hash = host_hash(),
                           .bus_id = comm->bus_id,
                           .pid = (int32_t)getpid(),
                           .cuda_dev = comm->cuda_dev,
                           .rank = comm->rank};
    int version = 0;
    NCCLCHECK(ncclGetVersion(&version));
    me.version = version;
    struct fake_peer *peers = calloc((size_t)comm->nranks, sizeof(*peers));
    _Static_assert(sizeof(me) <= 64, "what a rank tells of itself");
    ncclResult_t res = fake_shm_allgather(comm->shm, &me, sizeof(me), peers);
    if (res == ncclSuccess)
        res = check_peers(comm, peers);
    free(peers);
    NCCLCHECK(res);
    ask_per_comm();
    INFO(NCCL_INIT, "comm %p rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL 0",
         (void *)comm, comm->rank, comm->nranks, comm->nnodes, comm->nranks / comm->nnodes,
         comm->rank % (comm->nranks / comm->nnodes));
    fake_profiler_init(comm);
    NCCLCHECK(fake_tuner_init(comm));
    NCCLCHECK(fake_machine_setup(comm));
    int n = comm->machine.nchannels;
    INFO(NCCL_INIT,
         "%d coll channels, %d collnet channels, 0 nvls channels, %d p2p channels, %d p2p channels "
         "per peer",
         n, n, n, n > 2 ? 2 : n);
    if (comm->rank == 0) {
        const char *mode = fake_string(VAR_NCCL_LAUNCH_MODE);
        if (mode)
            INFO(NCCL_ENV, "NCCL_LAUNCH_MODE set by environment to %s", mode);
    }
    return ncclSuccess;
}

static void say(ncclComm_t comm, const struct fake_init *what, const char *state)
{
    if (what->parent)
        INFO(NCCL_INIT,
             "%s comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %lx parent %p splitCount %d "
             "color %d key %d%s- Init %s",
             what->func, (void *)comm, comm->rank, comm->nranks, comm->cuda_dev, comm->cuda_dev,
             (unsigned long)comm->bus_id, (void *)what->parent, what->parent->split_count,
             what->color, what->key, *state == 'S' ? "" : " ", state);
    else
        INFO(NCCL_INIT,
             "%s comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %lx commId 0x%llx - Init %s",
             what->func, (void *)comm, comm->rank, comm->nranks, comm->cuda_dev, comm->cuda_dev,
             (unsigned long)comm->bus_id, (unsigned long long)comm->comm_hash, state);
}

struct split_word {
    int color, key;
};

/* Who of the parent's ranks comes along, and in which order; the child's name follows from the
 * parent's. */
static ncclResult_t find_split(struct fake_init *what)
{
    struct ncclComm *parent = what->parent;
    struct split_word me = {what->color, what->key},
                      *all = calloc((size_t)parent->nranks, sizeof(*all));
    ncclResult_t res = fake_shm_allgather(parent->shm, &me, sizeof(me), all);
    what->nranks = what->rank = 0;
    for (int r = 0; r < parent->nranks && res == ncclSuccess; r++) {
        if (all[r].color != what->color)
            continue;
        what->nranks++;
        if (all[r].key < what->key || (all[r].key == what->key && r < parent->rank))
            what->rank++;
    }
    free(all);
    uint64_t h[2] = {(uint64_t)parent->split_count, (uint64_t)(int64_t)what->color};
    memset(what->id, 0, sizeof(what->id));
    h[0] = fake_hash(parent->id, sizeof(parent->id), fake_hash(h, sizeof(h), 11));
    h[1] = fake_hash(h, sizeof(h), 12);
    memcpy(what->id, h, sizeof(h));
    return res;
}

static ncclResult_t bus_id(CUdevice dev, uint64_t *out)
{
    char text[32] = "";
    unsigned domain = 0, bus = 0, device = 0;
    CUCHECK(fake_cu.cuDeviceGetPCIBusId(text, sizeof(text), dev));
    sscanf(text, "%x:%x:%x", &domain, &bus, &device);
    *out = (uint64_t)domain << 20 | bus << 12 | device << 4;
    return ncclSuccess;
}

static ncclResult_t run(ncclComm_t comm, struct fake_init *what)
{
    if (what->is_split)
        NCCLCHECK(find_split(what));
    if (!comm) /* split with no colour: this rank has only answered the others */
        return ncclSuccess;
    comm->nranks = what->nranks;
    comm->rank = what->rank;
    memcpy(comm->id, what->id, sizeof(comm->id));
    comm->comm_hash = fake_hash(comm->id, sizeof(comm->id), 0);
    CUCHECK(fake_cu.cuCtxSetCurrent(comm->ctx));
    NCCLCHECK(bus_id(comm->cuda_dev, &comm->bus_id));
    say(comm, what, "START");
    NCCLCHECK(fake_shm_join(comm->id, comm->nranks, comm->rank, &comm->abort_flag, &comm->shm));
    ncclResult_t res = set_up(comm);
    if (res != ncclSuccess && res != ncclRemoteError)
        res = agree(comm, res); /* the others must hear of it, or they would wait for ever */
    else if (res == ncclSuccess)
        res = agree(comm, res);
    if (res != ncclSuccess) {
        fake_shm_fail(comm->shm);
        return res;
    }
    comm->init_state = ncclSuccess;
    say(comm, what, "COMPLETE");
    return ncclSuccess;
}

static ncclResult_t job(ncclComm_t state_of, void *arg)
{
    struct fake_init *what = arg;
    ncclComm_t comm = what->comm;
    (void)state_of;
    ncclResult_t res = run(comm, what);
    if (res != ncclSuccess && comm) {
        comm->init_state = res;
        fake_comm_set_async(comm, res);
        INFO(NCCL_INIT, "%s:%d -> %d", __func__, __LINE__, (int)res);
    }
    if (what->newcomm && comm && res == ncclSuccess)
        *what->newcomm = comm;
    else if (what->newcomm && comm)
        fake_comm_unref(comm);
    return res;
}

ncclResult_t fake_init_launch(ncclComm_t state_of, const struct fake_init *what)
{
    struct fake_init *copy = malloc(sizeof(*copy));
    *copy = *what;
    return fake_group_job(state_of, job, copy, false);
}

/* ---- the public functions ---- */

ncclResult_t fake_init_rank(ncclComm_t *newcomm, int nranks, const ncclUniqueId *id, int rank,
                            int dev, const ncclConfig_t *config, const char *func)
{
    NCCLCHECK(fake_init_once());
    fake_show_version(rank);
    if (!newcomm) {
        WARN("CommInitRank : newcomm argument is NULL");
        return fake_group_error(ncclInvalidArgument);
    }
    *newcomm = NULL;
    if (nranks < 1 || rank < 0 || rank >= nranks) {
        WARN("Invalid rank requested : %d/%d", rank, nranks);
        return fake_group_error(ncclInvalidArgument);
    }
    ncclComm_t comm = fake_comm_new();
    ncclResult_t res = fake_config_parse(comm, config);
    if (res == ncclSuccess)
        res = fake_cu_check(fake_cu.cuCtxGetCurrent(&comm->ctx), "cuCtxGetCurrent");
    if (res != ncclSuccess) {
        fake_comm_unref(comm);
        return fake_group_error(res);
    }
    comm->cuda_dev = dev;
    comm->init_state = ncclInProgress;
    struct fake_init what = {.comm = comm, .nranks = nranks, .rank = rank, .func = func};
    memcpy(what.id, id, sizeof(what.id));
    *newcomm = comm;
    fake_string(VAR_NCCL_COMM_ID);
    res = fake_init_launch(comm, &what);
    if (res != ncclSuccess &&
        fake_group_depth() == 0) { /* outside a group a failed init leaves no handle */
        *newcomm = NULL;
        fake_comm_unref(comm);
    }
    return fake_group_error(res);
}

FAKE_API(ncclResult_t, ncclCommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    CUdevice dev;
    fake_env_init();
    API_ENTER(ncclCommInitRank);
    NCCLCHECK(fake_current_device(&dev));
    return fake_init_rank(comm, nranks, &id, rank, dev, NULL, "ncclCommInitRank");
}

#if FAKE_VER >= 21403
static ncclResult_t init_with_config(ncclComm_t *comm, int nranks, const ncclUniqueId *id, int rank,
                                     const ncclConfig_t *config, const char *func)
{
    CUdevice dev;
    NCCLCHECK(fake_group_start());
    ncclResult_t res = fake_current_device(&dev);
    if (res == ncclSuccess)
        res = fake_init_rank(comm, nranks, id, rank, dev, config, func);
    fake_group_error(res);
    ncclResult_t end = fake_group_end(NULL);
    if (end != ncclSuccess && end != ncclInProgress)
        return end;
    if (comm && *comm && !(*comm)->config.blocking)
        (void)ncclCommGetAsyncError(*comm, &res);
    return res;
}

FAKE_API(ncclResult_t, ncclCommInitRankConfig, ncclComm_t *comm, int nranks, ncclUniqueId id,
         int rank, ncclConfig_t *config)
{
    fake_env_init();
    API_ENTER(ncclCommInitRankConfig);
    return init_with_config(comm, nranks, &id, rank, config, "ncclCommInitRankConfig");
}
#endif

#if FAKE_VER >= 22304
FAKE_API(ncclResult_t, ncclCommInitRankScalable, ncclComm_t *comm, int nranks, int rank, int nid,
         ncclUniqueId *ids, ncclConfig_t *config)
{
    fake_env_init();
    API_ENTER(ncclCommInitRankScalable);
    if (nid <= 0 || nid > nranks || !ids) {
        WARN("improper usage of ncclCommInitRank: nId = %d, nranks=%d", nid, nranks);
        return fake_group_error(ncclInvalidArgument);
    }
    return init_with_config(comm, nranks, &ids[0], rank, config, "ncclCommInitRankScalable");
}
#endif

FAKE_API(ncclResult_t, ncclCommInitAll, ncclComm_t *comms, int ndev, const int *devlist)
{
    CUcontext old = NULL;
    CUdevice dev;
    int total = 0;
    API_ENTER(ncclCommInitAll);
    NCCLCHECK(fake_current_device(&dev));
    CUCHECK(fake_cu.cuCtxGetCurrent(&old));
    if (!comms || ndev < 0) {
        WARN(comms ? "Invalid device count requested : %d"
                   : "CommInitAll : comms argument is NULL (%d)",
             ndev);
        return ncclInvalidArgument;
    }
    CUCHECK(fake_cu.cuDeviceGetCount(&total));
    bool twice = FAKE_VER >= 23003 && fake_param(VAR_NCCL_MULTI_RANK_GPU_ENABLE);
    for (int i = 0; i < ndev; i++) {
        int d = devlist ? devlist[i] : i;
        if (d < 0 || d >= total) {
            WARN("Invalid device %d (totalnDev=%d)", d, total);
            return ncclInvalidArgument;
        }
        for (int j = 0; devlist && j < i; j++)
            if (devlist[j] == d && !twice)
                return ncclInvalidUsage;
    }
    ncclUniqueId id;
    NCCLCHECK(ncclGetUniqueId(&id));
    NCCLCHECK(fake_group_start());
    for (int i = 0; i < ndev; i++) {
        CUcontext ctx;
        int d = devlist ? devlist[i] : i;
        if (fake_cu.cuDeviceGet(&dev, d) == CUDA_SUCCESS &&
            fake_cu.cuDevicePrimaryCtxRetain(&ctx, dev) == CUDA_SUCCESS)
            fake_cu.cuCtxSetCurrent(ctx);
        (void)fake_init_rank(&comms[i], ndev, &id, i, d, NULL, "ncclCommInitAll");
    }
    ncclResult_t res = fake_group_end(NULL);
    fake_cu.cuCtxSetCurrent(old);
    return res;
}
