# SPDX-License-Identifier: Apache-2.0
"""Signals under `ncclshim run`: the terminal's reach both, others are handed on, none arrives twice, and
a launcher that is killed leaves the server alone."""
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import logmaker  # noqa: E402

SERVE = [sys.executable, logmaker.__file__, "serve"]


def start(box, *options, **kwargs):
    """A server that tells each signal on stdout; returns the launcher once the server is ready."""
    process = box.start(box.command, "run", "-o", "r", "--", *SERVE, *options,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
    assert process.stdout.readline() == "ready\n"
    return process


def server_of(process):
    children = Path("/proc/%d/task/%d/children" % (process.pid, process.pid)).read_text().split()
    assert len(children) == 1
    return int(children[0])


def lives(pid):
    try:
        return Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_sent_to_the_launcher_reaches_the_server_once(box, number):
    process = start(box, "--records", 100, "--linger", 60, "--graceful", "0.3")
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=20)
    assert out == "signal %d\nreceived %d\n" % (number, number)
    assert process.returncode == 0
    assert "100 collectives timed, 0 lost" in err


def test_signals_that_do_not_end_it_are_handed_on_too(box):
    process = start(box, "--records", 100, "--linger", 60, "--graceful", "0")
    os.kill(process.pid, signal.SIGUSR1)
    assert process.stdout.readline() == "signal 10\n"
    os.kill(process.pid, signal.SIGUSR2)
    assert process.stdout.readline() == "signal 12\n"
    assert process.poll() is None
    process.terminate()
    assert process.communicate(timeout=20)[0] == "signal 15\nreceived 10 12 15\n"


def test_a_server_without_handler_dies_of_the_signal(box):
    process = start(box, "--records", 100, "--linger", 60)
    process.terminate()
    assert process.wait(20) == 143
    assert json.loads((box.dir / "r" / "run.json").read_text())["signal"] == 15


def test_an_impatient_second_signal_is_handed_on_as_well(box):
    process = start(box, "--records", 100, "--linger", 60, "--graceful", "3")
    os.kill(process.pid, signal.SIGTERM)
    assert process.stdout.readline() == "signal 15\n"
    time.sleep(0.7)
    os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "signal 2\n"
    process.kill()
    process.communicate()


def test_a_supervisor_that_signals_twice_at_once_does_not_harm(box):
    """timeout(1) signals its child and then its group: the launcher gets two in a row."""
    process = start(box, "--records", 100, "--linger", 60, "--graceful", "1.2")
    os.kill(process.pid, signal.SIGTERM)
    assert process.stdout.readline() == "signal 15\n"
    os.kill(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    assert out == "received 15\n" and process.returncode == 0


def test_what_the_caller_ignores_stays_ignored(box):
    """nohup, and background jobs of a plain shell."""
    process = start(box, "--records", 100, "--linger", "1",
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    os.kill(process.pid, signal.SIGHUP)
    assert process.wait(20) == 0


def test_the_server_gets_the_signal_mask_and_dispositions_of_the_caller(box):
    done = box.cli("run", "--", "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")
    assert done.out == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n" or \
        done.out == box.run("grep", "-E", "Sig(Blk|Ign)", "/proc/self/status").out


# ---- on a terminal ------------------------------------------------------------------------------

class Terminal:
    """A program that leads a session on a terminal of its own, as in a shell window."""

    def __init__(self, box, *args):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(box.dir)
            os.execve(str(box.command), [str(a) for a in args], box.env)
        self.text = ""

    def read_until(self, word, seconds=15):
        end = time.monotonic() + seconds
        while word not in self.text and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    break
        assert word in self.text, self.text

    def end(self):
        self.read_until("ncclshim report")
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return code


def test_control_c_reaches_the_server_once_and_the_run_is_finished(box):
    t = Terminal(box, box.command, "run", "-o", "r", "--", *SERVE, "--records", 700, "--linger", 60,
                 "--graceful", "0.5")
    t.read_until("ready")
    # Two signals close together can arrive as one: hold the launcher back until the server has its own.
    os.kill(t.pid, signal.SIGSTOP)
    os.write(t.fd, b"\x03")
    t.read_until("signal 2")
    os.kill(t.pid, signal.SIGCONT)
    assert t.end() == 0
    assert "received 2\r" in t.text
    assert "700 collectives timed, 0 lost" in t.text


def test_control_c_of_a_server_without_handler_gives_130(box):
    t = Terminal(box, box.command, "run", "-o", "r", "--", "sh", "-c",
                 '"$@"; exit 1', "sh", *SERVE, "--records", 700, "--linger", 60)
    t.read_until("ready")
    os.write(t.fd, b"\x03")
    assert t.end() == 130


def test_a_terminal_that_closes_ends_server_and_launcher(box):
    t = Terminal(box, box.command, "run", "-o", "r", "--", *SERVE, "--records", 700, "--linger", 60)
    t.read_until("ready")
    server = int(Path("/proc/%d/task/%d/children" % (t.pid, t.pid)).read_text())
    os.close(t.fd)
    os.waitpid(t.pid, 0)
    assert wait_for(lambda: not lives(server))
    assert json.loads((box.dir / "r" / "run.json").read_text())["signal"] == signal.SIGHUP


# ---- a launcher that is killed ------------------------------------------------------------------

def test_a_killed_launcher_leaves_the_server_running_and_another_collector_goes_on(box):
    process = start(box, "--records", 20000, "--rate", 10000, "--capacity", 1 << 16)
    server = server_of(process)
    time.sleep(0.7)
    process.kill()
    process.wait()
    assert lives(server)
    again = box.start(box.command, "collect", "-o", "r", stderr=subprocess.PIPE, text=True)
    assert wait_for(lambda: not lives(server))
    time.sleep(0.6)
    again.terminate()
    _, err = again.communicate(timeout=20)
    assert again.returncode == 0
    assert "20,000 collectives timed, 0 lost" in err
    run = json.loads((box.dir / "r" / "run.json").read_text())
    assert run["made_by"] == "run" and "ended_ns" in run
