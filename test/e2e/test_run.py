# SPDX-License-Identifier: Apache-2.0
"""`ncclshim run`: what it checks, what it starts, what it prints, what it leaves. The servers are
stand-ins that write logs by the document (logmaker.py serve)."""
import ctypes
import ctypes.util
import json
import os
import shutil
import stat
import struct
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import logmaker  # noqa: E402

SERVE = [sys.executable, logmaker.__file__, "serve"]


def lines(done):
    return [line for line in done.err.splitlines() if line]


def run_json(box, name="r"):
    return json.loads((box.dir / name / "run.json").read_text())


def nothing_left(box):
    """Neither a run folder nor a log folder of its own."""
    return not (box.dir / "ncclshim-runs").exists() and not list(box.logs.iterdir())


def test_the_exit_code_of_the_command_is_passed_through(box):
    for code in (0, 1, 7, 255):
        assert box.cli("run", "--", "sh", "-c", "exit %d" % code).code == code


def test_a_command_ended_by_a_signal_gives_128_and_the_signal(box):
    assert box.cli("run", "-o", "r", "--", "sh", "-c", "kill -9 $$").code == 137
    assert run_json(box)["signal"] == 9
    assert "exit_code" not in run_json(box)


def test_one_line_at_the_start_and_one_at_the_end_and_no_more(box):
    done = box.cli("run", "-o", "r", "--", *SERVE, "--records", 5000)
    assert done.code == 0
    assert done.out == "ready\n"
    assert lines(done) == [
        "ncclshim: profile none (log only), run folder r",
        "ncclshim: 1 rank (simulated GPUs), 1 communicator, 5,000 collectives timed, 0 lost, "
        "0 not intercepted; see `ncclshim report r`"]


def test_real_gpus_are_not_called_simulated(box):
    done = box.cli("run", "-o", "r", "--", *SERVE, "--records", 10, "--real-gpu")
    assert "imulated" not in done.err
    assert run_json(box)["simulated"] is False


def test_where_nothing_is_seen_it_says_so_and_why_it_may_be(box):
    done = box.cli("run", "-o", "r", "--", "true")
    assert done.code == 0
    assert len(lines(done)) == 2
    assert "nothing seen" in lines(done)[1] and "LD_PRELOAD" in lines(done)[1]
    done = box.cli("run", "--", "true", env={"NCCLSHIM_LOG": "off"})
    assert "NCCLSHIM_LOG is off" in lines(done)[1]


@pytest.mark.parametrize("options, word", [
    (["-p", "no-such-profile"], "no-such-profile"),
    (["-p", "./missing.ini"], "missing.ini"),
    (["-p", "bad.ini"], "bad.ini:2"),
    (["-o", "full"], "not empty"),
    (["--keep", "some"], "'some'"),
    (["--no-such-option"], "no-such-option"),
    (["--log-dir", "/proc/no-such-place"], "/proc/no-such-place"),
])
def test_what_is_wrong_is_said_before_anything_is_started(box, options, word):
    (box.dir / "bad.ini").write_text("[env]\nthis line has no equals sign\n")
    (box.dir / "full").mkdir()
    (box.dir / "full" / "x").write_text("x")
    done = box.cli("run", *options, "--", "touch", "started")
    assert done.code == 2
    assert word in done.err
    assert not (box.dir / "started").exists()
    assert nothing_left(box)


def test_a_command_that_is_not_there_is_said_and_nothing_is_left(box):
    for command in ("no-such-command", "./no-such-file", "/etc/passwd"):
        done = box.cli("run", "--", command)
        assert done.code == 2 and command in done.err
        assert nothing_left(box)
    assert box.cli("run").code == 2
    assert box.cli("run", "-p", "none", "--").code == 2


def test_a_script_without_interpreter_is_no_command(box):
    script = box.dir / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    done = box.cli("run", "--", "./script")
    assert done.code == 2 and "script" in done.err
    assert nothing_left(box)


def test_the_shim_must_be_where_the_loader_can_find_it(box):
    """A path with a blank is split by the loader; a missing file gives a line per process (P01)."""
    for place, word in (("with blank", "blank"), ("with:colon", "colon"), ("alone", "libncclshim.so")):
        folder = box.dir / place
        folder.mkdir()
        shutil.copy(box.command, folder / "ncclshim")
        if place != "alone":
            shutil.copy(box.shim, folder / "libncclshim.so")
        done = box.run(folder / "ncclshim", "run", "--", "touch", "started")
        assert done.code == 2 and word in done.err, done
    (box.dir / "alone" / "libncclshim.so").write_text("not a library")
    done = box.run(box.dir / "alone" / "ncclshim", "run", "--", "touch", "started")
    assert done.code == 2 and "64-bit shared object" in done.err
    assert not (box.dir / "started").exists()


def test_other_preloaded_libraries_stay_and_a_sanitizer_stays_first(box):
    def preload(given):
        done = box.cli("run", "--", "/usr/bin/env", env={"LD_PRELOAD": given} if given else {})
        return [w for w in done.out.splitlines() if w.startswith("LD_PRELOAD=")][0][11:].split(":")
    shim = str(box.shim)
    libm = ctypes.util.find_library("m")
    assert preload(None) == [shim]
    assert preload(libm) == [shim, libm]
    assert preload("%s %s" % (shim, libm)) == [shim, libm]


def test_what_the_command_gets_in_its_environment(box):
    profile = box.profile("mine", "[env]\nNCCL_DEBUG = WARN\n")
    done = box.cli("run", "-p", "./mine.ini", "--strict", "--", "sh", "-c",
                   "cd / && echo $NCCLSHIM_PROFILE $NCCLSHIM_STRICT $NCCLSHIM_LOG_DIR && "
                   "stat -c %a $NCCLSHIM_LOG_DIR")
    assert done.code == 0
    first, mode = done.out.splitlines()
    path, strict, log_dir = first.split()
    assert Path(path).samefile(profile) and path.startswith("/")
    assert strict == "1"
    assert log_dir.startswith(str(box.logs) + "/run-")
    assert mode == "700"
    assert "profile mine (" in lines(done)[0]


def test_the_logs_are_taken_over_and_their_folder_is_gone(box):
    box.cli("run", "-o", "r", "--", *SERVE, "--records", 3000, "--capacity", 1024)
    assert list(box.logs.iterdir()) == []
    names = sorted(p.name.split(".", 1)[1] for p in (box.dir / "r").iterdir())
    assert names == ["hist", "json", "ncclshim"]
    log, = (box.dir / "r").glob("*.ncclshim")
    parsed = logmaker.parse(log)
    assert parsed.head["state"] == logmaker.CLOSED
    assert max(parsed.rings[0]["records"]) == 2999
    assert len(parsed.sites) == 10
    assert stat.S_IMODE(log.stat().st_mode) & 0o022 == 0


def test_run_json_says_what_was_run(box):
    begin = time.time_ns()
    box.cli("run", "-o", "r", "--", *SERVE, "--records", 10, "--exit", 3)
    run = run_json(box)
    assert run["version"] == 1 and run["made_by"] == "run"
    assert run["command"][1:] == [logmaker.__file__, "serve", "--records", "10", "--exit", "3"]
    assert run["profile"] == "none" and run["profile_path"] == ""
    assert begin <= run["started_ns"] <= run["ended_ns"] <= time.time_ns()
    assert run["exit_code"] == 3 and run["simulated"] is True
    assert len(run["processes"]) == 1
    assert (box.dir / "r" / (run["processes"][0] + ".hist")).exists()
    assert "log_dir" not in run


def test_an_argument_that_is_not_utf8_does_no_harm(box):
    done = box.cli("run", "-o", "r", "--", "echo", os.fsdecode(b"\xff\xfe"))
    assert done.code == 0
    assert run_json(box)["command"] == ["echo", "\\xff\\xfe"]


def test_while_it_runs_run_json_tells_where_the_live_logs_are(box):
    server = box.start(box.command, "run", "-o", "r", "--", *SERVE, "--records", 100, "--linger", 20)
    for _ in range(200):
        if (box.dir / "r" / "run.json").exists() and run_json(box)["processes"]:
            break
        time.sleep(0.05)
    run = run_json(box)
    assert "ended_ns" not in run
    assert list(Path(run["log_dir"]).glob("*.ncclshim"))
    server.terminate()
    assert server.wait(20) == 143


def test_runs_of_the_same_second_get_folders_of_their_own(box):
    runs = [box.start(box.command, "run", "--", "sleep", "0.2", stderr=-3) for _ in range(4)]
    assert [r.wait(20) for r in runs] == [0] * 4
    folders = list((box.dir / "ncclshim-runs").iterdir())
    assert len(folders) == 4
    assert all(f.name.split("-")[4] == "sleep" for f in folders)


@pytest.mark.parametrize("command, name", [
    (["python3", "-m", "sglang.launch_server", "--tp", "8"], "sglang"),
    (["python3.11", "-u", "/srv/serve.py"], "serve"),
    (["bash", "./start.sh"], "start"),
    (["env", "A=1", "true"], "true"),
    (["/usr/bin/true"], "true"),
])
def test_a_run_is_named_after_what_it_runs(box, command, name):
    bin_dir = box.dir / "bin"
    bin_dir.mkdir()
    for word in ("python3", "python3.11", "bash", "env"):
        (bin_dir / word).write_text("#!/bin/sh\nexit 0\n")
        (bin_dir / word).chmod(0o755)
    assert box.cli("run", "--", *command, env={"PATH": "%s:/usr/bin:/bin" % bin_dir}).code == 0
    folder, = (box.dir / "ncclshim-runs").iterdir()
    assert folder.name.split("-", 4)[4] == name


def test_nothing_is_lost_of_a_server_faster_than_any_real_one(box):
    done = box.cli("run", "-o", "r", "--", *SERVE, "--records", 400000, "--capacity", 1 << 18)
    assert "400,000 collectives timed, 0 lost" in done.err, done


def test_loss_is_counted_exactly(box):
    done = box.cli("run", "-o", "r", "--", *SERVE, "--records", 50000, "--capacity", 16)
    words = lines(done)[-1].replace(",", "").split()
    timed, lost = int(words[words.index("collectives") - 1]), int(words[words.index("lost") - 1])
    assert timed + lost == 50000 and lost > 0


def test_a_killed_server_leaves_every_finished_record(box):
    """T05: the run is not closed, nothing is damaged, the exit code is the server's."""
    done = box.cli("run", "-o", "r", "--", *SERVE, "--records", 5000, "--kill", 9)
    assert done.code == 137
    assert "5,000 collectives timed, 0 lost" in done.err
    log, = (box.dir / "r").glob("*.ncclshim")
    assert logmaker.parse(log).head["state"] == logmaker.OPEN


def test_workers_that_end_a_little_later_are_waited_for(box):
    done = box.cli("run", "-o", "r", "--", "sh", "-c",
                   '"$@" >/dev/null & exit 5', "sh", *SERVE, "--records", 2000, "--linger", "1.5")
    assert done.code == 5
    assert "2,000 collectives timed" in done.err
    assert list(box.logs.iterdir()) == []


def test_a_server_that_stays_is_left_its_log_and_another_collector_goes_on(box):
    done = box.cli("run", "-o", "r", "--", "sh", "-c",
                   '"$@" >/dev/null & echo $!', "sh", *SERVE, "--records", 2000, "--linger", 60)
    assert done.code == 0
    assert "1 process still running, `ncclshim collect -o r` goes on" in lines(done)[-1]
    assert len(lines(done)) == 2
    log_dir = run_json(box)["log_dir"]
    assert list(Path(log_dir).glob("*.ncclshim"))
    done = box.cli("collect", "--once", "-o", "r")  # the box has killed the server by now
    assert "2,000 collectives timed, 0 lost" in done.err
    run = run_json(box)
    assert run["made_by"] == "run" and run["command"][0] == "sh" and run["exit_code"] == 0


def test_a_daemon_that_never_calls_nccl_does_not_hold_the_run_up_for_long(box):
    begin = time.monotonic()
    done = box.cli("run", "-o", "r", "--", "sh", "-c", "sleep 60 & exit 0")
    assert done.code == 0 and time.monotonic() - begin < 4
    assert "nothing seen yet, 1 process still running" in lines(done)[-1]
    assert Path(run_json(box)["log_dir"]).is_dir()  # it may still load NCCL


def decompress(path, most):
    z = ctypes.CDLL("libzstd.so.1")
    z.ZSTD_decompress.restype = ctypes.c_size_t
    data, out = path.read_bytes(), ctypes.create_string_buffer(most)
    n = z.ZSTD_decompress(out, ctypes.c_size_t(most), data, ctypes.c_size_t(len(data)))
    assert n <= most, "not zstd"
    return out.raw[:n]


def test_keep_all_keeps_every_record_in_order(box):
    done = box.cli("run", "-o", "r", "--keep", "all", "--", *SERVE, "--records", 30000,
                   "--capacity", 1 << 15)
    assert done.code == 0
    path, = (box.dir / "r").glob("*.records.zst")
    raw = decompress(path, 32 * 40000)
    assert len(raw) == 32 * 30000
    assert len(raw) > 2 * path.stat().st_size
    sequences = [struct.unpack_from("<I", raw, 32 * i + 12)[0] for i in range(30000)]
    assert sequences == list(range(1, 30001))


def test_without_a_collector_the_command_takes_over_the_process(box):
    process = box.start(box.command, "run", "--no-collect", "--", "sh", "-c",
                        "echo $$ $NCCLSHIM_LOG_DIR", stdout=-1, stderr=-1, text=True)
    out, err = process.communicate(timeout=20)
    assert out.split() == [str(process.pid), str(box.logs)]
    assert err == "ncclshim: profile none (log only), no collector, logs in %s\n" % box.logs
    assert not (box.dir / "ncclshim-runs").exists()


def test_a_folder_for_logs_that_is_a_link_is_refused(box):
    (box.dir / "elsewhere").mkdir()
    os.symlink(box.dir / "elsewhere", box.dir / "link")
    done = box.cli("run", "--log-dir", "link", "--", "touch", "started")
    assert done.code == 2 and "link" in done.err
    open_dir = box.dir / "open"
    open_dir.mkdir()
    open_dir.chmod(0o777)
    done = box.cli("run", "--log-dir", "open", "--", "touch", "started")
    assert done.code == 2 and "chmod" in done.err
    assert not (box.dir / "started").exists()


def test_a_program_built_with_the_sanitizer_is_explained(box):
    source = box.dir / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    built = box.run("cc", "-fsanitize=address", "-o", "a", source)
    if built.code or "libasan" not in box.run("ldd", "./a").out:
        pytest.skip("no shared AddressSanitizer here")
    done = box.cli("run", "--", "./a")
    assert done.code == 2 and "libasan" in done.err and "LD_PRELOAD" in done.err
    asan = box.run("cc", "-print-file-name=libasan.so").out.strip()
    assert box.cli("run", "--", "./a", env={"LD_PRELOAD": asan,
                                            "ASAN_OPTIONS": "detect_leaks=0"}).code == 0
