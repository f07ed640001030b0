#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make run: the example server under the shim, then its report. On real GPUs where there are some (two, or
# one with an NCCL that allows two ranks on one GPU), otherwise on the simulated driver and NCCL.
#
#   PROFILE=NAME    profile to run with (fewer-channels)
#   SIMULATE=1      the simulator even where there are GPUs
#   NCCL_HOME=DIR   the NCCL to use, when the loader finds none or another
#   SERVER_ARGS=... more options for decode_server
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build}
profile=${PROFILE:-fewer-channels}
make=${MAKE:-make}

unset MAKEFLAGS MFLAGS MAKELEVEL
if ! $make --no-print-directory -j"$(nproc)" BUILD="$build" all >"/tmp/ncclshim-make.$$" 2>&1; then
    cat "/tmp/ncclshim-make.$$" >&2
    rm -f "/tmp/ncclshim-make.$$"
    exit 1
fi
rm -f "/tmp/ncclshim-make.$$"
server=$build/examples/decode_server

# Sets gpus, simulated and nccl to what the server would get with $1 in front of the loader's path.
probe() {
    gpus=0 simulated=0 nccl=0
    eval "$(LD_LIBRARY_PATH=$1${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$server" --probe 2>/dev/null)"
}

# The folder of a real NCCL, or nothing where the loader finds one by itself.
find_nccl() {
    for dir in "${NCCL_HOME:-/nonexistent}/lib" "" "${CUDA_HOME:-/usr/local/cuda}/lib64" \
        "${CUDA_HOME:-/usr/local/cuda}/lib" $(python3 -c "import glob, sys
print(*[d for p in sys.path for d in glob.glob(p + '/nvidia/nccl/lib')])" 2>/dev/null); do
        probe "$dir"
        [ "$nccl" -gt 0 ] && { echo "$dir"; return; }
    done
}

ranks=""
lib=$(find_nccl)
probe "$lib"
if [ "${SIMULATE:-0}" = 1 ]; then
    why="asked for by SIMULATE=1"
elif [ "$gpus" -ge 2 ]; then
    why=""
    echo "make run: on $gpus GPUs, one process each, NCCL $nccl"
elif [ "$gpus" = 1 ] && [ "$nccl" -ge 23003 ]; then
    why=""
    ranks="--one-process --one-gpu"
    export NCCL_MULTI_RANK_GPU_ENABLE=1
    echo "make run: on one GPU, two ranks on it (threads of one process), NCCL $nccl"
elif [ "$gpus" = 1 ]; then
    why="one GPU alone needs NCCL 2.30.3 or newer for two ranks; NCCL_HOME=DIR names one"
else
    why="no GPU here"
fi
if [ -n "$why" ]; then
    lib=$(pwd)/$build/fake
    case $build in /*) lib=$build/fake ;; esac
    echo "make run: simulated ($why): the driver and NCCL are stand-ins, all times are invented"
fi
echo "make run: profile $profile"
# Profiles lie beside build/; a build elsewhere has none beside it.
export NCCLSHIM_PROFILE_PATH="${NCCLSHIM_PROFILE_PATH:-$(pwd)/profiles}"

run=$build/run
rm -rf "$run"
LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
# shellcheck disable=SC2086 # words on purpose
timeout -k 5 150 "$build/ncclshim" run -p "$profile" -o "$run" -- "$server" $ranks ${SERVER_ARGS:-} || {
    code=$?
    echo "make run: the server ended with exit code $code" >&2
    exit $code
}
echo
exec "$build/ncclshim" report "$run"
