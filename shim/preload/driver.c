/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/driver.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/preload/real.h"

/* 0 = not looked for, 1 = somebody is filling it, 2 = usable, 3 = there, but not usable. */
static _Atomic int state;
static struct driver driver;

static bool fill(void *handle)
{
    bool whole = true;

#define X(member, name, must, params)                                                              \
    driver.member = (CUresult(*) params)real_dlsym(handle, name);                                  \
    whole = whole && (driver.member || !must);
    NCCLSHIM_DRIVER(X)
#undef X
    return whole && (driver.stream_capture_info || driver.stream_capture_info3);
}

const struct driver *driver_get(void)
{
    int now = atomic_load_explicit(&state, memory_order_acquire);
    int none = 0;
    void *handle;

    if (now >= 2)
        return now == 2 ? &driver : NULL;
    handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return NULL; /* NCCL's own init loads it; nothing of ours may */
    if (!atomic_compare_exchange_strong(&state, &none, 1)) {
        dlclose(handle);
        return none == 2 ? &driver : NULL;
    }
    atomic_store_explicit(&state, fill(handle) ? 2 : 3, memory_order_release);
    return driver_get();
}

void driver_capture_info(const struct driver *d, CUstream stream, struct capture_info *out)
{
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    const void *edges = NULL;
    CUresult r;

    memset(out, 0, sizeof(*out));
    if (d->stream_capture_info3)
        r = d->stream_capture_info3(stream, &status, &out->id, NULL, &out->frontier, &edges,
                                    &out->frontier_count);
    else
        r = d->stream_capture_info(stream, &status, &out->id, NULL, &out->frontier,
                                   &out->frontier_count);
    out->refused = r != CUDA_SUCCESS || (status != CU_STREAM_CAPTURE_STATUS_NONE &&
                                         status != CU_STREAM_CAPTURE_STATUS_ACTIVE);
    out->active = r == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}
