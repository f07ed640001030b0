# SPDX-License-Identifier: Apache-2.0
"""Clients that no preloaded library can be in front of: the log and the report say so, with the path. And clients
that look as if: NCCL inside another library, NCCL that is closed and opened again."""
import glob
import re
import sys
from pathlib import Path

import pytest

import logmaker

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "compat"))
import cells  # noqa: E402

ROUNDS, RANKS = 4, 2
CALLS = ROUNDS * RANKS
WITH_DOORS = "2.28.9"  # box.fake
BEFORE_DOORS = "2.14.3"


def before_doors(box):
    """The folder of that NCCL; without it the loader would take another one."""
    folder = cells.fake_folder(box.build, BEFORE_DOORS)
    if not folder.exists():
        pytest.skip("the simulated NCCL %s is not built" % BEFORE_DOORS)
    return folder


def client(box, *args, version=None, shim=True, **env):
    env = {"COMPAT_ROUNDS": str(ROUNDS), **env}
    if version:
        env["LD_LIBRARY_PATH"] = "%s:%s" % (cells.fake_folder(box.build, version), box.fake)
    start = box.preload if shim else box.run
    done = start(box.build / "compat" / "way", *args, env=env)
    assert done.code == 0 and "sums good" in done.out and done.err == "", done
    return done


def the_log(box):
    logs = glob.glob(str(box.logs / "*.ncclshim"))
    assert len(logs) == 1, logs
    return logmaker.parse(logs[0])


def missed_paths(log):
    return [n["body"].split(b"\0")[0].decode() for n in log.notes if n["type"] == logmaker.NOTE_MISSED]


WAYS = {
    "deep binding": (["deep", "PLUGIN"], {}),
    "pncclX": (["strong", "libnccl.so.2"], {}),
    "NCCLSHIM_DLSYM=0": (["handle", "libnccl.so.2"], {"NCCLSHIM_DLSYM": "0"}),
}


def args_of(box, way):
    args, env = WAYS[way]
    return [str(box.build / "compat" / "plugin.so") if a == "PLUGIN" else a for a in args], env


@pytest.mark.parametrize("way", WAYS)
def test_p02_a_bypassing_client_is_reported_with_the_mapped_path(box, way):
    args, env = args_of(box, way)
    done = client(box, *args, **env)
    assert "shim 0" in done.out, done
    log = the_log(box)
    assert sum(c["missed_calls"] for c in log.comms) == CALLS
    assert sum(c["wrapped_calls"] for c in log.comms) == 0
    assert missed_paths(log) == [str(box.fake / "libnccl.so.2")]
    report = box.cli("report")
    assert report.code == 0, report
    assert "%d of %d calls were not intercepted" % (CALLS, CALLS) in report.out, report
    assert str(box.fake / "libnccl.so.2") in report.out, report


@pytest.mark.parametrize("way", WAYS)
def test_p02_a_bypassing_client_of_an_nccl_without_plugins_is_noticed_too(box, way):
    args, env = args_of(box, way)
    folder = before_doors(box)
    client(box, *args, version=BEFORE_DOORS, **env)
    assert missed_paths(the_log(box)) == [str(folder / "libnccl.so.2")]
    report = box.cli("report")
    assert "is loaded, and no call to it came through the shim" in " ".join(report.out.split()), report


def test_nccl_that_is_loaded_and_never_used_is_not_called_missed(box):
    """As in any process that imports torch. The wrapper was called, or nothing was: no log at all."""
    done = box.preload(sys.executable, "-c", "import ctypes; n = ctypes.CDLL('libnccl.so.2'); n.ncclGroupStart")
    assert done.code == 0 and done.err == "", done
    assert not glob.glob(str(box.logs / "*")), glob.glob(str(box.logs / "*"))


def test_nccl_inside_another_library_that_exports_it_is_wrapped(box):
    """PyTorch's conda packages: libtorch_cuda.so holds NCCL, and there is no libnccl.so."""
    library = box.build / "compat" / "torch_like.so"
    done = client(box, "plugin", library)
    assert "shim 10" in done.out, done
    log = the_log(box)
    assert [c["wrapped_calls"] for c in log.comms] == [ROUNDS] * RANKS
    assert [c["missed_calls"] for c in log.comms] == [0] * RANKS
    paths = [n["body"].split(b"\0")[0].decode() for n in log.notes if n["type"] == logmaker.NOTE_LIBRARY]
    assert paths == [str(library)]


def test_nccl_hidden_inside_another_library_is_counted_by_its_plugins(box):
    done = client(box, "plugin", box.build / "compat" / "torch_like_hidden.so")
    assert "shim 0" in done.out, done
    log = the_log(box)
    assert sum(c["missed_calls"] for c in log.comms) == CALLS
    assert "%d of %d calls were not intercepted" % (CALLS, CALLS) in box.cli("report").out


def test_a_library_with_nccl_inside_beside_a_libnccl(box):
    """pytorch#42517: two copies, one static. Each communicator stays with the copy that made it."""
    done = client(box, "two", box.fake / "libnccl.so.2", box.build / "compat" / "torch_like.so")
    assert done.out.count("shim 10") == 2, done
    log = the_log(box)
    assert len(log.comms) == 2 * RANKS
    assert {c["library"] for c in log.comms} == {0, 1}
    assert all(c["wrapped_calls"] == ROUNDS for c in log.comms)


@pytest.mark.parametrize("way,times", [("reopen", 3), ("closed-first", 2)])
def test_nccl_closed_and_opened_again(box, way, times):
    done = client(box, way, box.fake / "libnccl.so.2")
    assert done.out.count("sums good") == times, done
    log = the_log(box)
    assert [c["wrapped_calls"] for c in log.comms] == [ROUNDS] * RANKS * times
    assert len([n for n in log.notes if n["type"] == logmaker.NOTE_LIBRARY]) == 1


def test_a_function_that_the_loaded_nccl_lacks_is_an_invalid_usage_with_one_message(box):
    """P04: a program that bound to the name finds the shim's; it must not look as if it had worked."""
    folder = before_doors(box)
    code = ("import ctypes; n = ctypes.CDLL('libnccl.so.2'); v = ctypes.c_int(); n.ncclGetVersion(ctypes.byref(v));"
            "g = ctypes.CDLL(None); print([g.ncclCommSplit(None, 0, 0, None, None) for _ in range(3)], v.value)")
    done = box.preload(sys.executable, "-c", code, env={"LD_LIBRARY_PATH": folder})
    assert done.code == 0 and done.out == "[5, 5, 5] 21403\n", done
    assert done.err.count("\n") == 1 and "ncclCommSplit" in done.err and "2.14.3" in done.err, done
    assert str(folder / "libnccl.so.2") in done.err


def test_p04_every_function_that_the_loaded_nccl_lacks_is_an_invalid_usage(box):
    source = (box.root / "shim" / "preload" / "nccl_api.h").read_text()
    owned = {"nccl" + name for name in re.findall(r"^    OWN\((\w+),", source, re.M)}
    late = sorted(name for name, since in cells.table().items() if name in owned and since > cells.code(BEFORE_DOORS))
    assert {"ncclCommShrink", "ncclAllReduceConfig", "ncclPutSignal", "ncclAlltoAll"} <= set(late)
    code = ("import ctypes, sys; n = ctypes.CDLL('libnccl.so.2'); v = ctypes.c_int(); n.ncclGetVersion(ctypes.byref(v));"
            "g = ctypes.CDLL(None); nothing = [ctypes.c_void_p()] * 14;"
            "print(*[getattr(g, name)(*nothing) for name in sys.argv[1:]])")
    done = box.preload(sys.executable, "-c", code, *late, env={"LD_LIBRARY_PATH": before_doors(box)})
    assert done.code == 0 and done.out.split() == ["5"] * len(late), done
    assert done.err.count("\n") == 1 and late[0] in done.err, done  # told once


def test_p03_without_any_nccl_the_answer_is_a_system_error_and_one_line(box):
    code = "import ctypes; g = ctypes.CDLL(None); print([g.ncclGroupStart() for _ in range(3)])"
    done = box.preload(sys.executable, "-c", code, env={"LD_LIBRARY_PATH": None})
    assert done.code == 0 and done.out == "[2, 2, 2]\n", done
    assert done.err.count("\n") == 1 and "NCCLSHIM_NCCL" in done.err, done


def test_p03_a_configured_path_is_the_last_resort(box):
    code = ("import ctypes; g = ctypes.CDLL(None); v = ctypes.c_int(); print(g.ncclGetVersion(ctypes.byref(v)), v.value)")
    env = {"LD_LIBRARY_PATH": None, "NCCLSHIM_NCCL": box.fake / "libnccl.so.2"}
    done = box.preload(sys.executable, "-c", code, env=env)
    assert done.code == 0 and done.out == "0 22809\n" and done.err == "", done
