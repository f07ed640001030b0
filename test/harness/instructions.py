# SPDX-License-Identifier: Apache-2.0
"""Instructions that a program executes, by callgrind: nearly the same on every run, whatever else the machine does."""
import glob
import os
import re
import shutil
import tempfile

from . import process

LIMIT_S = 120
COST = re.compile(r"^[+*\-\d]\S* (\d+)$")


def available():
    return shutil.which("valgrind") is not None


def executed(args, env, name=None):
    """How many instructions `args` executes; with a name, only those in the object whose file is called so."""
    with tempfile.TemporaryDirectory() as folder:
        code, output = process.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + folder + "/out.%p"] + args,
                                   LIMIT_S, env)
        assert code == 0, "%s\n%s" % (process.describe(code, LIMIT_S), output)
        files = glob.glob(folder + "/out.*")
        assert files, output
        return sum(count(path, name) for path in files)


def count(path, name):
    """Self cost by object: a line behind calls= is what the called one took."""
    names, total, ours, called = {}, 0, False, False
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith(("ob=", "cob=")):  # a name stands where its number is met first
                number, _, text = line.split("=", 1)[1].strip().partition(" ")
                names[number] = text or names.get(number, "")
                if line.startswith("ob="):
                    ours = name is None or os.path.basename(names[number]) == name
            elif line.startswith("calls="):
                called = True
            elif (match := COST.match(line)):
                total += int(match.group(1)) if ours and not called else 0
                called = False
    return total


def shim_costs(build):
    """{what: instructions of the shim's own}, each for one call, or one replay of four calls, of one rank."""
    build, few, more = os.path.abspath(build), 2, 20

    def server(calls=4, steps=3, prefill=few, **extra):
        with tempfile.TemporaryDirectory(prefix="ncclshim-instructions-", dir="/dev/shm") as logs:
            env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL", "LD_"))}
            env.update(LD_LIBRARY_PATH=build + "/fake", LD_PRELOAD=build + "/libncclshim.so", NCCLSHIM_LOG_DIR=logs,
                       NCCLSHIM_FAKE_PACE="0", HOME=logs, **extra)
            return executed([build + "/examples/decode_server", "--one-process", "--ranks", "2", "--requests", "1",
                             "--steps", str(steps), "--calls", str(calls), "--prefill-calls", str(prefill),
                             "--prefill-bytes", "256", "--compute-us", "0"], env, "libncclshim.so")

    base, ranks = server(), 2
    off = {"NCCLSHIM_LOG": "off"}
    return {
        "a wrapped call, log off": (server(prefill=few + more, **off) - server(**off)) / (ranks * more),
        "an eager call with its stamps": (server(prefill=few + more) - base) / (ranks * more),
        "a captured call with its stamps": (server(calls=4 + more) - base) / (ranks * more),
        "a replay": (server(steps=3 + more) - base) / (ranks * more),
    }


def start_up(build):
    """Instructions of /bin/true: without the shim, and with it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL", "LD_"))}
    shim = os.path.join(os.path.abspath(build), "libncclshim.so")
    return executed(["/bin/true"], env), executed(["/bin/true"], dict(env, LD_PRELOAD=shim))
