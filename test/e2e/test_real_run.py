# SPDX-License-Identifier: Apache-2.0
"""A small run recorded on two real GPUs (test/golden/real-2xh200.tar.xz: 2 x H200, NCCL 2.28.9, P2P off, 12 passes of
122 all-reduces of 42 KiB): what every verb that reads runs says of it, and its numbers by an independent way."""
import csv
import io
import json
import statistics
import subprocess

import pytest

import logmaker
from runs import GOLDEN, check_golden

NAME = "real-2xh200"
WIDE = {"COLUMNS": "110", "NO_COLOR": "1"}


@pytest.fixture
def run(box):
    subprocess.run(["tar", "xJf", GOLDEN / (NAME + ".tar.xz"), "-C", box.dir], check=True)
    return box.dir / NAME


@pytest.mark.parametrize("verb,args,ending", [
    ("report", [], "txt"), ("report", ["--json"], "json"), ("report", ["--all"], "all.txt"), ("show", ["--run"], "txt"),
    ("export", ["--format", "prometheus"], "prom")])
def test_the_words_about_a_real_run_stay_as_they_are(box, run, verb, args, ending):
    done = box.cli(verb, *args, NAME, env=WIDE)
    assert done.code == 0 and done.err == "", done
    check_golden("%s-%s.%s" % (verb, NAME, ending), done.out)


def test_a_real_run_against_itself_shows_no_difference(box, run):
    done = box.cli("compare", NAME, NAME, env=WIDE)
    assert done.code == 0, done
    check_golden("compare-%s.txt" % NAME, done.out)
    assert "no difference shown" in done.out


def test_the_numbers_of_a_real_run_are_those_of_its_records(box, run):
    times = []
    for path in run.glob("*.ncclshim"):
        log = logmaker.parse(path)
        for ring in log.rings.values():
            times += [end - start for site, start, end, _ in ring["records"].values() if log.sites[site]["flags"] & 1]
    assert len(times) == 2 * 12 * 122
    report = json.loads(box.cli("report", "--json", NAME).out)
    (row,) = [r for c in report["communicators"] for r in c["rows"] if r["captured"]]
    assert row["timed"] == len(times)
    assert abs(row["time"]["p50_ns"] - statistics.median(times)) <= 0.008 * row["time"]["p50_ns"] + 32
    table = list(csv.DictReader(io.StringIO(box.cli("export", "--format", "csv", NAME).out)))
    assert len(table) == report["log"]["timed"]
