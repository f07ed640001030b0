# SPDX-License-Identifier: Apache-2.0
"""See cost.sh."""
import argparse
import json
import os
import random
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from loads import Load, shape  # noqa: E402
from place import Place  # noqa: E402
import proofs  # noqa: E402
import truth  # noqa: E402

WAYS = ("bare", "off", "every", "eighth", "events", "inspector", "cupti")
SAYS = {"bare": "without the shim", "off": "NCCLSHIM_LOG=off", "every": "every call stamped", "eighth": "sample = 8",
        "events": "pairs of event nodes", "inspector": "NCCL Inspector", "cupti": "CUPTI kernel activity"}
OTHERS = ("events", "inspector", "cupti")  # whose faults are not ours
COLUMNS = ("graph", "graph-gap", "graph-decode", "eager", "eager-gap")
# Aims for two GPUs, us a call over bare.
AIMS = {("every", "graph"): 1.0, ("eighth", "graph"): 0.15, ("every", "eager"): 4.0, ("every", "eager-gap"): 5.0,
        ("eighth", "eager"): 0.7, ("eighth", "eager-gap"): 0.7}


class Costs:
    """Rounds of all ways in shuffled order; a way's cost is the median, over rounds, of its difference to the
    bare run of the same round."""

    def __init__(self, load, p2p, repeats, calls):
        self.load, self.p2p, self.repeats, self.calls = load, p2p, repeats, calls
        self.walls = {way: {c: [] for c in COLUMNS} for way in WAYS}
        self.kept = {way: [] for way in WAYS}
        self.faults = {way: [] for way in WAYS}
        self.ways = []
        for way in WAYS:
            why = load.lacking(way)
            if why:
                load.place.skip("cost of " + SAYS[way], why)
            else:
                self.ways.append(way)

    def shapes(self, way):
        keys = {"calls": self.calls, "repeats": self.repeats, "events": int(way == "events")}
        return [shape("graph", "graph", **keys), shape("graph-gap", "graph", gap=15, **keys),
                shape("graph-decode", "graph", small=10, **keys), shape("eager", "eager", **keys),
                shape("eager-gap", "eager", gap=15, **keys)]

    def wanted(self, way, result):
        """Records of all ranks that must be there. One more eager call stands before the shapes: the checked one."""
        if way != "eighth":
            return result.calls * result.ranks
        replays = self.repeats + 5
        return result.ranks * (3 * replays * -(-self.calls // 8) + -(-(2 * replays * self.calls + 1) // 8))

    def one_run(self, way):
        """False when it failed."""
        env = {} if self.p2p else {"NCCL_P2P_DISABLE": "1"}
        result = self.load.run(way, self.shapes(way), env, processes=True)
        if not result.good:
            self.faults[way].append(result.why)
            return None
        if result.kept is not None:
            self.kept[way].append((result.kept, self.wanted(way, result)))
        return {c: result.wall(c) for c in COLUMNS}

    def run(self, rounds, until_s):
        for _ in range(rounds):
            order = list(self.ways)
            random.shuffle(order)
            walls = {}
            for way in order:
                if self.load.place.left() <= until_s:
                    return
                walls[way] = self.one_run(way)
                if len(self.faults[way]) == 2:
                    self.ways.remove(way)  # its limit would eat the time of the others
            if walls.get("bare"):  # a round counts as a whole, for differences within it
                for way, found in walls.items():
                    for column in COLUMNS if found else ():
                        self.walls[way][column].append((found[column], found[column] - walls["bare"][column]))

    def wall(self, way, column):
        values = [w for w, _ in self.walls[way][column]]
        return statistics.median(values) if values else None

    def extra(self, way, column):
        values = [d for _, d in self.walls[way][column]]
        return statistics.median(values) if values else None

    def share(self, way):
        kept, wanted = (sum(k[i] for k in self.kept[way]) for i in (0, 1))
        return kept / wanted if wanted else None

    # ---- what came out -------------------------------------------------------------------------

    def table(self):
        lines = ["p2p %s; us a call of 43,008 bytes, and the difference to the bare run of the same round "
                 "(medians of %d rounds)" % ("on" if self.p2p else "off", len(self.walls["bare"]["graph"])),
                 ("%-22s" % "" + "".join("%-17s" % c for c in COLUMNS) + "records").rstrip()]
        for way in WAYS:
            if self.walls[way]["graph"]:
                cells = "".join("%8.2f %+7.2f " % (self.wall(way, c), self.extra(way, c)) for c in COLUMNS)
                share = self.share(way)
                lines.append("%-22s%s %s" % (SAYS[way], cells, "-" if share is None else "%.1f %%" % (100 * share)))
        spread = ", ".join("%s %+.2f..%+.2f" % (way, min(d for _, d in found["graph"]), max(d for _, d in found["graph"]))
                           for way, found in self.walls.items() if found["graph"] and way != "bare")
        lines.append("graph, least and most of the rounds' differences: " + spread)
        return "\n".join(lines) + "\n"

    def judge(self):
        place = self.load.place
        for way in self.ways:
            measured = self.walls[way]["graph"] and not self.faults[way]
            why = "; ".join(self.faults[way][:2]) or "no round was finished"
            if way in OTHERS and not measured:
                print("note: cost of %s: not measured: %s" % (SAYS[way], why))
            else:
                place.verdict("cost of %s: measured" % SAYS[way], measured, why)
        for way in ("every", "eighth"):
            bad = [k for k in self.kept[way] if k[0] != k[1]]
            place.verdict("%s: all records kept" % SAYS[way], self.kept[way] and not bad,
                          "kept, wanted: %s" % (bad[:2],))
        if place.simulated:
            return
        base, off = self.wall("bare", "graph"), self.extra("off", "graph")
        if base and off is not None:
            place.verdict("NCCLSHIM_LOG=off costs nothing", off < 0.03 * base, "%+.2f us on %.2f" % (off, base))
        for (way, column), aim in AIMS.items():
            extra = self.extra(way, column)
            if extra is None:
                continue
            if place.layout.endswith("GPUs") and self.p2p:
                place.verdict("%s, %s: %+.2f us at most" % (SAYS[way], column, aim), extra <= aim, "%+.2f us" % extra)
            else:
                print("note: %s, %s: %+.2f us (aim for two GPUs: %+.2f)" % (SAYS[way], column, extra, aim))
        every, inspector = self.extra("every", "graph"), self.extra("inspector", "graph")
        if every is not None and inspector is not None:
            place.verdict("ahead of Inspector by 4 times", every * 4 <= inspector, "%+.2f against %+.2f us" % (every, inspector))

    def data(self):
        return {"p2p": self.p2p, "walls_us_and_difference": self.walls, "kept_of": self.kept, "faults": self.faults}


def main():
    parser = argparse.ArgumentParser(description="what timing every call costs, and whether the times are true; see cost.sh")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--one-gpu", action="store_true", help="all ranks on one GPU even where there are more")
    parser.add_argument("--budget", type=int, default=400, help="seconds (400)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=40, help="timed repeats of each shape in each run (40)")
    parser.add_argument("--calls", type=int, default=122)
    parser.add_argument("--parts", default="truth,captures,ends,stuck")
    opt = parser.parse_args()
    if opt.simulate:
        opt.repeats, opt.calls, opt.rounds = min(opt.repeats, 3), min(opt.calls, 20), min(opt.rounds, 1)
    place = Place(opt.simulate, opt.budget, opt.ranks, opt.one_gpu)
    if place.layout is None:
        place.close()
        print("skip cost: " + place.reason)
        return 77
    parts, load = opt.parts.split(","), Load(place)
    label = place.layout + (": no figure of these means anything" if opt.simulate else "")
    text, data = "layout: %s, %d ranks; NCCL %s\n" % (label, place.ranks, place.nccl_lib), {"layout": label}
    if "truth" in parts or "late" in parts:
        found = truth.Truth(load, small=opt.simulate)
        if "truth" in parts:
            found.run()
        else:
            found.run_late()
        text += found.table()
        data["truth"] = found.data()
    if "captures" in parts:
        proofs.captures(place, load, 10 if opt.simulate else 200)
    if "ends" in parts:
        proofs.ends(place, load, 1 if opt.simulate else 5)
        proofs.killed(place, 1 if opt.simulate else 5)
    if "stuck" in parts:
        proofs.stuck(place, load)
    if "cost" in parts:
        p2ps = (True, False) if place.layout.endswith("GPUs") else (True,)
        for number, p2p in enumerate(p2ps):
            costs = Costs(load, p2p, opt.repeats, opt.calls)
            costs.run(opt.rounds, 5 + (place.left() - 5) * (len(p2ps) - number - 1) / len(p2ps))
            costs.judge()
            text += costs.table()
            data.setdefault("costs", []).append(costs.data())
    print(text, end="", flush=True)
    place.save("cost.txt", text)
    place.save("cost.json", json.dumps(dict(data, results=place.results)))
    return place.close()


if __name__ == "__main__":
    sys.exit(main())
