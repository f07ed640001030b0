# SPDX-License-Identifier: Apache-2.0
"""What must hold on GPUs besides costs and times: captures stay valid and equal, a process that ends loses nothing,
one that hangs is left alone."""
import os
import re
import shutil
import struct
import tempfile
import time

from harness.reports import all_reduces, is_closed, summary
from loads import Stamps, shape

MID_REPLAY_CALLS = 20  # in the graph of the shape process-mid-replay

def run_shape(place, load, name, profile=None, env=None, limit_s=60):
    """One of test/e2e/clients, with the shim when a profile's text is given: (exit code, output, stamps)."""
    folder = tempfile.mkdtemp(prefix="ncclshim-shape-", dir="/dev/shm")
    try:
        full = dict(env or {})
        if profile is not None:
            full.update(load.shim_env(profile, folder))
        if place.one_gpu:
            full["SHAPES_ONE_GPU"] = "1"
        code, output = place.run([os.path.join(place.build, "clients", "shapes"), name], limit_s, full)
        return code, output, Stamps(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def last(output):
    return (output.strip().splitlines() or ["no output"])[-1]


def captures(place, load, rounds):
    """Updating an executable graph by a second capture of the same work; captures in the strictest mode."""
    if place.ranks != 2:
        place.skip("captures", "for two ranks, not %d" % place.ranks)
        return
    for title, profile, kept in (("without the shim", None, 0), ("every call stamped", "[log]\nsample = 1\n", 100),
                                 ("sample = 3", "[log]\nsample = 3\n", 40)):
        warm = 2 if profile is not None else 0  # one eager call a rank: NCCL connects at its first call
        kept += warm
        code, output, stamps = run_shape(place, load, "capture-update", profile, {"SHAPES_WARM": "1"})
        place.verdict("cuGraphExecUpdate after recapture, " + title, code == 0 and stamps.count() == kept,
                      "exit code %s: %s; %d times, not %d" % (code, last(output), stamps.count(), kept))
    code, output, stamps = run_shape(place, load, "capture-strict", "[log]\nsample = 1\n", {"SHAPES_ROUNDS": str(rounds)})
    kept = rounds * 20 * 2
    place.verdict("%d rounds of strict captures among eager calls" % rounds, code == 0 and stamps.count() == kept,
                  "exit code %s: %s; %d times, not %d" % (code, last(output), stamps.count(), kept))


# The last number is compute-sanitizer's way to pass a signal on.
ENDS = {"kill": (-9, 137, 9), "abort": (-6, 134, 6), "_exit": (0,), "exec": (0,)}


def ends(place, load, times):
    """A process that ends in mid-replay, in each way: its finished calls are there, and no record shows torn."""
    if place.ranks != 2:
        place.skip("ends in mid-replay", "for two ranks, not %d" % place.ranks)
        return
    progress = os.path.join(place.tmp, "progress")
    for end, codes in ENDS.items():
        faults = []
        for _ in range(times):
            if os.path.exists(progress):
                os.unlink(progress)
            code, output, stamps = run_shape(place, load, "process-mid-replay", "[log]\ncapacity = 64K\n",
                                             {"SHAPES_END": end, "SHAPES_PROGRESS": progress, "SHAPES_WARM": "1"})
            try:
                with open(progress, "rb") as f:
                    finished = struct.unpack("<2Q", f.read())
            except (OSError, struct.error):
                faults.append("it did not get there: " + last(output))
                continue
            # In a ring that wrapped, as many as it holds.
            for log in stamps.logs:
                for comm in log.comms:
                    ring = log.rings[comm["ring"]]
                    due = finished[comm["rank"]] * MID_REPLAY_CALLS
                    if max(ring["records"], default=-1) + 1 < due or ring["half"] > 1:
                        faults.append("rank %d: %d of %d, %d torn" % (comm["rank"], len(ring["records"]), due, ring["half"]))
            if code not in codes or min(finished) == 0 or not stamps.logs:
                faults.append("exit code %s, %s replays, %d logs" % (code, finished, len(stamps.logs)))
        place.verdict("%s in mid-replay, %d times: every finished call is there" % (end, times), not faults,
                      "; ".join(faults[:3]))


def killed(place, times):
    """SIGKILL in the middle of a replay: what had finished is in the report, and nothing is torn."""
    good = 0
    for number in range(times):
        program = place.server_args("--requests", 1, "--steps", 40 + 2 * number, "--prefill-calls", 1, "--die-mid-replay",
                                    "--compute-us", 5, "--limit", 35)
        code, output, folder = place.under_shim("killed", "none", program, 40)
        replay = re.search(r"killing itself in replay (\d+) of (\d+) calls", output)
        report = place.report(folder) if replay else None
        if not report:
            place.verdict("SIGKILL in mid-replay %d" % (number + 1), False, "exit code %s: %s" % (code, last(output)))
            return
        calls = int(replay.group(2))
        whole = place.ranks * (int(replay.group(1)) - 1) * calls
        timed = summary(all_reduces(report, captured=True))["timed"]
        torn = report["log"]["torn"]
        good += whole <= timed <= whole + place.ranks * calls and torn == 0 and not is_closed(report) and code in (-9, 137)
    place.verdict("SIGKILL in mid-replay, %d times: every finished call is there, none torn" % times, good == times,
                  "%d of %d" % (good, times))


def stuck(place, load):
    """T03: abort and exit beside a collective that never ends; compute beside communication on one hardware queue."""
    if place.ranks != 2:
        place.skip("a call that never ends", "for two ranks, not %d" % place.ranks)
        return
    program = os.path.join(place.build, "cost", "stuck") + (" --one-gpu" if place.one_gpu else "")
    for end in ("abort", "exit"):
        took = {}
        for shim in (False, True):
            folder = tempfile.mkdtemp(prefix="ncclshim-stuck-", dir="/dev/shm")
            begin = time.monotonic()
            code, output = place.run(["bash", "-c", "echo go | LD_PRELOAD=$TEST_SHIM %s %s" % (program, end)], 20,
                                     {"TEST_SHIM": place.shim if shim else "", "NCCLSHIM_LOG_DIR": folder})
            took[shim] = time.monotonic() - begin if code == 0 else None
            shutil.rmtree(folder, ignore_errors=True)
        if took[False] is None:
            place.skip("%s beside a call that never ends" % end, "it hangs or fails without the shim, too")
            continue
        place.verdict("%s beside a call that never ends is not delayed" % end, took[True] is not None and
                      took[True] < took[False] + 3, "%s s, without the shim %.1f" % (took[True], took[False]))
    if place.one_gpu:
        place.skip("compute beside communication on one hardware queue", "ranks that share a GPU would wait for each other for ever")
        return
    walls = {}
    for queues in ("8", "1"):
        for way in ("bare", "every", "eighth"):
            result = load.run(way, [shape("beside", "eager", beside=20, repeats=3 if place.simulated else 30)],
                              {"CUDA_DEVICE_MAX_CONNECTIONS": queues})
            walls[queues, way] = result.wall("beside") if result.good else None
    print("note: 20 us of compute beside each call, us a call: " + ", ".join(
        "%s queue%s %s %s" % (q, "s" * (q != "1"), way, "-" if w is None else "%.1f" % w) for (q, way), w in walls.items()))
    place.verdict("compute beside communication on one hardware queue goes on", None not in walls.values(), "%s" % walls)
