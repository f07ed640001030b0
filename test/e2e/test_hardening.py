# SPDX-License-Identifier: Apache-2.0
"""How the shared object and the command are linked: what a checker of binaries asks, by readelf."""
import re
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("readelf"), reason="no readelf here")


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, str(path)], capture_output=True, text=True, timeout=60,
                          check=True).stdout


def symbols(path):
    """[(name, defined and visible)] of the dynamic table"""
    found = []
    for line in readelf(path, "--dyn-syms").splitlines():
        words = line.split()
        if len(words) >= 8 and words[0].rstrip(":").isdigit():
            name = words[7].split("@")[0]
            found.append((name, words[6] != "UND" and words[4] in ("GLOBAL", "WEAK") and words[5] == "DEFAULT"))
    return found


def needed(path):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(path, "-d")))


@pytest.fixture(params=["shim", "command"])
def binary(request, box):
    return getattr(box, request.param)


def test_tables_of_addresses_are_read_only_once_loaded(binary):
    dynamic = readelf(binary, "-d")
    assert "GNU_RELRO" in readelf(binary, "-l")
    assert re.search(r"\(FLAGS\).*BIND_NOW", dynamic) and re.search(r"\(FLAGS_1\).*NOW", dynamic), dynamic


def test_no_stack_can_be_executed_and_no_page_is_both_written_and_executed(binary):
    segments = [line.split() for line in readelf(binary, "-l").splitlines()]
    stack = [" ".join(s[6:-1]) for s in segments if s and s[0] == "GNU_STACK"]
    assert stack == ["RW"]
    for s in segments:
        if s and s[0] == "LOAD":
            flags = "".join(s[6:-1])
            assert not ("W" in flags and "E" in flags), s


def test_code_can_lie_anywhere_and_is_never_patched(binary):
    dynamic = readelf(binary, "-d")
    assert "DYN" in re.search(r"Type:\s+(.*)", readelf(binary, "-h")).group(1)
    assert "TEXTREL" not in dynamic
    if binary.name == "ncclshim":
        assert re.search(r"\(FLAGS_1\).*PIE", dynamic)


def test_no_library_is_looked_for_in_a_folder_of_ours(binary):
    assert not re.search(r"\((RPATH|RUNPATH)\)", readelf(binary, "-d"))


def test_overrun_stacks_and_buffers_end_the_process(binary):
    names = {name for name, _ in symbols(binary)}
    assert "__stack_chk_fail" in names
    assert any(name.endswith("_chk") for name in names), "built without _FORTIFY_SOURCE"


def test_the_shared_object_needs_libc_alone(box):
    assert {n for n in needed(box.shim) if not re.match(r"(libc|libdl|libpthread|ld-linux.*)\.so", n)} == set()


def version(text):
    return tuple(int(n) for n in text.split("."))


def test_the_shared_object_loads_with_the_glibc_that_the_documents_name(box):
    """Whatever it was built on: it is loaded into containers that are older (shim/base/glibc_floor.h)."""
    floor = re.search(r"glibc (\d+\.\d+) or newer", (box.root / "docs/install.md").read_text()).group(1)
    asked = {(name, v) for name, v in re.findall(r" (\w+)@+GLIBC_([\d.]+)", readelf(box.shim, "--dyn-syms"))}
    assert asked and {a for a in asked if version(a[1]) > version(floor)} == set()
    assert max((v for _, v in asked), key=version) == floor, "the documents ask for more than is needed"


def test_the_shared_object_starts_where_an_old_glibc_has_no_dlopen(box):
    """Before 2.34 it lies in libdl.so.2, which a small program does not have: the names may be missing there."""
    asked = [line.split() for line in readelf(box.shim, "--dyn-syms").splitlines() if re.search(r" dl(open|addr|close)", line)]
    assert asked
    if "libdl.so.2" in needed(box.shim):
        pytest.skip("built with such a glibc, and asks for it by name")
    assert {words[4] for words in asked} == {"WEAK"}


def test_the_shared_object_shows_names_of_nccl_dlsym_its_tables_and_its_mark(box):
    shown = {name for name, visible in symbols(box.shim) if visible}
    tables = {n for n in shown if re.fullmatch(r"nccl(TunerPlugin|Profiler|EnvPlugin)_v\d+", n)}
    functions = {n for n in shown - tables if re.fullmatch(r"nccl[A-Z]\w*", n)}
    assert shown - tables - functions == {"dlsym", "ncclshim_is_loaded"}
    source = (box.root / "shim/preload/nccl_api.h").read_text()
    named = {"nccl" + n for n in re.findall(r"^ +(?:OWN|OWN0|PASS|PASS_TEXT)\((\w+),", source, re.M)}
    assert functions == named
    assert {"ncclTunerPlugin_v5", "ncclProfiler_v5", "ncclEnvPlugin_v1"} <= tables
