#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests: `run.py cpu` (make test), `run.py gpu` (make test-gpu), `run.py aarch64` (make test-aarch64),
`run.py bench` (make bench), `run.py soak` (make soak), `run.py fuzz` (make fuzz), `run.py lint` (make lint).

Builds what the tests need, lists every test by name and ends with one line:
N passed, N failed. The exit code is 1 when something failed. BUILD, CC and MAKE come from
the environment. `run.py cpu WORD...` runs only tests with a WORD in their name, plain build only.
"""
import os
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from harness import build, cases, coverage, e2e, fuzz, lint, scripts, tsan, units, valgrind  # noqa: E402
from harness.results import Results  # noqa: E402
from soak import soak  # noqa: E402


def cpu(results, words):
    main = build.Build(os.environ.get("BUILD", "build"))
    if not main.make_all(results):
        return
    units.run(main, results, words)
    e2e.run(main, results, words)
    soak.run(main, results, words, soak.SHORT)
    if words:
        return
    cases.run(results)
    sanitized = build.Build(main.dir + "/asan", sanitize=True)
    units.run(sanitized, results, words)
    e2e.run(sanitized, results, words, only=e2e.SANITIZED)
    coverage.run(main.dir, results)
    tsan.run(main.dir, results)
    valgrind.run(main, results)
    fuzz.run(main, results)
    lint.run(results, [])
    clang_name = "build with clang: no warning"
    if shutil.which("clang"):
        clang = build.Build(main.dir + "/clang", options=["CC=clang", "OPT=-O0", "HARDEN=", "WERROR=-Werror"])
        clang.check_warnings(results, clang_name)
    else:
        results.skip(clang_name, "no clang here")


def gpu(results, words):
    main = build.Build(os.environ.get("BUILD", "build"))
    if not main.is_complete() and not main.make_all(results):
        return
    scripts.run("test/gpu", main, results, words)


# Where an emulator gives another answer than the machine: it forges /proc/self/stat with a start time one tick off, so
# that `run` takes its own servers for strangers; programs of this machine (sh, python3) can't load the shared object;
# the simulated GPUs keep the machine's time. These files of test/e2e meet none of that.
EMULATED_E2E = ("clients_config", "compare", "decode_server", "dlsym", "export", "hardening", "kills", "package", "profiles",
                "real_run", "report", "run_clean", "run_collect", "run_signals", "timing_cases", "top")
EMULATED_NOT = {"test_fake_nccl_time": "the simulated GPUs keep the machine's time, which emulation stretches",
                "test_reader_ring": "its writer stores 16 bytes at once, as a GPU does; the emulator makes two stores of it"}


def aarch64(results, words):
    """Built for AArch64 by a cross compiler, run by an emulator that the kernel starts by itself (binfmt_misc)."""
    cross = build.Build(os.environ.get("BUILD", "build") + "/aarch64",
                        options=["CC=aarch64-linux-gnu-gcc", "AR=aarch64-linux-gnu-ar", "WERROR=-Werror"])
    if cross.make_all(results):
        if not cross.can_run():
            results.fail("an AArch64 program starts", "it does not; docs/install.md says what an emulator needs")
            return
        units.run(cross, results, words, without=EMULATED_NOT)
        for name, why in EMULATED_NOT.items():
            results.skip("unit " + name, why)
        e2e.run(cross, results, words, only=EMULATED_E2E)


def bench(results, words):
    main = build.Build(os.environ.get("BUILD", "build"))
    if main.make_all(results):
        scripts.run_benches(main, results, words)


def lint_alone(results, words):
    lint.run(results, words, by_hand=True)


def soak_whole(results, words):
    main = build.Build(os.environ.get("BUILD", "build"))
    if main.make_all(results):
        soak.run(main, results, words, soak.WHOLE)


def fuzz_long(results, words):
    main = build.Build(os.environ.get("BUILD", "build"))
    if main.make_all(results):
        fuzz.run(main, results, words, fuzz.LONG_SECONDS)


def main():
    jobs = {"cpu": cpu, "gpu": gpu, "aarch64": aarch64, "bench": bench, "soak": soak_whole, "fuzz": fuzz_long,
            "lint": lint_alone}
    if len(sys.argv) < 2 or sys.argv[1] not in jobs:
        print(__doc__, file=sys.stderr)
        return 2
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # A shell's background job starts with these ignored, and what the tests start would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    start = time.monotonic()
    results = Results()
    jobs[sys.argv[1]](results, sys.argv[2:])
    print("time: %.0f s" % (time.monotonic() - start))
    return results.close()


if __name__ == "__main__":
    sys.exit(main())
