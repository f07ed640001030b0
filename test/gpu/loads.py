# SPDX-License-Identifier: Apache-2.0
"""Running test/gpu/cost/load, bare or watched in one of several ways, and reading what the shim logged."""
import glob
import itertools
import json
import os
import shutil
import statistics
import sys
import tempfile

from place import ROOT

sys.path.insert(0, os.path.join(ROOT, "test", "e2e"))
import logmaker  # noqa: E402

CAPTURED, PART = 1, 2
LIMIT_S = 35
KIT = os.path.abspath(os.environ.get("GPU_KIT", os.path.join(ROOT, ".gpu")))


def shape(name, kind, **keys):
    return ":".join([name, kind] + ["%s=%s" % item for item in keys.items()])


def find_cupti():
    """libcupti of the toolkit or of torch's wheels; its major version is not ours to choose."""
    places = [os.path.join(KIT, "cupti"), "/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64",
              "/usr/local/cuda/targets/x86_64-linux/lib"]
    places += [p + tail for p in sys.path for tail in ("/nvidia/cu13/lib", "/nvidia/cuda_cupti/lib")]
    found = [f for p in places for f in sorted(glob.glob(p + "/libcupti.so.1[0-9]"))]
    return found[0] if found else None


class Load:
    """The program, and each way to watch it: `run(way, shapes)` gives what it printed and what was kept."""

    def __init__(self, place):
        self.place = place
        self.program = os.path.join(place.build, "cost", "load")
        self.inspector = os.path.join(KIT, "inspector", "libnccl-profiler-inspector.so")
        self.activity = os.path.join(place.build, "cost", "libcupti_activity.so")
        self.cupti = find_cupti()
        self.profiles = {}

    def profile(self, name, text):
        path = os.path.join(self.place.tmp, name + ".ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def lacking(self, way):
        """Why a way can't be had here; None when it can."""
        if way in ("inspector", "cupti", "cupti+every") and self.place.simulated:
            return "not on the simulator"
        if way == "inspector" and not os.path.exists(self.inspector):
            return "no %s (GPU_KIT names the folder)" % self.inspector
        if way.startswith("cupti") and not (self.cupti and os.path.exists(self.activity)):
            return "no libcupti, or the build had no cupti.h"
        return None

    def shim_env(self, text, folder, name="log"):
        return {"LD_PRELOAD": self.place.shim, "NCCLSHIM_PROFILE": self.profile(name, text), "NCCLSHIM_LOG_DIR": folder}

    def env(self, way, folder, settings=""):
        # Ranks on one GPU share its ring.
        log = "[log]\ncapacity = %s\n" % ("512K" if self.place.ranks > 4 else "128K")
        env = {}
        if way == "off":
            env = {"LD_PRELOAD": self.place.shim, "NCCLSHIM_LOG": "off"}
        elif way in ("every", "cupti+every"):
            env = self.shim_env(log + settings, folder, "every")
        elif way == "eighth":
            env = self.shim_env(log + "sample = 8\n" + settings, folder, "eighth")
        elif way == "inspector":
            env = {"NCCL_PROFILER_PLUGIN": self.inspector, "NCCL_INSPECTOR_ENABLE": "1",
                   "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS": "500", "NCCL_INSPECTOR_DUMP_DIR": folder,
                   "LD_LIBRARY_PATH": "%s:%s" % (self.place.env["LD_LIBRARY_PATH"], os.path.join(KIT, "cudart"))}
        if way.startswith("cupti"):
            env.update(CUDA_INJECTION64_PATH=self.activity, CUPTI_LIB=self.cupti,
                       CUPTI_ACTIVITY_OUT=os.path.join(folder, "kernels"))
        return env

    def run(self, way, shapes, env=None, settings="", limit_s=LIMIT_S, processes=False):
        place = self.place
        # The GPU can only write to a file on tmpfs.
        folder = tempfile.mkdtemp(prefix="ncclshim-cost-", dir="/dev/shm")
        try:
            full = self.env(way, folder, settings)
            full.update(env or {})
            args = [self.program, "--ranks", place.ranks, "--limit", limit_s - 5]
            if place.one_gpu:
                args.append("--one-gpu")
            elif processes:
                args.append("--processes")
            code, output = place.run(args + list(shapes), limit_s, full)
            return Result(way, code, output, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class Result:
    def __init__(self, way, code, output, folder):
        self.way, self.shapes, self.calls, self.ranks, self.gpu = way, {}, 0, 0, None
        for line in output.splitlines():
            if line.startswith('{"shape"'):
                found = json.loads(line)
                self.shapes[found["shape"]] = found
            elif line.startswith('{"calls"'):
                found = json.loads(line)
                self.calls, self.ranks, self.gpu, self.nccl = (found[k] for k in ("calls", "ranks", "gpu", "nccl"))
        self.good = code == 0 and self.calls > 0
        self.why = "" if self.good else "exit code %s: %s" % (code, (output.strip().splitlines() or ["no output"])[-1])
        self.kernels, self.stamps, self.kept = {}, None, None
        if not self.good:
            return
        if way in ("every", "eighth", "cupti+every"):
            self.stamps = Stamps(folder)
            self.kept = self.stamps.count()
        if way.startswith("cupti"):
            for path in glob.glob(os.path.join(folder, "kernels.*")):
                self.read_kernels(path)
        if way == "inspector":
            self.kept = sum(read(f).count('"coll_perf"') for f in glob.glob(folder + "/**/*", recursive=True)
                            if os.path.isfile(f))

    def read_kernels(self, path):
        """NCCL's kernels of each process' streams in order of time: {(path, stream): [(start_ns, us)]}."""
        for line in read(path).splitlines()[1:]:
            what, stream, start, end = line.split()
            if what == "nccl":
                self.kernels.setdefault((path, int(stream)), []).append((int(start), (int(end) - int(start)) / 1e3))
        for found in self.kernels.values():
            found.sort()
        if self.way == "cupti":
            self.kept = sum(map(len, self.kernels.values()))

    def wall(self, name):
        """Median wall time per call, in us."""
        return statistics.median(self.shapes[name]["wall_us"])


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


class Stamps:
    """The shim's log of one process, read by the tests' own parser."""

    def __init__(self, folder):
        self.logs = [logmaker.parse(f) for f in sorted(glob.glob(folder + "/*.ncclshim"))]
        self.torn = sum(ring["half"] for log in self.logs for ring in log.rings.values())
        floors = [int.from_bytes(n["body"][16:20], "little") for log in self.logs for n in log.notes
                  if n["type"] == logmaker.NOTE_GPU]
        self.floor_us = statistics.median(floors) / 1e3 if floors else 0.0
        # {(rank, bytes, capture number; 0 = eager): {(index in the capture, run): us}}
        self.found = {}
        for log in self.logs:
            for ring in log.rings.values():
                for site, start, end, turn in ring["records"].values():
                    s = log.sites[site]
                    key = (log.comms[s["comm"]]["rank"], s["bytes"], s["capture"] if s["flags"] & CAPTURED else 0)
                    self.found.setdefault(key, {})[s["index"] if key[2] else 0, turn] = (end - start) / 1e3

    def count(self):
        return sum(map(len, self.found.values()))

    def eager(self, rank, nbytes):
        """us of the eager calls of that size, in the order they were made."""
        calls = self.found.get((rank, nbytes, 0), {})
        return [calls[key] for key in sorted(calls, key=lambda k: k[1])]

    def graphs(self, rank):
        """For each captured graph of a rank, in the order of capture: {(index, run): us}."""
        return [self.found[key] for key in sorted(self.found, key=lambda k: k[2]) if key[0] == rank and key[2]]

    def median(self, calls):
        values = list(calls.values()) if isinstance(calls, dict) else calls
        return statistics.median(values) if values else None


def match_streams(kernels, per_rank):
    """Which stream is which rank's, where only the streams' numbers are known: the order in which fewest calls
    lie outside of their kernels' times. {rank: [kernel us]} or None when the numbers of calls differ."""
    streams = [[us for _, us in found] for found in kernels.values()]
    best = None
    for order in itertools.permutations(streams, len(per_rank)) if len(per_rank) <= 4 else []:
        if any(len(k) != len(s) for k, s in zip(order, per_rank)):
            continue
        bad = sum(k > s for ks, ss in zip(order, per_rank) for k, s in zip(ks, ss))
        if best is None or bad < best[0]:
            best = (bad, order)
    return dict(enumerate(best[1])) if best else None
