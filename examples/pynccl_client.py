#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client that opens NCCL with ctypes and calls it through the handle, as vLLM's and SGLang's pynccl do.

A library that is only preloaded does not see such a client: names are looked up on a handle, not in the
global scope. With torch and GPUs, memory and streams are torch's and the decode step is captured with
torch.cuda.graph; without torch but with a driver (real or simulated) both come from the driver API; with
neither, only what NCCL does without a GPU is called.
"""
import argparse
import multiprocessing
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from nccl_ctypes import Nccl, NcclError, UniqueId  # noqa: E402


def options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="libnccl.so.2", help="name or absolute path (libnccl.so.2)")
    parser.add_argument("--backend", choices=("auto", "torch", "driver", "none"), default="auto")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", action="store_true", help="ranks are threads of one process")
    parser.add_argument("--one-gpu", action="store_true",
                        help="all ranks on device 0; needs --threads, NCCL 2.30.3, NCCL_MULTI_RANK_GPU_ENABLE=1")
    parser.add_argument("--eager", type=int, default=20, help="eager all-reduces (20)")
    parser.add_argument("--replays", type=int, default=10, help="replays of the captured graph (10)")
    parser.add_argument("--calls", type=int, default=122, help="all-reduces in the graph (122)")
    parser.add_argument("--count", type=int, default=3 * 7168, help="elements (3 x 7168)")
    chosen = parser.parse_args(arguments)
    if chosen.one_gpu and not chosen.threads:
        parser.error("--one-gpu needs --threads")
    return chosen


def torch_has_gpus():
    try:
        import torch
        return torch.cuda.is_available()
    except ImportError:
        return False


def choose_backend(opt):
    if opt.backend != "auto":
        return opt.backend
    if torch_has_gpus():
        return "torch"
    from cuda_ctypes import Driver, DriverError
    try:
        return "driver" if Driver().device_count() else "none"
    except (OSError, DriverError):
        return "none"


def make_rank(backend, device, count):
    if backend == "torch":
        from cuda_torch import TorchRank
        return TorchRank(device, count)
    from cuda_ctypes import Driver, DriverRank
    return DriverRank(Driver(), device, count)


def expected(ranks, calls):
    """Rank r starts with r + 1; each in-place sum after the first multiplies by the number of ranks."""
    return ranks * (ranks + 1) // 2 * ranks ** (calls - 1)


def require(rank, what, right):
    if not right:
        raise SystemExit("pynccl_client: rank %d: wrong sum after %s" % (rank, what))


class Client:
    """One rank. The steps are apart, so that a caller can let all ranks finish one before the next: ranks
    that share a GPU must have allocated, captured and instantiated before any of them runs."""

    def __init__(self, opt, nccl, backend, rank):
        self.opt, self.nccl, self.rank = opt, nccl, rank
        self.gpu = make_rank(backend, 0 if opt.one_gpu else rank, opt.count)

    def connect(self, uid):
        self.comm = self.nccl.init_rank(self.opt.ranks, uid, self.rank)

    def all_reduce(self):
        self.nccl.all_reduce(self.comm, self.gpu.pointer, self.gpu.count, self.gpu.dtype, self.gpu.stream)

    def run_eager(self):
        for _ in range(self.opt.eager):
            self.gpu.fill(self.rank + 1)
            self.all_reduce()
        self.gpu.synchronize()
        if self.opt.eager:
            require(self.rank, "an eager all-reduce", self.gpu.holds(expected(self.opt.ranks, 1)))

    def capture(self):
        def work():
            for _ in range(self.opt.calls):
                self.all_reduce()

        self.gpu.capture(work)

    def run_replays(self):
        for _ in range(self.opt.replays):
            self.gpu.fill(self.rank + 1)
            self.gpu.replay()
        self.gpu.synchronize()
        if self.opt.replays:
            require(self.rank, "a replay", self.gpu.holds(expected(self.opt.ranks, self.opt.calls)))

    def close(self):
        self.gpu.close()
        self.nccl.destroy(self.comm)


def run_rank(opt, nccl, backend, rank, uid, barrier):
    client = Client(opt, nccl, backend, rank)
    barrier.wait(60)
    client.connect(uid)
    barrier.wait(60)
    client.run_eager()
    barrier.wait(60)
    client.capture()
    barrier.wait(60)
    client.run_replays()
    barrier.wait(60)
    client.close()


def run_threads(opt, nccl, backend):
    barrier = threading.Barrier(opt.ranks)
    uid = nccl.unique_id()
    faults = []

    def main(rank):
        try:
            run_rank(opt, nccl, backend, rank, uid, barrier)
        except BaseException as fault:  # noqa: B902 - whatever it is, the others must not wait for ever
            faults.append("rank %d: %s: %s" % (rank, type(fault).__name__, fault))
            barrier.abort()

    threads = [threading.Thread(target=main, args=(rank,), daemon=True) for rank in range(opt.ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


def process_main(opt, backend, rank, uid, barrier):
    run_rank(opt, Nccl(opt.library), backend, rank, UniqueId.from_buffer_copy(uid), barrier)


def run_processes(opt, nccl, backend):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(opt.ranks)
    uid = bytes(nccl.unique_id())
    processes = [context.Process(target=process_main, args=(opt, backend, rank, uid, barrier))
                 for rank in range(opt.ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return ["rank %d ended with %s" % (rank, p.exitcode) for rank, p in enumerate(processes) if p.exitcode != 0]


def without_gpu(nccl):
    nccl.unique_id()
    nccl.group()
    if nccl.error_string(4) is None:
        raise NcclError("ncclGetErrorString gave nothing")
    print("pynccl_client: %s: NCCL %d, no GPU: version, unique id, error string, empty group: good"
          % (nccl.library, nccl.version()))


def main():
    opt = options()
    nccl = Nccl(opt.library)
    backend = choose_backend(opt)
    if backend == "none":
        without_gpu(nccl)
        return 0
    faults = run_threads(opt, nccl, backend) if opt.threads else run_processes(opt, nccl, backend)
    for fault in faults:
        print("pynccl_client: " + fault, file=sys.stderr)
    if faults:
        return 1
    print("pynccl_client: %s: NCCL %d, %d ranks (%s, %s%s): %d eager, %d replays of %d captured: sums right"
          % (opt.library, nccl.version(), opt.ranks, "threads" if opt.threads else "processes", backend,
             ", one GPU" if opt.one_gpu else "", opt.eager, opt.replays, opt.calls))
    return 0


if __name__ == "__main__":
    sys.exit(main())
