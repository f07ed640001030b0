/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody else's preloaded library in front of NCCL, as NVIDIA's checkpoint shim is: it hands out
 * communicator handles of its own and finds what lies behind it by dlsym(RTLD_NEXT). At exit it says
 * on stdout how often it was called.
 */
#include <dlfcn.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct handle {
    ncclComm_t real;
};

static atomic_int inits, reduces;

#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))
#define REAL(comm) (((struct handle *)(comm))->real)

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    struct handle *h = malloc(sizeof(*h));
    ncclResult_t r = NEXT(ncclCommInitRank)(&h->real, nranks, id, rank);

    atomic_fetch_add(&inits, 1);
    *comm = (ncclComm_t)h;
    return r;
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream)
{
    atomic_fetch_add(&reduces, 1);
    return NEXT(ncclAllReduce)(send, recv, count, type, op, REAL(comm), stream);
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    return NEXT(ncclCommCount)(REAL(comm), count);
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    return NEXT(ncclCommUserRank)(REAL(comm), rank);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    ncclResult_t r = NEXT(ncclCommDestroy)(REAL(comm));

    free(comm);
    return r;
}

__attribute__((destructor)) static void tell(void)
{
    printf("interposer %d %d\n", atomic_load(&inits), atomic_load(&reduces));
    fflush(stdout);
}
