# SPDX-License-Identifier: Apache-2.0
"""Real clients of NCCL on two GPUs under the shim: torch.distributed (linked), vLLM's and SGLang's own wrappers
(ctypes), CuPy. Sums are checked by each; the log must show each communicator, and NCCL
must have told of no call that no wrapper saw. usage: clients.py [--budget S]

GPU_KIT (default .gpu) may hold wrappers/vllm.py and wrappers/sglang.py; what is not there, or not installed, is skipped
by name. nccl-tests have a script of their own.
"""
import argparse
import glob
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from place import ROOT, Place  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "test", "e2e"))
import logmaker  # noqa: E402

KIT = os.path.abspath(os.environ.get("GPU_KIT", os.path.join(ROOT, ".gpu")))
COUNTED = 64

CUPY = """
import cupy, threading
from cupy.cuda import nccl
uid, faults = nccl.get_unique_id(), []
def rank(r):
    cupy.cuda.Device(%s).use()
    comm = nccl.NcclCommunicator(2, uid, r)
    a = cupy.full(4096, r + 1, dtype=cupy.float32)
    for _ in range(10):
        a.fill(r + 1)
        comm.allReduce(a.data.ptr, a.data.ptr, 4096, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, cupy.cuda.Stream.null.ptr)
    cupy.cuda.Stream.null.synchronize()
    if not bool((a == 3).all()): faults.append(r)
threads = [threading.Thread(target=rank, args=(r,)) for r in range(2)]
[t.start() for t in threads]; [t.join() for t in threads]
assert not faults, faults
print("sums good")
"""


def watch(place, name, args, comms, least, env=None, limit_s=90):
    """Run one client under the shim; `comms` communicators of two ranks, at least `least` calls on each rank.
    Returns its output."""
    folder = tempfile.mkdtemp(prefix="ncclshim-client-", dir="/dev/shm")
    try:
        full = {"LD_PRELOAD": ":".join(filter(None, [place.shim, (env or {}).pop("LD_PRELOAD", None)])),
                "NCCLSHIM_LOG_DIR": folder, **(env or {})}
        code, output = place.run(args, limit_s, full)
        logs = [logmaker.parse(path) for path in glob.glob(folder + "/*.ncclshim")]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    last = (output.strip().splitlines() or ["-"])[-1][:160]
    seen = [c for log in logs for c in log.comms if c["wrapped_calls"] or c["missed_calls"]]
    wrapped, missed = (sum(c[k] for c in seen) for k in ("wrapped_calls", "missed_calls"))
    timed = sum(len(r["records"]) for log in logs for r in log.rings.values())
    print("note: %s: %d communicators' ranks, %d calls wrapped, %d missed, %d times" % (name, len(seen), wrapped, missed, timed))
    place.verdict(name + ": runs under the shim with right sums", code == 0, "exit code %s: %s" % (code, last))
    place.verdict(name + ": each communicator and its calls are in the log",
                  len(seen) == 2 * comms and all(c["wrapped_calls"] >= least for c in seen),
                  "%d ranks, %s calls" % (len(seen), [c["wrapped_calls"] for c in seen]))
    place.verdict(name + ": NCCL's own count equals the calls wrapped",
                  missed == 0 and all(c["flags"] & COUNTED for c in seen), "%d missed" % missed)
    return output


def main():
    parser = argparse.ArgumentParser(description="real clients on GPUs")
    parser.add_argument("--budget", type=int, default=150)
    opt = parser.parse_args()
    place = Place(False, opt.budget)
    if place.layout is None or place.layout not in ("2 GPUs", "one GPU"):
        place.close()
        print("skip clients: " + (place.reason or "for two ranks"))
        return 77
    one = place.layout == "one GPU"
    library = place.nccl_lib
    torch = [sys.executable, "-B", os.path.join(ROOT, "examples", "torch_and_pynccl.py"), "--library", "libnccl.so.2"]
    watch(place, "torch.distributed and a ctypes client", torch + (["--one-gpu"] if one else []), 2, 10,
          {"LD_PRELOAD": library} if one else {})
    for name in ("vllm", "sglang"):
        wrapper = os.path.join(KIT, "wrappers", name + ".py")
        if not os.path.exists(wrapper):
            place.skip(name + "'s wrapper", "no " + wrapper)
            continue
        program = os.path.join(ROOT, "test", "compat", "pynccl_wrapper.py")
        newest = os.path.join(KIT, "nccl", "lib", "libnccl.so.2")  # vLLM's asks for functions of 2.29.7
        watch(place, name + "'s own wrapper",
              [sys.executable, "-B", program, wrapper, newest if os.path.exists(newest) else library, "20"], 1, 20,
              {"SHAPES_ONE_GPU": "1"} if one else {})
    watch(place, "CuPy", [sys.executable, "-c", CUPY % ("0" if one else "r")], 1, 10,
          {"LD_LIBRARY_PATH": os.path.dirname(library)})
    place.save("clients.json", json.dumps(place.results, indent=1))
    return place.close()


if __name__ == "__main__":
    sys.exit(main())
