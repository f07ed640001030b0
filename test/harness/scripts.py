# SPDX-License-Identifier: Apache-2.0
"""Scripts that are tests: those of test/gpu, and the benchmarks.

A script prints one line for each thing it tried: "ok NAME", "not ok NAME: why" or "skip NAME: why". One
that prints none counts as one test, by its exit code (77: skipped; its last line says why).
"""
import glob
import os
import re

from . import process

LIMIT_S = 580
LINE = re.compile(r"^(ok|not ok|skip) +([^:]+?)(?:: (.*))?$")


def is_test(path):
    """Executable files; helpers are not, and a script may say that it is run by hand."""
    if not os.access(path, os.X_OK):
        return False
    with open(path, encoding="utf-8") as f:
        return "not part of make test-gpu" not in f.read(2000)


def command(path):
    if path.endswith(".py"):
        return [os.environ.get("PYTHON_GPU", "python3"), "-B", path]
    return ["bash", path] if path.endswith(".sh") else [path]


def run(folder, build, results, words):
    env = dict(os.environ, BUILD=build.dir)
    for path in sorted(glob.glob(folder + "/*.sh") + glob.glob(folder + "/*.py")):
        if is_test(path) and (not words or any(w in path for w in words)):
            one(path, env, results)


def one(path, env, results):
    title = os.path.basename(path)
    code, output = process.run(command(path), LIMIT_S, env)
    print(output, end="" if output.endswith("\n") else "\n")
    seen = failed = 0
    for line in output.splitlines():
        match = LINE.match(line)
        if not match:
            continue
        seen += 1
        name = "%s: %s" % (title, match.group(2))
        if match.group(1) == "ok":
            results.passed += 1
        elif match.group(1) == "skip":
            results.skipped += 1
        else:
            failed += 1
            results.failed += 1
            results.failures.append(name)
    last = output.rstrip().splitlines()[-1:] or [""]
    if code == 77 and not seen:
        results.skip(title, last[0])
    elif code not in (0, 77) and not failed:
        results.fail(title, process.describe(code, LIMIT_S))
    elif not seen:
        results.ok(title)


def run_benches(build, results, words):
    programs = sorted(glob.glob("test/bench/*.c"))
    if programs:
        code, output = build.make(["benches"], keep_going=True)
        if code != 0:
            results.fail("benches", "do not build", output)
    paths = [os.path.join(build.dir, "bench", os.path.basename(p)[:-2]) for p in programs]
    paths += sorted(glob.glob("test/bench/*.sh") + glob.glob("test/bench/*.py"))
    env = dict(build.env(), BUILD=build.dir)
    for path in paths:
        if os.path.exists(path) and os.access(path, os.X_OK) and (not words or any(w in path for w in words)):
            one(path if path.endswith((".sh", ".py")) else os.path.abspath(path), env, results)
