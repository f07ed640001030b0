# SPDX-License-Identifier: Apache-2.0
"""The shim, the simulator and the clients under ThreadSanitizer: no report, no hang."""
import os
import shutil
import tempfile

from harness import build as builds
from harness import process

SHAPES = {  # rounds
    "threads-many": 200, "birth-thousands": 5000, "process-forks": 0, "birth-nonblocking": 0, "birth-ways": 0,
    "birth-init-all": 0, "config-children": 0, "config-callers": 0, "group-two-calls": 0, "group-two-comms": 0,
    "group-failing": 0, "group-send-recv": 0, "group-in-capture": 0, "capture-replays": 0, "capture-update": 0,
    "capture-fork-join": 0, "capture-twice": 0, "streams": 0,
}
OPTIONS = ["OPT=-O1 -g -fsanitize=thread", "HARDEN=", "WERROR="]
LIMIT_S = 240


def run(folder, results):
    made = builds.Build(os.path.join(folder, "tsan"), options=OPTIONS)
    path = os.path.abspath(made.dir)
    code, output = made.make([os.path.join(made.dir, "libncclshim.so"), "clients"])
    if code != 0:
        if "cannot find" in output and "tsan" in output:
            results.skip("ThreadSanitizer", "its runtime is not on this machine")
        else:
            results.fail("ThreadSanitizer: build", "make", output)
        return
    for shape, rounds in SHAPES.items():
        one(path, shape, rounds, results)


def one(path, shape, rounds, results):
    name = "ThreadSanitizer: " + shape
    logs = tempfile.mkdtemp(prefix="ncclshim-tsan-", dir="/dev/shm")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL", "LD_"))}
    env.update(LD_LIBRARY_PATH=path + "/fake", LD_PRELOAD=path + "/libncclshim.so", NCCLSHIM_LOG_DIR=logs,
               TSAN_OPTIONS="die_after_fork=0 history_size=4 exitcode=66")
    if rounds:
        env["SHAPES_ROUNDS"] = str(rounds)
    # Without address randomisation: old runtimes do not know the layouts of new kernels.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    try:
        code, output = process.run(fixed + [path + "/clients/shapes", shape], LIMIT_S, env)
    finally:
        shutil.rmtree(logs, ignore_errors=True)
    if code == 0 and "WARNING: ThreadSanitizer" not in output:
        results.ok(name)
    else:
        results.fail(name, process.describe(code, LIMIT_S), output)
