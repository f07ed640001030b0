#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tune` with an NCCL that gives a wrong sum under one setting and never returns under another (tampered/nccl.c):
neither is chosen, both are named, no process is left. On two GPUs, or both ranks on one with NCCL 2.30.3 or later.
Needs a built tree (BUILD); under 60 s. usage: tampered.py [--simulate] [--budget S]"""
import argparse
import json
import os
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from place import Place, json_of  # noqa: E402

WRONG, HANG = "NCCL_BUFFSIZE=2097152", "NCCL_NTHREADS=256"
SPACE = """
[env]
NCCL_BUFFSIZE = 2097152 8388608
NCCL_NTHREADS = 256 512
NCCL_GRAPH_MIXING_SUPPORT = 0
"""
MARK = "TAMPERED_MARK"


def tampered(place):
    """A folder with the tampered NCCL and, beside it, the real one under the name that it asks for."""
    folder = os.path.join(place.tmp, "nccl")
    os.mkdir(folder)
    shutil.copy(os.path.join(place.build, "tampered", "libnccl.so.2"), folder)
    os.symlink(real_nccl(place), os.path.join(folder, "libnccl-real.so.2"))
    return os.path.join(folder, "libnccl.so.2")


def real_nccl(place):
    """The NCCL that the loader would take."""
    for folder in place.env.get("LD_LIBRARY_PATH", "").split(":") + ["/usr/lib/x86_64-linux-gnu", "/usr/local/cuda/lib64"]:
        path = os.path.join(folder, "libnccl.so.2")
        if folder and os.path.exists(path):
            return os.path.realpath(path)
    return None


def marked(mark):
    """{pid: command line} of the processes that were started with our mark in their environment, but for the dead."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as environ, open("/proc/%s/stat" % pid, encoding="utf-8") as stat, \
                    open("/proc/%s/cmdline" % pid, "rb") as cmdline:
                if ("%s=%s" % (MARK, mark)).encode() in environ.read().split(b"\0") and \
                        stat.read().rsplit(")", 1)[1].split()[0] != "Z":
                    found[int(pid)] = cmdline.read().replace(b"\0", b" ").decode("utf-8", "replace")[:200]
        except OSError:
            pass
    return found


def left_behind(mark):
    """Those that still run two seconds after the command's end; they are ended."""
    for _ in range(40):
        left = marked(mark)
        if not left:
            return {}
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left


def bench_ends(place, env, args, variable, condition, kind):
    """That the library does what it is for: `bench` by itself under the one setting."""
    name, value = condition.split("=")
    code, out = place.run([place.command, "bench", "--json", "--no-stamps", "--timeout", 5, "--repeats", 3] + args, 40,
                          {**env, variable: condition, name: value})
    error = (json_of(out) or {}).get("error") or {}
    place.verdict("bench under %s ends with %s" % (condition, kind), code == 1 and error.get("kind") == kind,
                  "exit code %s, %s" % (code, error))


def tune_keeps_away(place, env, args, budget_s):
    space = os.path.join(place.tmp, "space.ini")
    with open(space, "w", encoding="utf-8") as f:
        f.write(SPACE)
    begin = time.monotonic()
    code, out = place.run([place.command, "tune", "--json", "--space", space, "--budget", "%ds" % budget_s, "--timeout", 5,
                           "--proof", 3, "-o", "tuned"] + args, budget_s + 60,
                          {**env, "TAMPERED_WRONG": WRONG, "TAMPERED_HANG": HANG})
    took = time.monotonic() - begin
    result = json_of(out)
    if not result:
        place.verdict("tune ends with a result", False, "exit code %s: %s" % (code, out.strip()[-300:]))
        return
    place.verdict("tune ends with a result", code == (0 if result["better"] else 1), "exit code %s" % code)
    ends = {d["candidate"]: d["end"] for d in result["dropped"]}
    place.verdict("tune names the setting with wrong sums, and the one that hangs", ends == {WRONG: "wrong", HANG: "hang"},
                  "dropped: %s" % result["dropped"])
    chosen = ["%s=%s" % (s["name"], s["value"]) for s in result["settings"]]
    written = ""
    if result["profile"]:
        with open(os.path.join(place.tmp, result["profile"]), encoding="utf-8") as f:
            written = "".join(line for line in f if not line.startswith(("#", ";"))).replace(" ", "")
    place.verdict("tune chooses neither", not {WRONG, HANG} & set(chosen) and WRONG not in written and HANG not in written,
                  "chosen: %s" % chosen)
    print("note: tune took %.0f s and %d benches; better: %s, chosen: %s; %s" % (
        took, result["benches"], result["better"], ", ".join(chosen) or "none", result["verdict"]))
    place.save("tampered-tune.json", json.dumps(result, indent=1))


def main():
    parser = argparse.ArgumentParser(description="tune with an NCCL that is wrong or stuck under some settings")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--budget", type=int, default=36)
    opt = parser.parse_args()
    place = Place(opt.simulate, opt.budget)
    reason = place.reason
    if place.layout and not real_nccl(place):
        reason = "no libnccl.so.2 in the loader's path"
    elif not os.path.exists(os.path.join(place.build, "tampered", "libnccl.so.2")):
        reason = "no tampered NCCL: make tampered"
    if reason:
        place.close()
        print("skip tampered: " + reason)
        return 77
    mark = "%d-%d" % (os.getpid(), time.time_ns())
    env = {"NCCLSHIM_NCCL": tampered(place), MARK: mark}
    if opt.simulate:
        env["NCCLSHIM_FAKE_PACE"] = "0"
    args = ["--sizes", "42K", "--graph", "--calls", 12, "--ranks", 2] + (["--one-gpu"] if place.one_gpu else [])
    bench_ends(place, env, args, "TAMPERED_WRONG", WRONG, "wrong")
    bench_ends(place, env, args, "TAMPERED_HANG", HANG, "hang")
    tune_keeps_away(place, env, args, opt.budget)
    left = left_behind(mark)
    place.verdict("no process is left behind", not left, str(left))
    place.save("tampered.json", json.dumps(place.results, indent=1))
    return place.close()


if __name__ == "__main__":
    sys.exit(main())
