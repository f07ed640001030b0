#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What timing every call costs beside other ways of watching, and whether the times are true. Parts, chosen by
# --parts NAME,...: truth (stamps against events, wall time and CUPTI; a late rank, which is also a part of its own:
# late), cost (the table), captures (updating graphs, strict captures, ends of a process), killed (SIGKILL in
# mid-replay), stuck (a call that never ends; one hardware queue), memcheck (compute-sanitizer).
#
# Ranks are threads of one process, on --ranks GPUs (2) or all on one, with an NCCL of 2.30.3 or later. GPU_KIT
# (default .gpu): nccl/lib, inspector/ and cudart/, each used when it is there. Needs a built tree (BUILD); ends
# within --budget seconds (400). Results: $OUT, default build/gpu-out. `--simulate`: this script, not the GPU.
export NCCL_NVLS_ENABLE=0
here=$(cd "$(dirname "$0")" && pwd)
export GPU_KIT=${GPU_KIT:-$here/../../.gpu}
if [ -z "$NCCL_HOME" ] && [ -d "$GPU_KIT/nccl/lib" ]; then
    export NCCL_HOME=$GPU_KIT/nccl
fi
exec "${PYTHON_GPU:-python3}" -B "$here/cost.py" "$@"
