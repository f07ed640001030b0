# SPDX-License-Identifier: Apache-2.0
"""Many threads making, using and ending communicators at once. The same runs under ThreadSanitizer, too
(test/harness/tsan.py)."""
import glob

import logmaker

RANKS, PAIRS = 2, 4


def run(box, rounds):
    done = box.preload(box.build / "clients" / "shapes", "threads-many", env={"SHAPES_ROUNDS": rounds})
    assert done.code == 0 and done.out == "done\n" and done.err == "", done
    logs = glob.glob(str(box.logs / "*.ncclshim"))
    assert len(logs) == 1, logs
    return logmaker.parse(logs[0])


def test_eight_threads_with_communicators_of_two_ranks_leave_the_right_records(box):
    rounds = 60
    log = run(box, rounds)
    made = 2 * rounds * PAIRS * RANKS  # as many again to warm up
    split = made // 4
    assert log.head["comms_lost"] == 0 and len(log.comms) == made + split
    assert sum(c["wrapped_calls"] for c in log.comms) == made + 2 * split
    assert all(c["missed_calls"] == c["failed_calls"] == 0 and c["state"] == 4 for c in log.comms)
    assert sum(len(r["records"]) for r in log.rings.values()) == made + 2 * split
    # NCCL told of each of them, and of no two the same: its hash is that of the communicator, over both ranks
    hashes = [c["hash"] for c in log.comms]
    assert 0 not in hashes and all(hashes.count(h) == RANKS for h in set(hashes))


def test_five_thousand_communicators_of_eight_threads_take_no_memory(box):
    """The client itself looks: less than 1 MiB after 5,000 as many again have been there."""
    log = run(box, 1250)
    assert log.head["state"] == 2
