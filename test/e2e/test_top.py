# SPDX-License-Identifier: Apache-2.0
"""`top` over servers that start, die and start again."""
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest


HERE = Path(__file__).parent
SERVER = """
import sys, os, time
sys.path.insert(0, %r)
import logmaker
folder, seconds = sys.argv[1], float(sys.argv[2])
logs = []
for r in range(4):
    log = logmaker.Log(folder, host="box", capacity=8192,
                       name="box-%%d-%%d-%%d.ncclshim" %% (os.getpid(), logmaker.start_ticks_of(), r))
    log.gpu(); log.comm(ranks=4, rank=r, hash=5, name="tp")
    log.g = [log.site(capture=1, index=i) for i in range(10)]
    logs.append(log)
end = time.monotonic() + seconds
while time.monotonic() < end:
    t = time.time_ns()
    for i in range(10):
        for r, log in enumerate(logs):
            late = 30000 if r == 2 else 0
            log.record(log.g[i], t + late, t + 80000)
        t += 90000
    time.sleep(0.01)
""" % str(HERE)


def start_server(box, seconds):
    return subprocess.Popen([sys.executable, "-c", SERVER, str(box.logs), str(seconds)])


def test_batch_frames_follow_a_server_that_starts_and_dies(box):
    top = box.start(box.command, "top", "--batch", "--frames", "30", "--interval", "0.2",
                    stdout=open(box.dir / "out", "wb"), env={"COLUMNS": "100"})
    time.sleep(0.4)
    server = start_server(box, 20)
    time.sleep(1.8)
    server.kill()
    server.wait()
    assert top.wait(30) == 0
    frames = (box.dir / "out").read_text().split("ncclshim top")[1:]
    assert len(frames) == 30
    assert "no server with a log in" in frames[0]
    busy = [f for f in frames if "4 processes, 4 ranks at work" in f]
    assert busy
    assert re.search(r"tp +all_reduce +42 KiB +captured +[\d,]+ +80\.", busy[-1]), busy[-1]
    assert "0 processes" in frames[-1]
    bars = {int(m[1]): len(m[2]) for m in re.finditer(r"rank (\d) +[\d.]+ us +(█+)", busy[-1])}
    assert sorted(bars) == [0, 1, 2, 3] and min(bars, key=bars.get) == 2


def test_a_log_that_is_cut_or_none_does_no_harm(box):
    (box.logs / "x-1-1.ncclshim").write_bytes(b"not a log")
    server = start_server(box, 1.5)
    done = box.cli("top", "--batch", "--frames", "4", "--interval", "0.2")
    server.wait()
    assert done.code == 0 and done.err == "", done


def test_without_a_terminal_it_says_what_to_do(box):
    done = box.cli("top")
    assert done.code == 2 and "--batch" in done.err


def pane(name):
    return subprocess.run(["tmux", "-L", name, "capture-pane", "-p", "-t", "top"], capture_output=True, text=True).stdout


def wait_for(name, words, seconds=15):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        text = pane(name)
        if words in text:
            return text
        time.sleep(0.1)
    raise AssertionError("%r never came:\n%s" % (words, pane(name)))


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_the_screen_survives_servers_resizing_and_keys(box):
    name = "ncclshim-test-%d" % os.getpid()
    env = {k: v for k, v in box.env.items() if k not in ("TMUX", "COLUMNS", "LINES")}
    command = "%s top %s --interval 0.3; echo left with $?; sleep 30" % (box.command, box.logs)
    subprocess.run(["tmux", "-L", name, "-f", "/dev/null", "new-session", "-d", "-s", "top", "-x", "100", "-y", "24",
                    command], env=env, check=True)
    try:
        wait_for(name, "no server with a log")
        server = start_server(box, 20)
        text = wait_for(name, "4 ranks at work")
        wait_for(name, "█")
        subprocess.run(["tmux", "-L", name, "resize-window", "-t", "top", "-x", "60", "-y", "16"], check=True)
        time.sleep(0.6)
        text = pane(name)
        assert "all_reduce" in text and max(map(len, text.split("\n"))) <= 60
        server.kill()
        server.wait()
        wait_for(name, "0 processes")
        server = start_server(box, 20)
        wait_for(name, "4 processes")
        subprocess.run(["tmux", "-L", name, "send-keys", "-t", "top", "s"])
        wait_for(name, "by cal")
        subprocess.run(["tmux", "-L", name, "send-keys", "-t", "top", "q"])
        wait_for(name, "left with 0")
        server.kill()
        server.wait()
    finally:
        subprocess.run(["tmux", "-L", name, "kill-server"])
