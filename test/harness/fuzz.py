# SPDX-License-Identifier: Apache-2.0
"""The fuzzers of test/fuzz: each for a few seconds, a smoke test, or as long as make fuzz says. What they find, they keep
in build/fuzz/found."""
import concurrent.futures
import glob
import os
import re
import shutil
import sys
import tempfile

from . import process

SECONDS = 30 if os.environ.get("CI") else 10
LONG_SECONDS = int(os.environ.get("FUZZ_SECONDS") or 1800)
MORE_SEEDS = {"fuzz_profile": ["test/profiles", "profiles"]}
# Descriptors whose output is thrown away: a verb that says no says so on stderr, millions of times.
MASK = {"fuzz_cli": 3}


def has_runtime():
    """clang alone is not enough: libFuzzer comes with the compiler's runtime libraries."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "f.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write("int LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return p == 0 && n; }\n")
        code, _ = process.run(["clang", "-fsanitize=fuzzer,address", source, "-o", folder + "/f"], 60)
    return code == 0


def run(build, results, words=(), seconds=SECONDS):
    names = sorted(os.path.basename(f)[:-2] for f in glob.glob("test/fuzz/fuzz_*.c"))
    names = [n for n in names if not words or any(w in n for w in words)]
    if not shutil.which("clang") or not has_runtime():
        for name in names:
            results.skip("fuzz " + name, "no clang with libFuzzer here (Debian: clang, libclang-rt-dev)")
        return
    build.make(["fuzzers"], keep_going=True)
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        list(pool.map(lambda name: one(build, results, name, seconds), names))


def log_seeds(build, folder):
    """Logs and statistics of them are made afresh: they are large and mostly empty."""
    sys.path.insert(0, os.path.abspath("test/e2e"))
    import logmaker
    small = dict(notes_bytes=4096, comms=16, sites=64, ranks=1, calls=4, replays=20, eager=3, created_ns=1,
                 start_ns=1 << 60)
    logmaker.decode_run(folder, capacity=128, host="small", **small)
    logmaker.decode_run(folder, capacity=32, host="wrapped", **small)
    logmaker.decode_run(folder, capacity=64, host="open", close=False, **small)
    code, output = process.run([os.path.join(build.dir, "ncclshim"), "collect", "--once", "--leave-logs",
                                "--log-dir", folder, "-o", folder + "/run"], 20, build.env())
    assert code == 0, output


def one(build, results, name, seconds):
    title = "fuzz %s: %d s" % (name, seconds)
    program = os.path.join(build.dir, "fuzz", name)
    if not os.path.exists(program):
        code, output = build.make([program])
        if code != 0:
            results.fail(title, "does not build", output)
            return
    found = os.path.join(build.dir, "fuzz", "found", name)
    os.makedirs(found, exist_ok=True)
    with tempfile.TemporaryDirectory() as fresh:
        if name == "fuzz_log":
            log_seeds(build, fresh)
        seeds = [f for f in ["test/fuzz/corpus/" + name] + MORE_SEEDS.get(name, []) if os.path.isdir(f)]
        env = dict(build.env(), NCCLSHIM_PROFILE_PATH="profiles", HOME=fresh)
        code, output = process.run(
            [os.path.abspath(program), "-max_total_time=%d" % seconds, "-seed=1", "-timeout=10", "-rss_limit_mb=4096",
             "-max_len=65536", "-close_fd_mask=%d" % MASK.get(name, 1), "-artifact_prefix=%s/" % found, fresh] + seeds,
            seconds + 90, env)
    if code == 0:
        done = re.search(r"Done (\d+) runs", output)
        results.ok(title + (", %s inputs" % done.group(1) if done else ""))
    else:
        results.fail(title, process.describe(code, seconds + 90) + "; the input lies in " + found, output)
