# SPDX-License-Identifier: Apache-2.0
"""make install and make uninstall, into a folder of the test's own."""
import os
import shutil
import subprocess

import pytest


BUILT = ("ncclshim", "libncclshim.so", "examples/decode_server", "fake/libcuda.so.1", "fake/libnccl.so.2")


@pytest.fixture
def make(box):
    def run(*words, prefix="/usr/local"):
        env = {k: v for k, v in box.env.items() if not k.startswith(("NCCLSHIM", "LD_"))}
        build = os.path.relpath(box.build, box.root)
        # -o: what other tests are running is never built again, whatever was edited meanwhile
        old = [w for name in BUILT for w in ("-o", build + "/" + name)]
        done = subprocess.run(["make", "-s", "-C", str(box.root), "BUILD=" + build, *old,
                               "DESTDIR=" + str(box.dir / "dest"), "PREFIX=" + prefix, *words],
                              env=env, capture_output=True, text=True, timeout=80, check=False)
        assert done.returncode == 0, done.stderr
        return box.dir / "dest" / prefix.lstrip("/")
    return run


def files(folder):
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if not f.is_dir())


def installed_env(**more):
    """Nothing that could lead to the build."""
    return dict(NCCLSHIM_PROFILE_PATH=None, NCCLSHIM_LOG_DIR=None, **more)


def test_what_is_installed_runs_a_server_with_an_installed_profile(box, make):
    root = make("install")
    command = root / "bin/ncclshim"
    listed = box.run(command, "profiles", env=installed_env())
    assert listed.code == 0 and str(root / "share/ncclshim/profiles/pcie-latency.ini") in listed.out, listed
    done = box.run(command, "run", "-p", "pcie-latency", "-o", "run", "--log-dir", box.logs, "--", box.server,
                   "--requests", "1", "--steps", "2", "--calls", "4", env=installed_env())
    assert done.code == 0 and "0 not intercepted" in done.err, done
    report = box.run(command, "report", "run", env=installed_env())
    assert report.code == 0 and "pcie-latency" in report.out, report


def test_the_preloaded_object_finds_the_installed_profiles_by_itself(box, make):
    root = make("install")
    done = box.run(box.server, "--requests", "1", "--steps", "2", "--calls", "4",
                   env=dict(LD_PRELOAD=root / "lib/ncclshim/libncclshim.so", NCCLSHIM_PROFILE="quiet",
                            NCCLSHIM_PROFILE_PATH=None))
    assert done.code == 0 and done.err == "", done


def test_the_tree_can_be_moved(box, make):
    root = make("install", prefix="/opt/ncclshim")
    moved = box.dir / "elsewhere"
    shutil.move(root, moved)
    done = box.run(moved / "bin/ncclshim", "run", "-p", "quiet", "-o", "run", "--log-dir", box.logs, "--", box.server,
                   "--requests", "1", "--steps", "2", "--calls", "4", env=installed_env())
    assert done.code == 0, done


def test_all_of_it_can_lie_in_one_folder(box):
    there = box.dir / "opt"
    there.mkdir()
    for file in box.command, box.shim:
        shutil.copy(file, there)
    shutil.copytree(box.root / "profiles", there / "profiles")
    server = (box.server, "--requests", "1", "--steps", "2", "--calls", "4")
    done = box.run(there / "ncclshim", "run", "-p", "quiet", "-o", "run", "--log-dir", box.logs, "--", *server,
                   env=installed_env())
    assert done.code == 0 and str(there / "profiles/quiet.ini") in done.err, done
    done = box.run(*server, env=dict(installed_env(), LD_PRELOAD=str(there / "libncclshim.so"),
                                     NCCLSHIM_PROFILE="quiet"))
    assert done.code == 0 and done.err == "", done


def test_without_the_headers_of_cuda_and_nccl_all_but_the_example_is_installed(box, make):
    whole = files(make("install"))
    make("uninstall")
    left_out = set(whole) - set(files(make("install", "CUDA_H=", "NCCL_H=")))
    assert left_out == {"lib/ncclshim/example/" + f for f in ("decode_server", "simulator/libcuda.so.1", "simulator/libnccl.so.2")}


def test_the_installed_example_runs_on_the_installed_simulator(box, make):
    example = make("install") / "lib/ncclshim/example"
    done = box.run(example.parents[1].parent / "bin/ncclshim", "run", "-p", "none", "-o", "run", "--log-dir", box.logs, "--",
                   example / "decode_server", "--requests", "1", "--steps", "2", "--calls", "4",
                   env=installed_env(LD_LIBRARY_PATH=example / "simulator"))
    assert done.code == 0 and "0 not intercepted" in done.err, done


READER = """#include <ncclshim/log.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct ncclshim_log_header log;
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!f || fread(&log, sizeof(log), 1, f) != 1 || log.byte_order != NCCLSHIM_LOG_BYTE_ORDER)
        return 1;
    return printf("written by %s\\n", log.shim_version) < 0;
}
"""


def pkg_config(root, *question):
    done = subprocess.run(["pkg-config", "--define-variable=prefix=" + str(root), *question, "ncclshim"],
                          env=dict(os.environ, PKG_CONFIG_PATH=str(root / "share/pkgconfig")), capture_output=True,
                          text=True, timeout=20, check=True)
    return done.stdout.split()


def test_a_reader_of_logs_is_built_and_reads_one_by_what_pkg_config_says(box, make):
    root = make("install")
    flags, shim = ["-I" + str(root / "include")], str(root / "lib/ncclshim/libncclshim.so")
    if shutil.which("pkg-config"):
        assert pkg_config(root, "--cflags") == flags
        assert pkg_config(root, "--variable=shim") == [shim]
    (box.dir / "reader.c").write_text(READER)
    built = box.run(os.environ.get("CC", "cc"), "-Wall", "-Werror", *flags, "reader.c", "-o", "reader")
    assert built.code == 0, built
    server = box.run(box.server, "--requests", "1", "--steps", "2", "--calls", "4",
                     env=dict(LD_PRELOAD=shim, NCCLSHIM_PROFILE="none"))
    log = next(p for p in box.logs.rglob("*") if p.is_file())
    read = box.run(box.dir / "reader", log)
    assert read.out == "written by %s\n" % box.cli("--version").out.split()[1], (server, read)


def test_every_verb_has_its_page_and_modes_are_as_a_package_wants_them(box, make):
    root = make("install")
    there = files(root)
    for verb in ("run", "collect", "profiles", "show", "check", "report", "compare", "export", "clean"):
        assert "share/man/man1/ncclshim-%s.1" % verb in there
    assert "share/bash-completion/completions/ncclshim" in there
    for name in there:
        executable = name in ("bin/ncclshim", "lib/ncclshim/example/decode_server")
        assert (root / name).stat().st_mode & 0o777 == (0o755 if executable else 0o644), name
        assert str(box.build).encode() not in (root / name).read_bytes() or executable or ".so" in name


def test_uninstall_leaves_nothing_of_ours_and_all_of_others(box, make):
    root = make("install")
    foreign = root / "share/ncclshim/profiles/mine.ini"
    foreign.write_text("[env]\n")
    make("uninstall")
    assert files(root) == ["share/ncclshim/profiles/mine.ini"]
    foreign.unlink()
    make("uninstall")
    assert files(root) == []
    assert not [d for d in root.rglob("*ncclshim*")]
