/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives, messages and reduction operators: arguments checked, then into the group. */
#include "test/fake/nccl_fake.h"

#include <stdlib.h>
#include <string.h>

struct call {
    ncclFunc_t func;
    const char *name;
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    ncclComm_t comm;
    CUstream stream;
};

/* ---- reduction operators ---- */

/* A user's operator carries a mark of its communicator, so that another communicator doesn't know
 * it. */
#define OPS_ROOM 4096
static unsigned op_mark(const struct ncclComm *comm)
{
    return (unsigned)(comm->comm_hash % 0x3ffff);
}

static struct fake_userop *find_op(const struct ncclComm *comm, ncclRedOp_t op)
{
    unsigned v = (unsigned)op - FAKE_NUM_OPS, ix = v % OPS_ROOM;
    if ((int)op < FAKE_NUM_OPS || v / OPS_ROOM != op_mark(comm) ||
        ix >= (unsigned)comm->userop_count || !comm->userops[ix].used)
        return NULL;
    return &comm->userops[ix];
}

#if FAKE_VER >= 21104
FAKE_API(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t *op, void *scalar, ncclDataType_t type,
         ncclScalarResidence_t residence, ncclComm_t comm)
{
    COUNT(ncclRedOpCreatePreMulSum);
    NCCLCHECK(fake_comm_check(comm, "ncclRedOpCreatePreMulSum"));
    NCCLCHECK(fake_comm_ready(comm));
    int ix = 0;
    while (ix < comm->userop_count && comm->userops[ix].used)
        ix++;
    if (ix == comm->userop_count) {
        if (ix == OPS_ROOM)
            return ncclInternalError;
        comm->userops = realloc(comm->userops, (size_t)(ix + 1) * sizeof(*comm->userops));
        comm->userop_count++;
    }
    struct fake_userop *u = &comm->userops[ix];
    *u = (struct fake_userop){
        .used = true, .type = type, .in_memory = residence == ncclScalarDevice};
    if (u->in_memory)
        u->scalar = (uint64_t)(uintptr_t)scalar;
    else
        memcpy(&u->scalar, scalar, fake_type_size(type));
    *op = (ncclRedOp_t)(FAKE_NUM_OPS + op_mark(comm) * OPS_ROOM + (unsigned)ix);
    return ncclSuccess;
}

FAKE_API(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm)
{
    COUNT(ncclRedOpDestroy);
    if ((int)op >= 0 && (int)op < FAKE_NUM_OPS) {
        WARN("ncclRedOpDestroy : operator is a NCCL builtin.");
        return ncclInvalidArgument;
    }
    if (!comm || !find_op(comm, op)) {
        WARN(comm ? "ncclRedOpDestroy : operator unknown to this communicator."
                  : "ncclRedOpDestroy : invalid communicator passed.");
        return ncclInvalidArgument;
    }
    find_op(comm, op)->used = false;
    return ncclSuccess;
}
#endif

static ncclResult_t resolve_op(const struct call *c, struct fake_redop *out)
{
    *out = (struct fake_redop){.op = c->op};
    if ((int)c->op < FAKE_NUM_OPS) {
        if (c->op == ncclAvg) {
            out->op = ncclSum;
            out->divide_by = c->comm->nranks;
        }
        return ncclSuccess;
    }
    const struct fake_userop *u = find_op(c->comm, c->op);
    if (u->type != c->type) {
        WARN("Data type supplied to user-created ncclRedOp_t does not match type given to "
             "reduction operation");
        return ncclInvalidArgument;
    }
    *out = (struct fake_redop){
        .op = ncclSum, .premul = true, .scalar_in_memory = u->in_memory, .scalar = u->scalar};
    return ncclSuccess;
}

/* ---- arguments ---- */

static ncclResult_t check_pointer(const struct call *c, const void *p, const char *what)
{
    int device = 0;
    unsigned type = 0;
    CUdeviceptr d = (CUdeviceptr)(uintptr_t)p;
    if (!p ||
        fake_cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d) != CUDA_SUCCESS) {
        WARN("%s : %s %p is not a valid pointer", c->name, what, p);
        return ncclInvalidArgument;
    }
    if (type == CU_MEMORYTYPE_DEVICE &&
        fake_cu.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, d) ==
            CUDA_SUCCESS &&
        device != c->comm->cuda_dev) {
        WARN("%s : %s allocated on device %d mismatchs with NCCL device %d", c->name, what, device,
             c->comm->cuda_dev);
        return ncclInvalidArgument;
    }
    return ncclSuccess;
}

static ncclResult_t check(const struct call *c)
{
    if (c->root < 0 || c->root >= c->comm->nranks) {
        WARN("%s : invalid root %d (root should be in the 0..%d range)", c->name, c->root,
             c->comm->nranks);
        return ncclInvalidArgument;
    }
    if ((int)c->type < 0 || (int)c->type >= FAKE_NUM_TYPES) {
        WARN("%s : invalid type %d", c->name, (int)c->type);
        return ncclInvalidArgument;
    }
    if ((int)c->op < 0) {
        WARN("%s : invalid reduction operation %d", c->name, (int)c->op);
        return ncclInvalidArgument;
    }
    if ((int)c->op >= FAKE_NUM_OPS && !find_op(c->comm, c->op)) {
        WARN("%s : reduction operation %d unknown to this communicator", c->name, (int)c->op);
        return ncclInvalidArgument;
    }
    if (!c->comm->check_pointers || !c->count)
        return ncclSuccess;
    bool has_send =
        c->func != ncclFuncRecv && (c->func != ncclFuncBroadcast || c->comm->rank == c->root);
    bool has_recv =
        c->func != ncclFuncSend && (c->func != ncclFuncReduce || c->comm->rank == c->root);
    if (has_send)
        NCCLCHECK(check_pointer(c, c->send, "sendbuff"));
    if (has_recv)
        NCCLCHECK(check_pointer(c, c->recv, "recvbuff"));
    return ncclSuccess;
}

/* ---- into the group ---- */

static ncclResult_t add(const struct call *c, ncclFunc_t func, const void *send, void *recv,
                        int root, const struct fake_redop *op)
{
    struct fake_task *t = calloc(1, sizeof(*t));
    *t = (struct fake_task){.comm = c->comm,
                            .stream = c->stream,
                            .func = func,
                            .send = send,
                            .recv = recv,
                            .count = c->count,
                            .type = c->type,
                            .op = *op,
                            .root = root};
    return fake_group_add(t);
}

/* NCCL builds these of sends and receives. */
static ncclResult_t add_messages(const struct call *c, const struct fake_redop *op)
{
    size_t part = c->count * fake_type_size(c->type);
    char *send = (char *)(uintptr_t)c->send, *recv = c->recv;
    int n = c->comm->nranks, me = c->comm->rank;
    if (c->func == ncclFuncAlltoAll) {
        for (int r = 0; r < n; r++) {
            NCCLCHECK(add(c, ncclFuncSend, send + (size_t)r * part, NULL, r, op));
            NCCLCHECK(add(c, ncclFuncRecv, NULL, recv + (size_t)r * part, r, op));
        }
    } else if (c->func == ncclFuncGather) {
        NCCLCHECK(add(c, ncclFuncSend, send, NULL, c->root, op));
        for (int r = 0; r < n && me == c->root; r++)
            NCCLCHECK(add(c, ncclFuncRecv, NULL, recv + (size_t)r * part, r, op));
    } else {
        for (int r = 0; r < n && me == c->root; r++)
            NCCLCHECK(add(c, ncclFuncSend, send + (size_t)r * part, NULL, r, op));
        NCCLCHECK(add(c, ncclFuncRecv, NULL, recv, c->root, op));
    }
    return ncclSuccess;
}

static ncclResult_t append(struct call *c)
{
    struct fake_redop op = {.op = ncclSum};
    if (c->func == ncclFuncSend || c->func == ncclFuncRecv)
        return add(c, c->func, c->send, c->recv, c->root, &op);
    if (c->count == 0) /* nothing to do, and nobody waits for it */
        return ncclSuccess;
    NCCLCHECK(resolve_op(c, &op));
    if (c->comm->nranks == 1) {
        if (c->send == c->recv && !op.premul)
            return ncclSuccess;
        return add(c, ncclFuncAllReduce, c->send, c->recv, 0, &op);
    }
    if (c->func > ncclFuncAllReduce)
        return add_messages(c, &op);
    return add(c, c->func, c->send, c->recv, c->root, &op);
}

static ncclResult_t enqueue(struct call *c)
{
    ncclComm_t comm = c->comm;
    fake_ask_stage(STAGE_NVTX);
    NCCLCHECK(fake_group_error(fake_comm_check(comm, c->name)));
    if (comm->revoked || comm->suspended) {
        WARN("%s: communicator was %s", c->name, comm->revoked ? "revoked" : "suspended");
        return fake_group_error(ncclInvalidUsage);
    }
    fake_profiler_call_nested(1);
    NCCLCHECK(fake_group_start());
    ncclResult_t res = fake_comm_ready(comm);
    if (res == ncclSuccess)
        res = check(c);
    if (res == ncclSuccess) {
        INFO(NCCL_COLL,
             "%s: opCount %lx sendbuff %p recvbuff %p count %zu datatype %d op %d root %d comm %p "
             "[nranks=%d] stream %p",
             c->name, (unsigned long)comm->op_count, c->send, c->recv, c->count, (int)c->type,
             (int)c->op, c->root, (void *)comm, comm->nranks, (void *)c->stream);
        res = append(c);
    }
    if (res != ncclSuccess && !comm->config.blocking)
        fake_comm_set_async(comm, res);
    fake_group_error(res);
    ncclResult_t end = fake_group_end(NULL);
    if (end != ncclSuccess && end != ncclInProgress)
        return end;
    if (!comm->config.blocking)
        NCCLCHECK(ncclCommGetAsyncError(comm, &res));
    return res;
}

/* ---- the public functions ---- */

#define CALL(func_, name_, ...)                                                               \
    struct call c = {                                                                         \
        .func = ncclFunc##func_, .name = name_, .comm = comm, .stream = stream, __VA_ARGS__}; \
    COUNT(nccl##func_);                                                                       \
    return enqueue(&c)

FAKE_API(ncclResult_t, ncclAllReduce, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    CALL(AllReduce, "AllReduce", .send = sendbuff, .recv = recvbuff, .count = count, .type = type,
         .op = op);
}

FAKE_API(ncclResult_t, ncclReduce, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    CALL(Reduce, "Reduce", .send = sendbuff, .recv = recvbuff, .count = count, .type = type,
         .op = op, .root = root);
}

FAKE_API(ncclResult_t, ncclBroadcast, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    CALL(Broadcast, "Broadcast", .send = sendbuff, .recv = recvbuff, .count = count, .type = type,
         .root = root);
}

FAKE_API(ncclResult_t, ncclBcast, void *buff, size_t count, ncclDataType_t type, int root,
         ncclComm_t comm, cudaStream_t stream)
{
    COUNT(ncclBcast);
    return ncclBroadcast(buff, buff, count, type, root, comm, stream);
}

FAKE_API(ncclResult_t, ncclReduceScatter, const void *sendbuff, void *recvbuff, size_t recvcount,
         ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    CALL(ReduceScatter, "ReduceScatter", .send = sendbuff, .recv = recvbuff, .count = recvcount,
         .type = type, .op = op);
}

FAKE_API(ncclResult_t, ncclAllGather, const void *sendbuff, void *recvbuff, size_t sendcount,
         ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    CALL(AllGather, "AllGather", .send = sendbuff, .recv = recvbuff, .count = sendcount,
         .type = type);
}

FAKE_API(ncclResult_t, ncclSend, const void *sendbuff, size_t count, ncclDataType_t type, int peer,
         ncclComm_t comm, cudaStream_t stream)
{
    CALL(Send, "Send", .send = sendbuff, .count = count, .type = type, .root = peer);
}

FAKE_API(ncclResult_t, ncclRecv, void *recvbuff, size_t count, ncclDataType_t type, int peer,
         ncclComm_t comm, cudaStream_t stream)
{
    CALL(Recv, "Recv", .recv = recvbuff, .count = count, .type = type, .root = peer);
}

#if FAKE_VER >= 22803
FAKE_API(ncclResult_t, ncclAlltoAll, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    CALL(AlltoAll, "AlltoAll", .send = sendbuff, .recv = recvbuff, .count = count, .type = type);
}

FAKE_API(ncclResult_t, ncclGather, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    CALL(Gather, "Gather", .send = sendbuff, .recv = recvbuff, .count = count, .type = type,
         .root = root);
}

FAKE_API(ncclResult_t, ncclScatter, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    CALL(Scatter, "Scatter", .send = sendbuff, .recv = recvbuff, .count = count, .type = type,
         .root = root);
}
#endif
