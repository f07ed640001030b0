/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of NCCL's binary interface, as far as the shim passes or reads them, for all versions
 * from 2.8 to 2.30.7 at once. Own declarations, since the shim is built without nccl.h and must
 * stand in front of any version; test/unit/test_nccl_abi.c compares them with the nccl.h at hand.
 */
#ifndef NCCLSHIM_NCCL_ABI_H
#define NCCLSHIM_NCCL_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct ncclComm *ncclComm_t; /* opaque: never looked into */
typedef struct CUstream_st *cudaStream_t;
typedef void *ncclWindow_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef int ncclDataType_t;
typedef int ncclRedOp_t;

typedef int ncclResult_t;
enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7
};

/* The fixed head of ncclConfig_t (2.14.3 on); fields: shim/profile/config_fields.h. */
#define NCCL_CONFIG_MAGIC 0xcafebeefu
#define NCCL_CONFIG_NEWEST_BYTES 96u /* 2.30.7 */
struct nccl_config_head {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;
};
#define NCCL_CONFIG_COMM_NAME_OFFSET 48u
#define NCCL_CONFIG_COMM_NAME_SINCE 22703

#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_WIN_COLL_SYMMETRIC 1

#endif
