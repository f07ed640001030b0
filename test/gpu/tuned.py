#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a server to a proven profile, and the folk recipe beside it. Two GPUs; not part of make test-gpu: it takes minutes.
Record decode_server, `tune` by that run, then a fresh `ab` of its profile: the captured call must take 12 % less, no other
may take more. Parts: off (without peer access, as on a box without NVLink), on, folk (fewer-channels against none, twice, and
none against itself; without peer access).
usage: tuned.py [--simulate] [--parts off,on,folk] [--seconds S (of tune)] [--rounds N (of ab)] [--budget S]"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from place import Place, json_of  # noqa: E402

SPACE = """
[env]
NCCL_GRAPH_MIXING_SUPPORT = 0
[tune]
algorithm = ring tree
protocol = ll simple
channels = 1 2 4 8
"""
SHORT = "[env]\nNCCL_P2P_LEVEL = SYS\nNCCL_GRAPH_MIXING_SUPPORT = 0\n"  # what the simulator rewards
GAIN = 0.12
METRIC = "tokens/s: ([0-9.]+)"


class Tuned:
    def __init__(self, place, opt):
        self.place, self.opt = place, opt
        self.server = place.server_args(*("--requests", 2, "--steps", 5, "--calls", 12, "--prefill-calls", 4, "--prefill-bytes",
                                          "256K") if opt.simulate else ("--requests", 4, "--steps", 60, "--compute-us", 15))

    def ab(self, a, b, name):
        code, output = self.place.run([self.place.command, "ab", "--json", "-p", a, "-p", b, "-n", self.opt.rounds, "-o", name,
                                       "--metric", METRIC, "--", *self.server], 200)
        result = json_of(output)
        self.place.save(name + ".json", json.dumps(result, indent=1))
        if not self.place.verdict(name + ": ab ends with a result", code == 0 and result, output[-300:]):
            return None
        print("note: %s: %s" % (name, "; ".join(["tokens/s " + change(result["metric"]["against_first"][0])] + [
            "%d bytes %s %s %s" % (r["bytes"], "captured" if r["captured"] else "eager", r["against_first"][0]["p50"]["verdict"],
                                   change(r["against_first"][0]["p50"])) for r in result["calls"]["rows"]])))
        return result

    def tune(self, name):
        """The profile that it found, or None."""
        space = os.path.join(self.place.tmp, "space.ini")
        with open(space, "w", encoding="utf-8") as f:
            f.write(SHORT if self.opt.simulate else SPACE)
        code, output, run = self.place.under_shim("run-" + name, "none", self.server, 60)
        if not self.place.verdict(name + ": the server is recorded", code == 0, output[-300:]):
            return None
        found = os.path.join(self.place.tmp, name + ".ini")
        code, output = self.place.run([self.place.command, "tune", "--json", "--from", run, "--budget",
                                       "%ds" % self.opt.seconds, "--waits-for-graphs", "--space", space, "-o", "tune-" + name,
                                       "--write", found] + (["--calls", 12, "--proof", 3] if self.opt.simulate else []),
                                      self.opt.seconds + 100)
        result = json_of(output) or {}
        self.place.save(name + "-tune.json", json.dumps(result, indent=1))
        self.place.verdict(name + ": tune finds and proves a profile", code == 0 and result.get("better"), output[-300:])
        if not os.path.exists(found):
            return None
        with open(found, encoding="utf-8") as f:
            self.place.save(name + ".ini", f.read())
        return found

    def proven(self, name):
        """tune, and then a fresh comparison in the server."""
        found = self.tune(name)
        result = found and self.ab("none", found, name)
        if not result:
            return
        rows = [(r["bytes"], r["captured"], r["against_first"][0]["p50"]) for r in result["calls"]["rows"]]
        gain = next((p50 for _, captured, p50 in rows if captured), None)
        if not self.opt.simulate:
            self.place.verdict(name + ": the captured call takes 12 % less", gain and gain["verdict"] == "faster" and
                               gain["difference"]["change"] <= -GAIN, gain and change(gain))
        self.place.verdict(name + ": no call takes more", all(p50["verdict"] != "slower" for _, _, p50 in rows), str(rows))

    def verdicts(self, result):
        """Of tokens/s (not the simulator's: they are the host's), and of each call."""
        calls = [row["against_first"][0]["p50"]["verdict"] for row in result["calls"]["rows"]]
        return calls if self.opt.simulate else [result["metric"]["against_first"][0]["verdict"]] + calls

    def folk(self):
        a, b, same = self.ab("none", "fewer-channels", "folk-1"), self.ab("none", "fewer-channels", "folk-2"), \
            self.ab("none", "none", "none-none")
        if a and b:
            said = [self.verdicts(r) for r in (a, b)]
            self.place.verdict("folk: two times say the same", said[0] == said[1], str(said))
        if same:
            shown = self.verdicts(same)
            self.place.verdict("none against itself: no difference shown", not {"better", "worse", "faster", "slower"} & set(shown),
                               str(shown))


def change(x):
    d = x.get("difference")
    return "%+.1f %% [%+.1f, %+.1f]" % tuple(100 * d[k] for k in ("change", "low_95", "high_95")) if d else x["verdict"]


def main():
    parser = argparse.ArgumentParser(description="from a server to a proven profile")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--parts", default="off,on,folk")
    parser.add_argument("--seconds", type=int, default=140)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=int, default=580)
    opt = parser.parse_args()
    place = Place(opt.simulate, opt.budget)
    if place.reason or place.layout == "one GPU":
        reason = place.reason or "for two GPUs"
        place.close()
        print("skip tuned: " + reason)
        return 77
    if opt.simulate:
        place.env["NCCLSHIM_FAKE_PACE"] = "0"
    tuned = Tuned(place, opt)
    for part in opt.parts.split(","):
        place.env.pop("NCCL_P2P_DISABLE", None)
        if part != "on" and not opt.simulate:
            place.env["NCCL_P2P_DISABLE"] = "1"
        tuned.folk() if part == "folk" else tuned.proven(part)
    place.save("tuned.json", json.dumps(place.results, indent=1))
    return place.close()


if __name__ == "__main__":
    sys.exit(main())
