# SPDX-License-Identifier: Apache-2.0
"""usage: by_ctypes.py LIBRARY CALLS: NCCL opened by Python's ctypes, by name or by path, as vLLM and SGLang do.

The functions are looked up on the handle by ctypes. Some are called by ctypes; then the same addresses go to
CALLS (libcompat.so), which does what every other client does.
"""
import ctypes
import os
import sys

NAMES = ("GetVersion GetUniqueId GetErrorString GroupStart GroupEnd CommInitRank CommCount CommUserRank AllReduce "
         "CommDestroy").split()  # the order of struct calls


def main():
    nccl = ctypes.CDLL(sys.argv[1])
    calls = ctypes.CDLL(sys.argv[2])
    version = ctypes.c_int()
    assert nccl.ncclGetVersion(ctypes.byref(version)) == 0
    assert nccl.ncclGroupStart() == 0 and nccl.ncclGroupEnd() == 0
    nccl.ncclGetErrorString.restype = ctypes.c_char_p
    print("ctypes %d %s" % (version.value, nccl.ncclGetErrorString(5).decode()))
    for name in filter(None, os.environ.get("COMPAT_ABSENT", "").split(",")):
        if hasattr(nccl, name):
            print("found " + name)
    sys.stdout.flush()
    table = (ctypes.c_void_p * len(NAMES))(
        *[ctypes.cast(getattr(nccl, "nccl" + name), ctypes.c_void_p).value for name in NAMES])
    one = (ctypes.c_void_p * 1)(ctypes.addressof(table))
    calls.calls_main(one, 1)


main()
