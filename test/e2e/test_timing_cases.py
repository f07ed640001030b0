# SPDX-License-Identifier: Apache-2.0
"""T03: a collective that never ends. T06: a log folder that is full, small, closed or cut."""
import glob
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import logmaker

RANKS = 2
QUICK_S = 5  # for what must not wait; a busy machine may take that long for anything


# ---- T03 -------------------------------------------------------------------------------------------

class Stuck:
    """Rank 0's sixth all-reduce waits on its GPU for a rank that does not come."""

    def __init__(self, box, end, preload=True):
        env = {"LD_PRELOAD": box.shim} if preload else {}
        self.process = box.start(box.build / "cost" / "stuck", end, env=env, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "queued\n"

    def finish(self):
        """(seconds until it was gone, its last line)"""
        start = time.monotonic()
        out, err = self.process.communicate("go\n", timeout=30)
        assert self.process.returncode == 0 and err == "", (self.process.returncode, out, err)
        return time.monotonic() - start, out

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def stuck(box):
    made = []

    def make(*args, **kwargs):
        made.append(Stuck(box, *args, **kwargs))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def test_t03_a_stuck_call_is_shown_as_not_finished_and_inspecting_never_waits(box, stuck):
    waiting = stuck("exit")
    start = time.monotonic()
    report = box.json("report", box.logs)
    text = box.cli("report", box.logs)
    assert time.monotonic() - start < 2 * QUICK_S
    assert text.code == 0 and "not finished" in text.out, text
    assert report["log"]["timed"] == 5 * RANKS and report["log"]["unfinished"] == 1
    row, = report["communicators"][0]["rows"]
    assert row["issued"] == 5 * RANKS + 1 and row["unfinished"] == 1 and row["time"]["count"] == 5 * RANKS
    log = logmaker.parse(glob.glob(str(box.logs / "*.ncclshim"))[0])
    assert sum(len(ring["records"]) for ring in log.rings.values()) == 5 * RANKS
    assert waiting.process.poll() is None


@pytest.mark.parametrize("end", ["abort", "exit", "_exit"])
def test_t03_abort_and_exit_are_not_delayed_by_a_stuck_call(box, stuck, end):
    plain, _ = stuck(end, preload=False).finish()
    with_shim, said = stuck(end).finish()
    assert with_shim < plain + QUICK_S, (plain, with_shim, said)
    text = box.cli("report", box.logs)
    assert text.code == 0, text


# ---- T06 -------------------------------------------------------------------------------------------

class Mount:
    """A tmpfs that only our child sees: programs run in a mount namespace of their own."""

    def __init__(self, size, options=""):
        self.dir = Path(tempfile.mkdtemp(prefix="ncclshim-mount-"))
        self.inside = self.dir / "logs"
        script = ('mount -t tmpfs -o size=%s none "%s" && mkdir -m 700 "%s" && %s exec "$@"' % (
            size, self.dir, self.inside, 'mount -o remount,ro "%s" &&' % self.dir if options == "ro" else ""))
        self.prefix = ["unshare", "-m", "sh", "-c", script, "sh"]

    def works(self):
        return subprocess.run(self.prefix + ["true"], capture_output=True, check=False).returncode == 0

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


@pytest.fixture
def mount():
    made = []

    def make(*args):
        one = Mount(*args)
        made.append(one)
        if not one.works():
            pytest.skip("this user can't mount a tmpfs in a namespace of its own")
        return one

    yield make
    for one in made:
        one.remove()


def serve(box, mount, *args, script="", env=None):
    """decode_server under the shim with its log folder on the mount; `script` runs behind it, inside."""
    server = [box.server, "--requests", 1, "--steps", 3, "--prefill-calls", 2, *args]
    inner = 'LD_PRELOAD="%s" NCCLSHIM_LOG_DIR="%s" "$@"; code=$?; %s; exit $code' % (box.shim, mount.inside, script or ":")
    return box.run(*mount.prefix, "sh", "-c", inner, "sh", *server, env={"TEST_COMMAND": box.command, **(env or {})})


def complaints(done):
    return [line for line in done.err.splitlines() if line]


def test_t06_a_ring_of_16_mib_does_not_fit_a_mount_of_1_mib_and_the_server_runs(box, mount):
    small = mount("1m")
    done = serve(box, small, "--one-process", script='du -sk "%s"' % small.inside)
    assert done.code == 0 and "sums: right" in done.out, done
    assert len(complaints(done)) <= 1, done
    assert int(done.out.splitlines()[-1].split()[0]) <= 512, done  # half of the mount stays NCCL's


def test_t06_a_mount_that_is_full_from_the_start_costs_the_log_not_the_server(box, mount):
    full = mount("64k")
    done = serve(box, full, "--one-process", script='ls "%s"' % full.inside)
    assert done.code == 0 and "sums: right" in done.out, done
    said = complaints(done)
    assert len(said) == 1 and said[0].startswith("ncclshim: ") and "no log" in said[0], done
    assert not done.out.splitlines()[-1].endswith(".ncclshim"), done  # no half file is left


def test_t06_a_read_only_file_system_costs_the_log_not_the_server(box, mount):
    closed = mount("16m", "ro")
    done = serve(box, closed, "--one-process")
    assert done.code == 0 and "sums: right" in done.out, done
    said = complaints(done)
    assert len(said) == 1 and "no log" in said[0] and "ead-only" in said[0], done


def test_t06_a_folder_without_write_permission_costs_the_log_not_the_server(box):
    closed = Path(tempfile.mkdtemp(prefix="ncclshim-closed-", dir="/dev/shm"))
    try:
        other = {}
        if os.geteuid() == 0:  # root may write anywhere
            other = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}
            closed.chmod(0o755)
        else:
            closed.chmod(0o500)
        done = box.preload(box.server, "--one-process", "--requests", 1, "--steps", 3, "--prefill-calls", 2,
                           env={"NCCLSHIM_LOG_DIR": closed}, **other)
        if done.code != 0 and "sums" not in done.out and "can't" not in done.err and "ncclshim" not in done.err:
            pytest.skip("another user can't run the built programs here")
        assert done.code == 0 and "sums: right" in done.out, done
        said = complaints(done)
        assert len(said) == 1 and "no log" in said[0] and str(closed) in said[0], done
    finally:
        shutil.rmtree(closed)


def test_t06_eight_ranks_share_a_mount_of_64_mib_and_leave_most_of_it(box, mount):
    shared = mount("64m")
    script = 'du -sk "%s"; ls "%s" | grep -c "[.]ncclshim$"; "$TEST_COMMAND" report --json "%s" >report.json' % (
        (shared.inside,) * 3)
    done = serve(box, shared, "--ranks", 8, script=script)
    assert done.code == 0 and "sums: right" in done.out and complaints(done) == [], done
    used, logs = done.out.splitlines()[-2:]
    assert int(logs) == 8, done
    assert int(used.split()[0]) <= 64 * 1024 // 4 + 8 * 512, done  # 1/32 of the mount a process, besides the tables
    log = json.loads((box.dir / "report.json").read_text())["log"]
    assert log["timed"] + log["lost"] == log["issued"] and log["lost"] == 0, log


@pytest.mark.parametrize("left", [0, 7, 100, 319, 4095, 4096, 100_000, -1])
def test_t06_a_file_cut_shorter_is_refused_not_crashed_on(box, left):
    done = box.preload(box.build / "clients" / "shapes", "capture-replays")
    assert done.code == 0, done
    path, = glob.glob(str(box.logs / "*.ncclshim"))
    os.truncate(path, left if left >= 0 else os.path.getsize(path) - 1)
    for verb in (("report",), ("report", "--json"), ("export", "--csv")):
        shown = box.cli(verb[0], *verb[1:], box.logs)
        assert shown.code in (0, 1, 2), shown
        if verb[0] == "report":
            assert shown.code == 2 and shown.err.startswith("ncclshim"), shown


def test_t06_a_file_cut_while_a_collector_reads_it_ends_neither_the_collector_nor_its_run(box):
    log = logmaker.Log(box.logs, host=os.uname().nodename, capacity=1024)
    log.gpu()
    log.comm(ranks=1, rank=0, hash=1, wrapped_calls=1000)
    site = log.site(capture=1, index=0)
    with open(box.dir / "said", "wb") as said:
        collector = box.start(box.command, "collect", "-o", "run", "--interval", 20, stdout=said, stderr=said)
    try:
        for number in range(200):
            log.record(site, 1000 * number, 1000 * number + 500)
            time.sleep(0.002)
        os.truncate(log.path, 8192)
        time.sleep(0.5)
        assert collector.poll() is None, (box.dir / "said").read_text()
        collector.terminate()
        assert collector.wait(15) in (0, 1), (box.dir / "said").read_text()
    finally:
        collector.kill()
        collector.wait()
    assert "ends at byte" in (box.dir / "said").read_text()
    assert box.cli("report", "run").code in (0, 2)
