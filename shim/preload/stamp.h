/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting one stamp into a stream. Call path: nothing here allocates, waits or takes a lock. The
 * GPU's context must be current (gpu_enter). Any thread.
 */
#ifndef NCCLSHIM_PRELOAD_STAMP_H
#define NCCLSHIM_PRELOAD_STAMP_H

#include "shim/preload/gpu.h"

/* The clock into *start when all before it in the stream is done. false when the driver refused. */
bool stamp_before(struct gpu *g, CUstream stream, CUdeviceptr start);

/*
 * A record of `site`: from *start to the clock, when all before it in the stream is done. `late`
 * where the collective's own kernel may have been launched dependently (stamp_ptx.h).
 */
bool stamp_after(struct gpu *g, CUstream stream, CUdeviceptr start, uint32_t site, bool late);

/* Make g->ctx current if it is not; says whether it has to be popped again. */
bool gpu_enter(const struct gpu *g, bool *pushed);
void gpu_leave(bool pushed);

#endif
