# SPDX-License-Identifier: Apache-2.0
"""Ways in to NCCL, a few versions each: the quick part of make test-compat, simulated NCCL only."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "compat"))
import cells  # noqa: E402

FEW = ["2.14.3", "2.23.4", "2.30.7"]  # before NCCL's plugins, with them, newest that is simulated
SECOND = {"2.14.3": "2.30.7", "2.23.4": "2.14.3", "2.30.7": "2.23.4"}


def need(build, *versions):
    for version in versions:
        if not (cells.fake_folder(build, version) / "libnccl.so.2").exists():
            pytest.skip("the simulated NCCL %s is not built (make test and make test-compat do)" % version)


@pytest.mark.parametrize("version", FEW)
@pytest.mark.parametrize("way", [w for w in cells.WAYS if w != "two copies"])
def test_p02_p03_every_call_is_seen_by_this_way_in(build, way, version):
    need(build, version)
    cells.simulated(build, way, version)


@pytest.mark.parametrize("version", FEW)
def test_two_copies_with_groups_open_in_both_keep_their_own_communicators(build, version):
    need(build, version, SECOND[version])
    cells.simulated(build, "two copies", version, SECOND[version])


@pytest.mark.parametrize("version", FEW)
def test_p04_a_look_up_of_what_an_older_nccl_lacks_finds_nothing(build, version):
    need(build, version)
    missing = cells.absent(build, cells.fake_folder(build, version) / "libnccl.so.2")
    if version == "2.14.3":
        assert {"ncclCommSplit", "ncclCommWindowRegister", "ncclMemAlloc"} <= set(missing)
    assert missing
    cells.simulated(build, "dlsym handle", version)  # asks for all of them


def test_a_look_up_on_a_library_that_only_depends_on_nccl(box):
    """Its NCCL was never opened by itself: the loader has no search list for it (glibc crashes on one)."""
    done = box.preload(box.build / "compat" / "way", "through", box.build / "compat" / "plugin.so",
                       env={"COMPAT_ROUNDS": "3"})
    assert done.code == 0 and "shim 10" in done.out and "sums good" in done.out, done
