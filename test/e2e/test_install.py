# SPDX-License-Identifier: Apache-2.0
"""make install and make uninstall, into a folder of the test's own."""
import os
import shutil
import subprocess

import pytest


@pytest.fixture
def make(box):
    def run(*words, prefix="/usr/local"):
        env = {k: v for k, v in box.env.items() if not k.startswith(("NCCLSHIM", "LD_"))}
        build = os.path.relpath(box.build, box.root)
        # -o: what other tests are running is never built again, whatever was edited meanwhile
        done = subprocess.run(["make", "-s", "-C", str(box.root), "BUILD=" + build, "-o", build + "/ncclshim",
                               "-o", build + "/libncclshim.so", "DESTDIR=" + str(box.dir / "dest"),
                               "PREFIX=" + prefix, *words],
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


def test_the_header_compiles_alone_by_what_pkg_config_says(box, make):
    root = make("install")
    flags = ["-I" + str(root / "include")]
    if shutil.which("pkg-config"):
        said = subprocess.run(["pkg-config", "--cflags", "--define-variable=prefix=" + str(root), "ncclshim"],
                              env=dict(os.environ, PKG_CONFIG_PATH=str(root / "lib/pkgconfig")), capture_output=True,
                              text=True, timeout=20, check=False)
        assert said.returncode == 0 and said.stdout.split() == flags, said
    source = box.dir / "reader.c"
    source.write_text("#include <ncclshim/log.h>\nint main(void) { return sizeof(struct ncclshim_record) != 32; }\n")
    done = box.run(os.environ.get("CC", "cc"), "-Wall", "-Werror", *flags, source, "-o", "reader")
    assert done.code == 0, done
    assert box.run(box.dir / "reader").code == 0


def test_every_verb_has_its_page_and_modes_are_as_a_package_wants_them(box, make):
    root = make("install")
    there = files(root)
    for verb in ("run", "collect", "profiles", "show", "check", "report", "compare", "export", "clean"):
        assert "share/man/man1/ncclshim-%s.1" % verb in there
    assert "share/bash-completion/completions/ncclshim" in there
    for name in there:
        executable = name in ("bin/ncclshim", "lib/ncclshim/libncclshim.so")
        assert (root / name).stat().st_mode & 0o777 == (0o755 if executable else 0o644), name
        assert str(box.build).encode() not in (root / name).read_bytes() or executable


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
