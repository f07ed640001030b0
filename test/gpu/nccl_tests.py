#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nccl-tests on two GPUs. Parts: collectives, each of its programs under the shim with its own check of the data;
and, only when asked for, beside: `bench` beside all_reduce_perf at eight sizes, eagerly and in graphs.
usage: nccl_tests.py [--parts beside,collectives] [--p2p-off] [--rounds N] [--budget S]

GPU_KIT (default .gpu) holds nccl-tests/*_perf, built with MPI=1: a process a GPU, as bench starts them. Nothing of it
is part of this project.
"""
import argparse
import glob
import json
import os
import random
import re
import shutil
import statistics
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from clients import KIT, watch  # noqa: E402
from place import Place, json_of  # noqa: E402
from truth import size  # noqa: E402

SIZES = [8 << 10, 42 << 10, 128 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
HOST_BOUND = SIZES[:4]  # when called eagerly
BUFFERS = 256 << 20  # bench gives each call of a row a buffer of its own, up to this much
REPEATS = 100  # of bench; a process takes seconds to start, so that it may as well measure for one
CYCLES = 100
EAGER_US, GRAPH_US = 3000, 20000  # of one cycle; bench has the former, for the latter see perf()
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]


def program(name):
    return os.path.join(KIT, "nccl-tests", name + "_perf")


def rows(output):
    """[(in-place us, wrong)] of nccl-tests' table; a wrong count that isn't a number was not asked for."""
    found = []
    for line in output.splitlines():
        words = line.split()
        if len(words) >= 12 and words[0].isdigit() and words[1].isdigit():  # some leave the column redop empty
            wrong = [w for w in (words[-5], words[-1]) if w != "N/A"]
            found.append((float(words[-4]), sum(map(float, wrong))))
    return found


def bench(place, graph, sizes):
    """{bytes: us} of one run of bench."""
    code, output = place.run([place.command, "bench", "--sizes", ",".join(map(size_word, sizes)), "--type", "float32",
                              "--graph" if graph else "--eager", "--no-stamps", "--no-check", "--repeats", REPEATS, "--json"], 60)
    result = json_of(output) if code == 0 else None
    return {row["bytes"]: row["median_ns"] / 1e3 for row in result["rows"]} if result else {}


def size_word(n):
    return "%dM" % (n >> 20) if n % (1 << 20) == 0 else "%dK" % (n >> 10)


def perf(place, nbytes, graph, us):
    """all_reduce_perf of one size under bench's conditions: as many calls in a graph, as many buffers. The time of a cycle
    holds the first launch of a new graph, which uploads it: so many launches that this is little. Where the host is what
    counts, a cycle must not be longer than a sample of bench: a median of longer means is another figure."""
    calls = max(1, min(122, BUFFERS // nbytes))
    turns = max(1, round((GRAPH_US if graph else EAGER_US) / (calls * us)))
    # The next size would be far behind the end; up to the end, iterations take turns with the buffers.
    code, output = place.run(MPIRUN + [program("all_reduce"), "-b", nbytes, "-e", nbytes * calls, "-f", 100000, "-n",
                                       calls if graph else calls * turns, "-w", 5, "-c", 0, "-G", turns if graph else 0,
                                       "-N", CYCLES // 2 if graph else CYCLES], 60)
    found = [us for us, _ in rows(output)]
    return statistics.median(found) if code == 0 and found else None


class Turning:
    """While it is entered, each thread of the programs below this process changes its processor every 10 ms. On a virtual
    machine the same call takes a third longer on one processor than on another, which is which changes with time, and a
    program that stays where it started shows its processor and not itself."""

    def __init__(self):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.turn)
        self.cpus = sorted(os.sched_getaffinity(0))

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def turn(self):
        while not self.over.wait(0.01):
            tasks = [int(t) for pid in below(os.getpid()) for t in listed("/proc/%d/task" % pid)]
            # No two on one, as long as there are enough: threads that spin would stand in each other's way.
            cpus = random.sample(self.cpus, len(self.cpus)) * (len(tasks) // len(self.cpus) + 1)
            for task, cpu in zip(tasks, cpus):
                try:
                    os.sched_setaffinity(task, {cpu})
                except OSError:
                    pass  # it has ended


def listed(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def below(pid):
    """All descendants."""
    found = []
    for task in listed("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/children" % (pid, task), encoding="ascii") as f:
                children = [int(word) for word in f.read().split()]
        except OSError:
            children = []
        for child in children:
            found += [child] + below(child)
    return found


def one_pass(place, graph, sizes, seen, until_s):
    """bench once over the sizes, then all_reduce_perf size by size; False when time was over."""
    if place.left() < until_s:
        return False
    ours = bench(place, graph, sizes)
    for nbytes in sizes:
        if place.left() < until_s:
            return False
        theirs = perf(place, nbytes, graph, ours.get(nbytes, 10.0)) if nbytes in ours else None
        if theirs:
            seen.setdefault((graph, nbytes), []).append((ours[nbytes], theirs))
    return True


def beside(place, how, rounds, until_s):
    """A round is every size in graphs and eagerly. The time that is left goes to the eager calls that wait for the host,
    whose time differs from one process to the next by more than what is looked for: it takes 15 runs of each."""
    seen = {}
    passes = ((True, SIZES), (False, SIZES))
    with Turning():
        whole = all(one_pass(place, graph, sizes, seen, until_s) for _ in range(rounds) for graph, sizes in passes)
        while one_pass(place, False, HOST_BOUND, seen, until_s):
            pass
    lines = ["bench beside all_reduce_perf, %s, float32, in place, us a call; medians, and each side's least to most" % how +
             ("" if whole else "; no time for all %d rounds" % rounds)]
    for graph in (True, False):
        for nbytes in SIZES:
            pairs = seen.get((graph, nbytes))
            title = "bench beside nccl-tests, %s, %s %s" % (how, "graph" if graph else "eager", size(nbytes))
            if not pairs:
                place.verdict(title, False, "no figures")
                continue
            ours, theirs = (statistics.median(p[i] for p in pairs) for i in (0, 1))
            spread = tuple(f(p[i] for p in pairs) for i in (0, 1) for f in (min, max))
            off = 100 * (ours / theirs - 1)
            lines.append("%-6s %-8s %2d runs  bench %8.2f  nccl-tests %8.2f  %+.1f %%  (%.2f..%.2f, %.2f..%.2f)" % (
                "graph" if graph else "eager", size(nbytes), len(pairs), ours, theirs, off, *spread))
            place.verdict(title + ": within 3 %", abs(off) <= 3, "%.2f against %.2f us, %+.1f %%" % (ours, theirs, off))
    text = "\n".join(lines) + "\n"
    print(text, end="", flush=True)
    place.save("nccl-tests.txt", text)
    place.save("nccl-tests-pairs.json", json.dumps([[g, n, p] for (g, n), p in seen.items()]))


def collectives(place, until_s):
    """Every program under the shim, eagerly and in graphs, with nccl-tests' own check of every result."""
    for path in sorted(glob.glob(program("*"))):
        name = os.path.basename(path)[:-5]
        for graph in (0, 2):
            if place.left() < until_s:
                place.skip("nccl-tests %s under the shim" % name, "no time left")
                return
            title = "nccl-tests %s%s" % (name, " in graphs" if graph else "")
            env = {"LD_LIBRARY_PATH": place.env["LD_LIBRARY_PATH"]}
            output = watch(place, title, MPIRUN + [path, "-b", "8", "-e", "4M", "-f", "16", "-n", "5", "-w", "1", "-c", "1",
                                                   "-G", graph], 1, 5, env, 60)
            found = rows(output)
            bounds = re.search(r"Out of bounds values : (\d+) (\w+)", output)
            place.verdict(title + ": its check finds the data right", found and not sum(w for _, w in found) and bounds and
                          bounds.groups() == ("0", "OK"), "%d rows, %s" % (len(found), bounds and bounds.group(0)))


def main():
    parser = argparse.ArgumentParser(description="nccl-tests beside bench and under the shim")
    parser.add_argument("--parts", default="collectives")
    parser.add_argument("--p2p-off", action="store_true", help="beside: through host memory, as on a box without NVLink")
    parser.add_argument("--rounds", type=int, default=2, help="of beside (2)")
    parser.add_argument("--budget", type=int, default=300)
    opt = parser.parse_args()
    place = Place(False, opt.budget)
    lacking = place.reason
    if not lacking and place.layout != "2 GPUs":
        lacking = "for two GPUs"
    elif not lacking and not os.path.exists(program("all_reduce")):
        lacking = "no %s (GPU_KIT names the folder)" % program("all_reduce")
    elif not lacking and not shutil.which("mpirun"):
        lacking = "no mpirun"
    if lacking:
        place.close()
        print("skip nccl-tests: " + lacking)
        return 77
    if "collectives" in opt.parts.split(","):
        collectives(place, 20)
    if "beside" in opt.parts.split(","):
        if opt.p2p_off:
            place.env["NCCL_P2P_DISABLE"] = "1"
        beside(place, "p2p off" if opt.p2p_off else "p2p on", opt.rounds, 10)
    place.save("nccl-tests.json", json.dumps(place.results, indent=1))
    return place.close()


if __name__ == "__main__":
    sys.exit(main())
