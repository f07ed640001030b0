/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stamp kernels: one thread each, launched into the caller's stream before and after a
 * collective. By hand in PTX, so that the build needs no CUDA compiler; the driver compiles them
 * when they are loaded.
 *
 *   ncclshim_before(start)   *start = clock
 *   ncclshim_after(...)      takes record number n by one atomic add and writes the record
 *
 * WAIT is `griddepcontrol.wait` in the dependent form (sm_90): the kernel may be scheduled while
 * the one before it drains, and waits there until all its work is done and visible. The clock is
 * read right behind it. None of them ever lets its own dependents start early
 * (griddepcontrol.launch_dependents), so a kernel of the server that itself was launched dependently
 * sees no less than it would right behind NCCL's kernel.
 *
 * In `after`, what needs no result of the collective stands before WAIT, where it overlaps the end
 * of NCCL's kernel: both atomics, and the load of the start. The load is safe there because NCCL's
 * kernel was launched as an ordinary one, behind the complete `before`. NCCL's symmetric kernels are
 * launched dependently themselves, so for them `ncclshim_after_late` loads it behind WAIT.
 *
 * A cell is 32 bytes of device memory per call site: start, end (8 bytes each), run (4).
 * Record n goes to slot n & mask: two 16-byte stores, see include/ncclshim/log.h. The GPU also
 * notes each time it passes slot 0, so that the 32-bit sequences can be told apart for ever.
 */
#ifndef NCCLSHIM_PRELOAD_STAMP_PTX_H
#define NCCLSHIM_PRELOAD_STAMP_PTX_H

#define STAMP_BEFORE(WAIT)                                                                         \
    ".visible .entry ncclshim_before(.param .u64 p_start)\n"                                       \
    ".maxntid 1, 1, 1\n"                                                                           \
    "{\n"                                                                                          \
    "  .reg .b64 %start, %now;\n"                                                                  \
    "  ld.param.u64 %start, [p_start];\n" WAIT "  mov.u64 %now, %globaltimer;\n"                   \
    "  st.global.u64 [%start], %now;\n"                                                            \
    "  ret;\n"                                                                                     \
    "}\n"

#define STAMP_LOAD_START "  ld.volatile.global.u64 %begin, [%start];\n"

#define STAMP_AFTER(NAME, EARLY, WAIT, LATE)                                                       \
    ".visible .entry " NAME "(\n"                                                                  \
    "  .param .u64 p_cursor, .param .u64 p_ring, .param .u64 p_lap, .param .u64 p_cell,\n"         \
    "  .param .u64 p_start, .param .u32 p_mask, .param .u32 p_site)\n"                             \
    ".maxntid 1, 1, 1\n"                                                                           \
    "{\n"                                                                                          \
    "  .reg .b64 %cursor, %ring, %lap, %cell, %start, %begin, %now, %n, %at, %lo, %hi;\n"          \
    "  .reg .b32 %mask, %site, %run, %seq, %slot;\n"                                               \
    "  .reg .pred %first;\n"                                                                       \
    "  ld.param.u64 %cursor, [p_cursor];\n"                                                        \
    "  ld.param.u64 %ring, [p_ring];\n"                                                            \
    "  ld.param.u64 %lap, [p_lap];\n"                                                              \
    "  ld.param.u64 %cell, [p_cell];\n"                                                            \
    "  ld.param.u64 %start, [p_start];\n"                                                          \
    "  ld.param.u32 %mask, [p_mask];\n"                                                            \
    "  ld.param.u32 %site, [p_site];\n"                                                            \
    "  atom.global.add.u64 %n, [%cursor], 1;\n"                                                    \
    "  atom.global.add.u32 %run, [%cell+16], 1;\n" EARLY WAIT "  mov.u64 %now, %globaltimer;\n"    \
    "  st.global.u64 [%cell+8], %now;\n" LATE                                                      \
    "  cvt.u32.u64 %seq, %n;\n"                                                                    \
    "  and.b32 %slot, %seq, %mask;\n"                                                              \
    "  add.u32 %seq, %seq, 1;\n"                                                                   \
    "  mul.wide.u32 %at, %slot, 32;\n"                                                             \
    "  add.u64 %at, %at, %ring;\n"                                                                 \
    "  mov.b64 %lo, {%site, %seq};\n"                                                              \
    "  mov.b64 %hi, {%run, %seq};\n"                                                               \
    "  st.volatile.global.v2.u64 [%at], {%begin, %lo};\n"                                          \
    "  st.volatile.global.v2.u64 [%at+16], {%now, %hi};\n"                                         \
    "  setp.eq.u32 %first, %slot, 0;\n"                                                            \
    "  @%first st.volatile.global.u64 [%lap], %n;\n"                                               \
    "  ret;\n"                                                                                     \
    "}\n"

#define STAMP_WAIT "  griddepcontrol.wait;\n"

static const char stamp_ptx_dependent[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n" STAMP_BEFORE(STAMP_WAIT)
        STAMP_AFTER("ncclshim_after", STAMP_LOAD_START, STAMP_WAIT, "")
            STAMP_AFTER("ncclshim_after_late", "", STAMP_WAIT, STAMP_LOAD_START);

static const char stamp_ptx_plain[] =
    ".version 6.0\n.target sm_60\n.address_size 64\n" STAMP_BEFORE("")
        STAMP_AFTER("ncclshim_after", STAMP_LOAD_START, "", "")
            STAMP_AFTER("ncclshim_after_late", "", "", STAMP_LOAD_START);

#endif
