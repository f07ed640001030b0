# SPDX-License-Identifier: Apache-2.0
"""Long runs on the simulator, in which nothing may grow: `make soak`; `make test` runs a short one.

Each scene starts real servers and the real command, samples what their processes hold (measure.py) and
prints one line for each thing that must not grow, with the figures.
"""
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import threading

from . import measure

# How much of everything. The short one is over in seconds; whole: some minutes. open_logs: so many more may happen to
# be open in all late samples than in an early one; among a thousand servers there is always a moment without.
SHORT = dict(calls=1_500_000, communicators=8_000, restarts=12, laps=1_000, verbs=3, open_logs=3)
WHOLE = dict(calls=10_000_000, communicators=12_000, restarts=1_000, laps=2_000, verbs=100, open_logs=0)

# What is allowed between the first and the last quarter of a run.
SERVER_KIB = 256
COLLECTOR_KIB = 512  # the log of a living server takes half of it, as long as it lives
# Half a KiB stays of a process that has ended; run.json, which names them all, is made in memory each time,
# and libc keeps what that took at most.
ENDED_PROCESS_KIB = 1.5

RANKS, CAPTURED = 2, 122
LIMIT_S = 3600


class Scene:
    """A folder of its own, logs on tmpfs, an environment without any setting, and what was started."""

    def __init__(self, build):
        self.build = build
        self.dir = tempfile.mkdtemp(prefix="ncclshim-soak-")
        self.logs = tempfile.mkdtemp(prefix="ncclshim-soak-", dir="/dev/shm")
        self.run = os.path.join(self.dir, "run")
        self.started = []
        self.env = dict(build.env(), LD_LIBRARY_PATH=self.path("fake"), NCCLSHIM_FAKE_PACE="0", HOME=self.dir,
                        NCCLSHIM_LOG_DIR=self.logs, NCCLSHIM_PROFILE_PATH=os.path.abspath("profiles"), LC_ALL="C.UTF-8")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.left():
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        for process in self.started:
            process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.logs, ignore_errors=True)

    def left(self):
        """Processes that we started, and theirs: all are told our folder of logs, or one below it."""
        return measure.started_with("NCCLSHIM_LOG_DIR=" + self.logs)

    def path(self, *parts):
        return os.path.abspath(os.path.join(self.build.dir, *parts))

    def start(self, *args, out=subprocess.DEVNULL, **env):
        process = subprocess.Popen([str(a) for a in args], env=dict(self.env, **env), cwd=self.dir,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.started.append(process)
        return process

    def server(self, steps, *more):
        """One process with a rank on each of two GPUs; it plays RANKS * (CAPTURED * steps + 1) calls."""
        return [self.path("examples", "decode_server"), "--one-process", "--requests", 1, "--steps", steps,
                "--calls", CAPTURED, "--bytes", 256, "--prefill-calls", 0, "--prefill-bytes", 256, "--compute-us", 0,
                "--limit", LIMIT_S, *more]

    def shim(self, profile="none"):
        return {"LD_PRELOAD": self.path("libncclshim.so"), "NCCLSHIM_PROFILE": profile}

    def profile(self, name, text):
        path = os.path.join(self.dir, name + ".ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def command(self, *args):
        return subprocess.run([self.path("ncclshim"), *map(str, args)], env=self.env, cwd=self.dir, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def report(self, what):
        return json.loads(self.command("report", "--json", what).stdout)

    def child_of(self, process):
        return measure.wait_for(lambda: measure.children(process.pid))[0]


def files_in(folder):
    return sum(len(files) for _, _, files in os.walk(folder))


class Told:
    """Lines of one scene."""

    def __init__(self, results, scene):
        self.results, self.scene = results, scene

    def line(self, what, wrong, figures):
        name = "soak, %s: %s" % (self.scene, what)
        if wrong:
            self.results.fail(name, "%s (%s)" % (wrong, figures))
        else:
            self.results.ok("%s: %s" % (name, figures))

    def growth(self, what, sampler, own_kib, settled=0.3, logs=0):
        """`logs`: so many may be open at one moment more than at another, each with a descriptor."""
        growth = measure.Growth(sampler.samples, settled)
        self.line(what, growth.wrong(own_kib, logs), growth.text())

    def equal(self, what, wanted, found):
        self.line(what, "" if wanted == found else "expected %s" % (wanted,), "%s" % (found,))

    def nothing_left(self, scene):
        """Neither processes, nor logs that were taken over."""
        left = scene.left()
        self.line("what is left", "something is" if left or files_in(scene.logs) else "",
                  "%d processes, %d files below the log folder" % (len(left), files_in(scene.logs)))


# ---- scenes --------------------------------------------------------------------------------------

def watched(told, s, profile, steps):
    """One server under `ncclshim run` to its end, neither of which may grow. The `log` of the report."""
    run = s.start(s.path("ncclshim"), "run", "-p", profile, "-o", s.run, "--", *s.server(steps))
    server = measure.Sampler(s.child_of(run), 0.01)
    collector = measure.Sampler(run.pid, 0.01)
    told.equal("exit code", 0, run.wait(LIMIT_S))
    told.growth("the server", server, SERVER_KIB)
    told.growth("the collector", collector, COLLECTOR_KIB)
    return s.report(s.run)["log"]


def replays(build, results, scale):
    """One server under `ncclshim run`."""
    steps = scale["calls"] // (RANKS * CAPTURED) + 1
    told = Told(results, "{:,} replayed calls".format(RANKS * CAPTURED * steps))
    with Scene(build) as s:
        log = watched(told, s, "none", steps)
        told.equal("calls timed, lost", (RANKS * (CAPTURED * steps + 1), 0), (log["timed"], log["lost"]))
        told.nothing_left(s)
        told.equal("files in the run folder", 3, files_in(s.run))


def communicators(build, results, scale):
    """Made and destroyed one after the other, in one process that nobody collects from."""
    rounds = scale["communicators"]
    told = Told(results, "{:,} communicators".format(rounds * RANKS))
    with Scene(build) as s:
        server = s.start(s.path("clients", "shapes"), "birth-thousands", SHAPES_ROUNDS=str(rounds), **s.shim())
        sampler = measure.Sampler(server.pid, 0.01)
        told.equal("exit code", 0, server.wait(LIMIT_S))
        # Each takes the next of 4,096 places: until all were used once, memory grows. Told by time, on a machine that may be busy.
        told.growth("the server", sampler, SERVER_KIB, settled=0.6)
        told.equal("logs", 1, files_in(s.logs))


def restarts(build, results, scale):
    """Servers that come and go under one `ncclshim collect`, each under another profile than the one before."""
    count = scale["restarts"]
    told = Told(results, "{:,} server restarts".format(count))
    profiles = ["none", "fewer-channels", "pcie-latency", "sixteen-channels", "no-p2p"]
    turns = itertools.islice(itertools.cycle(profiles), count)
    with Scene(build) as s:
        said = os.path.join(s.dir, "said")
        with open(said, "w", encoding="utf-8") as out:
            collect = s.start(s.path("ncclshim"), "collect", "-o", s.run, out=out)
        measure.wait_for(lambda: os.path.exists(os.path.join(s.run, "run.json")))
        sampler = measure.Sampler(collect.pid, 0.02)
        codes = [s.start(*s.server(3), **s.shim(profile)).wait(LIMIT_S) for profile in turns]
        measure.wait_for(lambda: not files_in(s.logs))
        collect.terminate()
        told.equal("exit codes", {0}, set(codes) | {collect.wait(60)})
        told.equal("lines that the collector said", 2, measure.read(said).count("\n"))
        report = s.report(s.run)
        log = report["log"]
        # Now none is open, now three, of some 700 KiB each: that a server has ended is seen a moment later.
        told.growth("the collector", sampler, (3 + scale["open_logs"]) * COLLECTOR_KIB + count * ENDED_PROCESS_KIB,
                    logs=scale["open_logs"])
        told.equal("calls timed, lost", (count * RANKS * (CAPTURED * 3 + 1), 0), (log["timed"], log["lost"]))
        told.equal("different settings", len(profiles), len({p["settings_digest"] for p in report["processes"]}))
        told.nothing_left(s)
        told.equal("files in the run folder", 1 + 2 * count, files_in(s.run))


def laps(build, results, scale):
    """A ring of 1,024 records that is written over and over: each record is either timed or counted as lost."""
    steps = scale["laps"] * 1024 // CAPTURED
    told = Told(results, "{:,} laps of a ring".format(scale["laps"]))
    with Scene(build) as s:
        small = s.profile("small", "[profile]\ndescription = a small ring\n[log]\ncapacity = 1K\n")
        log = watched(told, s, small, steps)
        told.equal("timed and lost together", RANKS * (CAPTURED * steps + 1), log["timed"] + log["lost"])
        told.line("lost", "", "%d" % log["lost"])
        told.nothing_left(s)


# A verb with its arguments, and the exit codes that are good.
VERBS = [(line, {0}) for line in (
    "report {run}", "report --json {run}", "report --html {out}.html {run}", "report {logs}",
    "report --since 1s --op all_reduce {logs}", "show --run {run}", "show fewer-channels", "check fewer-channels",
    "compare {run} {run}", "compare --json {run} {logs}", "top --batch --frames 3 --interval 0.1 {logs}",
    "export --format csv -o {out}.csv {logs}", "export --format json -o {out}.json {logs}",
    "export --format chrome -o {out}.trace {logs}", "export --format prometheus -o {out}.prom {run}",
    "profiles", "clean --log-dir {logs}")] + [("doctor --pid {pid}", {0, 1})]


def verbs(build, results, scale):
    """All verbs at once, in loops, on a run folder that is collected into and on the logs of servers at work: one
    that stays, and others that come and go."""
    rounds = scale["verbs"]
    told = Told(results, "{:,} calls of verbs".format(rounds * len(VERBS)))
    with Scene(build) as s:
        collect = s.start(s.path("ncclshim"), "collect", "-o", s.run)
        shim = dict(s.shim(s.profile("small", "[log]\ncapacity = 128K\n")), NCCLSHIM_FAKE_PACE="1")
        s.start(*s.server(3), **shim).wait(LIMIT_S)  # so that there is something in the run folder
        measure.wait_for(lambda: files_in(s.run) == 3)
        stays = s.start(*s.server(25, "--hold"), **shim)
        measure.wait_for(lambda: files_in(s.logs))
        sampled = measure.Sampler(stays.pid, 0.02), measure.Sampler(collect.pid, 0.02)
        bad = []
        threads = [threading.Thread(target=repeat, args=(s, verb, stays.pid, rounds, bad)) for verb in VERBS]
        for t in threads:
            t.start()
        others = 0
        while any(t.is_alive() for t in threads):
            if s.start(*s.server(50), **shim).wait(LIMIT_S):
                bad.append("a server failed")
            others += 1
        told.line("exit codes", bad[0] if bad else "",
                  "%d not as they should be, %d servers meanwhile" % (len(bad), others))
        measure.wait_for(lambda: files_in(s.logs) == 1)
        stays.terminate()
        told.equal("exit code of the server", 0, stays.wait(60))
        collect.terminate()
        told.equal("exit code of the collector", 0, collect.wait(60))
        told.growth("the server", sampled[0], SERVER_KIB)
        told.growth("the collector", sampled[1], (3 + scale["open_logs"]) * COLLECTOR_KIB + others * ENDED_PROCESS_KIB,
                    logs=scale["open_logs"])
        told.equal("lost", 0, s.report(s.run)["log"]["lost"])
        told.nothing_left(s)
        told.equal("files in the run folder", 1 + 2 * (2 + others), files_in(s.run))


def repeat(scene, verb, pid, rounds, bad):
    line, good = verb
    out = os.path.join(scene.dir, "out-%d" % VERBS.index(verb))
    words = line.format(run=scene.run, logs=scene.logs, pid=pid, out=out).split()
    for _ in range(rounds):
        done = scene.command(*words)
        if done.returncode not in good:
            bad.append("%s: exit code %d: %s" % (" ".join(words), done.returncode, done.stderr.decode()[-300:].strip()))


SCENES = [replays, communicators, restarts, laps, verbs]


def run(build, results, words, scale):
    for scene in SCENES:
        if words and not any(w in "soak " + scene.__name__ for w in words):
            continue
        try:
            scene(build, results, scale)
        except (OSError, TimeoutError, subprocess.SubprocessError, ValueError, KeyError) as e:
            results.fail("soak, " + scene.__name__, repr(e))
