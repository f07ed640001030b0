# SPDX-License-Identifier: Apache-2.0
"""examples/decode_server on the simulator, without the shim: what the other tests rest on."""
import re
import signal
import time

import pytest

SMALL = ("--requests", 2, "--steps", 4, "--calls", 10, "--prefill-calls", 2, "--prefill-bytes", "64K", "--limit", 40)


@pytest.mark.parametrize("more", [(), ("--one-process",), ("--ranks", 4), ("--ranks", 3, "--one-process"),
                                  ("--mixed",), ("--compute-us", 0, "--timing"),
                                  ("--delay-rank", 1, "--delay-us", 50)])
def test_its_sums_are_right_and_it_says_how_fast_it_was(box, more):
    done = box.run(box.server, *SMALL, *more)
    assert done.code == 0, done
    assert re.search(r"^tokens/s: [0-9.]+ \(2 requests of 4 steps\)$", done.out, re.M), done
    assert re.search(r"^sums: right \(\d+ checked\)$", done.out, re.M), done
    assert "calls: 8 replays of 10 captured all-reduces of 43008 bytes" in done.out, done


def test_ranks_on_one_gpu_run_when_nccl_allows_it(box):
    newer = box.fake / "nccl-23007"
    if not newer.exists():
        pytest.skip("the simulated NCCL 2.30.7 is not built: make units")
    one_gpu = (*SMALL, "--one-process", "--one-gpu")
    done = box.run(box.server, *one_gpu, env={"LD_LIBRARY_PATH": "%s:%s" % (newer, box.fake), "NCCL_MULTI_RANK_GPU_ENABLE": 1,
                                              "NCCLSHIM_FAKE_SYNC_LOAD": 1})
    assert done.code == 0, done
    assert "all on one GPU" in done.out
    done = box.run(box.server, *one_gpu)
    assert done.code == 1 and "ncclCommInitRank" in done.err, done


@pytest.mark.parametrize("args, word", [(("--bytes", 7), "even"), (("--ranks", "two"), "number"), (("--one-gpu",), "needs"),
                                        (("--nonsense",), "--help"), (("extra",), "extra"), (("--ranks", 9), "GPUs")])
def test_a_wrong_call_is_refused_with_a_reason(box, args, word):
    done = box.run(box.server, *args)
    assert done.code == 2, done
    assert word in done.err, done


def test_it_stops_in_order_when_told(box):
    with open(box.dir / "out", "wb") as out:
        server = box.start(box.server, *SMALL, "--hold", stdout=out, stderr=out)
        time.sleep(1.5)
        server.send_signal(signal.SIGTERM)
        code = server.wait(20)
    text = (box.dir / "out").read_text()
    assert code == 0, text
    assert "tokens/s:" in text


@pytest.mark.parametrize("more", [(), ("--one-process",)])
def test_it_can_kill_itself_in_the_middle_of_a_replay(box, more):
    done = box.run(box.server, *SMALL, "--die-mid-replay", *more)
    assert done.code == -signal.SIGKILL, done
    assert "killing itself in replay 7 of 10 calls" in done.out, done


def test_it_does_not_run_for_ever(box):
    done = box.run(box.server, "--hold", "--limit", 2, timeout=30)
    assert done.code not in (0, 2), done
    assert "--limit" in done.err, done


def test_without_a_driver_it_says_so(box):
    # The simulated NCCL alone, without the simulated driver beside it.
    alone = box.dir / "alone"
    alone.mkdir()
    (alone / "libnccl.so.2").symlink_to(box.fake / "libnccl.so.2")
    done = box.run(box.server, env={"LD_LIBRARY_PATH": alone})
    if done.code == 0:
        pytest.skip("there is a real driver here")
    assert done.code == 2, done
    assert "libcuda.so.1" in done.err or "cuInit" in done.err, done
