# SPDX-License-Identifier: Apache-2.0
"""What settings and stamps cost: one table, every figure from the same run of this script.

Cells are profile x peer-to-peer on/off x how the server runs: bare (no shim; the profile's [env] values set
by hand), off (shim, NCCLSHIM_LOG=off; for profile none, where it must cost nothing), stamps (`ncclshim run`).
Each round runs in shuffled order, so that a drift of the machine hits all alike; what is compared is the
median of a cell.
"""
import configparser
import os
import random
import re
import statistics

from place import ROOT, server_counts, wall_us
from harness.reports import all_reduces, summary

PROFILES = ("none", "fewer-channels", "sixteen-channels", "decode-graph")
WAYS = ("bare", "off", "stamps")
RUN_LIMIT_S = 40


def profile_env(profile):
    """The [env] values of a shipped profile, to set them without the shim."""
    if profile == "none":
        return {}
    ini = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=(";",), delimiters=("=",))
    ini.optionxform = str
    ini.read(os.path.join(ROOT, "profiles", profile + ".ini"))
    return {name: value for section in ("env", "env override") if ini.has_section(section)
            for name, value in ini.items(section)}


class Cell:
    def __init__(self, profile, p2p, way):
        self.profile, self.p2p, self.way = profile, p2p, way
        self.walls, self.p50s, self.faults = [], [], []
        self.counted = None

    def key(self):
        return (self.profile, self.p2p, self.way)

    def wall(self):
        return statistics.median(self.walls) if self.walls else None


class Costs:
    def __init__(self, place, steps):
        self.place = place
        self.program = place.server_args("--requests", 2, "--steps", steps, "--prefill-calls", 2, "--compute-us", 0,
                                         "--timing", "--limit", RUN_LIMIT_S - 5)
        # Two ranks on one GPU share memory anyway: NCCL_P2P_DISABLE changes nothing there.
        p2ps = (True,) if place.one_gpu else (True, False)
        self.cells = {c.key(): c for c in (Cell(p, q, w) for p in PROFILES for q in p2ps for w in WAYS)
                      if c.way != "off" or c.profile == "none"}
        self.channels = {}

    def settle(self, cell):
        return {} if cell.p2p else {"NCCL_P2P_DISABLE": "1"}

    def run_cell(self, cell):
        place, env = self.place, self.settle(cell)
        if cell.way == "stamps":
            code, output, folder = place.under_shim("cost", cell.profile, self.program, RUN_LIMIT_S, env)
            self.read_report(cell, folder, output)
        elif cell.way == "off":
            env.update(LD_PRELOAD=place.shim, NCCLSHIM_PROFILE=cell.profile, NCCLSHIM_LOG="off")
            code, output = place.run(self.program, RUN_LIMIT_S, env)
        else:
            env.update(profile_env(cell.profile))
            code, output = place.run(self.program, RUN_LIMIT_S, env)
        wall = wall_us(output)
        if code == 0 and wall is not None and "sums: right" in output:
            cell.walls.append(wall)
        else:
            cell.faults.append("exit code %s: %s" % (code, (output.strip().splitlines() or ["no output"])[-1]))

    def read_report(self, cell, folder, output):
        report, counts = self.place.report(folder), server_counts(output)
        if report is None or counts is None:
            cell.faults.append("no report")
            return
        ranks = self.place.ranks
        row = summary(all_reduces(report, captured=True, size=counts["bytes"]))
        eager = summary(all_reduces(report, captured=False))
        cell.p50s.append(row["p50_us"])
        cell.counted = row["timed"]
        wanted = ranks * counts["replays"] * counts["calls"]
        wanted_eager = ranks * (counts["prefill"] + counts["eager"])
        if (row["timed"], row["lost"], eager["timed"]) != (wanted, 0, wanted_eager):
            cell.faults.append("report has %d captured of %d (%d lost) and %d eager of %d" % (
                row["timed"], wanted, row["lost"], eager["timed"], wanted_eager))

    def find_channels(self):
        """Channels by NCCL's own INFO output, for each profile."""
        for profile in PROFILES:
            _, output, _ = self.place.under_shim("info", profile, self.program, RUN_LIMIT_S,
                                                 {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH"})
            found = re.findall(r"(\d+) coll channels", output)
            self.channels[profile] = int(found[0]) if found else None

    def run(self, rounds, until_s):
        """While time is left: each round the cells of profile none, whose small differences are the cost, and
        half of the others."""
        cells = list(self.cells.values())
        costs = [c for c in cells if c.profile == "none"]
        others = [c for c in cells if c.profile != "none"]
        random.shuffle(others)
        half = (len(others) + 1) // 2
        for number in range(rounds):
            order = costs + (others[:half] if number % 2 == 0 else others[half:])
            random.shuffle(order)
            for cell in order:
                if self.place.left() <= until_s:
                    return
                self.run_cell(cell)

    # ---- what came out -------------------------------------------------------------------------

    def table(self):
        lines = ["%-17s %-4s %8s %8s %8s %8s %8s %8s %6s %4s" % (
            "profile", "p2p", "bare us", "off us", "stamp us", "off +", "stamps +", "p50 us", "p50/w", "ch")]
        for profile in PROFILES:
            for p2p in (True, False):
                if (profile, p2p, "bare") in self.cells:
                    lines.append(self.line(profile, p2p))
        counts = sorted({len(c.walls) for c in self.cells.values()})
        lines.append("medians of %s runs a cell; us are wall time a captured call of 43,008 bytes; p50/w: the report's "
                     "p50 over the wall time of the same runs" % "-".join(map(str, (counts[0], counts[-1]))))
        return "\n".join(lines) + "\n"

    def line(self, profile, p2p):
        bare, off, stamps = (self.cells.get((profile, p2p, way)) for way in WAYS)
        off_wall = off.wall() if off else None
        p50 = statistics.median(stamps.p50s) if stamps.p50s else None

        def show(value, form="%8.2f"):
            return form % value if value is not None else "%8s" % "-"

        def less(a, b):
            return a - b if a is not None and b is not None else None

        ratio = p50 / stamps.wall() if p50 and stamps.wall() else None
        return "%-17s %-4s %s %s %s %s %s %s %6s %4s" % (
            profile, "on" if p2p else "off", show(bare.wall()), show(off_wall), show(stamps.wall()),
            show(less(off_wall, bare.wall()), "%+8.2f"), show(less(stamps.wall(), bare.wall()), "%+8.2f"),
            show(p50), "%.2f" % ratio if ratio else "-", self.channels.get(profile) or "-")

    def judge(self):
        place = self.place
        for cell in self.cells.values():
            name = "%s, p2p %s, %s" % (cell.profile, "on" if cell.p2p else "off", cell.way)
            if not cell.walls and not cell.faults:
                place.skip(name, "not run in the time given")
                continue
            place.verdict(name + ": sums right" + (", every call counted" if cell.way == "stamps" else ""),
                          not cell.faults, "; ".join(cell.faults[:2]))
        found = self.channels.get("fewer-channels")
        place.verdict("fewer-channels: NCCL's INFO says 2 channels", found == 2, "it says %s" % found)
        if place.simulated:
            return
        for (profile, p2p, way), cell in self.cells.items():
            if way == "stamps" and cell.p50s and cell.walls:
                ratio = statistics.median(cell.p50s) / cell.wall()
                place.verdict("%s, p2p %s: p50 agrees with wall time within 15 %%" % (profile, "on" if p2p else "off"),
                              0.85 <= ratio <= 1.15, "p50 / wall = %.3f" % ratio)
        bare, off, stamps = (self.cells["none", True, way].wall() for way in WAYS)
        if bare and off and stamps:
            # Two runs of the same case differ by up to 3 %.
            place.verdict("NCCLSHIM_LOG=off costs nothing", abs(off / bare - 1) < 0.03, "%.2f against %.2f us" % (off, bare))
            if not place.one_gpu:
                place.verdict("stamps cost 2.0 us a call at most", stamps - bare <= 2.0, "%+.2f us" % (stamps - bare))

    def data(self):
        return [{"profile": c.profile, "p2p": c.p2p, "way": c.way, "wall_us": c.walls, "p50_us": c.p50s,
                 "faults": c.faults} for c in self.cells.values()]
