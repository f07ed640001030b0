# SPDX-License-Identifier: Apache-2.0
"""`ncclshim clean` removes only what no living process holds."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import logmaker  # noqa: E402


def dead_log(folder, name="dead.ncclshim", **kw):
    log = logmaker.Log(folder, pid=2**22 - 3, start_ticks=1, name=name, **kw)
    log.drop()
    return Path(log.path)


def test_a_log_whose_process_is_gone_is_removed_and_named(box):
    path = dead_log(box.logs)
    done = box.cli("clean")
    assert done.code == 0 and "removed %s (" % path in done.out
    assert done.out.splitlines()[-1].startswith("removed 1 log, ")
    assert not path.exists()


def test_a_dry_run_removes_nothing(box):
    path = dead_log(box.logs)
    done = box.cli("clean", "--dry-run")
    assert "would remove %s" % path in done.out and path.exists()


def test_a_log_whose_process_lives_stays(box):
    log = logmaker.Log(box.logs)
    done = box.cli("clean")
    assert "left %s: process %d lives" % (log.path, os.getpid()) in done.out
    assert Path(log.path).exists()


def test_a_log_of_another_boot_is_removed_though_its_pid_is_in_use(box):
    log = logmaker.Log(box.logs, boot="00000000-0000-0000-0000-000000000000")
    box.cli("clean")
    assert not Path(log.path).exists()


def test_what_is_no_log_stays(box):
    for name in ("garbage.ncclshim", "notes.txt"):
        (box.logs / name).write_bytes(b"x" * 5000)
    done = box.cli("clean")
    assert done.code == 0 and "garbage.ncclshim: not a log" in done.out
    assert len(list(box.logs.iterdir())) == 2


def test_links_are_not_followed_neither_to_logs_nor_to_folders(box):
    outside = box.dir / "outside"
    outside.mkdir()
    path = dead_log(outside)
    os.symlink(path, box.logs / "link.ncclshim")
    os.symlink(outside, box.logs / "run-11111111")
    done = box.cli("clean")
    assert "symbolic link" in done.out
    assert path.exists()


def test_logs_that_a_killed_launcher_left_go_with_their_folder(box):
    private = box.logs / "run-0123abcd"
    private.mkdir(mode=0o700)
    dead_log(private)
    other = box.logs / "somebody-else"
    other.mkdir()
    dead_log(other)
    box.cli("clean")
    assert not private.exists() and len(list(other.iterdir())) == 1


def test_a_folder_in_which_a_collector_is_at_work_is_left_alone(box):
    collector = box.start(box.command, "collect", "-o", "r", "--leave-logs", stderr=subprocess.PIPE,
                          text=True)
    assert "collecting from" in collector.stderr.readline()
    path = dead_log(box.logs)
    done = box.cli("clean")
    assert "a collector is at work" in done.out and path.exists()
    collector.terminate()
    collector.wait(20)
    box.cli("clean")
    assert not path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a file of another user")
def test_a_log_of_another_user_stays(box):
    path = dead_log(box.logs)
    os.chown(path, 12345, -1)
    done = box.cli("clean")
    assert "belongs to user 12345" in done.out and path.exists()


def test_no_folder_means_nothing_to_remove(box):
    done = box.cli("clean", "--log-dir", "/dev/shm/ncclshim-test-not-there")
    assert done.code == 0 and done.out == "removed 0 logs, 0.0 MiB; left 0\n"
    assert box.cli("clean", "word").code == 2
