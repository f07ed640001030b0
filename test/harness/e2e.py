# SPDX-License-Identifier: Apache-2.0
"""The pytest files of test/e2e: the built programs as a user runs them."""
import glob
import os
import xml.etree.ElementTree as xml

from . import process

LIMIT_S = 480
# The simulated GPUs keep the machine's time, and two workers share its cores with all that they start: a few tests
# that fail there are judged again alone, and the line of each says so.
ALONE_MOST, ALONE_S = 4, 120
# What the command alone does with files: these run once more with a command that has AddressSanitizer and
# UndefinedBehaviorSanitizer in it. A sanitized shared object could not be preloaded into programs without them.
SANITIZED = ["check", "export", "profiles", "real_run", "report", "run_clean"]
NEEDS_SHIM = "a_run_under_way"


def run(build, results, words, only=None):
    """`only`: the files test_NAME.py of these names."""
    files = sorted(glob.glob("test/e2e/test_*.py"))
    if only is not None:
        files = [f for f in files if os.path.basename(f)[len("test_"):-len(".py")] in only]
    if not files:
        return
    label = "e2e (asan)" if build.sanitize else "e2e"
    code, output = build.make([os.path.join(build.dir, "ncclshim") if build.sanitize else "fakes"])
    if code != 0:
        results.fail(label, "does not build", output)
        return
    report = os.path.join(build.dir, "test", "e2e.xml")
    os.makedirs(os.path.dirname(report), exist_ok=True)
    if os.path.exists(report):
        os.unlink(report)
    python = os.environ.get("PYTHON", "/usr/bin/python3")
    args = [python, "-B", "-m", "pytest", "-n", "2", "-q", "-p", "no:cacheprovider", "--junitxml=" + report]
    if words:
        args += ["-k", " or ".join(words)]
    elif build.sanitize:
        args += ["-k", "not " + NEEDS_SHIM]
    code, output = process.run(args + files, LIMIT_S, build.env())
    if not os.path.exists(report):
        results.fail(label, "pytest wrote no report: " + process.describe(code, LIMIT_S), output)
        return
    failed = count(results, report, label)
    # 5: no test was selected.
    if code != 0 and not failed and not (code == 5 and words):
        results.fail(label, "pytest: " + process.describe(code, LIMIT_S), output)
    if len(failed) > ALONE_MOST:
        for title, _, first, text in failed:
            results.fail(title, first, text)
        return
    for title, node, first, text in failed:
        code, output = process.run([python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", node], ALONE_S,
                                   build.env())
        if code == 0:
            results.ok("%s (alone; beside the others it failed: %s)" % (title, first))
        else:
            results.fail(title, first + " (and again alone)", text + output)


def count(results, report, label):
    """Counts what passed and what was skipped. Returns (title, pytest's name, message, text) of the rest."""
    failed = []
    for case in xml.parse(report).getroot().iter("testcase"):
        file = case.get("classname", "").split(".")[-1]
        title = "%s %s: %s" % (label, file, case.get("name"))
        skipped = case.find("skipped")
        fault = case.find("failure")
        if fault is None:
            fault = case.find("error")
        if fault is not None:
            first = (fault.get("message") or "see below").splitlines()[0]
            failed.append((title, "test/e2e/%s.py::%s" % (file, case.get("name")), first, fault.text or ""))
        elif skipped is not None:
            results.skip(title, skipped.get("message"))
        else:
            results.ok(title)
    return failed
