# SPDX-License-Identifier: Apache-2.0
"""A server under a profile, every all-reduce of every replay in the report."""
import re
import signal
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
