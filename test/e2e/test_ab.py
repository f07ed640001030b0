# SPDX-License-Identifier: Apache-2.0
"""`ab`: turns, the metric, servers that are loaded and stopped, and that nothing is left of any of it."""
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

FAST = {"NCCLSHIM_FAKE_PACE": "0"}


def decode(box, *more):
    return [box.server, "--requests", 2, "--steps", 6, "--prefill-calls", 4, "--prefill-bytes", "128K", *more]


def left_over(mark):
    """Processes whose command line holds the mark."""
    found = []
    for p in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (p / "cmdline").read_bytes() and p.name != str(os.getpid()):
                found.append((p.name, (p / "cmdline").read_bytes()))
        except OSError:
            pass
    return found


def script(box, name, text):
    path = box.dir / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


# ---- calls --------------------------------------------------------------------------------------

def test_an_aa_run_shows_no_difference_in_metric_and_calls(box):
    speed = script(box, "serve", '"$@" >/dev/null && echo "speed 82.0 tok/s"\n')
    j = box.json("ab", "-p", "none", "-p", "none", "-n", 2, "--metric", "speed ([0-9.]+) tok/s", "-o", "out", "--",
                 speed, *decode(box), env=FAST)
    assert j["simulated"] is True
    assert j["metric"]["against_first"][0]["verdict"] == "no_difference_shown"
    assert j["calls"]["whole"][0]["verdict"] == "no_difference_shown"
    assert j["verdicts"] == ["no_difference_shown"]
    assert j["order"] == [0, 1, 1, 0]
    assert [s["label"] for s in j["sides"]] == ["none", "none#2"]


def test_fewer_channels_is_slower_and_so_it_is_again(box):
    for again in range(2):
        done = box.cli("ab", "-p", "none", "-p", "fewer-channels", "-n", 2, "-o", "ab%d" % again,
                       "--fail-if-slower", 20, "--", *decode(box), env=FAST)
        assert done.code == 1, done
        assert "verdict: fewer-channels is slower" in done.out
        assert done.out.startswith("SIMULATED")
        assert "[4/4] fewer" in done.err or "[4/4] none" in done.err
    # each turn is a run that the other verbs read
    assert "fewer-channels" in box.cli("report", "ab0/02-fewer-channels").out


# ---- the metric ---------------------------------------------------------------------------------

def numbers(box, a, b):
    """A command that prints the next number of its profile's list."""
    for name, values in (("a", a), ("b", b)):
        box.profile(name, "[profile]\ndescription = %s\n" % name)
        (box.dir / ("values-" + name)).write_text("\n".join(map(str, values)) + "\n")
    return script(box, "tell", 'f=%s/values-$(basename "$NCCLSHIM_PROFILE" .ini)\n'
                  'head -n 1 "$f" | sed "s/$/ tok\\/s/"; sed -i 1d "$f"\n' % box.dir)


@pytest.mark.parametrize("a, b, verdict", [
    ([82.0, 81.6, 82.3, 81.9], [58.3, 58.1, 58.6, 58.2], "worse"),
    ([58.3, 58.1, 58.6, 58.2], [82.0, 81.6, 82.3, 81.9], "better"),
    ([82.0, 79.6, 85.3, 81.9], [81.3, 82.1, 80.6, 84.2], "no_difference_shown"),
    ([82.0], [58.3], "too_few_rounds"),
])
def test_the_metric_is_judged_by_rounds(box, a, b, verdict):
    tell = numbers(box, a, b)
    j = box.json("ab", "-p", "./a.ini", "-p", "./b.ini", "-n", len(a), "--metric", "([0-9.]+) tok/s", "--", tell)
    assert j["verdicts"] == [verdict], j["metric"]
    assert j["metric"]["label"] == "tok/s" and j["calls"] is None
    assert j["sides"][0]["values"] == a
    if len(a) > 1 and verdict != "no_difference_shown":
        d = j["metric"]["against_first"][0]["difference"]
        truth = sum(b) / sum(a) - 1
        assert d["low_95"] < truth < d["high_95"]


def test_less_is_better_when_it_is_said(box):
    tell = numbers(box, [10.0, 10.1, 10.0], [8.0, 8.1, 8.0])
    j = box.json("ab", "-p", "./a.ini", "-p", "./b.ini", "--lower", "--metric", "([0-9.]+) tok/s", "--", tell)
    assert j["verdicts"] == ["better"]


# ---- servers ------------------------------------------------------------------------------------

SERVER = """
echo starting; sleep 0.2; echo "ready to roll"
sleep 300 & echo $! >>%(dir)s/pids
setsid sleep 300 & echo $! >>%(dir)s/pids
trap '%(trap)s' INT
while :; do sleep 0.1; done
"""


def server(box, trap="echo bye; exit 0"):
    return script(box, "server", SERVER % {"dir": box.dir, "trap": trap})


def pids(box):
    return [int(x) for x in (box.dir / "pids").read_text().split()]


def lives(pid):
    try:
        return Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_server_is_loaded_when_it_is_ready_and_then_stopped_with_all_its_workers(box):
    load = script(box, "load", "grep -q 'ready to roll' %s/out/*.out && echo '71.5 tok/s'\n" % box.dir)
    done = box.cli("ab", "-p", "none", "-p", "quiet", "-n", 1, "--ready", "ready to r.ll", "--load", load,
                   "--metric", "([0-9.]+) tok/s", "--grace", 1, "-o", "out", "--", server(box))
    assert done.code == 0, done
    assert "[2/2] quiet" in done.err and "71.5 tok/s" in done.err
    assert "bye" in (box.dir / "out" / "01-none.out").read_text()  # SIGINT was enough
    assert len(pids(box)) == 4 and not any(lives(p) for p in pids(box))


def test_a_server_that_ignores_signals_is_killed_after_the_grace(box):
    done = box.cli("ab", "-p", "none", "-p", "quiet", "-n", 1, "--ready", "ready", "--load", "echo 1 tok/s",
                   "--metric", "([0-9.]+) tok/s", "--grace", 0, "-o", "out", "--",
                   script(box, "server", 'trap "" INT TERM; echo $$ >>pids; echo ready; while :; do sleep 0.1; done\n'))
    assert done.code == 0, done
    assert not any(lives(p) for p in pids(box))


# ---- what goes wrong ----------------------------------------------------------------------------

@pytest.mark.parametrize("text, more, words", [
    ("echo oh; exit 3", [], ["turn 1 of 2 (none) ended with exit code 3", "oh"]),
    ("sleep 60", ["--timeout", 1], ["1 s were over", "waiting for its end"]),
    ("echo started; sleep 60", ["--timeout", 1, "--ready", "ready", "--load", "true"],
     ["a line that matches --ready", "started"]),
    ("echo broken", ["--ready", "ready", "--load", "true"], ["before any line of its output matched --ready"]),
    ("echo ready; sleep 60", ["--ready", "ready", "--load", "echo no; exit 7"],
     ["the load command ended with exit code 7", "no"]),
    ("echo ready; sleep 0.3", ["--ready", "ready", "--load", "sleep 60"], ["server ended while the load"]),
    ("echo nothing", ["--metric", "([0-9]+) tok/s"], ["no line matches --metric"]),
    ("true", [], ["nothing to compare"]),
])
def test_a_turn_that_fails_is_told_and_ends_it_all(box, text, more, words):
    command = script(box, "serve-%d" % os.getpid(), text + "\n")
    begin = time.monotonic()
    done = box.cli("ab", "-p", "none", "-p", "quiet", "-n", 1, "--grace", 1, *more, "--", command)
    assert done.code == 2 and done.out == "", done
    assert all(w in done.err for w in words), done
    assert time.monotonic() - begin < 30
    assert not left_over(command.name)


def test_control_c_ends_the_turn_and_leaves_no_process(box):
    process = box.start(box.command, "ab", "-p", "none", "-p", "quiet", "--grace", 1, "--", server(box),
                        stderr=subprocess.PIPE, text=True)
    while not (box.dir / "pids").exists() or len(pids(box)) < 2:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "stopped by signal 2 in turn 1 of 6" in err
    assert not any(lives(p) for p in pids(box))


@pytest.mark.parametrize("args, words", [
    (["-p", "none", "--", "true"], "two profiles or more"),
    (["-p", "none", "-p", "quiet"], "no command"),
    (["-p", "none", "-p", "nowhere", "--", "true"], "nowhere"),
    (["-p", "none", "-p", "quiet", "--metric", "tok/s", "--", "true"], "has no group"),
    (["-p", "none", "-p", "quiet", "--metric", "(\\d+) tok", "--", "true"], "[0-9]"),
    (["-p", "none", "-p", "quiet", "--metric", "([0-9]", "--", "true"], "regular expression"),
    (["-p", "none", "-p", "quiet", "--ready", "x", "--", "true"], "belong together"),
    (["-p", "none", "-p", "quiet", "--lower", "--", "true"], "--metric"),
    (["-p", "none", "-p", "quiet", "-n", "0", "--", "true"], "--rounds"),
])
def test_a_wrong_request_is_one_line_that_says_what_to_write(box, args, words):
    done = box.cli("ab", *args)
    assert done.code == 2 and done.out == "" and words in done.err and done.err.count("\n") == 1, done
    assert not (box.dir / "ncclshim-runs").exists()
