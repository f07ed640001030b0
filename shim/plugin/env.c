/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's environment plugin (2.28.7 on): NCCL asks here for every variable. The answer is the
 * process's own environment, or that of the user's env plugin behind ours, except where a [comm]
 * section has a value for the communicator that is being made on this thread.
 *
 * NCCL asks from any thread and keeps the pointer: what is handed out is the environment's own
 * string, or the profile's, which both stay.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/plugin/asked.h"
#include "shim/plugin/behind.h"
#include "shim/plugin/plugin.h"
#include "shim/preload/commenv.h"

#define OUR_DOOR "libncclshim.so"

static _Atomic(const struct env_table *) behind; /* NULL = none, or finalized */
static _Atomic int users;                        /* copies of NCCL that have initialised it */

static ncclResult_t init_behind(int newest, uint8_t major, uint8_t minor, uint8_t patch,
                                const char *suffix, nccl_logger_fn log)
{
    int version;
    const struct env_table *t = behind_table(BEHIND_ENV, "ncclEnvPlugin", newest, 1, &version);
    ncclResult_t r;

    if (!t)
        return ncclSuccess;
    r = version == 1 ? t->init.v1(major, minor, patch, suffix)
                     : t->init.v2(major, minor, patch, suffix, log);
    if (r != ncclSuccess)
        return r; /* NCCL fails here without us as well */
    atomic_fetch_add(&users, 1);
    atomic_store(&behind, t);
    return r;
}

static ncclResult_t init_v1(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix)
{
    return init_behind(1, major, minor, patch, suffix, NULL);
}

static ncclResult_t init_v2(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix,
                            nccl_logger_fn log)
{
    return init_behind(2, major, minor, patch, suffix, log);
}

/* At exit. Another copy of NCCL may go on asking until its own end. */
static ncclResult_t finalize(void)
{
    const struct env_table *t = atomic_load(&behind);

    if (!t)
        return ncclSuccess;
    if (atomic_fetch_sub(&users, 1) == 1)
        atomic_store(&behind, NULL);
    return t->finalize ? t->finalize() : ncclSuccess;
}

/*
 * The doors must stay ours, or NCCL would open what the user's env plugin names instead of us; what
 * that names is loaded behind.
 */
static const char *keep_door(const char *name, const char *own, const char *theirs)
{
    enum behind_kind kind = !strcmp(name, "NCCL_TUNER_PLUGIN") ? BEHIND_TUNER : BEHIND_PROFILER;

    if (kind == BEHIND_PROFILER && strcmp(name, "NCCL_PROFILER_PLUGIN"))
        return theirs;
    if (!own || strcmp(own, OUR_DOOR))
        return theirs;
    if (theirs && *theirs && strcmp(theirs, OUR_DOOR))
        behind_name_from_env(kind, theirs);
    return own;
}

static const char *get(const char *name)
{
    const struct env_table *t = atomic_load_explicit(&behind, memory_order_acquire);
    const char *value = comm_env_get(name);
    uint32_t comm = 0;

    if (value)
        comm = birth_current && birth_current->comm ? birth_current->comm->number + 1 : 0;
    else if (t) /* its answer is the last word, as without us: NCCL would not ask further */
        value = keep_door(name, getenv(name), t->get(name));
    else
        value = getenv(name);
    asked_note(name, value, comm);
    return value;
}

PLUGIN_EXPORT const struct env_table ncclEnvPlugin_v1 = {
    "ncclshim", {.v1 = init_v1}, finalize, get};
PLUGIN_EXPORT const struct env_table ncclEnvPlugin_v2 = {
    "ncclshim", {.v2 = init_v2}, finalize, get};
