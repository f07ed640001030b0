# SPDX-License-Identifier: Apache-2.0
"""`ncclshim check` against the golden answers of test/profiles.

NAME.expect holds the command as one types it in that folder (with the shell's variables in front), then what it
prints, then its exit code. After a change of a text, NCCLSHIM_REGOLD=1 writes them anew: read the diff.
"""
import json
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "test" / "profiles"
CASES = sorted(p.stem for p in PROFILES.glob("*.ini"))
SHIPPED = sorted(p.stem for p in (ROOT / "profiles").glob("*.ini"))
VERSIONS = ["2.18.3", "2.21.5", "2.27.7", "2.28.9", "2.30.7"]


def check(box, *args, env=None):
    return box.cli("check", *args, cwd=PROFILES,
                   env={"HOME": "/nonexistent", "NCCLSHIM_PROFILE_PATH": ROOT / "profiles", **(env or {})})


def typed(line):
    """`$ NAME=value ncclshim check ARGS` -> environment, arguments."""
    words = line.split()
    assert words[0] == "$"
    at = words.index("ncclshim")
    return dict(w.split("=", 1) for w in words[1:at]), words[at + 2:]


@pytest.mark.parametrize("case", CASES)
def test_answers_as_written_down(box, case):
    golden = PROFILES / (case + ".expect")
    first, _, _ = golden.read_text().partition("\n")
    env, args = typed(first)
    if env.get("HOME"):
        env["HOME"] = str(PROFILES / env["HOME"])
    done = check(box, *args, env=env)
    text = first + "\n" + done.out + done.err + "exit code %d\n" % done.code
    text = text.replace(str(PROFILES) + "/", "").replace(str(ROOT) + "/", "")
    text = re.sub(r"looked in .*", "looked in ...", text)
    if os.environ.get("NCCLSHIM_REGOLD"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_there_are_enough_cases_and_each_public_report_is_among_them():
    assert len(CASES) >= 120
    for name in ["e0%d" % i for i in range(1, 10)] + ["i0%d" % i for i in range(1, 4)]:
        assert any(c.startswith(name + "-") for c in CASES), name


@pytest.mark.parametrize("case", CASES)
def test_a_profile_loads_exactly_when_check_alone_calls_it_good(box, case):
    """`show` loads as the library does; `check` without the shell must agree with it."""
    path = PROFILES / (case + ".ini")
    judged = check(box, path)
    shown = box.cli("show", "--ini", path, cwd=PROFILES)
    assert (judged.code == 0) == (shown.code == 0), (judged, shown)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("profile", SHIPPED)
def test_shipped_profiles_are_good_for_every_nccl_they_claim(box, profile, version):
    done = check(box, "--nccl", version, "--json", profile)
    answer = json.loads(done.out)
    too_old = profile == "pcie-latency" and version == "2.18.3"
    assert done.code == (1 if too_old else 0), done
    subjects = [f["subject"] for f in answer["findings"] if f["severity"] in ("error", "danger")]
    assert subjects == (["nccl"] if too_old else [])


def test_json_has_place_reason_and_origin(box):
    done = check(box, "--json", "e03-threads-480.ini")
    finding = json.loads(done.out)["findings"][0]
    assert finding["severity"] == "danger" and finding["allowed"] is False
    assert finding["subject"] == "NCCL_NTHREADS"
    assert (finding["file"], finding["line"], finding["origin"]) == ("e03-threads-480.ini", 2, "profile")
    assert "480" in finding["reason"] and finding["advice"]


def test_a_line_of_a_mebibyte_is_refused_with_its_number(box):
    path = box.profile("long", "[env]\nNCCL_DEBUG = WARN\nNCCL_IB_HCA = " + "x" * (1 << 20) + "\n")
    done = check(box, path)
    assert done.code == 1
    assert "long.ini:3: error: the line is longer than 64 KiB" in done.out


def test_a_line_of_nearly_64_kib_arrives_whole(box):
    value = ",".join("mlx5_%d:1" % i for i in range(5300))
    path = box.profile("long", "[env]\nNCCL_IB_HCA = " + value + "\n")
    assert len(value) < 65000
    assert ("NCCL_IB_HCA = " + value + "\n") in box.cli("show", "--ini", path).out


def test_strict_makes_a_warning_bad(box):
    assert check(box, "warn-graph-mixing.ini").code == 0
    assert check(box, "--strict", "warn-graph-mixing.ini").code == 1


def test_no_such_profile_is_exit_code_2_with_the_nearest_name(box):
    done = check(box, "fewer-chanels")
    assert done.code == 2 and "did you mean 'fewer-channels'?" in done.err
    assert check(box, "/nonexistent.ini").code == 2
    assert check(box, "--nccl", "/nonexistent.so", "none").code == 2
    assert check(box).code == 2


def test_the_version_of_a_library_is_read_from_its_file(box, tmp_path):
    library = tmp_path / "libnccl.so.2"
    library.write_bytes(b"\0\x7fELF\0NCCL version %d\0...NCCL version 2.19.3+cuda12.2\0")
    done = check(box, "--nccl", library, "--json", "e04-per-operation.ini")
    assert json.loads(done.out)["nccl"] == "2.19.3"
    library.write_bytes(b"no version")
    assert check(box, "--nccl", library, "e04-per-operation.ini").code == 2


def test_the_documents_table_of_variables_is_the_one_in_the_code(box):
    table = check(box, "--table").out
    assert table.count("\n") > 260
    assert table in (ROOT / "docs" / "profiles.md").read_text()
