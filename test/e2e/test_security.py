# SPDX-License-Identifier: Apache-2.0
"""The threats of docs/security.md that a test can play: files in the way, hostile names, set-uid programs."""
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

import logmaker

SHORT = ("--requests", "1", "--steps", "2", "--calls", "4")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be another user")


def serve(box, **env):
    """The server under the shim; it must run as ever, with at most one line a process (two ranks, one parent)."""
    done = box.preload(box.server, *SHORT, env=env, timeout=30)
    assert done.code == 0 and "sums: right" in done.out, done
    assert len(done.err.splitlines()) <= 3 and all(x.startswith("ncclshim: ") for x in done.err.splitlines()), done
    return done


def test_a_fifo_as_profile_does_not_make_a_server_wait(box):
    os.mkfifo(box.dir / "pipe.ini")
    assert "no regular file" in serve(box, NCCLSHIM_PROFILE=box.dir / "pipe.ini").err


def test_a_device_without_end_as_profile_is_refused(box):
    assert "no regular file" in serve(box, NCCLSHIM_PROFILE="/dev/zero").err


@pytest.mark.parametrize("name", ["../../../../../../etc/passwd", "/etc/passwd", "./../x.ini", "..", "a/../../b",
                                  "%s%n", "x" * 5000], ids=range(7))
def test_names_of_profiles_with_slashes_and_dots_tell_nothing_of_other_files(box, name):
    done = serve(box, NCCLSHIM_PROFILE=name)
    assert "nothing was set" in done.err and "root:" not in done.err


def test_a_log_folder_that_is_a_link_is_not_followed(box):
    target = box.logs / "elsewhere"
    target.mkdir()
    (box.logs / "link").symlink_to(target)
    assert "symbolic link" in serve(box, NCCLSHIM_LOG_DIR=box.logs / "link").err
    assert not list(target.iterdir())


def test_a_log_folder_that_others_can_write_is_refused(box):
    box.logs.chmod(0o777)
    assert "others can write" in serve(box).err
    assert not list(box.logs.iterdir())


@as_root
def test_a_log_folder_of_another_user_is_refused(box):
    os.chown(box.logs, 65534, 65534)
    assert "belongs to user 65534" in serve(box).err
    os.chown(box.logs, 0, 0)


PLANT = """
import os, sys
sys.path.insert(0, %r)
import logmaker
name = logmaker.log_name(os.uname().nodename, os.getpid(), logmaker.start_ticks_of())
os.%s
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.parametrize("how", ["symlink", "fifo", "file"])
def test_what_is_planted_under_a_logs_name_is_left_alone(box, how):
    victim = box.dir / "victim"
    victim.write_text("precious")
    act = {"symlink": "symlink(%r, os.path.join(%r, name))" % (str(victim), str(box.logs)),
           "fifo": "mkfifo(os.path.join(%r, name))" % str(box.logs),
           "file": "close(os.open(os.path.join(%r, name), os.O_CREAT))" % str(box.logs)}[how]
    done = box.preload(sys.executable, "-c", PLANT % (str(box.root / "test/e2e"), act), box.server, "--one-process",
                       *SHORT)
    assert done.code == 0 and done.err == "", done
    assert victim.read_text() == "precious"
    logs = [p for p in box.logs.iterdir() if p.is_file() and not p.is_symlink() and p.stat().st_size]
    assert len(logs) == 1 and logs[0].name.endswith("-1.ncclshim"), list(box.logs.iterdir())
    assert logs[0].stat().st_mode & 0o777 == 0o600


@as_root
def test_a_set_uid_program_is_not_led_by_the_users_variables(box):
    """The loader drops LD_PRELOAD there, not /etc/ld.so.preload; a program linked to the shim stands for the latter."""
    place = tempfile.mkdtemp(prefix="ncclshim-suid-", dir="/var/tmp")
    try:
        os.chmod(place, 0o755)
        shutil.copy(box.shim, place)
        source = box.dir / "suid.c"
        source.write_text('#include <stdio.h>\n#include <sys/auxv.h>\nextern const char ncclshim_is_loaded[];\n'
                          'int main(void) { printf("%d %d", !!getauxval(AT_SECURE), !!ncclshim_is_loaded[0]); }\n')
        built = box.run(os.environ.get("CC", "cc"), source, "-o", place + "/suid", "-L" + place, "-l:libncclshim.so",
                        "-Wl,-rpath," + place)
        assert built.code == 0, built
        os.chmod(place + "/suid", 0o4755)
        done = subprocess.run([place + "/suid"], user=65534, group=65534, extra_groups=[], cwd="/", timeout=20,
                              env={"NCCLSHIM_PROFILE": "/etc/shadow"}, capture_output=True, text=True, check=False)
        if done.stdout == "0 1":
            pytest.skip("set-uid has no effect on this file system")
        assert (done.stdout, done.stderr) == ("1 1", "")
        done = subprocess.run([place + "/suid"], cwd="/", timeout=20, env={"NCCLSHIM_PROFILE": "/etc/shadow"},
                              capture_output=True, text=True, check=False)
        assert "nothing was set" in done.stderr and ":$" not in done.stderr
    finally:
        shutil.rmtree(place)


HOSTILE = 'tp"}\\\n</script><script>alert(1)</script>\x1b[31m'


@pytest.fixture
def hostile(box):
    folder = box.dir / "hostile"
    folder.mkdir()
    logmaker.decode_run(folder, ranks=2, calls=3, replays=10, comm_name=HOSTILE[:60],
                        settings=[("NCCL_DEBUG", HOSTILE)])
    return folder


def test_names_from_logs_are_harmless_on_a_terminal_and_in_pages(box, hostile):
    report = box.cli("report", hostile)
    page = box.cli("report", hostile, "--html", "page.html")
    assert report.code == 0 and page.code == 0, (report, page)
    assert "\x1b[31m" not in report.out
    text = (box.dir / "page.html").read_text()
    assert "<script>alert" not in text and "\x1b" not in text


def test_names_from_logs_are_harmless_in_exports(box, hostile):
    for form in ("prometheus", "csv", "json", "chrome"):
        done = box.cli("export", "--format", form, hostile)
        assert done.code == 0, done
        assert "\x1b" not in done.out
        if form == "prometheus":
            for line in done.out.splitlines():
                assert line.startswith("#") or line.startswith("ncclshim_"), line


def test_an_export_does_not_follow_what_is_planted_under_its_temporary_name(box, hostile):
    victim = box.dir / "victim"
    victim.write_text("precious")
    code = ("import os, sys\nos.symlink(%r, '.out.json.%%d.new' %% os.getpid())\n"
            "os.execv(sys.argv[1], sys.argv[1:])\n" % str(victim))
    done = box.run(sys.executable, "-c", code, box.command, "export", "--format", "json", "-o", "out.json", hostile)
    assert done.code == 0, done
    assert victim.read_text() == "precious" and (box.dir / "out.json").stat().st_size > 100
