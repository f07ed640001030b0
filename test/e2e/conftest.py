# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share.

`box` is a clean place to run a built program in: a folder of its own, an environment without any NCCL
setting, a log folder, the simulated driver and NCCL in front. Every program has a time limit.

    def test_a_server_runs(box):
        done = box.cli("run", "-p", "none", "-o", "run", "--", box.server, "--requests", "1")
        assert done.code == 0
        report = box.json("report", "run")
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))

from harness import reports  # noqa: E402

TEST_LIMIT_S = 90


class Done:
    """A program that has ended: exit code (negative: by that signal), its output as text."""

    def __init__(self, args, code, out, err):
        self.args, self.code, self.out, self.err = args, code, out, err

    def __repr__(self):
        return "%s\nexit code %s\n--- stdout\n%s\n--- stderr\n%s" % (
            " ".join(map(str, self.args)), self.code, self.out[-6000:], self.err[-6000:])


class Box:
    def __init__(self, folder, build):
        self.dir = folder
        self.build = build
        self.root = ROOT
        self.fake = build / "fake"
        self.shim = build / "libncclshim.so"
        self.command = build / "ncclshim"
        self.server = build / "examples" / "decode_server"
        # The GPU can only write to a file on tmpfs, in the simulator as well.
        self.logs = Path(tempfile.mkdtemp(prefix="ncclshim-test-", dir="/dev/shm"))
        (folder / "home").mkdir()
        self.started = []
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("NCCL", "LD_", "CUDA", "XDG_", "MAKE"))}
        self.env.update(HOME=str(folder / "home"), LD_LIBRARY_PATH=str(self.fake),
                        NCCLSHIM_LOG_DIR=str(self.logs), TMPDIR=str(folder), LC_ALL="C.UTF-8")
        if build.parent != ROOT:
            self.env["NCCLSHIM_PROFILE_PATH"] = str(ROOT / "profiles")  # found by itself beside build/

    def start(self, *args, env=None, **kwargs):
        """A running program (subprocess.Popen) in a process group of its own; output goes to files."""
        merged = dict(self.env)
        for name, value in (env or {}).items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = str(value)
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("cwd", self.dir)
        process = subprocess.Popen([str(a) for a in args], env=merged, start_new_session=True, **kwargs)
        self.started.append(process)
        return process

    def run(self, *args, env=None, timeout=60, **kwargs):
        """Run to the end. Output through files: a child left running can't block us."""
        out_path, err_path = self.dir / ".stdout", self.dir / ".stderr"
        with open(out_path, "wb") as out, open(err_path, "wb") as err:
            process = self.start(*args, env=env, stdout=out, stderr=err, **kwargs)
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                code = None
            kill_group(process)
        done = Done(args, code, out_path.read_text(errors="replace"), err_path.read_text(errors="replace"))
        assert code is not None, "still running after %d s:\n%r" % (timeout, done)
        return done

    def cli(self, *args, **kwargs):
        """The command `ncclshim`."""
        return self.run(self.command, *args, **kwargs)

    def json(self, verb, *args, **kwargs):
        """What `ncclshim VERB --json ...` prints, parsed; it must have gone well."""
        done = self.cli(verb, "--json", *args, **kwargs)
        assert done.code == 0, done
        return json.loads(done.out)

    def calls(self, run):
        """{(captured, bytes): timed all-reduces of all ranks} of a run folder, by the report."""
        return reports.calls(self.json("report", run))

    def preload(self, *args, env=None, **kwargs):
        """Any program with the shim in front, without `ncclshim run`."""
        return self.run(*args, env={"LD_PRELOAD": self.shim, **(env or {})}, **kwargs)

    def profile(self, name, text):
        """Write a profile; returns its path."""
        path = self.dir / (name + ".ini")
        path.write_text(text)
        return path


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


@pytest.fixture(scope="session")
def build():
    folder = Path(os.environ.get("NCCLSHIM_BUILD", ROOT / "build")).resolve()
    assert (folder / "ncclshim").exists(), "%s is not built: make, or make test" % folder
    return folder


@pytest.fixture
def box(tmp_path, build):
    made = Box(tmp_path, build)
    yield made
    for process in made.started:  # what a failed test left
        if process.poll() is None:
            kill_group(process)
    shutil.rmtree(made.logs, ignore_errors=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """No test runs for ever, whatever it waits for."""
    def too_long(number, frame):
        raise TimeoutError("the test ran for more than %d s" % TEST_LIMIT_S)

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(TEST_LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
