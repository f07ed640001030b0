#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the shim costs the host, on the simulator: processor time of whole servers (and of the collector beside
them), a call, as ratios to the same server without the shim, in the same run. GPU time is virtual there; GPU
costs are measured by test/gpu/main.sh.
"""
import os
import random
import resource
import statistics
import sys
import tempfile

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


def children_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ways(folder):
    shim = {"LD_PRELOAD": path("libncclshim.so"), "NCCLSHIM_PROFILE": "none"}
    return {
        "without the shim": ({}, []),
        "NCCLSHIM_LOG=off": (dict(shim, NCCLSHIM_LOG="off"), []),
        "with stamps": (shim, []),
        "ncclshim run": ({}, [path("ncclshim"), "run", "-p", "none", "-o", os.path.join(folder, "run"), "--"]),
    }


def measure(program, folder):
    """Median seconds of processor time, for each way; shuffled, so that drift hits all alike."""
    found = {name: [] for name in ways(folder)}
    for _ in range(ROUNDS):
        order = list(ways(folder).items())
        random.shuffle(order)
        for name, (env, front) in order:
            process.run(["rm", "-rf", os.path.join(folder, "run")], 20)
            full = dict(os.environ, LD_LIBRARY_PATH=path("fake"), NCCLSHIM_FAKE_PACE="0", NCCLSHIM_LOG_DIR=folder, **env)
            before = children_s()
            code, output = process.run(front + program, 90, full)
            if code != 0 or "sums: right" not in output:
                print("not ok %s: exit code %s: %s" % (name, code, output.strip()[-300:]))
                return None
            found[name].append(children_s() - before)
    return {name: statistics.median(values) for name, values in found.items()}


def main():
    # On tmpfs, as the log must be for a GPU to write it.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for title, program, calls in (("captured", server(2, 300, 0), 2 * 2 * 300 * 122),
                                      ("eager", server(60, 1, 200), 2 * 60 * 322)):
            medians = measure(program, folder)
            if medians is None:
                return 1
            base = medians["without the shim"]
            for name, value in medians.items():
                print("%-9s %-18s %7.2f us of processor time a call  x %.2f" % (title, name, value / calls * 1e6, value / base))
            print("ok host cost of a call, %s (GPU simulated)" % title)
    return 0


if __name__ == "__main__":
    sys.exit(main())
