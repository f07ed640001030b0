#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Settings that NCCL itself confirms on two GPUs, or on one with an NCCL of 2.30.3 or later: rules by size, [comm]
# fields for communicators of every birth, variables and a graph file for one communicator alone, and a profile by
# size against one setting for all. Parts, chosen by --parts NAME,...: tune, max_ctas, named, graph_file, sizes.
# Environment, needs and results as of cost.sh; ends within --budget seconds (180).
export NCCL_NVLS_ENABLE=0
here=$(cd "$(dirname "$0")" && pwd)
export GPU_KIT=${GPU_KIT:-$here/../../.gpu}
if [ -z "$NCCL_HOME" ] && [ -d "$GPU_KIT/nccl/lib" ]; then
    export NCCL_HOME=$GPU_KIT/nccl
fi
exec "${PYTHON_GPU:-python3}" -B "$here/settings.py" "$@"
