#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One process with both ways to NCCL: torch.distributed's ProcessGroupNCCL (libtorch_cuda is linked to
libnccl.so.2) and pynccl_client (ctypes). Two ranks as threads; each library makes its own communicator.

Prints one line "OK ..." for each of the two, after the sums were checked.
"""
import argparse
import os
import sys
import threading
from datetime import timedelta

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import pynccl_client  # noqa: E402
from nccl_ctypes import Nccl  # noqa: E402

RANKS = 2


def torch_part(torch, dist, store, rank, opt, barrier):
    """Eager all-reduces through a ProcessGroupNCCL of this thread's own."""
    device = 0 if opt.one_gpu else rank
    torch.cuda.set_device(device)
    group_options = dist.ProcessGroupNCCL.Options()
    group_options._timeout = timedelta(seconds=60)
    group = dist.ProcessGroupNCCL(store, rank, RANKS, group_options)
    tensor = torch.zeros(3 * 7168, dtype=torch.bfloat16, device="cuda:%d" % device)
    torch.cuda.synchronize(device)
    barrier.wait(60)
    for _ in range(opt.calls):
        tensor.fill_(rank + 1.0)
        group.allreduce([tensor]).wait()
    torch.cuda.current_stream(device).synchronize()
    if not bool((tensor == 3.0).all().item()):
        raise RuntimeError("torch: rank %d: wrong sum" % rank)
    barrier.wait(60)
    return group


def both(torch, dist, store, rank, opt, client_opt, nccl, uid, barrier):
    group = torch_part(torch, dist, store, rank, opt, barrier)
    pynccl_client.run_rank(client_opt, nccl, "torch", rank, uid, barrier)
    barrier.wait(60)
    del group


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default="libnccl.so.2", help="what ctypes opens: name or absolute path")
    parser.add_argument("--one-gpu", action="store_true")
    parser.add_argument("--calls", type=int, default=20, help="all-reduces through torch (20)")
    parser.add_argument("--replays", type=int, default=10)
    opt = parser.parse_args()
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        print("skip: no torch here")
        return 77
    gpus = torch.cuda.device_count()
    if gpus < (1 if opt.one_gpu else RANKS):
        print("skip: %d GPUs here" % gpus)
        return 77
    # torch first, so that its own libnccl.so.2 is loaded and an absolute path gives a second copy.
    nccl = Nccl(opt.library)
    uid, store, barrier, faults = nccl.unique_id(), dist.HashStore(), threading.Barrier(RANKS), []
    client_opt = pynccl_client.options(["--threads", "--library", opt.library, "--replays", str(opt.replays)]
                                       + (["--one-gpu"] if opt.one_gpu else []))

    def thread(rank):
        try:
            both(torch, dist, store, rank, opt, client_opt, nccl, uid, barrier)
        except BaseException as fault:  # noqa: B902 - the other rank must not wait for ever
            faults.append("rank %d: %s: %s" % (rank, type(fault).__name__, fault))
            barrier.abort()

    threads = [threading.Thread(target=thread, args=(rank,), daemon=True) for rank in range(RANKS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    if any(t.is_alive() for t in threads):
        faults.append("a rank was still running after 120 s")
    if faults:
        print("torch_and_pynccl: " + "; ".join(faults), file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)  # threads that hang in NCCL can't be joined
    where = "two ranks on one GPU" if opt.one_gpu else "two GPUs"
    print("OK torch.distributed: %d all-reduces a rank, NCCL %s, %s" % (
        opt.calls, ".".join(map(str, torch.cuda.nccl.version())), where))
    print("OK pynccl %s: %d eager and %d x %d captured all-reduces a rank, NCCL %d, %s" % (
        opt.library, client_opt.eager, opt.replays, client_opt.calls, nccl.version(), where))
    return 0


if __name__ == "__main__":
    sys.exit(main())
