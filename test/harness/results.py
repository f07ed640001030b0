# SPDX-License-Identifier: Apache-2.0
"""Counts tests and prints one line for each, from any thread."""
import threading


class Results:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []
        self.judged = []  # names of what passed or failed
        self.lock = threading.Lock()

    def ok(self, name):
        with self.lock:
            self.passed += 1
            self.judged.append(name)
            print("ok    " + name, flush=True)

    def skip(self, name, why):
        with self.lock:
            self.skipped += 1
            print("skip  %s: %s" % (name, why or "no reason given"), flush=True)

    def fail(self, name, why, output=""):
        with self.lock:
            self.failed += 1
            self.failures.append(name)
            self.judged.append(name)
            print("FAIL  %s: %s" % (name, why), flush=True)
            for line in output.rstrip().splitlines()[-60:]:
                print("      | " + line, flush=True)

    def close(self):
        """Prints what failed, then the closing line. Returns the exit code."""
        for name in self.failures:
            print("failed: " + name)
        # Nothing run is no success.
        if not self.passed and not self.failed and not self.skipped:
            self.fail("tests", "there were none")
        if self.skipped:
            print("%d skipped, for the reasons above" % self.skipped)
        print("%d passed, %d failed" % (self.passed, self.failed))
        return 1 if self.failed else 0
