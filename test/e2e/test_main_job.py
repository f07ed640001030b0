# SPDX-License-Identifier: Apache-2.0
"""A server under a profile, every all-reduce of every replay in the report."""
import os
import re
import signal
import struct
import subprocess
import tempfile
import time

import pytest

SIZES = ("--calls", 122, "--bytes", 43008, "--prefill-calls", 3, "--prefill-bytes", "1M", "--compute-us", 0, "--limit", 60)


@pytest.mark.parametrize("profile", ["none", "fewer-channels", "sixteen-channels", "decode-graph"])
def test_every_replayed_and_every_eager_call_is_timed(box, profile):
    run = box.dir / "run"
    done = box.cli("run", "-p", profile, "-o", run, "--", box.server, "--requests", 2, "--steps", 5, *SIZES)
    assert done.code == 0, done
    assert "sums: right" in done.out, done
    assert re.search(r"^ncclshim: .*" + re.escape(profile), done.err, re.M), done
    # 2 ranks; 2 requests of 5 replays; prefill: 3 a request and one when the server warms up, as decode
    assert box.calls(run) == {(True, 43008): 2 * 10 * 122, (False, 1 << 20): 2 * 7, (False, 43008): 2 * 1}
    text = box.cli("report", run)
    assert text.code == 0 and profile in text.out, text


def test_all_ranks_in_one_process_are_seen_apart(box):
    run = box.dir / "run"
    done = box.cli("run", "-p", "none", "-o", run, "--", box.server, "--one-process", "--ranks", 3, "--requests", 1,
                   "--steps", 3, *SIZES)
    assert done.code == 0, done
    assert box.calls(run)[True, 43008] == 3 * 3 * 122


def test_after_sigkill_in_mid_replay_every_finished_call_is_in_the_report(box):
    run = box.dir / "run"
    done = box.cli("run", "-p", "none", "-o", run, "--", box.server, "--requests", 1, "--steps", 8, "--die-mid-replay",
                   *SIZES)
    assert done.code in (128 + signal.SIGKILL, -signal.SIGKILL), done
    assert "killing itself in replay 5 of 122 calls" in done.out, done
    text = box.cli("report", run)
    assert text.code == 0, text
    assert "not closed" in text.out, text
    seen = box.calls(run)[True, 43008]
    assert 2 * 4 * 122 <= seen <= 2 * 5 * 122


def test_a_running_server_can_be_looked_at(box):
    with open(box.dir / "out", "wb") as out:
        server = box.start(box.server, "--hold", "--steps", 5, *SIZES, env={"LD_PRELOAD": box.shim}, stdout=out,
                           stderr=out)
        deadline = time.monotonic() + 20
        text = box.cli("report")
        while "all_reduce" not in text.out and time.monotonic() < deadline:
            time.sleep(0.5)
            text = box.cli("report")
        server.send_signal(signal.SIGTERM)
        code = server.wait(20)
    assert code == 0, (box.dir / "out").read_text()
    assert text.code == 0 and "all_reduce" in text.out, text


SITES, RING = 3, 4  # section types; see docs/log-format.md


def section_heads(head):
    """(type, offset, used) of each section that a log's first page announces."""
    for i in range(48 if len(head) == 4096 else 0):
        kind, _, offset, _, used = struct.unpack_from("<IIQQQ", head, 320 + 32 * i)
        yield kind, offset, used


def has_record_of_no_call(log):
    """Is there a record in a ring while no call site is known yet?"""
    with open(log, "rb") as f:
        for kind, offset, _ in section_heads(f.read(4096)):
            if kind != RING:
                continue
            f.seek(offset + 4096)
            record = f.read(32)
            f.seek(0)
            if any(record) and not any(k == SITES and used for k, _, used in section_heads(f.read(4096))):
                return True
    return False


def test_what_the_shim_measures_for_itself_never_shows_in_the_ring(box):
    # A collector may look at any moment: a record of no call site would cost it the calls that follow.
    early = 0
    for _ in range(4):
        server = box.start(box.server, "--one-process", "--ranks", 4, "--requests", 1, "--steps", 1, *SIZES,
                           env={"LD_PRELOAD": box.shim}, stdout=subprocess.DEVNULL)
        while server.poll() is None:
            early += sum(has_record_of_no_call(log) for log in box.logs.glob("*.ncclshim"))
        assert server.returncode == 0
    assert early == 0


def test_logs_on_a_disk_count_the_calls_and_say_what_is_missing(box):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as disk:
        kind = subprocess.run(["stat", "-f", "-c", "%T", disk], capture_output=True, text=True, check=True).stdout.strip()
        if kind in ("tmpfs", "ramfs"):
            pytest.skip("/var/tmp is no disk here")
        done = box.cli("run", "-o", "r", "--log-dir", os.path.join(disk, "logs"), "--", box.server, "--requests", "1",
                       "--steps", "3")
        assert done.code == 0 and "sums: right" in done.out and "calls counted but not timed" in done.err, done
        assert "which must lie on tmpfs" in " ".join(box.cli("report", "r").out.split())
