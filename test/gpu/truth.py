# SPDX-License-Identifier: Apache-2.0
"""Are the GPU times true? Stamps less their floor, against three clocks that know nothing of each other:

- events: a pair around each of many single eager calls that are queued behind a busy kernel; what an event
  pair around a call of no bytes reads is taken off;
- wall: graphs of few and of many calls: their difference in wall time is that of so many calls;
- CUPTI: its own start and end of NCCL's kernels, which must lie within the stamps.

And a rank that comes late: the other's calls last longer by just that.
"""
import statistics

from loads import match_streams, shape

NEAR_US, NEAR_SHARE, LONG_US = 1.0, 0.03, 50.0


def near(value, truth):
    return abs(value - truth) <= (NEAR_SHARE * truth if truth > LONG_US else NEAR_US)


def size(nbytes):
    return "%d MiB" % (nbytes >> 20) if nbytes >= 1 << 20 else "%g KiB" % (nbytes / 1024)


class Truth:
    def __init__(self, load, small=False):
        self.load, self.place, self.small = load, load.place, small
        self.sizes = [43008, 1 << 20] if small else [43008, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
        self.singles = 5 if small else 40
        self.few_many = ({43008: (5, 15)} if small else
                         {43008: (22, 122), 4 << 20: (10, 50), 64 << 20: (3, 13)})
        self.late_us = [100] if small else [20, 100, 500]
        self.rows, self.late_rows = [], []
        self.floor_us = 0.0
        self.cupti_note = ""

    def single_shapes(self):
        return [shape("single-%d" % b, "single", bytes=b, calls=self.singles) for b in [0] + self.sizes]

    def wall_shapes(self):
        repeats = 2 if self.small else 15
        return [shape("%s-%d" % (name, b), "graph", bytes=b, calls=calls, repeats=repeats)
                for b, pair in self.few_many.items() for name, calls in zip(("few", "many"), pair)]

    def late_shapes(self):
        return [shape("late-%d" % us, "graph", calls=20, gap=10, late=us, repeats=2 if self.small else 10)
                for us in [0] + self.late_us]

    def run(self):
        shapes = self.single_shapes() + self.wall_shapes()
        bare, every = self.load.run("bare", shapes), self.load.run("every", shapes)
        for name, result in (("bare", bare), ("stamps", every)):
            if not result.good:
                self.place.verdict("truth: " + name, False, result.why)
                return
        self.floor_us = every.stamps.floor_us
        self.place.verdict("truth: no torn record", every.stamps.torn == 0, "%d" % every.stamps.torn)
        self.events(bare, every)
        self.walls(bare, every)
        self.run_late()
        self.cupti()

    def run_late(self):
        result = self.load.run("every", self.late_shapes())
        if result.good:
            self.floor_us = result.stamps.floor_us
            self.late(result)
        else:
            self.place.verdict("truth: a late rank", False, result.why)

    def judge(self, name, value, truth):
        self.rows.append((name, value, truth))
        if self.place.simulated:
            return
        self.place.verdict("truth: %s: %s" % (name, "within 3 %" if truth > LONG_US else "within 1 us"),
                           near(value, truth), "%.2f us, not %.2f" % (value, truth))

    def events(self, bare, every):
        """In the same run, call by call; and against events where there is no shim."""
        def pairs(result, nbytes):
            return result.shapes["single-%d" % nbytes]["event_us"]

        def middle(lists):
            return statistics.median(v for values in lists for v in values)

        def last_come(lists):
            """Of each call the shortest, the time of the rank that came last: between two runs, waiting differs."""
            return statistics.median(min(values) for values in zip(*lists))

        stamped_empty, bare_empty = middle(pairs(every, 0)), middle(pairs(bare, 0))
        self.rows.append(("a call of no bytes, same run", middle(every.stamps.eager(r, 0) for r in range(every.ranks))
                          - self.floor_us, 0.0))
        for nbytes in self.sizes:
            stamps = [every.stamps.eager(r, nbytes) for r in range(every.ranks)]
            if any(len(s) != self.singles for s in stamps):
                self.place.verdict("truth: %s: every single call has its time" % size(nbytes), False,
                                   "%s of %d" % ([len(s) for s in stamps], self.singles))
                continue
            self.judge("%s, event pairs of the same calls" % size(nbytes), middle(stamps) - self.floor_us,
                       middle(pairs(every, nbytes)) - stamped_empty)
            self.judge("%s, event pairs without the shim" % size(nbytes), last_come(stamps) - self.floor_us,
                       last_come(pairs(bare, nbytes)) - bare_empty)

    def walls(self, bare, every):
        def slope(result, nbytes):
            few, many = self.few_many[nbytes]
            return (result.wall("many-%d" % nbytes) * many - result.wall("few-%d" % nbytes) * few) / (many - few)

        graphs = list(self.few_many)
        for nbytes in graphs:
            number = 2 * graphs.index(nbytes) + 1
            calls = {}
            for rank in range(every.ranks):
                found = every.stamps.graphs(rank)
                if len(found) > number:
                    # the first call of a pass is not chained to one before
                    calls.update({(rank, key): us for key, us in found[number].items() if key[0]})
            if not calls:
                self.place.verdict("truth: %s: the graph's calls have times" % size(nbytes), False, "none has")
                continue
            # One right behind the other: from end to end, hence with the cost of stamping in it.
            self.judge("%s, wall time of the same replays" % size(nbytes), statistics.median(calls.values()),
                       slope(every, nbytes))
            self.judge("%s, wall time without the shim" % size(nbytes), statistics.median(calls.values()) - self.floor_us,
                       slope(bare, nbytes))

    def late(self, result):
        graphs = [result.stamps.graphs(r) for r in range(result.ranks)]
        if any(len(g) != 1 + len(self.late_us) for g in graphs):
            self.place.verdict("truth: a late rank", False, "graphs with times: %s" % [len(g) for g in graphs])
            return
        even = statistics.median(graphs[0][0].values())
        for number, us in enumerate(self.late_us, 1):
            waiting = statistics.median(v for r, g in enumerate(graphs) if r != 1 for v in g[number].values())
            slow = statistics.median(graphs[1][number].values())
            self.late_rows.append((us, waiting, slow, even))
            if not self.place.simulated:
                self.place.verdict("truth: rank 1 is %d us late: the other waits just that" % us,
                                   near(waiting - slow, us), "%.2f us" % (waiting - slow))
                self.place.verdict("truth: rank 1 is %d us late: its own calls are as short as before" % us,
                                   slow <= even + NEAR_US, "%.2f, not %.2f us" % (slow, even))

    def cupti(self):
        why = self.load.lacking("cupti")
        if why or self.place.ranks > 4:
            self.place.skip("truth: CUPTI's kernel times", why or "streams can't be told apart with so many ranks")
            return
        result = self.load.run("cupti+every", self.single_shapes())
        if not result.good:
            self.place.verdict("truth: CUPTI's kernel times", False, result.why)
            return
        sizes = [2048] + self.sizes  # the checked call comes first
        per_rank = [[us for b in sizes for us in result.stamps.eager(r, b)] for r in range(result.ranks)]
        kernels = match_streams(result.kernels, per_rank)
        if not kernels:
            self.place.verdict("truth: CUPTI's kernel times", False, "kernels of each stream: %s, stamps: %s" % (
                [len(k) for k in result.kernels.values()], [len(s) for s in per_rank]))
            return
        outside = sum(k > s for r, stamps in enumerate(per_rank) for k, s in zip(kernels[r], stamps))
        total = sum(map(len, per_rank))
        self.place.verdict("truth: CUPTI's kernels lie within the stamps", outside <= total // 200,
                           "%d of %d last longer" % (outside, total))
        at = 1
        for nbytes in self.sizes:
            stamps = [s for r in range(result.ranks) for s in per_rank[r][at:at + self.singles]]
            own = [k for r in range(result.ranks) for k in kernels[r][at:at + self.singles]]
            at += self.singles
            stamp, kernel = statistics.median(stamps) - self.floor_us, statistics.median(own)
            self.rows.append(("%s, CUPTI's kernel time (lower bound)" % size(nbytes), stamp, kernel))
            self.place.verdict("truth: %s: CUPTI's kernel time is a lower bound" % size(nbytes),
                               stamp >= kernel - max(0.1, 0.005 * kernel), "%.2f us, kernel %.2f" % (stamp, kernel))

    def table(self):
        lines = ["floor %.2f us, taken off" % self.floor_us, "%-45s %10s %10s %8s" % ("call, and the other clock", "stamps us",
                                                                                   "other us", "")]
        for name, value, other in self.rows:
            lines.append("%-45s %10.2f %10.2f %+8.2f" % (name, value, other, value - other))
        for us, waiting, slow, even in self.late_rows:
            lines.append("rank 1 late by %d us: others %.2f us, rank 1 %.2f, difference %.2f (all in time: %.2f)" % (
                us, waiting, slow, waiting - slow, even))
        return "\n".join(lines) + "\n"

    def data(self):
        return {"floor_us": self.floor_us, "rows": self.rows, "late": self.late_rows}
