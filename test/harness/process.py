# SPDX-License-Identifier: Apache-2.0
"""Runs a program with a time limit that holds for its children too."""
import os
import signal
import subprocess
import tempfile


def run(args, timeout, env=None, cwd=None):
    """(exit code or -signal or "timeout", output). Output goes through a file: no pipe can block us."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                   env=env, cwd=cwd, start_new_session=True)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = "timeout"
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what it left running, too
        except ProcessLookupError:
            pass
        process.wait()
        out.seek(0)
        return code, out.read().decode("utf-8", "replace")


def describe(code, timeout):
    if code == "timeout":
        return "still running after %d s, killed" % timeout
    if code < 0:
        try:
            return "ended by " + signal.Signals(-code).name
        except ValueError:
            return "ended by signal %d" % -code
    return "exit code %d" % code
