# SPDX-License-Identifier: Apache-2.0
"""Reading `ncclshim report --json`, for tests that only want to count calls."""


def all_reduces(report, captured, size=None):
    """The all-reduce rows of all communicators; captured or eager ones; all sizes or one."""
    return [row for comm in report["communicators"] for row in comm["rows"]
            if row["operation"] == "all_reduce" and row["captured"] == captured
            and (size is None or row["bytes"] == size)]


def calls(report):
    """{(captured, bytes): runs that were timed, all ranks together}, all-reduces only."""
    found = {}
    for captured in (True, False):
        for row in all_reduces(report, captured):
            key = (captured, row["bytes"])
            found[key] = found.get(key, 0) + row["timed"]
    return found


def summary(rows):
    """Sums over rows; the p50 is that of the row with most calls."""
    timed = sum(row["timed"] for row in rows)
    main = max(rows, key=lambda row: row["timed"], default=None)
    return {"timed": timed, "lost": sum(row["lost"] for row in rows),
            "p50_us": main["time"]["p50_ns"] / 1e3 if timed else None}


def comm_ranks(report):
    """Ranks of communicators seen: a communicator of two ranks whose logs are both there counts 2."""
    return sum(comm["ranks_in_run"] for comm in report["communicators"])


def is_closed(report):
    return report["run"]["closed"]
