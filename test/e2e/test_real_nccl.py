# SPDX-License-Identifier: Apache-2.0
"""The real libnccl without a GPU: NCCL's own questions for variables, answered through the shim's env door."""
import glob
import os
import sys

import pytest

import logmaker

ASKED, SETTING = 10, 4
USER, PROFILE, OVERRIDE = 0, 1, 2

CLIENT = """
import ctypes, sys
nccl = ctypes.CDLL(sys.argv[1])
version = ctypes.c_int()
assert nccl.ncclGetVersion(ctypes.byref(version)) == 0
class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]
uid, comm = Id(), ctypes.c_void_p()
assert nccl.ncclGetUniqueId(ctypes.byref(uid)) == 0 and any(bytes(uid))
nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
result = nccl.ncclCommInitRank(ctypes.byref(comm), 1, uid, 0)  # fails: there is no GPU
print(version.value, result)
"""


def real_nccl():
    places = [os.environ.get("NCCL_HOME", ""), "/usr/local/cuda", *glob.glob("/usr/local/cuda-*")]
    found = [p + "/lib/libnccl.so.2" for p in places if p] + ["/usr/lib/x86_64-linux-gnu/libnccl.so.2"]
    return next((f for f in found if os.path.exists(f)), None)


@pytest.fixture
def nccl():
    path = real_nccl()
    if not path:
        pytest.skip("no real libnccl.so.2 here")
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("there is a driver here: the init would go on")
    return path


def test_the_env_door_tells_what_nccl_read_with_value_and_origin(box, nccl):
    profile = box.profile("some", "[env]\nNCCL_SOCKET_FAMILY = AF_INET\nNCCL_NTHREADS = 256\n"
                                  "[env override]\nNCCL_SET_THREAD_NAME = 1\n")
    conf = box.dir / "nccl.conf"
    conf.write_text("NCCL_NVTX_DISABLE=1\n")
    done = box.preload(sys.executable, "-c", CLIENT, nccl,
                       env={"NCCLSHIM_PROFILE": profile, "NCCL_SOCKET_IFNAME": "lo", "NCCL_CONF_FILE": conf,
                            "LD_LIBRARY_PATH": None})
    assert done.code == 0, done
    version, result = map(int, done.out.split()[-2:])
    assert result != 0
    if version < 22807:
        pytest.skip("NCCL %d has no env door" % version)
    (path,) = box.logs.iterdir()
    log = logmaker.parse(path)
    texts = {kind: {n["body"].split(b"\0")[0].decode(): (n["body"].split(b"\0")[1].decode(), n["a"], n["b"])
                    for n in log.notes if n["type"] == kind} for kind in (ASKED, SETTING)}
    asked, setting = texts[ASKED], texts[SETTING]
    assert asked["NCCL_SOCKET_FAMILY"][::2] == ("AF_INET", 1)
    assert asked["NCCL_SOCKET_IFNAME"][::2] == ("lo", 1)
    assert asked["NCCL_SET_THREAD_NAME"][::2] == ("1", 1)
    assert asked["NCCL_NVTX_DISABLE"][::2] == ("1", 1)  # from NCCL's own file
    assert asked["NCCL_COMM_ID"][2] == 0                # asked for, and not set
    assert setting["NCCL_SOCKET_FAMILY"][1] == PROFILE
    assert setting["NCCL_SOCKET_IFNAME"][1] == USER
    assert setting["NCCL_SET_THREAD_NAME"][1] == OVERRIDE
    assert setting["NCCL_NTHREADS"][:2] == ("256", PROFILE)


@pytest.mark.parametrize("how", ["by name", "by path"])
def test_version_and_unique_id_pass_through_the_shim_and_are_the_real_ones(box, nccl, how):
    client = CLIENT.replace("uid, comm", "print(hex(ctypes.cast(nccl.ncclGetVersion, ctypes.c_void_p).value))\nuid, comm")
    client += "\nprint([l for l in open('/proc/self/maps') if 'libncclshim' in l][0].split()[0])\n"
    args = ["libnccl.so.2" if how == "by name" else nccl]
    env = {"LD_LIBRARY_PATH": os.path.dirname(nccl)}
    bare = box.run(sys.executable, "-c", CLIENT, *args, env=env)
    done = box.preload(sys.executable, "-c", client, *args, env=env)
    assert done.code == 0 and bare.code == 0, done
    address, answer, mapped = done.out.strip().splitlines()
    assert answer == bare.out.strip().splitlines()[-1]
    low = int(mapped.split("-")[0], 16)
    assert low <= int(address, 16) < low + (4 << 20)  # ctypes holds the shim's function
