# SPDX-License-Identifier: Apache-2.0
"""What the GPU tests share: which machine this is, how a program is run on it, where results go."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test"))
from harness import process  # noqa: E402

ONE_GPU_NCCL = 23003  # the first that allows several ranks on one GPU


def default_nccl_home():
    """Where a real NCCL lies when NCCL_HOME does not say it: torch's own, else the CUDA toolkit's."""
    import glob
    found = [d for p in sys.path for d in glob.glob(p + "/nvidia/nccl")] + [os.environ.get("CUDA_HOME", "/usr/local/cuda")]
    return next((d for d in found if os.path.exists(d + "/lib/libnccl.so.2")), None)


def checked(folder, preload, args):
    """The command under memcheck, which writes what it finds into the folder, a file for each process. Of memory, not
    of API errors: NCCL itself asks for kernels that a library built for some of them does not have. The tool brings a
    library of its own into the program by LD_PRELOAD, and is itself not to run under ours. Tools side by side must not
    look for each other's programs: each process of ours has its own range of ports."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if preload:
        args = ["/bin/sh", "-c", 'LD_PRELOAD="$0${LD_PRELOAD:+:$LD_PRELOAD}" exec "$@"', preload] + list(args)
    return [tool, "--tool", "memcheck", "--report-api-errors", "no", "--target-processes", "all", "--port",
            str(20000 + os.getpid() % 1000 * 20), "--max-connections", "20", "--log-file", os.path.join(folder, "%p.txt")] + list(args)


def json_of(output):
    """The first JSON object in what a verb printed, which may have said other things before; None without one."""
    for brace in re.finditer(r"^\{", output, re.MULTILINE):
        try:
            return json.JSONDecoder().raw_decode(output, brace.start())[0]
        except ValueError:
            pass
    return None


class Place:
    """The machine. `layout` is "N GPUs" (one process each), "one GPU" (all ranks on it, threads of one process) or
    "simulator", or both of the last; every result says which. None: the machine lacks what is needed."""

    def __init__(self, simulate, budget_s, ranks=2, one_gpu=False):
        self.ranks = ranks
        self.build = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
        self.out = os.path.abspath(os.environ.get("OUT", os.path.join(self.build, "gpu-out")))
        os.makedirs(self.out, exist_ok=True)
        self.tmp = tempfile.mkdtemp(prefix="ncclshim-gpu-")
        self.server = os.path.join(self.build, "examples", "decode_server")
        self.command = os.path.join(self.build, "ncclshim")
        self.shim = os.path.join(self.build, "libncclshim.so")
        self.start = time.monotonic()
        self.budget_s = budget_s
        self.log = open(os.path.join(self.out, "log.txt"), "w", encoding="utf-8")
        self.results = []
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("NCCLSHIM", "MAKE")) and k not in ("LD_PRELOAD",)}
        self.env["NCCL_NVLS_ENABLE"] = "0"
        self.env["NCCLSHIM_PROFILE_PATH"] = os.path.join(ROOT, "profiles")
        self.nccl_lib = None
        self.reason = ""
        self.memcheck = os.environ.get("GPU_MEMCHECK")  # a folder: programs run under compute-sanitizer (memcheck.py)
        self.simulated = simulate
        self.one_gpu = one_gpu
        self.layout = self.find_layout()

    def find_layout(self):
        if self.simulated:
            fake = os.path.join(self.build, "fake")
            self.use_nccl(fake)
            if not self.one_gpu:
                return "simulator"
            self.use_nccl(os.path.join(fake, "nccl-23007"))
            self.env.update(NCCL_MULTI_RANK_GPU_ENABLE="1", NCCLSHIM_FAKE_GPUS="1", NCCLSHIM_FAKE_SYNC_LOAD="1")
            return "simulator, one GPU"
        home = os.environ.get("NCCL_HOME") or default_nccl_home()
        if home:
            self.use_nccl(os.path.join(home, "lib"))
        code, out = self.run([self.server, "--probe"], 60)
        match = re.search(r"gpus=(\d+) simulated=(\d) nccl=(\d+)", out)
        if not match:
            self.reason = "decode_server can't be started: " + (out.strip().splitlines() or ["no output"])[-1]
            return None
        self.gpus, self.nccl = int(match.group(1)), int(match.group(3))
        if self.gpus >= self.ranks and not self.one_gpu:
            return "%d GPUs" % self.ranks
        if self.gpus >= 1 and self.nccl >= ONE_GPU_NCCL:
            self.one_gpu = True
            self.env["NCCL_MULTI_RANK_GPU_ENABLE"] = "1"
            # Streams that share a hardware queue wait for one another's heads: with both ranks on one GPU, a
            # call that waits for its peer can then stand in front of that very peer. Give each a queue.
            self.env.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
            return "one GPU"
        self.reason = ("%d GPUs for %d ranks, and NCCL %d is older than 2.30.3: NCCL_HOME=DIR names another"
                       % (self.gpus, self.ranks, self.nccl) if self.gpus else "no GPU here")
        return None

    def use_nccl(self, folder):
        """In front of the loader's path; behind it $BUILD/lib, for libraries that this machine lacks."""
        self.nccl_lib = os.path.join(folder, "libnccl.so.2")
        paths = [folder, self.env.get("LD_LIBRARY_PATH"), os.path.join(self.build, "lib")]
        self.env["LD_LIBRARY_PATH"] = ":".join(p for p in paths if p)

    def server_args(self, *more):
        base = [self.server, "--ranks", str(self.ranks)]
        if self.one_gpu:
            base += ["--one-process", "--one-gpu"]
        return base + [str(m) for m in more]

    def left(self):
        return self.budget_s - (time.monotonic() - self.start)

    def run(self, args, limit_s, env=None):
        """(exit code, output); `timeout` besides our own limit, output through a file, all of it logged."""
        full = dict(self.env)
        full.update(env or {})
        if self.memcheck and not self.simulated:
            limit_s, args = 4 * limit_s, checked(self.memcheck, full.pop("LD_PRELOAD", ""), args)
        args = ["timeout", "-k", "5", str(limit_s)] + [str(a) for a in args]
        begin = time.monotonic()
        code, output = process.run(args, limit_s + 15, full, cwd=self.tmp)
        self.log.write("=== %s %s\n%s--- exit code %s, %.1f s\n" % (
            " ".join("%s=%s" % i for i in sorted((env or {}).items())), " ".join(args), output[-200000:], code,
            time.monotonic() - begin))
        self.log.flush()
        return code, output

    def under_shim(self, name, profile, program, limit_s, env=None, options=()):
        """`ncclshim run`; returns (exit code, output, run folder)."""
        folder = os.path.join(self.tmp, name)
        shutil.rmtree(folder, ignore_errors=True)
        code, output = self.run([self.command, "run", "-p", profile, "-o", folder, *options, "--", *program],
                                limit_s, env)
        return code, output, folder

    def report(self, folder):
        """The parsed `report --json`; None when it failed (the log has its output)."""
        path = folder + ".json"
        with open(path, "wb") as out:
            code = subprocess.run(["timeout", "-k", "5", "60", self.command, "report", "--json", folder], stdout=out,
                                  stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=self.env, check=False).returncode
        if code != 0:
            self.log.write("=== report %s: exit code %s\n" % (folder, code))
            return None
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.log.write("=== report %s\n%s\n" % (folder, text))
        return json.loads(text)

    # ---- results: printed as test/harness/scripts.py reads them --------------------------------

    def verdict(self, name, right, why=""):
        name = "%s [%s]" % (name, self.layout)
        self.results.append({"name": name, "ok": bool(right), "why": "" if right else why})
        print("ok %s" % name if right else "not ok %s: %s" % (name, why), flush=True)
        return bool(right)

    def skip(self, name, why):
        self.results.append({"name": name, "skipped": why})
        print("skip %s: %s" % (name, why), flush=True)

    def save(self, name, text):
        with open(os.path.join(self.out, name), "w", encoding="utf-8") as f:
            f.write(text)

    def close(self):
        self.log.close()
        shutil.rmtree(self.tmp, ignore_errors=True)
        return 1 if any(r.get("ok") is False for r in self.results) else 0


def server_counts(output):
    """What decode_server says it called, per rank."""
    match = re.search(r"calls: (\d+) replays of (\d+) captured all-reduces of (\d+) bytes, (\d+) eager of (\d+) bytes, "
                      r"(\d+) eager of (\d+) bytes", output)
    if not match:
        return None
    keys = ("replays", "calls", "bytes", "prefill", "prefill_bytes", "eager", "eager_bytes")
    return dict(zip(keys, map(int, match.groups())))


def wall_us(output):
    match = re.search(r"wall: ([0-9.]+) us a call", output)
    return float(match.group(1)) if match else None
