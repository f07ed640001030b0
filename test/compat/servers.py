# SPDX-License-Identifier: Apache-2.0
"""vLLM's and SGLang's own files for NCCL, taken from their packages when the test runs (nothing of them is kept
in this repository), under the shim: with a real library without a GPU, with the simulated one for the rest."""
import glob
import os
import subprocess
import sys

import cells
import logmaker
import wheels

FILES = {
    "vLLM": ("vllm==0.33.0", "vllm/distributed/device_communicators/pynccl_wrapper.py"),
    "SGLang": ("sglang==0.5.23", "sglang/srt/distributed/device_communicators/pynccl_wrapper.py"),
}
SIMULATED, ROUNDS = "2.30.7", 6


def run(build, results, real):
    for name, (requirement, member) in FILES.items():
        try:
            wrapper = wheels.member(requirement, member)
        except (OSError, subprocess.SubprocessError, ValueError) as fault:
            results.skip("%s's wrapper of NCCL" % name, "%s could not be fetched: %s" % (requirement, fault))
            continue
        title = "%s's wrapper of NCCL (%s)" % (name, requirement)
        attempt(results, title + ", simulated", lambda: simulated(build, wrapper))
        for version in ("2.30.7", "2.32.3"):
            if real.get(version):
                attempt(results, "%s, real %s" % (title, version),
                        lambda: one(build, wrapper, real[version] / "lib" / "libnccl.so.2", 0, None))


def attempt(results, name, what):
    try:
        what()
        results.ok(name)
    except (AssertionError, OSError, subprocess.SubprocessError, ValueError) as fault:
        results.fail(name, str(fault)[:600])


def one(build, wrapper, library, rounds, check):
    with cells.Folder() as logs:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL", "LD_", "CUDA"))}
        env.update(LD_PRELOAD=os.path.abspath(os.path.join(build, "libncclshim.so")), NCCLSHIM_LOG_DIR=str(logs),
                   HOME=str(logs), LD_LIBRARY_PATH=os.path.abspath(os.path.join(build, "fake")) if rounds else "")
        args = [sys.executable, "-B", os.path.join(cells.ROOT, "test", "compat", "pynccl_wrapper.py"), str(wrapper),
                os.path.abspath(library), str(rounds)]
        done = subprocess.run(args, env=env, capture_output=True, text=True, timeout=cells.LIMIT_S)
        assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
        assert "nvalid argument" in done.stdout, done.stdout
        if check:
            assert "sums good" in done.stdout, done.stdout
            check([logmaker.parse(p) for p in glob.glob(str(logs / "*.ncclshim"))])


def check_log(logs):
    assert len(logs) == 1, len(logs)
    assert [(c["wrapped_calls"], c["missed_calls"], c["state"]) for c in logs[0].comms] == [(ROUNDS, 0, 4)] * 2, logs[0].comms
    assert sum(len(r["records"]) for r in logs[0].rings.values()) == 2 * ROUNDS


def simulated(build, wrapper):
    one(build, wrapper, cells.fake_folder(build, SIMULATED) / "libnccl.so.2", ROUNDS, check_log)
