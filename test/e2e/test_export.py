# SPDX-License-Identifier: Apache-2.0
"""`export`: every call that is on record, in formats that others read."""
import csv
import io
import json
import os
import shutil
import stat
import subprocess

import pytest

import logmaker
import runs
from runs import Server, make


def records_of(folder):
    return [(p, r) for p in map(logmaker.parse, sorted(folder.glob("*.ncclshim")))
            for ring in p.rings.values() for r in ring["records"].values()]


@pytest.mark.parametrize("name", ["straggler", "killed", "wrapped", "mixed"])
def test_csv_holds_each_record_once(box, name):
    folder = make(name, box.dir / name)
    rows = list(csv.DictReader(io.StringIO(box.cli("export", name, "--format", "csv").out)))
    want = records_of(folder)
    assert len(rows) == len(want)
    for row, (parsed, (site, start, end, run)) in zip(rows, want):
        assert int(row["time_ns"]) == end - start and int(row["run"]) == run
        assert int(row["bytes"]) == parsed.sites[site]["bytes"] and int(row["pid"]) == parsed.head["pid"]


def test_json_says_the_same_as_csv(box):
    make("mixed", box.dir / "mixed")
    calls = json.loads(box.cli("export", "mixed", "--format", "json").out)["calls"]
    rows = list(csv.DictReader(io.StringIO(box.cli("export", "mixed", "--format", "csv").out)))
    assert [c["start_ns"] for c in calls] == [int(r["start_ns"]) for r in rows]
    assert [c["operation"] for c in calls] == [r["operation"] for r in rows]


def test_times_are_on_the_clock_of_the_host(box):
    folder = box.dir / "clocks"
    folder.mkdir()
    s = Server(folder, 3)
    s.replay()
    s.close()
    calls = json.loads(box.cli("export", "clocks", "--format", "json").out)["calls"]
    firsts = {}
    for c in calls:
        firsts.setdefault((c["index"]), []).append(c["start_ns"])
    assert all(max(f) - min(f) < 2000 for f in firsts.values())    # the GPUs' clocks are ms apart


@pytest.mark.parametrize("name", ["straggler", "killed", "wrapped", "mixed", "empty"])
def test_the_trace_is_in_order_without_negative_times(box, name):
    folder = make(name, box.dir / name)
    trace = json.loads(box.cli("export", name, "--format", "chrome").out)
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    calls = [e for e in events if e["cat"] != "pass"]
    assert len(calls) == len(records_of(folder))
    assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in events)
    assert [e["ts"] for e in events] == sorted(e["ts"] for e in events)
    named = {(e["pid"], e.get("tid")) for e in trace["traceEvents"] if e["ph"] == "M"}
    assert {(e["pid"], e["tid"]) for e in events} <= named
    ends = {}
    for e in events:                                               # no call lies over another on its track
        assert e["ts"] >= ends.get((e["pid"], e["tid"]), 0) - 0.001
        ends[e["pid"], e["tid"]] = e["ts"] + e["dur"]


def test_calls_of_two_streams_that_overlap_lie_on_tracks_of_their_own(box):
    folder = box.dir / "streams"
    folder.mkdir()
    log = logmaker.Log(folder, pid=1, start_ticks=1, **runs.COMMON)
    runs.gpu(log, 0)
    log.comm(ranks=2, rank=0, name="tp", hash=1)
    site = log.site(bytes=8)
    log.issue(site, 3)
    for start, end in ((0, 5000), (2000, 7000), (8000, 9000)):
        log.record(site, runs.T0 + start, runs.T0 + end)
    log.close()
    trace = json.loads(box.cli("export", "streams", "--format", "chrome").out)
    tracks = [e["tid"] for e in trace["traceEvents"] if e["ph"] == "X"]
    assert tracks[0] == tracks[2] != tracks[1]
    assert tracks[1] in {e["tid"] for e in trace["traceEvents"] if e["ph"] == "M" and "tid" in e}


@pytest.mark.parametrize("filters, count", [(["--captured"], 12), (["--bytes", "43008"], 12), (["--eager"], 1),
                                            ([], 13)])
def test_a_last_record_that_is_not_asked_for_or_of_no_call_site_is_left_out(box, filters, count):
    folder = box.dir / "run"
    folder.mkdir()
    s = Server(folder, 1)
    s.replay()
    s.replay()
    s.eager()
    s.logs[0].record(1000, s.t, s.t + 5000)                        # its call site came after the tables were read
    s.close()
    done = box.cli("export", "run", "--format", "chrome", *filters)
    assert done.code == 0, done
    events = json.loads(done.out)["traceEvents"]
    assert len([e for e in events if e["ph"] == "X" and e["cat"] != "pass"]) == count


def test_passes_are_slices_around_their_calls(box):
    make("straggler", box.dir / "run")
    trace = json.loads(box.cli("export", "run", "--format", "chrome").out)
    passes = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "pass"]
    assert len(passes) == 8 * 100 and all(p["args"]["complete"] and p["args"]["calls"] == 6 for p in passes)
    one = passes[17]
    inside = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "captured"
              and e["pid"] == one["pid"] and e["args"]["run"] == one["args"]["run"]]
    assert len(inside) == 6
    assert min(e["ts"] for e in inside) == pytest.approx(one["ts"], abs=0.002)
    assert max(e["ts"] + e["dur"] for e in inside) == pytest.approx(one["ts"] + one["dur"], abs=0.002)


def test_the_trace_states_how_well_the_clocks_agree(box):
    make("straggler", box.dir / "run")
    other = json.loads(box.cli("export", "run", "--format", "chrome").out)["otherData"]
    assert other["clock_error_ns"] == 2000 and other["simulated"] is True
    assert abs(int(other["time_zero_unix_ns"]) - runs.T0) < 5000


def test_prometheus_text_is_what_promtool_accepts(box):
    make("mixed", box.dir / "mixed")
    text = box.cli("export", "mixed", "--format", "prometheus").out
    assert 'ncclshim_calls_total{comm="tp"' in text
    buckets = [int(line.rsplit(" ", 1)[1]) for line in text.split("\n")
               if line.startswith("ncclshim_call_seconds_bucket") and 'bytes="43008"' in line]
    assert buckets == sorted(buckets) and buckets[-1] == 240
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed (apt-get install prometheus)")
    check = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
    assert check.returncode == 0, check.stderr


def test_names_can_not_break_out_of_a_format(box):
    folder = box.dir / "evil"
    folder.mkdir()
    log = logmaker.Log(folder, pid=1, start_ticks=1, **dict(runs.COMMON, host='a",b\n'))
    runs.gpu(log, 0)
    log.comm(ranks=1, rank=0, name='=cmd|"x"\\', hash=1)
    site = log.site(bytes=8)
    log.issue(site)
    log.record(site, runs.T0, runs.T0 + 5)
    log.close()
    row = next(csv.DictReader(io.StringIO(box.cli("export", "evil", "--format", "csv").out)))
    assert row["comm"] == "'=cmd|\"x\"\\" and row["host"] == 'a",b\\x0a'
    assert json.loads(box.cli("export", "evil", "--format", "json").out)["calls"][0]["comm"] == '=cmd|"x"\\'
    json.loads(box.cli("export", "evil", "--format", "chrome").out)
    assert 'comm="=cmd|\\"x\\"\\\\"' in box.cli("export", "evil", "--format", "prometheus").out


def test_a_file_appears_whole_or_not_at_all(box):
    make("straggler", box.dir / "run")
    assert box.cli("export", "run", "--format", "csv", "-o", "out.csv").code == 0
    assert len((box.dir / "out.csv").read_text().split("\n")) == 4832 + 2
    make("broken", box.dir / "broken")
    assert box.cli("export", "broken", "--format", "csv", "-o", "none.csv").code == 2
    assert not list(box.dir.glob("none.csv*"))


def test_what_is_no_file_is_written_into_and_stays_what_it_is(box):
    """As root, a rename onto /dev/null would take it from everybody on the machine."""
    make("straggler", box.dir / "run")
    pipe = box.dir / "pipe"
    os.mkfifo(pipe)
    with open(box.dir / "read.csv", "w") as out:
        reader = subprocess.Popen(["cat", str(pipe)], stdout=out)
    assert box.cli("export", "run", "--format", "csv", "-o", str(pipe)).code == 0
    assert reader.wait(20) == 0
    assert len((box.dir / "read.csv").read_text().split("\n")) == 4832 + 2
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)

    (box.dir / "link.csv").symlink_to("real.csv")
    (box.dir / "real.csv").write_text("old")
    assert box.cli("export", "run", "--format", "csv", "-o", "link.csv").code == 0
    assert (box.dir / "link.csv").is_symlink()
    assert len((box.dir / "real.csv").read_text().split("\n")) == 4832 + 2

    done = box.cli("export", "run", "--format", "csv", "-o", str(box.dir))
    assert done.code == 2 and "can't be written" in done.err


def test_a_full_disk_is_an_error(box):
    make("straggler", box.dir / "run")
    done = box.run("sh", "-c", "%s export run --format csv >/dev/full" % box.command)
    assert done.code == 2 and "can't be written" in done.err


@pytest.mark.parametrize("args, words", [
    ([], "--format is missing"),
    (["--format", "xml"], "none of chrome, csv, json, prometheus"),
    (["--format", "csv", "a", "b"], "one run at a time"),
])
def test_a_wrong_request_is_one_line_that_says_what_to_write(box, args, words):
    done = box.cli("export", *args)
    assert done.code == 2 and done.out == "" and words in done.err and done.err.count("\n") == 1, done
