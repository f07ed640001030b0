# SPDX-License-Identifier: Apache-2.0
"""Which lines of shim/ the tests reach: unit tests and a choice of the end-to-end tests on a build that counts
(gcc --coverage, test/coverage/coverage.mk), summed up by gcov. What is not reached is in build/cov/uncovered.txt;
test/coverage/README.md says of what kinds it is.

The counters of a process are lost when it is killed or ends by _exit outside of the command and the unit tests; what
is lost so is not counted as reached. The tests chosen are judged elsewhere: here they only have to run.
"""
import collections
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess

from . import build as builds
from . import process, units

LEAST = 90  # per cent
OPTIONS = ["COVERAGE=1", "OPT=-O0", "HARDEN=", "WERROR="]
LIMIT_S = 400
# The end-to-end tests that reach lines of their own, but for those that take long for none.
FILES = ("ab bench check cli clients_config clients_missed clients_ways compare decode_server doctor export faults man "
         "operations profiles real_run report run run_clean run_collect shim_profiles shim_shapes show_run timing_cases top tune")
SLOW = ("exhaustive_sweep or at_most_one_in_twenty or a_shift_of_3_percent or two_hundred_forks or thousands or "
        "more_captures or more_communicators or interval_holds or t03 or aa_run or fewer_channels_is_slower")


def run(folder, results):
    title = "coverage: at least %d %% of the lines of shim/" % LEAST
    if not shutil.which("gcov") or not is_gcc():
        results.skip(title, "no gcc with gcov here")
        return
    made = builds.Build(os.path.join(folder, "cov"), options=OPTIONS)
    programs = [os.path.join(made.dir, "unit", name) for name in units.names([])]
    code, output = made.make(["all"] + programs)
    if code != 0:
        results.fail(title, "the build that counts: " + process.describe(code, 600), output)
        return
    for old in glob.glob(made.dir + "/**/*.gcda", recursive=True):
        os.unlink(old)
    exercise(made, programs)
    reached, lines = report(made.dir, count(made.dir))
    percent = 100 * reached / max(1, lines)
    print("coverage: %.1f %%, %d of %d lines; the others are in %s/uncovered.txt" % (percent, reached, lines, made.dir))
    if percent >= LEAST:
        results.ok(title)
    else:
        results.fail(title, "%.1f %%" % percent)


def is_gcc():
    code, output = process.run([os.environ.get("CC", "cc"), "--version"], 20)
    return code == 0 and "Free Software Foundation" in output


def exercise(made, programs):
    env = dict(made.env(), GCOV_ERROR_FILE="/dev/null")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda p: process.run([os.path.abspath(p)], units.LIMIT_S, env), programs))
    code, output = process.run(
        [os.environ.get("PYTHON", "/usr/bin/python3"), "-B", "-m", "pytest", "-n", str(2 * made.jobs), "-q",
         "-p", "no:cacheprovider", "-k", "not (%s)" % SLOW] + ["test/e2e/test_%s.py" % name for name in FILES.split()],
        LIMIT_S, env)
    if code != 0:
        print("note: not all went well on the build that counts: "
              + (output.strip().splitlines() or [process.describe(code, LIMIT_S)])[-1])


def count(folder):
    """{file: {line: times}}; a file that is in the shared object and in the command counts once."""
    seen = collections.defaultdict(lambda: collections.defaultdict(int))
    notes = sorted(glob.glob(folder + "/*/shim/**/*.gcno", recursive=True))
    for i in range(0, len(notes), 50):
        # What gcov has to say of a process that died while it wrote its counters goes to its standard error.
        output = subprocess.run(["gcov", "--json-format", "--stdout"] + notes[i:i + 50], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, check=False).stdout
        for line in output.splitlines():
            for file in json.loads(line)["files"]:
                if file["file"].startswith("shim/"):
                    for entry in file["lines"]:
                        seen[file["file"]][entry["line_number"]] += entry["count"]
    return seen


def report(folder, seen):
    """Prints a line for each room and each file below the mark. Returns (lines reached, lines)."""
    rooms = collections.defaultdict(lambda: [0, 0])
    with open(os.path.join(folder, "uncovered.txt"), "w", encoding="utf-8") as out:
        for file, lines in sorted(seen.items()):
            missing = [n for n in sorted(lines) if not lines[n]]
            for total in (rooms[os.path.dirname(file)], rooms[""]):
                total[0] += len(lines) - len(missing)
                total[1] += len(lines)
            if 100 * len(missing) > (100 - LEAST) * len(lines):
                print("  %5.1f %%  %s" % (100 - 100 * len(missing) / len(lines), file))
            for n in missing:
                out.write("%s:%d: %s\n" % (file, n, text_of(file, n)))
    for room in sorted(set(rooms) - {""}):
        print("coverage: %5.1f %% of %5d lines of %s" % (100 * rooms[room][0] / rooms[room][1], rooms[room][1], room))
    return tuple(rooms[""])


def text_of(file, number, texts={}):
    if file not in texts:
        with open(file, encoding="utf-8") as f:
            texts[file] = f.read().splitlines()
    return texts[file][number - 1].strip()
