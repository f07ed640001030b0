# SPDX-License-Identifier: Apache-2.0
"""ThreadSanitizer: the log's writer with many threads, the shim in front of programs with several threads (the
clients of test/e2e/clients, on the simulator), and the command's own threads. No report that tsan.supp does not
explain, no hang."""
import concurrent.futures
import os
import shutil
import tempfile

from . import build as builds
from . import process

UNITS = ["test_log_threads"]
SHAPES = {  # rounds, where a client asks for a number
    "threads-many": 20, "birth-thousands": 200, "process-forks": 0, "birth-nonblocking": 0, "birth-ways": 0,
    "birth-init-all": 0, "config-children": 0, "config-callers": 0, "group-two-calls": 0, "group-two-comms": 0,
    "group-failing": 0, "group-send-recv": 0, "group-in-capture": 0, "capture-replays": 0, "capture-strict": 5,
    "capture-update": 0, "capture-fork-join": 0, "capture-twice": 0, "streams": 0,
}
COMMANDS = {
    "bench, ranks as threads": ["bench", "--one-process", "--ranks", "3", "--sizes", "1K", "--calls", "4", "--repeats", "3"],
}
# A new runtime says that it does not know fences; those that matter are in test/fake/ptx_memory.c.
SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tsan.supp")
OPTIONS = ["OPT=-O1 -g -fsanitize=thread", "HARDEN=", "WERROR="]
LIMIT_S = 120


def run(folder, results):
    made = builds.Build(os.path.join(folder, "tsan"), options=OPTIONS)
    titles = (["unit " + u for u in UNITS] + ["shim in front of " + s for s in SHAPES] + list(COMMANDS))
    targets = [os.path.join(made.dir, t) for t in ["libncclshim.so", "ncclshim"] + ["unit/" + u for u in UNITS]]
    code, output = made.make(targets + ["clients"])
    if code != 0 and "cannot find" in output and "tsan" in output:
        for title in titles:
            results.skip("tsan " + title, "ThreadSanitizer's runtime is not on this machine")
        return
    if code != 0:
        results.fail("tsan build", process.describe(code, 600), output)
        return
    path = os.path.abspath(made.dir)
    jobs = [([path + "/unit/" + u], {}) for u in UNITS]
    jobs += [([path + "/clients/shapes", s], shape_env(path, n)) for s, n in SHAPES.items()]
    jobs += [([path + "/ncclshim"] + words, {}) for words in COMMANDS.values()]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda title, job: one(made, results, title, *job), titles, jobs))


def shape_env(path, rounds):
    env = {"LD_PRELOAD": path + "/libncclshim.so"}
    return dict(env, SHAPES_ROUNDS=str(rounds)) if rounds else env


def one(made, results, title, args, more):
    folder = tempfile.mkdtemp(prefix="ncclshim-tsan-", dir="/dev/shm")
    env = dict(made.env(), LD_LIBRARY_PATH=os.path.abspath(made.dir) + "/fake", NCCLSHIM_LOG_DIR=folder, HOME=folder,
               TSAN_OPTIONS="die_after_fork=0 history_size=4 exitcode=66 suppressions=" + SUPPRESSIONS, **more)
    # Without address randomisation: old runtimes do not know the layouts of new kernels.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    try:
        code, output = process.run(fixed + args, LIMIT_S, env, cwd=folder)
        logged = any(f.endswith(".ncclshim") for f in os.listdir(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if code == 0 and "LD_PRELOAD" in more and not logged:
        results.fail("tsan " + title, "the shim wrote no log", output)
    elif code == 0 and "WARNING: ThreadSanitizer" not in output:
        results.ok("tsan " + title)
    else:
        results.fail("tsan " + title, process.describe(code, LIMIT_S), output)
