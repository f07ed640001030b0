/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, registration and windows. Registered memory makes nothing faster here; it is only
 * counted. */
#include "test/fake/nccl_fake.h"

#include <stdlib.h>

#if FAKE_VER >= 21901
FAKE_API(ncclResult_t, ncclMemAlloc, void **ptr, size_t size)
{
    CUdevice dev;
    CUdeviceptr d = 0;
    API_ENTER(ncclMemAlloc);
    if (!ptr || !size)
        return ncclInvalidArgument;
    NCCLCHECK(fake_current_device(&dev));
    CUCHECK(fake_cu.cuMemAlloc(&d, size));
    *ptr = (void *)(uintptr_t)d;
    return ncclSuccess;
}

FAKE_API(ncclResult_t, ncclMemFree, void *ptr)
{
    CUdevice dev;
    API_ENTER(ncclMemFree);
    if (!ptr)
        return ncclSuccess;
    NCCLCHECK(fake_current_device(&dev));
    CUCHECK(fake_cu.cuMemFree((CUdeviceptr)(uintptr_t)ptr));
    return ncclSuccess;
}

struct registration {
    ncclComm_t comm;
    void *buff;
    size_t size;
};

FAKE_API(ncclResult_t, ncclCommRegister, ncclComm_t comm, void *buff, size_t size, void **handle)
{
    COUNT(ncclCommRegister);
    NCCLCHECK(fake_comm_check(comm, "ncclCommRegister"));
    if (!handle)
        return ncclInvalidArgument;
    *handle = NULL;
    if (!fake_param(VAR_NCCL_LOCAL_REGISTER))
        return ncclSuccess;
    struct registration *r = malloc(sizeof(*r));
    *r = (struct registration){comm, buff, size};
    *handle = r;
    return ncclSuccess;
}

FAKE_API(ncclResult_t, ncclCommDeregister, ncclComm_t comm, void *handle)
{
    COUNT(ncclCommDeregister);
    NCCLCHECK(fake_comm_check(comm, "ncclCommRegister"));
    struct registration *r = handle;
    if (r && r->comm != comm)
        return ncclInvalidUsage;
    free(r);
    return ncclSuccess;
}
#endif

#if FAKE_VER >= 22703
/* A window on a machine without symmetric memory is a plain registration, made through the public
 * call. */
FAKE_API(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void *buff, size_t size,
         ncclWindow_t *win, int flags)
{
    COUNT(ncclCommWindowRegister);
    (void)flags;
    fake_ask_stage(STAGE_WINDOW);
    NCCLCHECK(fake_comm_check(comm, "ncclCommWindowRegister"));
    if (!win)
        return ncclInvalidArgument;
    *win = NULL;
    if (!buff || !size)
        return ncclSuccess;
    NCCLCHECK(fake_comm_ready(comm));
    return ncclCommRegister(comm, buff, size, (void **)win);
}

FAKE_API(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t win)
{
    COUNT(ncclCommWindowDeregister);
    return win ? ncclCommDeregister(comm, win) : ncclSuccess;
}
#endif

#if FAKE_VER >= 22902
FAKE_API(ncclResult_t, ncclWinGetUserPtr, ncclComm_t comm, ncclWindow_t win, void **out)
{
    COUNT(ncclWinGetUserPtr);
    NCCLCHECK(fake_comm_check(comm, "ncclWinGetUserPtr"));
    if (!out)
        return ncclInvalidArgument;
    *out = win ? ((struct registration *)(void *)win)->buff : NULL;
    return ncclSuccess;
}
#endif
