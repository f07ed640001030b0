#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make test-faults: every point there is (points.py). `run.py WORD...`: those with all WORDs in their name."""
import collections
import concurrent.futures
import os
import random
import shutil
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test"))
sys.dont_write_bytecode = True

from faults.points import MEMCHECK, Faults  # noqa: E402
from harness import build  # noqa: E402
from harness.results import Results  # noqa: E402

MOST = int(os.environ.get("FAULTS_MOST", "6"))  # calls of each function
UNDER_MEMCHECK = int(os.environ.get("FAULTS_MEMCHECK", "120"))  # points tried once more, under valgrind


def name(point):
    return "%s: call %s of %s: %s" % (point.work, point.nth, point.function, point.how)


def attempt(faults, results, points, title):
    """Tries them all; one line for each work. Returns how many failed."""
    tried, failed = collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for point, fault in zip(points, pool.map(faults.trial, points)):
            tried[point.work] += 1
            if fault:
                failed[point.work] += 1
                results.fail(title + name(point), fault.splitlines()[0], fault)
    for work, count in tried.items():
        line = "%s%s: %d points" % (title, work, count)
        if failed[work]:
            print("FAIL  %s, %d failed" % (line, failed[work]))
        else:
            results.ok(line)
    return sum(failed.values())


def main():
    os.chdir(ROOT)
    results = Results()
    made = build.Build(os.environ.get("BUILD", "build"))
    if not made.make_all(results):
        return results.close()
    start = time.monotonic()
    with Faults(made.dir) as faults:
        points = [p for p in faults.all_points(MOST) if all(w in name(p) for w in sys.argv[1:])]
        failed = attempt(faults, results, points, "faults: ")
        # What goes wrong on these paths may be a read of freed memory, which mostly does nothing.
        sample = random.Random(8).sample(points, min(UNDER_MEMCHECK, len(points)))
        if shutil.which("valgrind"):
            faults.under = MEMCHECK
            failed += attempt(faults, results, sample, "faults under memcheck: ")
        else:
            results.skip("faults under memcheck", "no valgrind here")
            sample = []
    print("%d points tried, %d of them twice, %d failed, in %.0f s"
          % (len(points), len(sample), failed, time.monotonic() - start))
    return results.close()


if __name__ == "__main__":
    sys.exit(main())
