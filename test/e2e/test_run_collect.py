# SPDX-License-Identifier: Apache-2.0
"""`ncclshim collect`: servers that come and go, collectors that die and go on, logs that are none."""
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import logmaker  # noqa: E402

SERVE = [sys.executable, logmaker.__file__, "serve"]


def serve(box, *options, **kwargs):
    process = box.start(*SERVE, *options, stdout=subprocess.PIPE, text=True, **kwargs)
    assert process.stdout.readline() == "ready\n"
    return process


def collect(box, *options):
    return box.start(box.command, "collect", "-o", "r", *options, stderr=subprocess.PIPE, text=True)


def stop(collector):
    collector.terminate()
    _, err = collector.communicate(timeout=30)
    assert collector.returncode == 0, err
    return err


def counts(err):
    """(timed, lost) of the last line."""
    words = err.strip().splitlines()[-1].replace(",", "").replace("collective ", "collectives ").split()
    return int(words[words.index("collectives") - 1]), int(words[words.index("lost") - 1])


def saw(box, n=1):
    def processes():
        try:
            return len(json.loads((box.dir / "r" / "run.json").read_text())["processes"])
        except FileNotFoundError:
            return 0
    end = time.monotonic() + 20
    while time.monotonic() < end and processes() < n:
        time.sleep(0.02)
    assert processes() >= n


def test_once_gathers_what_is_there_and_again_only_what_is_new(box):
    log = logmaker.Log(box.logs, capacity=256)  # written by this very process, which lives
    site = log.site(capture=1)
    log.comm(hash=5)
    for i in range(100):
        log.record(site, 1000 * i, 1000 * i + 500)
    done = box.cli("collect", "--once", "-o", "r")
    assert done.code == 0 and counts(done.err) == (100, 0)
    assert counts(box.cli("collect", "--once", "-o", "r").err) == (100, 0)
    for i in range(100, 150):
        log.record(site, 1000 * i, 1000 * i + 500)
    assert counts(box.cli("collect", "--once", "-o", "r").err) == (150, 0)
    for i in range(150, 750):
        log.record(site, 1000 * i, 1000 * i + 500)
    assert counts(box.cli("collect", "--once", "-o", "r").err) == (150 + 256, 600 - 256)
    assert Path(log.path).exists()  # its process lives


def test_the_log_of_an_ended_process_is_taken_over_and_removed(box):
    assert serve(box, "--records", 500).wait(20) == 0
    assert len(list(box.logs.iterdir())) == 1
    done = box.cli("collect", "--once", "-o", "r")
    assert counts(done.err) == (500, 0)
    assert list(box.logs.iterdir()) == []
    log, = (box.dir / "r").glob("*.ncclshim")
    assert len(logmaker.parse(log).rings[0]["records"]) == 500


def test_leave_logs_leaves_them_and_they_are_not_counted_twice(box):
    assert serve(box, "--records", 500).wait(20) == 0
    for _ in range(2):
        done = box.cli("collect", "--once", "-o", "r", "--leave-logs")
        assert counts(done.err) == (500, 0)
    assert len(list(box.logs.iterdir())) == 1


def test_servers_come_and_go_while_one_collector_stays(box):
    collector = collect(box)
    for generation in range(3):
        servers = [serve(box, "--records", 1000 + i) for i in range(3)]
        assert [s.wait(20) for s in servers] == [0, 0, 0]
    saw(box, 9)
    err = stop(collector)
    assert counts(err) == (9 * 1001, 0)
    assert list(box.logs.iterdir()) == []
    run = json.loads((box.dir / "r" / "run.json").read_text())
    assert run["made_by"] == "collect" and run["command"] == [] and "ended_ns" in run


def test_a_killed_collector_is_started_again_and_counts_every_record_once(box):
    server = serve(box, "--records", 60000, "--rate", 20000, "--capacity", 1 << 16)
    total = 0
    for _ in range(4):
        collector = collect(box)
        saw(box)
        time.sleep(0.4)
        collector.kill()
        collector.wait()
        total += 1
    collector = collect(box)
    assert server.wait(30) == 0
    time.sleep(0.7)
    assert counts(stop(collector)) == (60000, 0)


def test_keep_all_is_whole_after_a_collector_was_killed(box):
    server = serve(box, "--records", 30000, "--rate", 15000, "--capacity", 1 << 15)
    for _ in range(2):
        collector = collect(box, "--keep", "all")
        saw(box)
        time.sleep(0.3)
        collector.kill()
        collector.wait()
    collector = collect(box, "--keep", "all")
    assert server.wait(30) == 0
    time.sleep(0.7)
    assert counts(stop(collector)) == (30000, 0)
    assert kept(box) == list(range(1, 30001))


def kept(box):
    """The sequence numbers of all records that were kept."""
    from test_run import decompress
    path, = (box.dir / "r").glob("*.records.zst")
    raw = decompress(path, 32 * 40000)
    return [int.from_bytes(raw[i + 12:i + 16], "little") for i in range(0, len(raw), 32)]


def test_keep_all_goes_on_behind_what_an_earlier_collector_saved(box):
    log = logmaker.Log(box.logs, capacity=256)  # written by this very process, which lives
    site = log.site(capture=1)
    log.comm(hash=5)
    there = 0
    for more in (100, 0, 50, 150):
        for i in range(there, there + more):
            log.record(site, 1000 * i, 1000 * i + 500)
        there += more
        assert box.cli("collect", "--once", "--keep", "all", "-o", "r").code == 0
        assert kept(box) == list(range(1, there + 1))


def test_statistics_of_many_ranks_are_read_by_report(box):
    for log in logmaker.decode_run(box.logs, ranks=4, replays=10, eager=3, calls=20):
        log.drop()
    done = box.cli("collect", "--once", "-o", "r")
    assert "4 ranks (simulated GPUs), 1 communicator, 812 collectives timed" in done.err
    assert sum(box.calls("r").values()) == 812


def test_only_the_process_asked_for(box):
    first, second = serve(box, "--records", 10, "--linger", 30), serve(box, "--records", 20, "--linger", 30)
    done = box.cli("collect", "--once", "-o", "r", "--pid", second.pid)
    assert counts(done.err) == (20, 0)
    for process in (first, second):
        process.kill()
        process.wait()


def test_files_that_are_no_logs_are_said_and_left(box):
    (box.logs / "garbage.ncclshim").write_bytes(b"x" * 10000)
    (box.logs / "empty.ncclshim").write_bytes(b"")
    (box.logs / "other.txt").write_bytes(b"")
    os.mkfifo(box.logs / "fifo.ncclshim")
    os.symlink("/etc/passwd", box.logs / "link.ncclshim")
    assert serve(box, "--records", 10).wait(20) == 0
    done = box.cli("collect", "--once", "-o", "r")
    assert done.code == 0 and counts(done.err) == (10, 0)
    for word in ("garbage", "empty", "fifo", "link"):
        assert word in done.err
    assert "other.txt" not in done.err
    assert len(list(box.logs.iterdir())) == 5


def test_a_log_cut_while_it_is_collected_is_said_and_the_others_go_on(box):
    server = serve(box, "--records", 100, "--linger", 30)
    other = serve(box, "--records", 200, "--linger", 30)
    collector = collect(box)
    saw(box, 2)
    time.sleep(0.2)
    log, = box.logs.glob("*-%d-*.ncclshim" % server.pid)
    os.truncate(log, 8192)
    time.sleep(0.6)
    err = stop(collector)
    assert log.name in err and counts(err) == (300, 0)
    for process in (server, other):
        process.kill()
        process.wait()


def test_a_server_of_another_container_is_taken_to_live_until_it_closes_its_log(box):
    """A side-car shares the folder of the logs, not the process numbers."""
    log = logmaker.Log(box.logs, pid=1, start_ticks=5, ns=12345, capacity=64)
    log.comm(hash=1)
    log.record(log.site(), 1000, 2000)
    if os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC:
        # This machine's first namespace sees all processes: it knows that none is this one.
        done = box.cli("collect", "--once", "-o", "r")
        assert not Path(log.path).exists() and counts(done.err) == (1, 0)
        return
    done = box.cli("collect", "--once", "-o", "r")
    assert Path(log.path).exists() and counts(done.err) == (1, 0)
    log.close()
    box.cli("collect", "--once", "-o", "r")
    assert not Path(log.path).exists()


def test_until_ended_waits_for_a_server_that_is_yet_to_come_and_ends_after_it(box):
    serve(box, "--records", 10).wait()  # of the day before
    collector = collect(box, "--until-ended")
    saw(box)
    time.sleep(5.5)
    assert collector.poll() is None
    server = serve(box, "--records", 100, "--linger", 60)
    saw(box, 2)
    server.terminate()
    server.wait()
    begin = time.monotonic()
    _, err = collector.communicate(timeout=30)
    assert collector.returncode == 0 and counts(err) == (110, 0)
    assert time.monotonic() - begin > 4 and "ended_ns" in json.loads((box.dir / "r" / "run.json").read_text())


def test_a_run_folder_is_made_with_the_folders_above_it(box):
    done = box.cli("collect", "--once", "-o", "run-7/a-host/")
    assert done.code == 0 and (box.dir / "run-7" / "a-host" / "run.json").exists()
    (box.dir / "file").write_text("x")
    done = box.cli("collect", "--once", "-o", "file/a-host")
    assert done.code == 2 and "file/a-host" in done.err and "Not a directory" in done.err


def test_a_run_that_is_gone_on_with_has_nothing_new_when_no_log_is_there(box):
    (box.dir / "e").mkdir()
    assert "nothing seen: there was no log in" in box.cli("collect", "--once", "-o", "e").err
    serve(box, "--records", 10).wait()
    box.cli("collect", "--once", "-o", "r")
    done = box.cli("collect", "--once", "-o", "r")
    assert done.code == 0 and "nothing new: there was no log in" in done.err and "`ncclshim report r`" in done.err
    assert box.cli("report", "r").code == 0


def test_a_run_folder_must_be_one(box):
    (box.dir / "r").mkdir()
    (box.dir / "r" / "file").write_text("x")
    done = box.cli("collect", "--once", "-o", "r")
    assert done.code == 2 and "neither empty nor a run folder" in done.err
    done = box.cli("collect", "--once", "--log-dir", "missing")
    assert done.code == 2 and "missing" in done.err
    assert box.cli("collect", "word").code == 2
    assert box.cli("collect", "--pid", "x").code == 2


def test_an_idle_collector_sleeps(box):
    serve(box, "--records", 10, "--linger", 60)
    collector = collect(box)
    saw(box)
    before = time.monotonic()
    time.sleep(2)
    ticks = Path("/proc/%d/stat" % collector.pid).read_text().rsplit(")", 1)[1].split()
    used = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    assert used / (time.monotonic() - before) < 0.1
    stop(collector)


def test_a_second_signal_while_it_saves_does_not_hurt(box):
    serve(box, "--records", 1000, "--linger", 60)
    collector = collect(box)
    saw(box)
    for _ in range(3):
        collector.send_signal(signal.SIGINT)
    _, err = collector.communicate(timeout=20)
    assert collector.returncode == 0 and counts(err) == (1000, 0)


def test_a_full_disk_does_not_end_the_collecting(box):
    small = box.dir / "small"
    small.mkdir()
    if os.geteuid() or box.run("mount", "-t", "tmpfs", "-o", "size=64k", "none", small).code:
        pytest.skip("mounting is not allowed here")
    try:
        assert serve(box, "--records", 5000).wait(20) == 0
        done = box.cli("collect", "--once", "-o", small / "r")
        assert done.code == 0 and counts(done.err) == (5000, 0)
        assert "No space" in done.err
        assert len(list(box.logs.iterdir())) == 1  # not removed: it is nowhere else
    finally:
        box.run("umount", small)


CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc"]


def test_a_container_is_collected_from_the_host_and_from_a_neighbour(box):
    """The host finds the process under another number; a neighbour can't see it and must not take it
    for dead."""
    if box.run(*CONTAINER, "true").code:
        pytest.skip("no pid namespaces here")
    server = box.start(*CONTAINER, *SERVE, "--records", 300, "--linger", 60, stdout=subprocess.PIPE,
                       text=True)
    assert server.stdout.readline() == "ready\n"
    log, = box.logs.glob("*.ncclshim")
    assert logmaker.parse(log).head["pid"] == 1
    for where in ([], CONTAINER):
        done = box.run(*where, box.command, "collect", "--once", "-o", "r%d" % len(where))
        assert counts(done.err) == (300, 0), done
        assert log.exists()
        done = box.run(*where, box.command, "clean")
        assert "left" in done.out and log.exists()
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()
    box.run(*CONTAINER, box.command, "clean")
    assert log.exists()  # gone, but that can't be seen from here
    box.cli("clean")
    assert not log.exists() or os.stat("/proc/self/ns/pid").st_ino != 0xEFFFFFFC


def test_a_log_that_was_still_being_made_is_not_said_to_be_left_out(box):
    log = logmaker.Log(box.logs, capacity=256)
    log.record(log.site(capture=1), 1000, 1500)
    magic, log.m[0:8] = log.m[0:8], bytes(8)  # the last thing that a writer stores
    collector = collect(box, "--interval", 5)
    assert "collecting from" in collector.stderr.readline()
    time.sleep(0.1)
    log.m[0:8] = magic
    saw(box)
    err = stop(collector)
    assert "left out" not in err and counts(err) == (1, 0), err
