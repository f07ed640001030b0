#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The other scripts of this folder under compute-sanitizer's memcheck: no access out of bounds in any process. Long, and
not part of make test-gpu, which it runs: by hand. First a program that does store out of bounds must be found.
usage: memcheck.py [--budget S] [--beside N]
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from place import Place, checked  # noqa: E402

# Left out is what judges by time (tampered.py; truth and stuck of cost.sh): the tool needs seconds to start a program, and
# a minute for one with torch. Those stand first, since several scripts run side by side.
SCRIPTS = (["main.sh", "--parts", "both"], ["clients.py"], ["nccl_tests.py"], ["cost.sh", "--parts", "captures,ends"],
           ["main.sh", "--parts", "killed,shapes"], ["settings.sh", "--parts", "tune,max_ctas,named"])

STRAY_STORE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
ptx = b".version 7.0\\n.target sm_60\\n.address_size 64\\n.visible .entry stray(.param .u64 p)\\n{ .reg .b64 %a;" \\
      b" ld.param.u64 %a, [p]; st.global.u64 [%a], %a; ret; }"
def need(r):
    assert r == 0, r
device, ctx, module, function, memory = ctypes.c_int(), *(ctypes.c_void_p() for _ in range(4))
need(cuda.cuInit(0))
need(cuda.cuDeviceGet(ctypes.byref(device), 0))
need(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), device))
need(cuda.cuCtxSetCurrent(ctx))
need(cuda.cuModuleLoadData(ctypes.byref(module), ptx))
need(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"stray"))
need(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(256)))
at = ctypes.c_uint64(memory.value + 256)
params = (ctypes.c_void_p * 1)(ctypes.addressof(at))
cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, params, None)
cuda.cuCtxSynchronize()
"""


def found(folder):
    """(processes that ended under the tool, errors, where the first was)"""
    processes = errors = 0
    first = ""
    for path in glob.glob(folder + "/*.txt"):
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        for number in re.findall(r"ERROR SUMMARY: (\d+) error", text):
            processes += 1
            errors += int(number)
            if int(number) and not first:
                first = text[:1500]
    return processes, errors, first


def control(place, folder):
    os.makedirs(folder)
    place.run(checked(folder, place.shim, [sys.executable, "-c", STRAY_STORE]), 60)
    processes, errors, _ = found(folder)
    place.verdict("memcheck finds a store behind the end of an allocation, with the shim in the process", errors > 0,
                  "%d processes, %d errors" % (processes, errors))


def script(place, folder, words):
    os.makedirs(folder)
    name = words[0]
    out = os.path.join(place.tmp, "out-" + os.path.basename(folder))
    program = ["bash"] if name.endswith(".sh") else [sys.executable, "-B"]
    limit = int(place.left())
    begin = time.monotonic()
    done = subprocess.run(["timeout", "-k", "5", str(limit)] + program + [os.path.join(HERE, name)] + words[1:] +
                          ["--budget", str(limit)], env=dict(os.environ, GPU_MEMCHECK=folder, OUT=out, BUILD=place.build),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    processes, errors, first = found(folder)
    lines = done.stdout.splitlines()
    ended = done.returncode not in (124, 137)
    place.verdict("memcheck over %s: no error" % " ".join(words), processes > 0 and errors == 0 and ended,
                  "%d processes, %d errors%s: %s" % (processes, errors, "" if ended else ", and it did not end in time",
                                                      first.replace("\n", " ")))
    print("note: %s: %d processes, %.0f s, exit code %d; of its own verdicts %d ok, %d not, %d skipped" % (
        " ".join(words), processes, time.monotonic() - begin, done.returncode, sum(w.startswith("ok ") for w in lines),
        sum(w.startswith("not ok ") for w in lines), sum(w.startswith("skip ") for w in lines)), flush=True)
    for line in lines:
        if line.startswith("not ok "):
            print("note: under memcheck " + line[:200], flush=True)


def one(place, folder, words):
    if place.left() < 20:
        place.skip("memcheck over " + " ".join(words), "no time left")
    else:
        script(place, folder, words)


def main():
    parser = argparse.ArgumentParser(description="the other scripts under memcheck")
    parser.add_argument("--budget", type=int, default=580)
    parser.add_argument("--beside", type=int, default=3, help="scripts at a time (3)")
    opt = parser.parse_args()
    place = Place(False, opt.budget)
    if place.layout is None:
        place.close()
        print("skip memcheck: " + place.reason)
        return 77
    control(place, os.path.join(place.tmp, "control"))
    with concurrent.futures.ThreadPoolExecutor(opt.beside) as pool:
        folders = [os.path.join(place.tmp, "found-%d" % number) for number in range(len(SCRIPTS))]
        list(pool.map(one, [place] * len(SCRIPTS), folders, SCRIPTS))  # raises what one of them raised
    place.save("memcheck.json", json.dumps(place.results, indent=1))
    return place.close()


if __name__ == "__main__":
    sys.exit(main())
