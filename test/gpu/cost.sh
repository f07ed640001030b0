#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whether the times are true, and what timing every call costs beside other ways of watching. Parts, chosen by
# --parts NAME,...: truth (stamps against events, wall time and CUPTI; a late rank, which is also a part of its own:
# late), captures (updating graphs, strict captures), ends (SIGKILL, abort, _exit and exec in mid-replay), stuck (a
# call that never ends; one hardware queue); and, only when asked for, cost (the table).
#
# Ranks are processes (for costs) or threads of one, on --ranks GPUs (2) or all on one, with an NCCL of 2.30.3 or later. GPU_KIT
# (default .gpu): nccl/lib, inspector/ and cudart/, each used when it is there. Needs a built tree (BUILD); ends
# within --budget seconds (400). Results: $OUT, default build/gpu-out. `--simulate`: this script, not the GPU.
export NCCL_NVLS_ENABLE=0
here=$(cd "$(dirname "$0")" && pwd)
export GPU_KIT=${GPU_KIT:-$here/../../.gpu}
if [ -z "$NCCL_HOME" ] && [ -d "$GPU_KIT/nccl/lib" ]; then
    export NCCL_HOME=$GPU_KIT/nccl
fi
exec "${PYTHON_GPU:-python3}" -B "$here/cost.py" "$@"
