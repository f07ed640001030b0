# SPDX-License-Identifier: Apache-2.0
"""The pytest files of test/e2e: the built programs as a user runs them."""
import glob
import os
import xml.etree.ElementTree as xml

from . import process

LIMIT_S = 480


def run(build, results, words):
    files = sorted(glob.glob("test/e2e/test_*.py"))
    if not files:
        return
    report = os.path.join(build.dir, "test", "e2e.xml")
    os.makedirs(os.path.dirname(report), exist_ok=True)
    if os.path.exists(report):
        os.unlink(report)
    python = os.environ.get("PYTHON", "/usr/bin/python3")
    args = [python, "-B", "-m", "pytest", "-n", "2", "-q", "-p", "no:cacheprovider", "--junitxml=" + report]
    if words:
        args += ["-k", " or ".join(words)]
    code, output = process.run(args + files, LIMIT_S, build.env())
    if not os.path.exists(report):
        results.fail("e2e", "pytest wrote no report: " + process.describe(code, LIMIT_S), output)
        return
    failed = count(results, report)
    # 5: no test was selected.
    if code != 0 and not failed and not (code == 5 and words):
        results.fail("e2e", "pytest: " + process.describe(code, LIMIT_S), output)


def count(results, report):
    failed = 0
    for case in xml.parse(report).getroot().iter("testcase"):
        title = "e2e %s: %s" % (case.get("classname", "").split(".")[-1], case.get("name"))
        skipped = case.find("skipped")
        fault = case.find("failure")
        if fault is None:
            fault = case.find("error")
        if fault is not None:
            failed += 1
            first = (fault.get("message") or "").splitlines()
            results.fail(title, first[0] if first else "see below", fault.text or "")
        elif skipped is not None:
            results.skip(title, skipped.get("message"))
        else:
            results.ok(title)
    return failed
