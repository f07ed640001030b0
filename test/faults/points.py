# SPDX-License-Identifier: Apache-2.0
"""Each call that the shim makes, failing in turn: which points there are, and one point tried.

The points are produced: a run with libfaults.so (faults.c) lists what the shared object calls, how often, and
how each can fail. A point is a work, a function, the number of a call and a failure. A program that runs under
the shim while that call fails must end with the exit code and the output that it has without the shim; on
stderr one line of the shim's may be added; and what log there is must be read, or refused, in order.
"""
import glob
import os
import shutil
import subprocess
import tempfile
from collections import namedtuple

Point = namedtuple("Point", "work function nth how")
LIMIT_S = 20
MEMCHECK = ["valgrind", "-q", "--error-exitcode=99"]
SERVER = ["--one-process", "--ranks", "2", "--requests", "2", "--steps", "3", "--calls", "4",
          "--prefill-calls", "2", "--prefill-bytes", "4096", "--compute-us", "0"]
PROFILE = """[profile]
description = Something of every section
inherit = base
[env]
NCCL_P2P_LEVEL = SYS
[comm]
max_ctas = 16
[comm two]
ranks = 2
NCCL_ALGO = ring
[tune]
allreduce 0-64K = ring ll channels=2
[log]
capacity = 1K
"""
BASE = "[profile]\ndescription = To be inherited\n[env]\nNCCL_BUFFSIZE = 1048576\n"


class Faults:
    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.dir = tempfile.mkdtemp(prefix="ncclshim-faults-", dir="/dev/shm")
        for name, text in (("all.ini", PROFILE), ("base.ini", BASE)):
            with open(os.path.join(self.dir, name), "w", encoding="utf-8") as f:
                f.write(text)
        server = [os.path.join(self.build, "examples/decode_server")] + SERVER
        shapes = os.path.join(self.build, "clients/shapes")
        self.works = {
            "server": (server, "all"),
            "untuned": (server, None),
            "wrong-profile": (server, "no-such-profile"),
            "births": ([shapes, "birth-ways"], "all"),
            "groups": ([shapes, "group-two-comms"], None),
            "captures": ([shapes, "capture-twice"], None),
        }
        self.under = []  # a command in front of the program
        self.wanted = {}
        self.lines_said = {}  # by the shim, when nothing fails

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def env(self, work, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL", "LD_", "CUDA", "XDG_"))}
        env.update(LD_LIBRARY_PATH=os.path.join(self.build, "fake"), NCCLSHIM_FAKE_PACE="0", HOME=self.dir,
                   NCCLSHIM_PROFILE_PATH=self.dir, LC_ALL="C.UTF-8", **more)
        if self.works[work][1]:
            env["NCCLSHIM_PROFILE"] = self.works[work][1]
        return env

    def run(self, work, env):
        """(exit code, stdout but for its times, stderr)"""
        try:
            limit = LIMIT_S * (6 if self.under else 1)
            done = subprocess.run(self.under + self.works[work][0], env=env, cwd=self.dir, capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return "still running after %d s" % limit, "", ""
        out = [line for line in done.stdout.decode("utf-8", "replace").splitlines(True)
               if not line.startswith("tokens/s")]
        return done.returncode, "".join(out), done.stderr.decode("utf-8", "replace")

    def without(self, work):
        """What a work gives without the shim."""
        if work not in self.wanted:
            self.wanted[work] = self.run(work, self.env(work))
        return self.wanted[work]

    def under_shim(self, work, logs, **more):
        return self.env(work, NCCLSHIM_LOG_DIR=logs, LD_PRELOAD=":".join(
            os.path.join(self.build, name) for name in ("libncclshim.so", "faults/libfaults.so")), **more)

    def functions(self, work):
        """{function: (calls, [failures])}; failures is None where faults.h has no row."""
        path = os.path.join(self.dir, "list-" + work)
        code, out, err = self.run(work, self.under_shim(work, self.dir + "/logs-" + work,
                                                        NCCLSHIM_FAULTS_LIST=path))
        assert (code, out) == self.without(work)[:2], (work, code, out, err)
        self.lines_said[work] = len(err.splitlines())
        found = {}
        with open(path, encoding="utf-8") as f:
            for line in f:
                name, calls, *hows = line.split()
                found[name] = (0, None) if calls == "unknown" else (int(calls), hows)
        return found

    def points(self, work, most):
        """Up to `most` calls of each function (the first ones, the last, some between), every failure of each."""
        functions = self.functions(work)
        unknown = [name for name, (_, hows) in functions.items() if hows is None]
        assert not unknown, "the shim calls these; say in test/faults/faults.h how they fail: %s" % unknown
        points = []
        for name, (calls, hows) in sorted(functions.items()):
            for how in hows if calls or name.startswith("cu") else []:
                if how == "missing":
                    points.append(Point(work, name, "1", how))
                    continue
                points += [Point(work, name, str(n), how) for n in chosen(calls, most)]
                if calls:
                    points.append(Point(work, name, "1+", how))
        # the device is lost at some moment: nothing of the driver works from there on
        calls = sum(calls for name, (calls, _) in functions.items() if name.startswith("cu"))
        points += [Point(work, "cu*", "%d+" % n, "700!") for n in chosen(calls, 8 * most)]
        return points

    def all_points(self, most):
        return [p for work in self.works for p in self.points(work, most)]

    def trial(self, point):
        """None, or what is wrong."""
        logs = tempfile.mkdtemp(prefix="point-", dir=self.dir) + "/logs"
        try:
            env = self.under_shim(point.work, logs, NCCLSHIM_FAULTS="%s:%s:%s" % point[1:])
            return self.judge(point, self.run(point.work, env)) or self.judge_log(logs)
        finally:
            shutil.rmtree(os.path.dirname(logs), ignore_errors=True)

    def judge(self, point, got):
        wanted = self.without(point.work)
        if got[0] != wanted[0]:
            return "ended with %s, not %s\n%s%s" % (got[0], wanted[0], got[1], got[2])
        if got[1] != wanted[1]:
            return "its output is not\n%s but\n%s" % (wanted[1], got[1])
        if self.under:  # several processes, each with its line
            return got[2] if "==" in got[2] else None
        lines = got[2].splitlines()
        # what fails for good may keep a profile from being read and a log from being made: a line each
        more = 2 if "+" in point.nth else 1
        if len(lines) > self.lines_said[point.work] + more or any(not line.startswith("ncclshim: ") for line in lines):
            return "stderr has more than a line of the shim's:\n" + got[2]
        return None

    def judge_log(self, logs):
        for log in glob.glob(logs + "/*.ncclshim"):
            done = subprocess.run([self.build + "/ncclshim", "report", log], env=dict(os.environ, HOME=self.dir),
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False)
            if done.returncode not in (0, 1, 2):
                return "the report of its log ended with %d\n%s" % (done.returncode, done.stderr.decode())
        return None


def chosen(calls, most):
    """Numbers of calls to fail: all where they are few, else first ones, steps in between, the last."""
    if calls <= most:
        return list(range(1, calls + 1))
    first = most // 2
    steps = most - first
    return sorted(set(range(1, first + 1)) | {first + (calls - first) * k // steps for k in range(1, steps + 1)})
