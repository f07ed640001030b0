# SPDX-License-Identifier: Apache-2.0
"""Every operation of NCCL by its own function (clients/operations.c): what the log says of it, and its time."""
from collections import Counter

import pytest

from test_shim_shapes import RANKS, issued, records, run, timed

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, ALL_TO_ALL, GATHER, SCATTER = range(8)
SUM, MAX, MIN, NONE = 0, 2, 3, 255
IN_PLACE, CAPTURED = 8, 1
SYMMETRIC, DEVICE_API = 16, 8

# count: operation, bytes of the larger buffer of one rank, reduction, root, in place
CALLS = {
    10: (ALL_REDUCE, 40, MIN, -1, True),
    11: (ALL_REDUCE, 44, SUM, -1, False),
    12: (ALL_REDUCE, 48, NONE, -1, True),  # a reduction that the program made
    20: (REDUCE, 80, MAX, 1, False),
    30: (REDUCE_SCATTER, 120 * RANKS, SUM, -1, False),
    31: (REDUCE_SCATTER, 124 * RANKS, SUM, -1, True),
    40: (BROADCAST, 160, NONE, 1, False),
    41: (BROADCAST, 164, NONE, 0, True),
    50: (ALL_GATHER, 200 * RANKS, NONE, -1, False),
    51: (ALL_GATHER, 204 * RANKS, NONE, -1, True),
    60: (ALL_TO_ALL, 240 * RANKS, NONE, -1, False),
    70: (GATHER, 280 * RANKS, NONE, 1, False),
    80: (SCATTER, 320 * RANKS, NONE, 0, False),
}


@pytest.mark.parametrize("how, runs", [("eager", 1), ("captured", 4)])
def test_every_operation_is_described_and_timed(box, how, runs):
    log = run(box, "operations-" + how)
    described = {}
    for s in log.sites:
        assert bool(s["flags"] & CAPTURED) == (how == "captured")
        described[s["count"]] = (s["op"], s["bytes"], s["redop"], s["root"], bool(s["flags"] & IN_PLACE))
    assert described == CALLS
    ran = Counter(log.sites[site]["count"] for site, *_ in records(log))
    assert ran == {count: runs * RANKS for count in CALLS}


def test_the_report_names_every_operation(box):
    run(box, "operations-eager")
    rows = [row for comm in box.json("report")["communicators"] for row in comm["rows"]]
    assert {(row["operation"], row["bytes"]) for row in rows} >= {
        ("reduce", 80), ("reduce_scatter", 240), ("broadcast", 164), ("all_gather", 408), ("all_to_all", 480),
        ("gather", 560), ("scatter", 640)}
    text = box.cli("report", "--all").out
    for name in ("all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "gather", "scatter"):
        assert name in text, text


def test_a_group_that_is_only_priced_leaves_no_record(box):
    log = run(box, "operations-priced")
    assert timed(log) == {(ALL_REDUCE, 12000, False): RANKS}
    assert issued(log) == {(ALL_REDUCE, 12000): RANKS}


def test_windows_and_device_communicators_are_told_since_their_traffic_is_unseen(box):
    log = run(box, "operations-unseen")
    flags = {c["rank"]: c["flags"] & (SYMMETRIC | DEVICE_API) for c in log.comms}
    assert flags == {0: SYMMETRIC, 1: DEVICE_API}
    comms = box.json("report")["communicators"]
    assert [c["symmetric"] or c["device_api"] for c in comms] == [True]
