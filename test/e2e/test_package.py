# SPDX-License-Identifier: Apache-2.0
"""The Debian package that `make deb` makes. On a clean system it is tried by `make test-package`."""
import os
import re
import shutil
import subprocess

import pytest

from test_install import BUILT

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-shlibdeps"),
                                reason="no dpkg-dev here")


@pytest.fixture(scope="module")
def package(build, tmp_path_factory):
    root = tmp_path_factory.mktemp("deb")
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folder = os.path.relpath(build, source)
    old = [w for name in BUILT for w in ("-o", folder + "/" + name)]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCLSHIM", "LD_", "MAKE", "MFLAGS"))}
    done = subprocess.run(["make", "-s", "-C", source, "BUILD=" + folder, *old, "DEB_DIR=" + str(root), "deb"], env=env,
                          capture_output=True, text=True, timeout=80, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def ask(*words):
    return subprocess.run(words, env=dict(os.environ, LC_ALL="C.UTF-8"), capture_output=True, text=True, timeout=85,
                          check=True).stdout


def test_the_package_holds_the_command_the_object_and_all_that_belongs_to_them(package):
    there = {line.split()[5]: line.split()[0] for line in ask("dpkg-deb", "-c", package).splitlines()}
    for name, mode in [("bin/ncclshim", "-rwxr-xr-x"), ("lib/ncclshim/libncclshim.so", "-rw-r--r--"),
                       ("lib/ncclshim/example/decode_server", "-rwxr-xr-x"),
                       ("lib/ncclshim/example/simulator/libnccl.so.2", "-rw-r--r--"),
                       ("share/ncclshim/profiles/fewer-channels.ini", "-rw-r--r--"),
                       ("include/ncclshim/log.h", "-rw-r--r--"), ("share/pkgconfig/ncclshim.pc", "-rw-r--r--"),
                       ("share/man/man1/ncclshim-run.1.gz", "-rw-r--r--"),
                       ("share/doc/ncclshim/docs/use/vllm.md", "-rw-r--r--"),
                       ("share/bash-completion/completions/ncclshim", "-rw-r--r--")]:
        assert there.get("./usr/" + name) == mode, name
    # Nothing but what is ours by name, and nothing in a place that the loader looks into.
    assert [n for n in there if not n.endswith("/") and "ncclshim" not in n] == []
    assert {os.path.dirname(n) for n in there if ".so" in n} == \
        {"./usr/lib/ncclshim", "./usr/lib/ncclshim/example/simulator"}


def test_the_package_asks_for_the_libraries_that_its_programs_are_linked_to(package, box):
    depends = ask("dpkg-deb", "-f", package, "Depends")
    libraries = re.findall(r"NEEDED.*\[(lib\w+)\.so", ask("readelf", "-dW", str(box.command)))
    assert {"libjansson", "libzstd"} <= set(libraries)
    for name in libraries:
        assert name in ("libm", "libc") or re.search(r"\b%s\d* \(>=" % re.escape(name), depends), (name, depends)
    assert re.search(r"\blibc6 \(>=", depends)


def test_lintian_finds_no_error_and_nothing_to_warn_of(package):
    if not shutil.which("lintian"):
        pytest.skip("no lintian here")
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", package], capture_output=True,
                          text=True, timeout=85, check=False)
    assert done.returncode == 0 and done.stdout == "", done
