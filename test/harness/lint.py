# SPDX-License-Identifier: Apache-2.0
"""clang-tidy (.clang-tidy) and cppcheck over shim/: `make lint`, and a step of `make test`.

A finding is a failure unless test/lint/reviewed.txt has its file and check, with a reason. Each version of the tools
finds other things: those that were reviewed are named below, and with another one `make test` skips the step. It also
has the analyzer look a quarter as far as `make lint`, which takes a third of the time.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REVIEWED_WITH = {"clang-tidy": "14.", "cppcheck": "2.10"}
FLAGS = ["-D_GNU_SOURCE", '-DNCCLSHIM_VERSION="0"', "-I.", "-Iinclude"]
FINDING = re.compile(r"^(?:%s/)?(?:\./)?([^:\s]+):(\d+):\d+: (?:error|warning|style|portability|performance): "
                     r"(.*) \[([^\]]+)\]$" % re.escape(ROOT))
SHORT = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=50000"]
GROUP = 4  # files a process: small enough to end together, large enough to start few
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


def tidy(files, by_hand):
    return output_of(["clang-tidy", "--quiet"] + files + ["--", "-std=gnu11"] + FLAGS + ([] if by_hand else SHORT))


def cppcheck(files, _):
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


def why_not(tool, by_hand):
    """Why a tool can't judge here; None when it can."""
    if not shutil.which(tool):
        return "no %s here" % tool
    version = re.search(r"\d+\.[\d.]+", output_of([tool, "--version"])).group(0)
    if not by_hand and not version.startswith(REVIEWED_WITH[tool]):
        return "%s %s here; what %s finds is reviewed (make lint runs it all the same)" % (
            tool, version, REVIEWED_WITH[tool].rstrip("."))
    return None


def check(results, title, judge, files, known, by_hand):
    groups = [files[i::max(1, len(files) // GROUP)] for i in range(max(1, len(files) // GROUP))]
    seen = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for text in pool.map(lambda group: judge(group, by_hand), groups):
            seen.update(findings(text))
    new = {k: v for k, v in seen.items() if k not in known}
    if new:
        results.fail(title, "%d findings" % len(new), "\n".join(new.values()))
    else:
        results.ok(title)
    return set(seen)


def run(results, words, by_hand=False):
    """Files with a WORD in their name; all without one."""
    known, seen, whole = reviewed(), set(), by_hand and not words
    files = sorted(f for f in glob.glob("shim/**/*.c", recursive=True) if not words or any(w in f for w in words))
    for tool, judge in (("cppcheck", cppcheck), ("clang-tidy", tidy)):
        title, why = "lint: %s over %d files" % (tool, len(files)), why_not(tool, by_hand)
        if why:
            results.skip(title, why)
            whole = False
        else:
            seen |= check(results, title, judge, files, known, by_hand)
    for file, name in sorted(set(known) - seen) if whole else []:
        print("note: reviewed.txt has %s %s, which is not found" % (file, name))
