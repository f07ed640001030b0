# SPDX-License-Identifier: Apache-2.0
"""See settings.sh."""
import argparse
import json
import os
import re
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from loads import Load, shape  # noqa: E402
from place import ROOT, Place  # noqa: E402
from truth import size  # noqa: E402

SMALL, LARGE = 43008, 4 << 20
INFO = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH"}
SIZES = (8 << 10, SMALL, 256 << 10, 4 << 20, 64 << 20)
SAME = 1.03  # two runs of the same case differ by up to 3 %
RULES = {"ring ll": "ring ll", "ring simple": "ring simple", "tree ll": "tree ll", "ring ll 4": "ring ll channels=4"}


def last(output):
    return (output.strip().splitlines() or ["no output"])[-1]


class Settings:
    def __init__(self, place, load):
        self.place, self.load = place, load
        self.text, self.data = "", {}

    def births(self, way):
        args = [os.path.join(self.place.build, "cost", "births")]
        return args + (["--one-gpu"] if self.place.one_gpu else []) + [way]

    def under(self, name, text, program, env=None):
        """(output, report) of a program under a profile of that text; the report is None when it failed."""
        profile = self.load.profile(name, text) if text else "none"
        code, output, folder = self.place.under_shim(name, profile, program, 45, env)
        report = self.place.report(folder) if code == 0 else None
        if report is None:
            self.place.verdict(name, False, "exit code %s: %s" % (code, last(output)))
        return output, report

    # ---- [tune] by size ------------------------------------------------------------------------

    def choices(self, name, text):
        """{(captured, bytes): (algorithm, protocol, channels)} by NCCL's own word, in the report."""
        shapes = [shape("%s-%d" % (kind, b), kind, bytes=b, calls=10, repeats=3)
                  for b in (SMALL, LARGE) for kind in ("eager", "graph")]
        program = [self.load.program, "--ranks", self.place.ranks, "--limit", 40]
        program += ["--one-gpu"] if self.place.one_gpu else []
        _, report = self.under(name, text, program + shapes)
        if report is None:
            return None
        return {(row["captured"], row["bytes"]): (row["algorithm"], row["protocol"], row["channels"])
                for comm in report["communicators"] for row in comm["rows"]
                if row["operation"] == "all_reduce" and row["bytes"] in (SMALL, LARGE)}

    def tune(self):
        before = self.choices("no rule", "")
        after = self.choices("a rule for small ones", "[tune]\nallreduce 0-64K = ring ll channels=2\n")
        if before is None or after is None:
            return
        for captured in (False, True):
            how = "captured" if captured else "eager"
            got = after.get((captured, SMALL))
            self.place.verdict("[tune] 0-64K: ring, LL, 2 channels at 42 KiB, " + how, got == ("ring", "ll", 2), "%s" % (got,))
            was, got = before.get((captured, LARGE)), after.get((captured, LARGE))
            self.place.verdict("[tune] 0-64K: 4 MiB as NCCL has it, " + how, got == was and got is not None,
                               "%s, not %s" % (got, was))
        self.text += "no rule: %s\na rule for small ones: %s\n" % (before, after)

    # ---- [comm] max_ctas -----------------------------------------------------------------------

    def coll_channels(self, output):
        return [int(n) for n in re.findall(r"(\d+) coll channels", output)]

    def max_ctas(self):
        for way in ("InitRank", "InitRankConfig", "InitAll", "Split"):
            output, report = self.under("max_ctas = 4, " + way, "[comm]\nmax_ctas = 4\n", self.births(way), INFO)
            if report is None:
                continue
            found = self.coll_channels(output)
            wanted = 2 * (2 if way == "Split" else 1)
            self.place.verdict("[comm] max_ctas = 4, %s: NCCL's INFO says 4 channels" % way,
                               found == [4] * wanted, "%s" % found)
            got = [(c["asked_max_ctas"], c["given_max_ctas"]) for c in report["communicators"]]
            self.place.verdict("[comm] max_ctas = 4, %s: the report says so" % way, got and set(got) == {(4, 4)}, "%s" % got)
        env = dict(INFO, NCCL_MAX_CTAS="2")
        output, report = self.under("NCCL_MAX_CTAS in the shell", "[comm]\nmax_ctas = 4\n", self.births("InitRank"), env)
        if report:
            found, hints = self.coll_channels(output), [h["text"] for h in report["hints"] if h["key"] == "max_ctas"]
            self.place.verdict("NCCL_MAX_CTAS in the shell: the variable wins and the report says so",
                               set(found) == {2} and hints and "environment" in hints[0], "%s, %s" % (found, hints))
        output, report = self.under("no max_ctas", "", self.births("InitRank"), INFO)
        self.text += "channels without max_ctas: %s\n" % (self.coll_channels(output) if report else "-")

    # ---- variables for one communicator --------------------------------------------------------

    def named(self):
        text = "[comm low]\nname = low\nNCCL_PROTO = LL\n[comm simple]\nname = simple\nNCCL_PROTO = Simple\n"
        _, report = self.under("NCCL_PROTO by name", text, self.births("Named"))
        if report is None:
            return
        got = {c["name"]: sorted({(row["captured"], row["protocol"]) for row in c["rows"]}) for c in report["communicators"]}
        for name, protocol in (("low", "ll"), ("simple", "simple")):
            self.place.verdict("[comm %s] NCCL_PROTO: its calls are all %s, eager and captured" % (name, protocol),
                               got.get(name) == [(False, protocol), (True, protocol)], "%s" % got)

    def graph_file(self):
        """NCCL says for each search of each rank when it takes a graph from a file."""
        path = os.path.join(self.place.tmp, "graph.xml")
        code, output = self.place.run(self.births("InitRank"), 45, {"NCCL_GRAPH_DUMP_FILE": path})
        if self.place.simulated:
            self.place.skip("a graph file for one rank count", "the simulator has no graphs")
            return
        if code != 0 or not os.path.exists(path):
            self.place.verdict("NCCL's dump of its graphs", False, "exit code %s: %s" % (code, last(output)))
            return
        taken = {}
        for name, ranks, way in (("two", 2, "InitRank"), ("two, split", 2, "SplitAlone"), ("other", 8, "InitRank")):
            text = "[comm one]\nranks = %d\nNCCL_GRAPH_FILE = %s\n" % (ranks, path)
            output, report = self.under("a graph file, " + name, text, self.births(way), INFO)
            if report is None:
                return
            taken[name] = len(re.findall(r"loaded from XML graph", output))
        self.place.verdict("a graph file in [comm] with ranks = 2: the two ranks take it", taken["two"] > 0, "%s" % taken)
        self.place.verdict("... and communicators of one rank do not", taken["two, split"] == taken["two"], "%s" % taken)
        self.place.verdict("... nor those of two where it says ranks = 8", taken["other"] == 0, "%s" % taken)

    # ---- a rule by size beats one setting for all ----------------------------------------------

    def size_shapes(self, small):
        # Few of the large ones: under fewer-channels one of 64 MiB takes tens of milliseconds.
        few = {b: (5, 2) if small else (122, 15) if b <= 256 << 10 else (30, 10) if b <= 4 << 20 else (4, 6) for b in self.sizes}
        return [shape(str(b), "graph", bytes=b, calls=few[b][0], repeats=few[b][1], warmup=2) for b in self.sizes]

    def walls(self, profile):
        env = {"LD_PRELOAD": self.place.shim, "NCCLSHIM_LOG": "off", "NCCLSHIM_PROFILE": profile}
        if self.place.layout.endswith("GPUs"):
            env["NCCL_P2P_DISABLE"] = "1"
        result = self.load.run("bare", self.shapes, env)
        if not result.good:
            self.place.verdict("sizes under %s" % os.path.basename(profile), False, result.why)
            return None
        return {b: result.wall(str(b)) for b in self.sizes}

    def write_profile(self, walls):
        """For each size the best candidate that clearly beats NCCL's own choice, as a rule for its neighbourhood."""
        rules, low = [], 0
        for number, b in enumerate(self.sizes):
            high = (b * self.sizes[number + 1]) ** 0.5 if number + 1 < len(self.sizes) else 256 << 20
            high = int(high) // 1024
            best = min(RULES, key=lambda rule: walls[rule][b] if walls.get(rule) else float("inf"))
            if walls.get(best) and walls[best][b] * SAME < walls["none"][b]:
                rules.append("allreduce %dK-%dK = %s" % (low, high, RULES[best]))
            low = high + 1
        return ("[tune]\n" + "\n".join(rules) if rules else "[profile]\ndescription = no rule helps here") + "\n"

    def sizes_part(self, rounds, small, until_s):
        self.sizes = SIZES[:3] if small else SIZES
        self.shapes = self.size_shapes(small)
        fewer = os.path.join(ROOT, "profiles", "fewer-channels.ini")
        walls = {"none": self.walls("none")}
        for number, (name, rule) in enumerate(RULES.items()):
            if small and number:
                break
            walls[name] = self.walls(self.load.profile("rule%d" % number, "[tune]\nallreduce = %s\n" % rule))
        if not walls["none"]:
            return
        text = self.write_profile(walls)
        profiles = {"none": "none", "fewer-channels": fewer, "by-size": self.load.profile("by-size", text)}
        found = {name: [] for name in profiles}
        for _ in range(rounds):
            for name, profile in profiles.items():
                got = self.walls(profile) if self.place.left() > until_s else None
                if got:
                    found[name].append(got)
        if not all(found.values()):
            return
        medians = {name: {b: statistics.median(g[b] for g in got) for b in self.sizes} for name, got in found.items()}
        self.text += "the profile by size:\n    %s\n" % text.strip().replace("\n", "\n    ")
        self.text += "us a call, medians of %d runs\n%-16s%s\n" % (min(map(len, found.values())), "",
                                                                "".join("%12s" % size(b) for b in self.sizes))
        for name, row in medians.items():
            self.text += "%-16s%s\n" % (name, "".join("%12.2f" % row[b] for b in self.sizes))
        self.data["sizes"] = {"profile": text, "walls_us": found, "candidates_us": walls}
        for b in self.sizes if not self.place.simulated else ():
            better = min(medians["none"][b], medians["fewer-channels"][b])
            self.place.verdict("by-size at %s: as good as the better of none and fewer-channels" % size(b),
                               medians["by-size"][b] <= better * SAME, "%.2f, not %.2f us" % (medians["by-size"][b], better))


def main():
    parser = argparse.ArgumentParser(description="settings that NCCL itself confirms; see settings.sh")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--one-gpu", action="store_true", help="all ranks on one GPU even where there are more")
    parser.add_argument("--budget", type=int, default=180, help="seconds (180)")
    parser.add_argument("--rounds", type=int, default=2, help="of the comparison by size (2)")
    parser.add_argument("--parts", default="tune,max_ctas,named,graph_file,sizes")
    opt = parser.parse_args()
    place = Place(opt.simulate, opt.budget, 2, opt.one_gpu)
    if place.layout is None:
        place.close()
        print("skip settings: " + place.reason)
        return 77
    settings = Settings(place, Load(place))
    for part in opt.parts.split(","):
        if part == "sizes":
            settings.sizes_part(1 if opt.simulate else opt.rounds, opt.simulate, 8)
        else:
            getattr(settings, part)()
    label = place.layout + (": no figure of these means anything" if opt.simulate else "")
    text = "layout: %s; NCCL %s\n%s" % (label, place.nccl_lib, settings.text)
    print(text, end="", flush=True)
    place.save("settings.txt", text)
    place.save("settings.json", json.dumps(dict(settings.data, layout=label, results=place.results)))
    return place.close()


if __name__ == "__main__":
    sys.exit(main())
