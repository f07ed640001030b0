# SPDX-License-Identifier: Apache-2.0
"""See eight.sh."""
import argparse
import json
import os
import re
import resource
import signal
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from loads import Load, shape  # noqa: E402
from place import Place, json_of  # noqa: E402
from truth import size  # noqa: E402

PROFILES = ("none", "fewer-channels", "decode-graph", "pcie-latency", "sixteen-channels")
SIZES = "8K,42K,256K,4M,64M"
# Seconds a step may take, at most; together under 10 minutes with what starting costs.
LIMITS = {1: 110, 2: 120, 3: 250, 4: 45, 5: 40}


class Eight:
    def __init__(self, place, simulate):
        self.place, self.load, self.simulate = place, Load(place), simulate
        self.text, self.data = "", {}

    def script(self, step, name, *args):
        """Another script of this folder; its verdicts become ours, its results a folder of ours."""
        out = os.path.join(self.place.out, "%d-%s" % (step, name.split(".")[0]))
        args = ["bash", os.path.join(HERE, name), "--ranks", self.place.ranks, "--budget", LIMITS[step] - 15, *args]
        args += ["--simulate"] if self.simulate else []
        args += ["--one-gpu"] if self.place.one_gpu else []
        env = {"OUT": out, "BUILD": self.place.build}
        if "LD_LIBRARY_PATH" in os.environ:  # not ours, which names the library already
            env["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        code, output = self.place.run(args, LIMITS[step], env)
        for line in output.splitlines():
            if line.startswith(("ok ", "not ok ", "skip ")):
                print("%s" % line.replace("ok ", "ok %d: " % step, 1).replace("skip ", "skip %d: " % step, 1), flush=True)
                self.place.results.append({"name": line, "ok": not line.startswith("not ok")})
            elif line:
                self.text += line + "\n"
        if code not in (0, 1):
            self.place.verdict("step %d: %s ends by itself" % (step, name), False, "exit code %s" % code)

    def step_1(self):
        # Each shape plays some 4,000 calls, which takes the simulator long; steps 2 and 4 start as many there.
        self.script(1, "main.sh", "--parts", "killed" if self.simulate else "shapes,killed")

    def step_2(self):
        self.script(2, "cost.sh", "--parts", "cost", "--rounds", "3")

    # ---- profiles ------------------------------------------------------------------------------

    def bench(self, profile):
        """Plays the sizes under a profile; a line of the table."""
        options = ["--calls", "5", "--repeats", "2"] if self.simulate else ["--repeats", "10"]
        code, output = self.place.run([self.place.command, "bench", "-p", profile, "--sizes", SIZES.split(",4M")[0] if
                                       self.simulate else SIZES, "--graph", "--no-stamps", "--ranks", self.place.ranks,
                                       "--json", *options], 20)
        found = json_of(output)
        if code != 0 or not found:
            self.place.verdict("step 3: bench of " + profile, False, "exit code %s: %s" % (code, output.strip()[-200:]))
            return
        self.data[profile] = {row["bytes"]: row["median_ns"] for row in found["rows"]}
        self.text += "%-17s %s\n" % (profile, "  ".join("%s %.2f us" % (size(b), ns / 1e3)
                                                       for b, ns in sorted(self.data[profile].items())))
        self.place.verdict("step 3: bench of %s: every sum is right" % profile, True)

    def step_3(self):
        if self.place.one_gpu:
            self.place.skip("step 3", "settings of eight ranks on one GPU say nothing about eight GPUs")
            return
        for profile in PROFILES[:1] if self.simulate else PROFILES:
            self.bench(profile)
        self.compare(self.tune() or "fewer-channels")

    def tune(self):
        """The profile that a search over the decode workload found."""
        place = self.place
        code, _ = place.run([place.command, "tune", "--help"], 10)
        if code != 0 or self.simulate:
            place.skip("step 3: tune", "too long for the simulator" if self.simulate else "there is no such verb")
            return None
        program = place.server_args("--requests", 1, "--steps", 30, "--prefill-calls", 2, "--limit", 25)
        code, output, recorded = place.under_shim("decode", "none", program, 30)
        winner = os.path.join(place.out, "3-winner.ini")
        code, output = place.run([place.command, "tune", "--from", recorded, "--budget", "150s", "--write", winner,
                                  "-o", os.path.join(place.tmp, "search")], 175)
        place.save("3-tune.txt", output)
        place.verdict("step 3: tune ends within its budget", code in (0, 1), "exit code %s: %s" % (code, output[-200:]))
        return winner if os.path.exists(winner) else None

    def compare(self, winner):
        place = self.place
        program = place.server_args("--requests", 2, "--steps", 3 if self.simulate else 60, "--limit", 25)
        code, output = place.run([place.command, "ab", "-p", "none", "-p", winner, "-n", 1 if self.simulate else 3, "--timeout",
                                  30, "--metric", "tokens/s: ([0-9.]+)", "-o", os.path.join(place.tmp, "ab"), "--",
                                  *program], 70)
        place.save("3-ab.txt", output)
        self.text += output if not self.simulate else ""
        place.verdict("step 3: ab of none and %s" % os.path.basename(winner), code in (0, 1), "exit code %s: %s" % (
            code, output[-200:]))

    # ---- skew ----------------------------------------------------------------------------------

    def step_4(self):
        self.script(4, "cost.sh", "--parts", "late")
        program = self.place.server_args("--requests", 1, "--steps", 3 if self.simulate else 60, "--delay-rank", 1,
                                         "--delay-us", 200, "--calls", 20, "--prefill-calls", 1, "--limit", 25)
        code, output, folder = self.place.under_shim("skew", "none", program, 30)
        report = self.place.report(folder) if code == 0 else None
        if not report:
            self.place.verdict("step 4: a server with a late rank", False, "exit code %s: %s" % (code, output[-200:]))
            return
        _, text = self.place.run([self.place.command, "report", folder], 20)
        self.place.save("4-skew-report.txt", text)
        self.text += text
        hints = [h["text"] for h in report["hints"] if h["key"] == "straggler"]
        if self.simulate:
            return
        self.place.verdict("step 4: the report names rank 1 as the one that comes late",
                           any(re.search(r"\brank 1\b", h) for h in hints), "%s" % hints)

    # ---- the collector -------------------------------------------------------------------------

    def step_5(self):
        """A process for each rank, alone in its communicator, so that nothing but stamps runs on its GPU."""
        place = self.place
        # Some 2.5 us a call; servers that share a GPU take turns.
        repeats = 3 if self.simulate else 3000 if place.layout.endswith("GPUs") else 400
        logs = tempfile.mkdtemp(prefix="ncclshim-eight-", dir="/dev/shm")
        folder = os.path.join(place.tmp, "collected")
        env = dict(place.env, NCCLSHIM_LOG_DIR=logs, NCCL_DEBUG="")
        ready = ["timeout", "-k", "5", str(LIMITS[5] - 5)]
        collector = subprocess.Popen(ready + [place.command, "collect", "-o", folder], env=env,
                                     stdin=subprocess.DEVNULL, stdout=place.log, stderr=place.log)
        try:
            time.sleep(0.5)
            start = time.monotonic()
            servers = [subprocess.Popen(ready + [self.load.program, "--ranks", "1", "--limit", str(LIMITS[5] - 10),
                                                 shape("graph", "graph", bytes=4, calls=20 if self.simulate else 1000,
                                                       repeats=repeats)],
                                        env=dict(env, LD_PRELOAD=place.shim, CUDA_VISIBLE_DEVICES=str(
                                            rank if place.layout.endswith("GPUs") else 0)),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=place.log)
                       for rank in range(place.ranks)]
            codes = [s.wait() for s in servers]
            took = time.monotonic() - start
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            collector.send_signal(signal.SIGTERM)
            collector.wait(20)
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            busy = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        finally:
            collector.kill()
            collector.wait()
            shutil.rmtree(logs, ignore_errors=True)
        report = place.report(folder)
        if any(codes) or not report:
            place.verdict("step 5: collector with %d servers" % place.ranks, False, "exit codes %s" % codes)
            return
        log, disk = report["log"], sum(os.stat(os.path.join(folder, f)).st_blocks * 512 for f in os.listdir(folder))
        self.text += "collector: %d processes, %d calls, %d timed, %d lost in %.1f s (start-up included), %.2f s of CPU, " \
                     "run folder %d KiB\n" % (place.ranks, log["issued"], log["timed"], log["lost"], took, busy, disk >> 10)
        wanted = place.ranks * ((repeats + 5) * (20 if self.simulate else 1000) + 1)
        place.verdict("step 5: every record of %d rings is kept or counted as lost" % place.ranks,
                      log["timed"] + log["lost"] == wanted, "%d and %d of %d" % (log["timed"], log["lost"], wanted))
        place.verdict("step 5: the collector uses less than one core", busy < took, "%.2f s in %.1f s" % (busy, took))


def main():
    parser = argparse.ArgumentParser(description="eight ranks; see eight.sh")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--one-gpu", action="store_true", help="all ranks on one GPU even where there are more")
    parser.add_argument("--ranks", type=int, default=0, help="default 8, or 4 on 4 to 7 GPUs")
    parser.add_argument("--steps", default="1,2,4,5,3", help="in this order (1,2,4,5,3: the longest last)")
    opt = parser.parse_args()
    place = Place(opt.simulate, 590, opt.ranks or 8, opt.one_gpu)
    if not (opt.simulate or opt.ranks or opt.one_gpu) and 4 <= getattr(place, "gpus", 0) < 8:
        place.close()
        place = Place(False, 590, 4)
    if place.layout is None:
        place.close()
        print("skip eight: " + place.reason)
        return 77
    if place.one_gpu:
        place.env.setdefault("NCCL_MAX_CTAS", "2")  # or the kernels of eight ranks don't fit it together
    eight = Eight(place, opt.simulate)
    for step in opt.steps.split(","):
        begin = time.monotonic()
        getattr(eight, "step_" + step)()
        print("note: step %s took %.0f s" % (step, time.monotonic() - begin), flush=True)
    label = place.layout + (": no figure of these means anything" if opt.simulate else "")
    text = "layout: %s, %d ranks; NCCL %s\n%s" % (label, place.ranks, place.nccl_lib, eight.text)
    print(text, end="", flush=True)
    place.save("eight.txt", text)
    place.save("eight.json", json.dumps({"layout": label, "ranks": place.ranks, "profiles_ns": eight.data,
                                         "results": place.results}))
    return place.close()


if __name__ == "__main__":
    sys.exit(main())
