# SPDX-License-Identifier: Apache-2.0
"""`tune` on the simulator: its cost model rewards peer access, no graph mixing and the tree for tiny messages of
many ranks, so what should be found is known."""
import itertools
import json
import math
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

FAST = {"NCCLSHIM_FAKE_PACE": "0"}
SPACE = """
[env]
NCCL_P2P_LEVEL = SYS
NCCL_GRAPH_MIXING_SUPPORT = 0
[tune]
algorithm = ring tree
protocol = ll simple
"""
WORK = ["--ranks", 4, "--sizes", "8K,42K", "--graph", "--calls", 12]


@pytest.fixture
def space(box):
    path = box.dir / "space.ini"
    path.write_text(SPACE)
    return path


def tune(box, *more, code=0, env=None, timeout=80):
    done = box.cli("tune", *more, "--json", env={**FAST, **(env or {})}, timeout=timeout)
    assert done.code == code, done
    return json.loads(done.out)


def bench(box, profile, runs=3):
    """{bytes: median_ns} of fresh benches, as geometric means."""
    logs = {}
    for _ in range(runs):
        j = box.json("bench", *WORK, "--no-stamps", "--repeats", 10, "-p", profile, env=FAST)
        for r in j["rows"]:
            logs.setdefault(r["bytes"], []).append(math.log(r["median_ns"]))
    return {b: math.exp(sum(v) / len(v)) for b, v in logs.items()}


def children_of_this_test(box):
    """Processes that run our command and have this test's folder in their environment."""
    found = []
    for p in Path("/proc").glob("[0-9]*"):
        try:
            if str(box.dir).encode() in (p / "environ").read_bytes() and \
                    (p / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found.append((p / "cmdline").read_bytes())
        except OSError:
            pass
    return found


def test_it_finds_what_an_exhaustive_sweep_finds(box, space):
    j = tune(box, *WORK, "--space", space, "--proof", 4, "-o", "out", "--write", "found")
    assert j["simulated"] and j["better"], j
    assert {s["name"]: s["value"] for s in j["settings"]} == {"NCCL_P2P_LEVEL": "SYS", "NCCL_GRAPH_MIXING_SUPPORT": "0"}
    assert [(r["bytes"], r["rule"]) for r in j["rules"]] == [(8192, "tree ll")]
    rows = {r["bytes"]: r for r in j["rows"]}
    assert rows[43008]["difference"]["high_95"] < -0.12 and rows[43008]["verdict"] == "faster"

    best = {}
    for p2p, mixing in itertools.product([0, 1], [0, 1]):
        for rule in ["", "ring ll", "ring simple", "tree ll", "tree simple"]:
            text = "[profile]\ndescription = one of all\n"
            text += "[env]\n" if p2p or mixing else ""
            text += "NCCL_P2P_LEVEL = SYS\n" * p2p + "NCCL_GRAPH_MIXING_SUPPORT = 0\n" * mixing
            text += "[tune]\nallreduce = %s\n" % rule if rule else ""
            for size, ns in bench(box, box.profile("one", text), runs=1).items():
                best[size] = min(best.get(size, 1e99), ns)
    chosen = bench(box, "found", runs=3)
    for size, ns in chosen.items():
        assert ns < best[size] * 1.02, (size, chosen, best)

    # what is written can be used, and says what it rests on
    text = Path(j["written"]).read_text()
    assert j["written"] == str(box.dir / "home/.config/ncclshim/profiles/found.ini")
    assert "SIMULATED" in text and "evidence: out" in text and "; alone -" in text and "against no rule -" in text
    assert box.cli("check", "found").code == 0
    assert box.cli("run", "-p", "found", "--", "true").code == 0
    # and both runs are there for the other verbs
    whole = box.json("compare", "out/default", "out/winner")["whole"][0]
    assert whole["verdict"] == "faster"
    assert "SIMULATED" in box.cli("report", "out/winner").out


def test_the_text_names_what_was_found_and_that_it_is_simulated(box, space):
    done = box.cli("tune", *WORK, "--space", space, "--proof", 3, env=FAST)
    assert done.code == 0, done
    assert done.out.startswith("SIMULATED")
    for words in ("found: NCCL_P2P_LEVEL=SYS", "8 KiB", "faster", "proof: 6 fresh runs", "verdict: better", "wrote "):
        assert words in done.out, done
    assert "SIMULATED" in done.err and "workload: all_reduce 8K captured" in done.err


# ---- candidates that end badly ------------------------------------------------------------------

def test_a_candidate_that_hangs_is_named_never_chosen_and_leaves_no_process(box, space):
    j = tune(box, *WORK, "--space", space, "--proof", 3, "--timeout", 2,
             env={"NCCLSHIM_FAKE_HANG": "NCCL_P2P_LEVEL=SYS"})
    assert [s["name"] for s in j["settings"]] == ["NCCL_GRAPH_MIXING_SUPPORT"]
    assert [(d["candidate"], d["end"]) for d in j["dropped"]] == [("NCCL_P2P_LEVEL=SYS", "hang")]
    assert not children_of_this_test(box)


def test_a_candidate_with_wrong_sums_is_named_and_never_chosen(box, space):
    j = tune(box, *WORK, "--space", space, "--proof", 3, env={"NCCLSHIM_FAKE_WRONG": "NCCL_ALGO=Tree"})
    assert j["better"] and not any("tree" in r["rule"] for r in j["rules"])
    assert j["dropped"] and all(d["end"] == "wrong" and "tree" in d["candidate"] for d in j["dropped"])
    assert "tree" not in (box.dir / j["profile"]).read_text()


@pytest.mark.parametrize("knob, words", [("WRONG", "wrong sums"), ("HANG", "hung")])
def test_a_winner_that_ends_badly_in_the_proof_alone_is_not_written(box, knob, words):
    """What the search tried stood in files of other names."""
    (box.dir / "one.ini").write_text("[env]\nNCCL_P2P_LEVEL = SYS\n")
    winner = box.dir / "out/winner.ini"
    j = tune(box, *WORK, "--space", "one.ini", "--proof", 3, "--timeout", 1, "-o", winner.parent, "--write", "found", code=1,
             env={"NCCLSHIM_FAKE_" + knob: "NCCLSHIM_PROFILE=%s" % winner})
    assert j["verdict"].startswith("the winner, in the proof: %s: " % words) and not j["better"], j
    assert (j["profile"], j["written"]) == (None, None)
    assert not winner.exists() and not (box.dir / "home/.config").exists()


def test_a_proof_that_is_broken_off_shows_no_proof(box):
    """Its last round is made bad in the record, and the search goes on with what it knows."""
    (box.dir / "one.ini").write_text("[env]\nNCCL_P2P_LEVEL = SYS\n")
    tune(box, *WORK, "--space", "one.ini", "--proof", 3, "-o", "out")
    state = json.loads((box.dir / "out/tune.json").read_text())
    winners = [t for t in state["trials"] if t["kind"] == 2]
    max(winners, key=lambda t: t["nth"]).update(end="wrong", why="one of many")
    (box.dir / "out/tune.json").write_text(json.dumps(state))
    done = box.cli("tune", "--resume", "out", env=FAST)
    assert done.code == 1 and "the winner, in the proof: wrong sums: one of many" in done.out and "no profile was written" in done.out, done
    assert "sums right in all" not in done.out and "faster" not in done.out, done


def test_a_default_that_gives_wrong_sums_ends_it_all(box, space):
    done = box.cli("tune", *WORK, "--space", space, env={**FAST, "NCCLSHIM_FAKE_WRONG": "NCCL_ALGO=Ring"})
    assert done.code == 2 and "default itself gives wrong sums" in done.err


# ---- nothing better -----------------------------------------------------------------------------

def test_where_nothing_is_better_it_says_so_and_writes_none(box):
    space = box.dir / "space.ini"
    space.write_text("[env]\nNCCL_BUFFSIZE = 8M 16M\nNCCL_MIN_NCHANNELS = 2\n[tune]\nprotocol = simple\n")
    done = box.cli("tune", *WORK, "--space", space, "--proof", 3, "-o", "out", "--write", "found", env=FAST)
    assert done.code == 1, done
    assert "no profile was written" in done.out
    assert "nothing in this space was better" in done.out or "no difference shown" in done.out
    assert not (box.dir / "out/winner.ini").exists() and not (box.dir / "home/.config").exists()


# ---- a recorded run -----------------------------------------------------------------------------

def test_a_recorded_server_is_tuned_without_harm_to_its_prefill(box, space):
    assert box.cli("run", "-o", "served", "--", box.server, "--requests", 2, "--steps", 5, "--prefill-calls", 4,
                   "--prefill-bytes", "256K", env=FAST).code == 0
    more = ["--from", "served", "--calls", 12, "--space", space, "--proof", 6]
    j = tune(box, *more, "-o", "mixed")
    assert [s["name"] for s in j["settings"]] == ["NCCL_P2P_LEVEL"]
    assert any("NCCL_GRAPH_MIXING_SUPPORT was not tried" in n and "--waits-for-graphs" in n for n in j["notes"])
    j = tune(box, *more, "--waits-for-graphs", "-o", "waits")
    assert {s["name"] for s in j["settings"]} == {"NCCL_P2P_LEVEL", "NCCL_GRAPH_MIXING_SUPPORT"}
    rows = {(r["bytes"], r["how"]): r for r in j["rows"]}
    assert rows[43008, "graph"]["verdict"] == "faster"
    assert rows[43008, "graph"]["share"] > 0.8
    assert rows[262144, "eager"]["verdict"] != "slower"
    assert "condition (NCCL's)" in (box.dir / j["profile"]).read_text()


# ---- time ---------------------------------------------------------------------------------------

def test_the_budget_is_kept_and_what_is_known_is_used(box):
    begin = time.monotonic()
    j = tune(box, *WORK, "--budget", "6s", "--proof", 3)
    assert time.monotonic() - begin < 20
    # how far it comes in six seconds is the machine's business; that it says so is ours
    assert j["out_of_time"] == any("--resume" in n for n in j["notes"])
    assert j["benches"] < 120
    assert j["better"] or j["out_of_time"]


def test_it_can_be_stopped_and_goes_on_where_it_was(box, space):
    process = box.start(box.command, "tune", *WORK, "--space", space, "--proof", 3, "-o", "out", env=FAST,
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not (box.dir / "out/trials/0012.json").exists():
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "--resume out" in err
    assert not children_of_this_test(box)
    trials = len(json.loads((box.dir / "out/tune.json").read_text())["trials"])
    assert trials >= 10
    j = tune(box, "--resume", "out", "--write", "found")
    assert j["better"] and j["reused"] == trials and j["benches"] > trials
    assert {s["name"] for s in j["settings"]} == {"NCCL_P2P_LEVEL", "NCCL_GRAPH_MIXING_SUPPORT"}
    # once more: everything is known, nothing is run
    again = tune(box, "--resume", "out")
    assert again["benches"] == j["benches"] and again["settings"] == j["settings"]


def test_a_killed_tune_leaves_no_bench_behind(box, space):
    process = box.start(box.command, "tune", *WORK, "--space", space, "-o", "out", env=FAST,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (box.dir / "out/trials/0003.json").exists():
        time.sleep(0.02)
    process.kill()
    process.wait()
    end = time.monotonic() + 10
    while children_of_this_test(box) and time.monotonic() < end:
        time.sleep(0.05)
    assert not children_of_this_test(box)


# ---- requests -----------------------------------------------------------------------------------

def test_a_profile_written_by_hand_is_not_overwritten_and_that_is_told_first(box, space):
    path = box.dir / "home/.config/ncclshim/profiles/mine.ini"
    path.parent.mkdir(parents=True)
    path.write_text("[profile]\ndescription = mine\n")
    done = box.cli("tune", *WORK, "--space", space, "--write", "mine")
    assert done.code == 2 and "no work of tune" in done.err and not (box.dir / "ncclshim-runs").exists()


@pytest.mark.parametrize("args, words", [
    (["--from", "nowhere"], "nowhere: no such run"),
    (["--from", "a", "--sizes", "8K"], "exclude each other"),
    (["--budget", "soon"], "--budget"),
    (["--space", "nowhere"], "nowhere: can't be read"),
    (["--resume", "nowhere"], "nothing to go on with"),
    (["--resume", "a", "--ranks", "2"], "only --budget, --write and --json"),
    (["--write", "my profile"], "no name for a profile"),
    (["--sizes", "8X"], "8X"),
    (["a"], "--from"),
    (["--calls", "0"], "--calls"),
])
def test_a_wrong_request_is_one_line_that_says_what_to_write(box, args, words):
    done = box.cli("tune", *args, env=FAST)
    assert done.code == 2 and done.out == "" and words in done.err, done
    assert done.err.count("\n") <= 2, done


def test_a_bad_space_is_told_with_its_line(box):
    (box.dir / "s.ini").write_text("[env]\nNCCL_NTHREADS = 256\nNCCL_BUFSIZE = 1M\n")
    done = box.cli("tune", "--space", "s.ini")
    assert done.code == 2 and "s.ini:3:" in done.err and "NCCL_BUFFSIZE" in done.err
