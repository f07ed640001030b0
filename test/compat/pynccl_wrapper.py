# SPDX-License-Identifier: Apache-2.0
"""usage: pynccl_wrapper.py WRAPPER LIBRARY ROUNDS: the very file with which vLLM or SGLang reaches NCCL.

torch and the server's own packages are not needed by what it does with NCCL, and stand-ins take their place.
ROUNDS 0: as far as it goes without a GPU; else two ranks (threads) on the driver, sums checked.
"""
import importlib.util
import sys
import threading
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
sys.dont_write_bytecode = True

# Small integers are exact sums as floats too: as bit patterns they are denormal. Float is in every build of NCCL.
RANKS, COUNT, FLOAT32, SUM = 2, 1024, 7, 0


class Anything(types.ModuleType):
    """A module, class or function of whatever name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = Anything(self.__name__ + "." + name)
        setattr(self, name, made)
        return made

    def __call__(self, *args, **kwargs):
        return False


def load(path):
    for name in ("torch", "torch.distributed", "vllm", "vllm.envs", "vllm.logger", "vllm.platforms", "vllm.utils",
                 "vllm.utils.nccl", "vllm.utils.torch_utils", "sglang", "sglang.srt"):
        sys.modules[name] = Anything(name)
    sys.modules["vllm.logger"].init_logger = __import__("logging").getLogger
    spec = importlib.util.spec_from_file_location("wrapper", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["wrapper"] = module
    spec.loader.exec_module(module)
    return module


def one_rank(wrapper, library, uid, rank, rounds, barrier, faults):
    from cuda_ctypes import Driver, DriverRank
    try:
        gpu = DriverRank(Driver(), rank, COUNT)
        comm = library.ncclCommInitRank(RANKS, uid, rank)
        for i in range(rounds):
            gpu.fill(rank + 1)
            barrier.wait(30)
            if i % 2:
                library.ncclGroupStart()
            buffer = wrapper.buffer_type(gpu.pointer.value if hasattr(gpu.pointer, "value") else gpu.pointer)
            library.ncclAllReduce(buffer, buffer, COUNT, FLOAT32, SUM, comm, wrapper.cudaStream_t(gpu.stream.value))
            if i % 2:
                library.ncclGroupEnd()
            gpu.synchronize()
            assert gpu.holds(3), "a wrong sum"
        barrier.wait(30)
        library.ncclCommDestroy(comm)
    except BaseException as fault:  # noqa: B902 - the other rank must not wait for ever
        faults.append("rank %d: %r" % (rank, fault))
        barrier.abort()


def main():
    path, so_file, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    wrapper = load(path)
    library = wrapper.NCCLLibrary(so_file)
    uid = library.ncclGetUniqueId()
    assert any(bytes(uid)), "an empty id"
    print("version %s, %s" % (library.ncclGetVersion(), library.ncclGetErrorString(4)))
    if rounds:
        barrier, faults = threading.Barrier(RANKS), []
        threads = [threading.Thread(target=one_rank, args=(wrapper, library, uid, r, rounds, barrier, faults))
                   for r in range(RANKS)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        if faults:
            sys.exit("\n".join(faults))
        print("sums good")


main()
