# SPDX-License-Identifier: Apache-2.0
"""Unit tests: each test/unit/test_NAME.c is a cmocka program; each of its functions counts as one test."""
import concurrent.futures
import glob
import os
import re

from . import process

LIMIT_S = 120
LINE = re.compile(r"^(not ok|ok) \d+(?: - (\S+)\s*(.*)| # SKIP (.*))$")


def names(words):
    found = sorted(os.path.basename(f)[:-2] for f in glob.glob("test/unit/test_*.c"))
    return [n for n in found if not words or any(w in n for w in words)]


def run(build, results, words, without=()):
    wanted = [n for n in names(words) if n not in without]
    if not wanted:
        return
    programs = {name: os.path.join(build.dir, "unit", name) for name in wanted}
    for program in programs.values():
        # So that one that no longer compiles does not run in its old shape.
        if os.path.exists(program):
            os.unlink(program)
    build.make(list(programs.values()), keep_going=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: one(build, results, name, programs[name]), wanted))


def label(build, name):
    return "unit%s %s" % (" (asan)" if build.sanitize else "", name)


def one(build, results, name, program):
    title = label(build, name)
    if not os.path.exists(program):
        code, output = build.make([program])
        if code != 0 or not os.path.exists(program):
            results.fail(title, "does not build", output)
            return
    env = build.env()
    env["CMOCKA_MESSAGE_OUTPUT"] = "TAP"
    if build.sanitize:
        # ASan stands between the program and dlopen, so that the program's own run path is not looked at.
        env["LD_LIBRARY_PATH"] = os.path.abspath(os.path.join(build.dir, "fake"))
    code, output = process.run([os.path.abspath(program)], LIMIT_S, env)
    report(results, title, code, output)


def report(results, title, code, output):
    """Turns a cmocka program's TAP output into results."""
    lines = output.splitlines()
    found = [(i, m) for i, m in enumerate(map(LINE.match, lines)) if m]
    failed = 0
    for at, (i, match) in enumerate(found):
        before = lines[found[at - 1][0] + 1 if at else 0:i]
        after = lines[i + 1:found[at + 1][0] if at + 1 < len(found) else len(lines)]
        name = "%s: %s" % (title, match.group(2) or match.group(4))
        if match.group(4) is not None:
            # cmocka 1.1 says no reason; a test prints one before it skips.
            results.skip(name, before[-1] if before else "")
        elif match.group(1) == "ok":
            results.ok(name)
        else:
            failed += 1
            results.fail(name, match.group(3) or "failed", "\n".join(before + after))
    if code != 0 and not failed:
        results.fail(title, process.describe(code, LIMIT_S) + " after %d tests" % len(found), output)
    elif not found:
        results.fail(title, "printed no test result", output)
