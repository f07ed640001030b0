# SPDX-License-Identifier: Apache-2.0
"""examples/pynccl_client.py on the simulator: opened by name and by path, ranks as processes and threads."""
import sys

import pytest

SMALL = ("--eager", 3, "--replays", 2, "--calls", 5, "--count", 512)


def client(box, *args, **kwargs):
    return box.run(sys.executable, "-B", box.root / "examples" / "pynccl_client.py", "--backend", "driver", *SMALL, *args,
                   **kwargs)


@pytest.mark.parametrize("way", [("--threads",), ()])
@pytest.mark.parametrize("by_path", [False, True])
def test_its_sums_are_right(box, way, by_path):
    library = box.fake / "libnccl.so.2" if by_path else "libnccl.so.2"
    done = client(box, "--library", library, *way)
    assert done.code == 0, done
    assert "3 eager, 2 replays of 5 captured: sums right" in done.out, done


def test_without_a_gpu_it_uses_what_works_without_one(box):
    done = box.run(sys.executable, "-B", box.root / "examples" / "pynccl_client.py", "--backend", "none")
    assert done.code == 0, done
    assert "version, unique id, error string, empty group: good" in done.out


@pytest.mark.parametrize("way", [("--threads",), ()])
@pytest.mark.parametrize("by_path", [False, True])
def test_the_shim_sees_all_its_calls(box, way, by_path):
    library = box.fake / "libnccl.so.2" if by_path else "libnccl.so.2"
    run = box.dir / "run"
    done = box.cli("run", "-p", "none", "-o", run, "--", sys.executable, "-B",
                   box.root / "examples" / "pynccl_client.py", "--backend", "driver", *SMALL, "--library", library, *way)
    assert done.code == 0, done
    assert "sums right" in done.out, done
    assert box.calls(run) == {(True, 2048): 2 * 2 * 5, (False, 2048): 2 * 3}
