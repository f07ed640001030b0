# SPDX-License-Identifier: Apache-2.0
"""See main.sh."""
import argparse
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from costs import Costs  # noqa: E402
from place import ROOT, Place, server_counts  # noqa: E402
from harness.reports import all_reduces, comm_ranks, is_closed, summary  # noqa: E402


def both_ways(place):
    """torch.distributed (linked) and pynccl_client (ctypes) in one process, by name and by absolute path."""
    if place.ranks != 2:
        place.skip("torch.distributed and pynccl", "for two ranks, not %d" % place.ranks)
        return
    # A second file, so that the absolute path really is a second copy beside the one torch is linked to.
    copy = os.path.join(place.tmp, "own", "libnccl.so.2")
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    shutil.copy(place.nccl_lib or "/nonexistent", copy)
    for name, library in (("by name", "libnccl.so.2"), ("by absolute path", copy)):
        title = "torch.distributed and pynccl " + name
        program = [sys.executable, "-B", os.path.join(ROOT, "examples", "torch_and_pynccl.py"), "--library", library]
        env = {}
        if place.one_gpu:
            program.append("--one-gpu")
            # torch's wheel finds its own, older NCCL by RPATH; one that is loaded already goes first.
            env["LD_PRELOAD"] = place.nccl_lib
        code, output, folder = place.under_shim("both", "none", program, 90, env)
        skipped = re.search(r"^skip: (.*)$", output, re.M)
        if skipped:
            place.skip(title, skipped.group(1))
            continue
        report = place.report(folder)
        if code != 0 or report is None:
            place.verdict(title, False, "exit code %s: %s" % (code, (output.strip().splitlines() or ["-"])[-1]))
            continue
        captured = summary(all_reduces(report, captured=True))
        eager = summary(all_reduces(report, captured=False))
        wanted = (2 * 10 * 122, 2 * (20 + 20), 4)
        got = (captured["timed"], eager["timed"], comm_ranks(report))
        place.verdict(title + ": both communicators and all calls", got == wanted and output.count("OK ") == 2,
                      "captured, eager, communicators (each rank's): %s instead of %s" % (got, wanted))


def killed(place):
    """SIGKILL in the middle of a replay: what had finished is in the report."""
    program = place.server_args("--requests", 2, "--steps", 60, "--prefill-calls", 2, "--die-mid-replay",
                                "--compute-us", 5, "--limit", 50)
    code, output, folder = place.under_shim("killed", "none", program, 60)
    replay = re.search(r"killing itself in replay (\d+) of (\d+) calls", output)
    if not replay:
        place.verdict("SIGKILL in mid-replay", False, "the server did not get there: exit code %s" % code)
        return
    report = place.report(folder)
    if report is None:
        place.verdict("SIGKILL in mid-replay: report exits 0", False, "it did not")
        return
    whole = place.ranks * (int(replay.group(1)) - 1) * int(replay.group(2))
    most = whole + place.ranks * int(replay.group(2))
    row = summary(all_reduces(report, captured=True))
    place.verdict("SIGKILL in mid-replay: every finished call is there", whole <= row["timed"] <= most,
                  "%d, not %d to %d" % (row["timed"], whole, most))
    place.verdict("SIGKILL in mid-replay: the report says that the run was not closed", not is_closed(report),
                  "it says closed")
    place.verdict("SIGKILL in mid-replay: run passes the signal on", code in (-9, 137), "exit code %s" % code)


def right_sums(place):
    """Servers of other shapes; each checks its own sums."""
    shapes = {
        "eager behind a replay": ["--mixed"],
        "15 us of work between the calls": ["--compute-us", 15],
        "a rank that comes late": ["--delay-rank", 1, "--delay-us", 30],
        "43,010 bytes": ["--bytes", 43010],
        "1 MiB calls": ["--bytes", "1M", "--calls", 40],
    }
    if not place.one_gpu:
        shapes["threads of one process"] = ["--one-process"]
    for name, more in shapes.items():
        program = place.server_args("--requests", 2, "--steps", 30, "--limit", 50, *more)
        code, output, folder = place.under_shim("shape", "none", program, 60)
        report, counts = place.report(folder), server_counts(output)
        if code != 0 or report is None or counts is None:
            place.verdict(name, False, "exit code %s: %s" % (code, (output.strip().splitlines() or ["-"])[-1]))
            continue
        got = summary(all_reduces(report, captured=True))["timed"]
        wanted = place.ranks * counts["replays"] * counts["calls"]
        place.verdict(name + ": sums right, every call counted", got == wanted, "%d instead of %d" % (got, wanted))


def main():
    parser = argparse.ArgumentParser(description="the main job on GPUs; see main.sh")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--one-gpu", action="store_true", help="all ranks on one GPU even where there are more")
    parser.add_argument("--budget", type=int, default=340, help="seconds (340)")
    parser.add_argument("--rounds", type=int, default=12, help="rounds of the cost table, while time is left (12)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--parts", default="both,killed,shapes")
    opt = parser.parse_args()
    place = Place(opt.simulate, opt.budget, opt.ranks, opt.one_gpu)
    if place.layout is None:
        place.close()
        print("skip main: " + place.reason)
        return 77
    parts = opt.parts.split(",")
    costs = None
    if "both" in parts:
        both_ways(place)
    if "killed" in parts:
        killed(place)
    if "shapes" in parts:
        right_sums(place)
    if "costs" in parts:
        costs = Costs(place, opt.steps)
        costs.find_channels()
        costs.run(opt.rounds, 45)
        costs.judge()
    text = "layout: %s; NCCL %s; %s\n" % (place.layout, place.nccl_lib, os.uname().release)
    if costs:
        text += costs.table()
    print(text, end="", flush=True)
    place.save("main.txt", text)
    place.save("main.json", json.dumps({"layout": place.layout, "results": place.results,
                                        "costs": costs.data() if costs else []}, indent=1))
    return place.close()


if __name__ == "__main__":
    sys.exit(main())
