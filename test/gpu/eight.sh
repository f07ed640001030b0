#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All that eight ranks can show, within 10 minutes, every step under a time limit: on 8 (or 4) GPUs of one host, else
# with eight ranks on one GPU (NCCL 2.30.3 or later, 2 channels each), where ratios count and step 3 is left out.
#   1 servers of all shapes and SIGKILL, one process a GPU and all ranks in one    2 what timing costs
#   3 profiles at 8 KiB to 64 MiB; tune; ab of its winner                         4 a late rank, and the report of it
#   5 the collector with one ring a rank at full rate
# --steps 1,2,... chooses; --simulate runs it on the simulator, short. This script is not part of make test-gpu: run
# it by hand. Environment, needs and results as of cost.sh.
export NCCL_NVLS_ENABLE=0
here=$(cd "$(dirname "$0")" && pwd)
export GPU_KIT=${GPU_KIT:-$here/../../.gpu}
if [ -z "$NCCL_HOME" ] && [ -d "$GPU_KIT/nccl/lib" ]; then
    export NCCL_HOME=$GPU_KIT/nccl
fi
exec timeout -k 10 595 "${PYTHON_GPU:-python3}" -B "$here/eight.py" "$@"
