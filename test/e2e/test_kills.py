# SPDX-License-Identifier: Apache-2.0
"""T05: a process that ends in mid-replay, however it ends, loses no finished call and shows no torn record.

NCCLSHIM_KILLS says how often each end is tried (5)."""
import os
import struct

import pytest

import logmaker

TIMES = int(os.environ.get("NCCLSHIM_KILLS", "5"))
CALLS, RANKS = 20, 2


@pytest.mark.parametrize("end", ["kill", "abort", "_exit", "exec"])
def test_t05_an_end_in_mid_replay_loses_nothing_that_was_finished(box, end):
    profile = box.profile("small", "[log]\ncapacity = 64K\n")
    torn = 0
    for number in range(TIMES):
        progress = box.dir / ("progress-%d" % number)
        done = box.preload(box.build / "clients" / "shapes", "process-mid-replay",
                           env={"SHAPES_END": end, "SHAPES_PROGRESS": progress, "NCCLSHIM_PROFILE": profile,
                                "NCCLSHIM_FAKE_PACE": "0"})
        assert done.code == {"kill": -9, "abort": -6}.get(end, 0), done
        (path,) = box.logs.iterdir()
        log = logmaker.parse(path)
        finished = struct.unpack("<2Q", progress.read_bytes())
        assert min(finished) > 0, "it ended before the first replay: %r" % (finished,)
        for c in log.comms:
            ring = log.rings[c["ring"]]
            torn += ring["half"]
            kept = [k for k, record in ring["records"].items() if log.sites[record[0]]["flags"] & 1]
            total = max(ring["records"]) + 1
            assert total >= finished[c["rank"]] * CALLS, (total, finished)
            assert len(kept) == min(total, ring["capacity"]), (len(kept), total)
        report = box.json("report", path)
        assert report["log"]["torn"] <= RANKS and not report["run"]["closed"]
        path.unlink()
    assert torn <= TIMES  # at most the one that was being written
