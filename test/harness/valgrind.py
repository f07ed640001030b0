# SPDX-License-Identifier: Apache-2.0
"""valgrind's memcheck: what the sanitizers can't see, since they must be compiled in: the shared object as it is
shipped, in front of a program that knows nothing of it; and uninitialised memory."""
import os
import shutil
import tempfile

from . import process

UNITS = ["test_profile", "test_reader", "test_plugin_tuner"]
SHAPES = ["birth-ways", "capture-twice"]
LIMIT_S = 180
# Unit tests replace the shim's state and end in forks: leaks are AddressSanitizer's business there.
COMMAND = ["valgrind", "-q", "--error-exitcode=99"]
LEAKS = ["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]


def run(build, results):
    titles = ["valgrind unit " + u for u in UNITS] + ["valgrind shim in front of " + s for s in SHAPES]
    if not shutil.which("valgrind"):
        for title in titles:
            results.skip(title, "no valgrind here")
        return
    jobs = [lambda u=u: unit(build, u) for u in UNITS] + [lambda s=s: shape(build, s) for s in SHAPES]
    for title, job in zip(titles, jobs):
        code, output = job()
        if code == 0 and "==" not in output:
            results.ok(title)
        else:
            results.fail(title, process.describe(code, LIMIT_S), output)


def unit(build, name):
    return process.run(COMMAND + [os.path.abspath(os.path.join(build.dir, "unit", name))], LIMIT_S,
                       dict(build.env(), CMOCKA_MESSAGE_OUTPUT="TAP"))


def shape(build, name):
    folder = os.path.abspath(build.dir)
    with tempfile.TemporaryDirectory(prefix="ncclshim-valgrind-", dir="/dev/shm") as logs:
        profile = os.path.join(logs, "all.ini")
        with open(profile, "w", encoding="utf-8") as f:
            f.write("[env]\nNCCL_P2P_LEVEL = SYS\n[comm]\nmax_ctas = 16\n[comm two]\nranks = 2\nNCCL_ALGO = ring\n"
                    "[tune]\nallreduce 0-64K = ring ll channels=2\n[log]\ncapacity = 1K\n")
        env = dict(build.env(), LD_LIBRARY_PATH=folder + "/fake", LD_PRELOAD=folder + "/libncclshim.so",
                   NCCLSHIM_LOG_DIR=logs, NCCLSHIM_PROFILE=profile, NCCLSHIM_FAKE_PACE="0")
        code, output = process.run(COMMAND + LEAKS + [folder + "/clients/shapes", name], LIMIT_S, env)
        if code == 0 and not any(f.endswith(".ncclshim") for f in os.listdir(logs)):
            return 1, "the shim wrote no log\n" + output
        return code, output
