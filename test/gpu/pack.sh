#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: pack.sh FOLDER
# Copies from a built tree (BUILD, default build) what the scripts here run to FOLDER, with the libraries that another
# machine may lack: BUILD=FOLDER there. For a GPU machine without compilers; not part of make test-gpu.
set -e
build=${BUILD:-build}
to=${1:?usage: pack.sh FOLDER}
mkdir -p "$to/examples" "$to/cost" "$to/clients" "$to/tampered" "$to/lib"
cp "$build/ncclshim" "$build/libncclshim.so" "$to/"
cp "$build/examples/decode_server" "$to/examples/"
cp "$build/clients/shapes" "$to/clients/"
cp "$build/cost/load" "$build/cost/births" "$build/cost/stuck" "$to/cost/"
cp "$build/tampered/libnccl.so.2" "$to/tampered/"
if [ -e "$build/cost/libcupti_activity.so" ]; then
    cp "$build/cost/libcupti_activity.so" "$to/cost/"
fi
ldd "$build/ncclshim" | awk '$1 ~ /jansson|ncurses|tinfo|zstd/ {print $3}' | xargs -r -I{} cp -L {} "$to/lib/"
strip --strip-debug "$to/ncclshim" "$to/libncclshim.so" "$to"/*/* 2>/dev/null || true
du -sh "$to"
