#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions of the shim's own, on the simulator, and what it adds to the start of a process that never uses NCCL:
counted, and so the same on every machine with the same compiler. test/e2e/test_counts.py has bounds for them.
"""
import os
import resource
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test"))
from harness import instructions  # noqa: E402

STARTS = 300
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))


def start_us(env):
    """Processor time of one start of /bin/true, in microseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(STARTS):
        subprocess.run(["/bin/true"], env=env, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / STARTS * 1e6


def main():
    bare = dict(os.environ)
    shim = dict(bare, LD_PRELOAD=os.path.abspath(os.path.join(BUILD, "libncclshim.so")))
    begin = time.monotonic()
    first, second = start_us(bare), start_us(shim)
    print("ok start of a process that never uses NCCL, processor time: %.0f us, with the shim x %.2f" % (first, second / first))
    if not instructions.available():
        print("skip instructions: no valgrind here")
        return 0
    before, after = instructions.start_up(BUILD)
    print("ok start of a process that never uses NCCL, instructions: %d, with the shim x %.2f" % (before, after / before))
    costs = instructions.shim_costs(BUILD)
    base = costs["a wrapped call, log off"]
    for what, count in costs.items():
        print("ok instructions of %s: %.0f, x %.1f of a wrapped call with the log off" % (what, count, count / base))
    print("(%.0f s)" % (time.monotonic() - begin))
    return 0


if __name__ == "__main__":
    sys.exit(main())
