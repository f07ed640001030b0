/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reading of the stamps is made of: the floor (what an empty pair reads), the step of the
 * GPU's clock, and how that clock lies against the host's. Measured in the init wrapper, where
 * waiting for the device is allowed.
 */
#ifndef NCCLSHIM_PRELOAD_FLOOR_H
#define NCCLSHIM_PRELOAD_FLOOR_H

#include "shim/log/write/writer.h"
#include "shim/preload/gpu.h"

struct floor_result {
    uint32_t floor_ns, floor_max_ns, clock_step_ns;
};

/*
 * Run every stamp kernel (kernels are loaded lazily, and that may wait for the device: it must not
 * happen on the call path), measure the floor on a captured chain of empty pairs, and write the
 * first anchor. Leaves ring and cells as if nothing had run.
 */
CUresult floor_measure(struct gpu *g, struct log_writer *log, CUstream stream,
                       struct floor_result *out, const char **what);

/*
 * Another anchor, on a context that is ready, if the last is ten seconds old. Waits for a tiny
 * kernel; skipped where it can't be had.
 */
void floor_anchor(struct gpu *g, struct log_writer *log);

#endif
