/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers' own part of each function: own_NAME(lib, arguments), lib = the copy of NCCL whose
 * entry was called, NULL = whatever a caller bound at link time reaches. wrap.c has the entries and
 * what is only handed on; wrap_comm.c births and deaths; wrap_coll.c collectives and groups.
 */
#ifndef NCCLSHIM_PRELOAD_WRAP_H
#define NCCLSHIM_PRELOAD_WRAP_H

#include "shim/preload/comm.h"
#include "shim/preload/real.h"

#define X(name, since, params, args)                                                               \
    ncclResult_t own_##name(struct nccl_lib *lib, UNBRACKET params);
NCCLSHIM_API_OWN(X)
#undef X
#define X(name, since) ncclResult_t own_##name(struct nccl_lib *lib);
NCCLSHIM_API_OWN0(X)
#undef X

/*
 * The real function, or NULL when there is no NCCL or it lacks the function; *why is then what to
 * return (ncclSystemError, ncclInvalidUsage), and it has been said once.
 */
void *real_for(struct nccl_lib *lib, enum nccl_fn fn, ncclResult_t *why);

/* The copy to use for a call on `comm` (NULL = a call without one). */
static inline struct nccl_lib *lib_for(struct nccl_lib *lib, struct comm *c)
{
    return c ? c->lib : lib ? lib : lib_default();
}

#endif
