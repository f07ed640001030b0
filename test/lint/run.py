#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make lint: clang-tidy (.clang-tidy) and cppcheck over shim/. `run.py WORD...`: files with a WORD in their name.

A finding is a failure unless reviewed.txt has its file and check, with a reason.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test"))
sys.dont_write_bytecode = True

from harness.results import Results  # noqa: E402

FLAGS = ["-D_GNU_SOURCE", '-DNCCLSHIM_VERSION="0"', "-I.", "-Iinclude"]
FINDING = re.compile(r"^(?:%s/)?(?:\./)?([^:\s]+):(\d+):\d+: (?:error|warning|style|portability|performance): "
                     r"(.*) \[([^\]]+)\]$" % re.escape(ROOT))
LIMIT_S = 900


def reviewed():
    found = {}
    with open("test/lint/reviewed.txt", encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                file, check, why = line.split(None, 2)
                found[file, check] = why.strip()
    return found


def output_of(args):
    done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def tidy(files):
    return output_of(["clang-tidy", "--quiet"] + files + ["--", "-std=gnu11"] + FLAGS)


def cppcheck(files):
    return output_of(["cppcheck", "-q", "--std=c11", "--enable=warning,performance,portability", "--inline-suppr",
                      "--suppress=missingIncludeSystem",
                      "--suppress=ctuuninitvar",  # takes what memset fills for uninitialised
                      "-D__x86_64__", "-DElfW(x)=Elf64_##x",
                      "--template={file}:{line}:{column}: {severity}: {message} [{id}]"] + FLAGS + files)


def findings(text):
    """{(file, check): first line of output}"""
    seen = {}
    for line in text.splitlines():
        match = FINDING.match(line)
        if match:
            check = match.group(4).replace(",-warnings-as-errors", "")
            seen.setdefault((match.group(1), check), line)
        elif re.match(r"^[^ ].*: (fatal )?error: ", line):
            seen.setdefault(("?", line), line)
    return seen


def check(results, title, tool, judge, files, known):
    if not shutil.which(tool):
        results.skip(title, "no %s here" % tool)
        return set()
    groups = [files[i:i + 6] for i in range(0, len(files), 6)]
    seen = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for text in pool.map(judge, groups):
            seen.update(findings(text))
    new = {k: v for k, v in seen.items() if k not in known}
    if new:
        results.fail(title, "%d findings" % len(new), "\n".join(new.values()))
    else:
        results.ok(title)
    return set(seen)


def main():
    os.chdir(ROOT)
    results, known, words = Results(), reviewed(), sys.argv[1:]
    files = sorted(f for f in glob.glob("shim/**/*.c", recursive=True) if not words or any(w in f for w in words))
    seen = check(results, "lint: cppcheck over %d files" % len(files), "cppcheck", cppcheck, files, known)
    seen |= check(results, "lint: clang-tidy over %d files" % len(files), "clang-tidy", tidy, files, known)
    for file, name in sorted(set(known) - seen):
        if not words and not results.skipped:
            print("note: reviewed.txt has %s %s, which is not found" % (file, name))
    return results.close()


if __name__ == "__main__":
    sys.exit(main())
