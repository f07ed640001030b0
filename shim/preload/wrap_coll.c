/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives, send/recv and groups: describe the call, stamp around the real one.
 */
#include "shim/preload/wrap.h"

#include "shim/preload/call.h"
#include "shim/preload/group.h"

#define NO_REDOP 255
#define BUILT_IN_REDOPS 5 /* what is above was made by the program and means nothing elsewhere */

static int redop_of(ncclRedOp_t op)
{
    return op >= 0 && op < BUILT_IN_REDOPS ? op : NO_REDOP;
}

/* Ranks as a factor of a size; 1 where the communicator's size is not known. */
static uint64_t ranks_of(const struct comm *c)
{
    return c->ranks > 0 ? (uint64_t)c->ranks : 1;
}

/*
 * The body of every wrapper: `lib` and `c` are found by the communicator; calls that NCCL makes of
 * itself, and calls when nothing is logged, go straight through.
 */
#define ISSUE(NAME, ARGS, ...)                                \
    do {                                                      \
        struct comm *c = comm_find(comm);                     \
        struct log_writer *log;                               \
        ncclResult_t r;                                       \
        NAME##_fn fn;                                         \
        lib = lib_for(lib, c);                                \
        fn = (NAME##_fn)real_for(lib, FN_##NAME, &r);         \
        if (!fn)                                              \
            return r;                                         \
        if (shim_inside || !shim.log_wanted)                  \
            return fn ARGS;                                   \
        if (!c && comm)                                       \
            c = comm_adopt(comm, lib);                        \
        log = shim_log_if_open();                             \
        if (!c || !c->entry || !log)                          \
            return fn ARGS;                                   \
        struct call_desc d = {.stream = stream, __VA_ARGS__}; \
        if (group_open(lib)) {                                \
            shim_inside++;                                    \
            r = fn ARGS;                                      \
            shim_inside--;                                    \
            if (r == ncclSuccess || r == ncclInProgress)      \
                group_add(lib, c, &d);                        \
            return r;                                         \
        }                                                     \
        struct call k;                                        \
        call_begin(&k, log, c, &d, 0);                        \
        shim_inside++;                                        \
        r = fn ARGS;                                          \
        shim_inside--;                                        \
        call_end(&k, &d, r);                                  \
        return r;                                             \
    } while (0)

/* In place: one buffer is this rank's part of the other. */
static bool is_part_of(const void *part, const void *whole, const struct comm *c, size_t bytes)
{
    return c->rank >= 0 && part == (const char *)whole + (size_t)c->rank * bytes;
}

/*
 * What an operation is, in terms of its wrapper's arguments. SCALE: ranks, where the larger buffer
 * of one rank holds that many times `count`.
 */
#define CALL(OP, SCALE, REDOP, ROOT, IN_PLACE)                                                \
    .op = OP_##OP, .dtype = type, .count = count,                                             \
    .bytes = count * dtype_bytes((unsigned)type) * (SCALE), .redop = (REDOP), .root = (ROOT), \
    .in_place = (IN_PLACE)
#define PART_OF(part, whole) is_part_of(part, whole, c, count *dtype_bytes((unsigned)type))

/* A collective in its plain form, and in the ...Config form of 2.31. */
#define COLLECTIVE(NAME, PARAMS, ARGS, ...)                                                     \
    ncclResult_t own_##NAME(struct nccl_lib *lib, UNBRACKET PARAMS, ncclComm_t comm,            \
                            cudaStream_t stream)                                                \
    {                                                                                           \
        ISSUE(NAME, (UNBRACKET ARGS, comm, stream), __VA_ARGS__);                               \
    }                                                                                           \
    ncclResult_t own_##NAME##Config(struct nccl_lib *lib, UNBRACKET PARAMS, ncclComm_t comm,    \
                                    cudaStream_t stream, const void *config)                    \
    {                                                                                           \
        ISSUE(NAME##Config, (UNBRACKET ARGS, comm, stream, config), __VA_ARGS__);               \
    }
#define BUFFERS const void *send, void *recv, size_t count, ncclDataType_t type

COLLECTIVE(AllReduce, (BUFFERS, ncclRedOp_t redop), (send, recv, count, type, redop),
           CALL(ALL_REDUCE, 1, redop_of(redop), -1, send == recv))
COLLECTIVE(Reduce, (BUFFERS, ncclRedOp_t redop, int root), (send, recv, count, type, redop, root),
           CALL(REDUCE, 1, redop_of(redop), root, send == recv))
COLLECTIVE(Broadcast, (BUFFERS, int root), (send, recv, count, type, root),
           CALL(BROADCAST, 1, NO_REDOP, root, send == recv))
COLLECTIVE(AllGather, (BUFFERS), (send, recv, count, type),
           CALL(ALL_GATHER, ranks_of(c), NO_REDOP, -1, PART_OF(send, recv)))
COLLECTIVE(ReduceScatter, (BUFFERS, ncclRedOp_t redop), (send, recv, count, type, redop),
           CALL(REDUCE_SCATTER, ranks_of(c), redop_of(redop), -1, PART_OF(recv, send)))
COLLECTIVE(AlltoAll, (BUFFERS), (send, recv, count, type),
           CALL(ALL_TO_ALL, ranks_of(c), NO_REDOP, -1, send == recv))
COLLECTIVE(Gather, (BUFFERS, int root), (send, recv, count, type, root),
           CALL(GATHER, ranks_of(c), NO_REDOP, root, false))
COLLECTIVE(Scatter, (BUFFERS, int root), (send, recv, count, type, root),
           CALL(SCATTER, ranks_of(c), NO_REDOP, root, false))

ncclResult_t own_Bcast(struct nccl_lib *lib, void *buff, size_t count, ncclDataType_t type,
                       int root, ncclComm_t comm, cudaStream_t stream)
{
    ISSUE(Bcast, (buff, count, type, root, comm, stream), CALL(BROADCAST, 1, NO_REDOP, root, true));
}

ncclResult_t own_Send(struct nccl_lib *lib, const void *send, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    ISSUE(Send, (send, count, type, peer, comm, stream), CALL(SEND, 1, NO_REDOP, peer, false));
}

ncclResult_t own_Recv(struct nccl_lib *lib, void *recv, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    ISSUE(Recv, (recv, count, type, peer, comm, stream), CALL(RECV, 1, NO_REDOP, peer, false));
}

ncclResult_t own_PutSignal(struct nccl_lib *lib, const void *send, size_t count,
                           ncclDataType_t type, int peer, ncclWindow_t win, size_t offset, int sig,
                           int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
    ISSUE(PutSignal, (send, count, type, peer, win, offset, sig, ctx, flags, comm, stream),
          CALL(PUT_SIGNAL, 1, NO_REDOP, peer, false));
}

ncclResult_t own_Signal(struct nccl_lib *lib, int peer, int sig, int ctx, unsigned int flags,
                        ncclComm_t comm, cudaStream_t stream)
{
    ISSUE(Signal, (peer, sig, ctx, flags, comm, stream), .op = OP_SIGNAL, .redop = NO_REDOP,
          .root = peer);
}

ncclResult_t own_WaitSignal(struct nccl_lib *lib, int n, void *descs, ncclComm_t comm,
                            cudaStream_t stream)
{
    ISSUE(WaitSignal, (n, descs, comm, stream), .op = OP_WAIT_SIGNAL, .redop = NO_REDOP, .root = -1,
          .count = (size_t)n);
}

/* ---- groups --------------------------------------------------------------------------------- */

ncclResult_t own_GroupStart(struct nccl_lib *lib)
{
    GroupStart_fn fn;
    ncclResult_t r;

    lib = lib_for(lib, NULL);
    fn = (GroupStart_fn)real_for(lib, FN_GroupStart, &r);
    if (!fn)
        return r;
    r = fn();
    if (r == ncclSuccess && !shim_inside)
        group_start(lib);
    return r;
}

ncclResult_t own_GroupEnd(struct nccl_lib *lib)
{
    GroupEnd_fn fn;
    ncclResult_t r;

    lib = lib_for(lib, NULL);
    fn = (GroupEnd_fn)real_for(lib, FN_GroupEnd, &r);
    if (!fn || shim_inside)
        return fn ? fn() : r;
    group_before_end(lib);
    shim_inside++;
    r = fn();
    shim_inside--;
    group_after_end(lib, r);
    return r;
}

/* Ends the group without launching anything: what it held was only priced. */
ncclResult_t own_GroupSimulateEnd(struct nccl_lib *lib, void *info)
{
    GroupSimulateEnd_fn fn;
    ncclResult_t r;

    lib = lib_for(lib, NULL);
    fn = (GroupSimulateEnd_fn)real_for(lib, FN_GroupSimulateEnd, &r);
    if (!fn || shim_inside)
        return fn ? fn(info) : r;
    shim_inside++;
    r = fn(info);
    shim_inside--;
    group_drop(lib);
    return r;
}

/* ---- what makes traffic that no wrapper sees ------------------------------------------------ */

static void flag_comm(struct comm *c, uint32_t flag)
{
    if (c && c->entry)
        atomic_fetch_or_explicit((_Atomic uint32_t *)&c->entry->flags, flag, memory_order_relaxed);
}

ncclResult_t own_CommWindowRegister(struct nccl_lib *lib, ncclComm_t comm, void *buff, size_t size,
                                    ncclWindow_t *win, int flags)
{
    struct comm *c = comm_find(comm);
    ncclResult_t r;
    CommWindowRegister_fn fn =
        (CommWindowRegister_fn)real_for(lib_for(lib, c), FN_CommWindowRegister, &r);

    if (!fn)
        return r;
    shim_inside++; /* NCCL registers the buffer through its own exported function */
    r = fn(comm, buff, size, win, flags);
    shim_inside--;
    if ((r == ncclSuccess || r == ncclInProgress) && (flags & NCCL_WIN_COLL_SYMMETRIC)) {
        if (c)
            c->symmetric = true;
        flag_comm(c, NCCLSHIM_COMM_SYMMETRIC);
    }
    return r;
}

ncclResult_t own_DevCommCreate(struct nccl_lib *lib, ncclComm_t comm, const void *reqs, void *dev)
{
    struct comm *c = comm_find(comm);
    ncclResult_t r;
    DevCommCreate_fn fn = (DevCommCreate_fn)real_for(lib_for(lib, c), FN_DevCommCreate, &r);

    if (!fn)
        return r;
    shim_inside++;
    r = fn(comm, reqs, dev);
    shim_inside--;
    if (r == ncclSuccess && !shim_inside)
        flag_comm(c, NCCLSHIM_COMM_DEVICE_API);
    return r;
}
