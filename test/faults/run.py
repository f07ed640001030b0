#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make test-faults: every point there is (points.py). `run.py WORD...`: those with all WORDs in their name."""
import collections
import concurrent.futures
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test"))
sys.dont_write_bytecode = True

from faults.points import Faults  # noqa: E402
from harness import build  # noqa: E402
from harness.results import Results  # noqa: E402

MOST = int(os.environ.get("FAULTS_MOST", "6"))  # calls of each function


def name(point):
    return "%s: call %s of %s: %s" % (point.work, point.nth, point.function, point.how)


def main():
    os.chdir(ROOT)
    results = Results()
    made = build.Build(os.environ.get("BUILD", "build"))
    if not made.make_all(results):
        return results.close()
    start = time.monotonic()
    tried, failed = collections.Counter(), collections.Counter()
    with Faults(made.dir) as faults, concurrent.futures.ThreadPoolExecutor(2) as pool:
        points = [p for p in faults.all_points(MOST) if all(w in name(p) for w in sys.argv[1:])]
        for point, fault in zip(points, pool.map(faults.trial, points)):
            tried[point.work] += 1
            if fault:
                failed[point.work] += 1
                results.fail(name(point), fault.splitlines()[0], fault)
    for work, count in tried.items():
        title = "faults: %s: %d points" % (work, count)
        if failed[work]:
            print("FAIL  %s, %d failed" % (title, failed[work]))
        else:
            results.ok(title)
    print("%d points tried, %d passed, in %.0f s" % (sum(tried.values()), sum(tried.values()) - sum(failed.values()),
                                                     time.monotonic() - start))
    return results.close()


if __name__ == "__main__":
    sys.exit(main())
