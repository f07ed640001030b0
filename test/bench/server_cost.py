#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the shim costs the host on the simulator: wall time of whole servers and of their calls, as ratios to
the same server without it, in the same run. On the simulator GPU time is virtual, so these are host costs:
wrappers, stamps' launches at capture, the collector. GPU costs are measured by test/gpu/main.sh.
"""
import os
import random
import re
import statistics
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test"))
from harness import process  # noqa: E402

ROUNDS = 5
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))


def path(*parts):
    return os.path.join(BUILD, *parts)


def server(requests, steps, prefill):
    # Small buffers: the simulator's own sums must not hide what is measured. No pacing: the host's time counts.
    return [path("examples", "decode_server"), "--one-process", "--requests", str(requests), "--steps", str(steps),
            "--bytes", "256", "--prefill-calls", str(prefill), "--prefill-bytes", "256", "--compute-us", "0", "--limit", "60"]


def tokens_per_second(output):
    match = re.search(r"tokens/s: ([0-9.]+)", output)
    return float(match.group(1)) if match else None


def ways(folder):
    shim = {"LD_PRELOAD": path("libncclshim.so"), "NCCLSHIM_PROFILE": "none"}
    return {
        "without the shim": ({}, []),
        "NCCLSHIM_LOG=off": (dict(shim, NCCLSHIM_LOG="off"), []),
        "with stamps": (shim, []),
        "ncclshim run": ({}, [path("ncclshim"), "run", "-p", "none", "-o", os.path.join(folder, "run"), "--"]),
    }


def measure(program, folder):
    """Median microseconds of serving a step, for each way; shuffled, so that drift hits all alike."""
    found = {name: [] for name in ways(folder)}
    for _ in range(ROUNDS):
        order = list(ways(folder).items())
        random.shuffle(order)
        for name, (env, front) in order:
            process.run(["rm", "-rf", os.path.join(folder, "run")], 20)
            full = dict(os.environ, LD_LIBRARY_PATH=path("fake"), NCCLSHIM_FAKE_PACE="0", NCCLSHIM_LOG_DIR=folder, **env)
            code, output = process.run(front + program, 90, full)
            rate = tokens_per_second(output)
            if code != 0 or rate is None:
                print("not ok %s: exit code %s: %s" % (name, code, output.strip()[-300:]))
                return None
            found[name].append(3e6 / rate)
    return {name: statistics.median(values) for name, values in found.items()}


def main():
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        for title, program, calls in (("captured call", server(2, 200, 0), 122), ("eager call", server(40, 1, 100), 222)):
            medians = measure(program, folder)
            if medians is None:
                return 1
            base = medians["without the shim"]
            for name, value in medians.items():
                print("%-14s %-18s %7.2f us a call  x %.2f" % (title, name, value / calls, value / base))
            print("ok cost of a %s (host, simulated GPU)" % title)
    print("%.0f s" % (time.monotonic() - start))
    return 0


if __name__ == "__main__":
    sys.exit(main())
