#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The main job on real GPUs: servers of several shapes, both ways to NCCL in one process, SIGKILL in mid-replay; with
# `--parts costs` the table of settings and what timing them costs. Parts: both, killed, shapes, costs.
# One process for each of --ranks GPUs (2), or all ranks on one GPU where NCCL_HOME names an NCCL of 2.30.3 or
# later. Needs a built tree (BUILD, default build) and nothing else; ends within --budget seconds (340).
# Results: $OUT, default build/gpu-out. `--simulate` runs the same on the simulator, to test this script.
export NCCL_NVLS_ENABLE=0
here=$(cd "$(dirname "$0")" && pwd)
exec "${PYTHON_GPU:-python3}" -B "$here/main.py" "$@"
