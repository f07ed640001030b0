#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What docs/install.md tells an ordinary user to do with the package; it leaves nothing.
set -eu
example=/usr/lib/ncclshim/example
run=$(mktemp -d)/run

ncclshim --version
ncclshim check fewer-channels >/dev/null
LD_LIBRARY_PATH=$example/simulator ncclshim run -p fewer-channels -o "$run" -- $example/decode_server 2>"$run.err" || {
    cat "$run.err" >&2
    exit 1
}
grep -q '0 lost, 0 not intercepted' "$run.err"
ncclshim report "$run" | tee "$run.report"
grep -q '^profile *fewer-channels' "$run.report"
ncclshim doctor >/dev/null || [ $? = 1 ] # 1: it found something bad, as on a machine without GPUs
rm -rf "${run%/run}"
