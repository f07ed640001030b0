# SPDX-License-Identifier: Apache-2.0
"""What `report` says of runs whose every number is known."""
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

import logmaker
import runs
from runs import T0, Server, check_golden, make

WIDE = {"COLUMNS": "110", "NO_COLOR": "1"}


def nearest_rank(values, q):
    values = sorted(values)
    return values[max(0, min(len(values) - 1, -(-int(q * 1e9) * len(values) // 10**9) - 1))]


def rows_of(report):
    return [r for c in report["communicators"] for r in c["rows"]]


def hint_keys(report):
    return [h["key"] for h in report["hints"]]


@pytest.mark.parametrize("name", ["straggler", "killed", "wrapped", "mixed", "empty"])
def test_the_text_of_a_known_run_stays_as_it_is(box, name):
    make(name, box.dir / name)
    done = box.cli("report", name, env=WIDE)
    assert done.code == 0, done
    assert done.err == ""
    check_golden("report-%s.txt" % name, done.out)


@pytest.mark.parametrize("name", ["straggler", "killed", "wrapped", "mixed", "empty"])
def test_the_json_of_a_known_run_stays_as_it_is(box, name):
    make(name, box.dir / name)
    done = box.cli("report", name, "--json")
    assert done.code == 0, done
    check_golden("report-%s.json" % name, done.out)


def test_a_cut_log_is_an_error_with_its_name_and_exit_code_2(box):
    make("broken", box.dir / "broken")
    done = box.cli("report", "broken")
    assert done.code == 2 and done.out == ""
    assert "broken/testhost-4000-77.ncclshim" in done.err, done


def test_times_of_random_calls_agree_with_an_independent_computation(box):
    rng = random.Random(11)
    folder = box.dir / "random"
    folder.mkdir()
    log = logmaker.Log(folder, pid=1, start_ticks=1, capacity=8192, **runs.COMMON)
    runs.gpu(log, 0)
    log.comm(ranks=4, rank=0, hash=3, name="tp")
    kinds = [(op, size) for op in (0, 1, 2, 3, 5) for size in (8, 1000, 43008, 1 << 20)]
    sites = [log.site(op=op, bytes=size) for op, size in kinds]
    times, t = {k: [] for k in kinds}, T0
    for _ in range(6000):
        i = rng.randrange(len(kinds))
        ns = int(rng.lognormvariate(10, 1.3))
        log.issue(sites[i])
        log.record(sites[i], t, t + ns)
        times[kinds[i]].append(ns)
        t += ns + rng.randrange(5000)
    log.close()
    report = box.json("report", "random")
    factor = {"all_reduce": 2 * 3 / 4, "all_gather": 3 / 4, "reduce_scatter": 3 / 4, "broadcast": 1,
              "all_to_all": 3 / 4}
    names = {0: "all_reduce", 1: "all_gather", 2: "reduce_scatter", 3: "broadcast", 5: "all_to_all"}
    rows = {(r["operation"], r["bytes"]): r for r in rows_of(report)}
    assert len(rows) == len(kinds)
    for (op, size), all_ns in times.items():
        row = rows[names[op], size]
        time = row["time"]
        assert row["issued"] == row["timed"] == len(all_ns) and row["lost"] == 0
        assert (time["min_ns"], time["max_ns"], time["sum_ns"]) == (min(all_ns), max(all_ns), sum(all_ns))
        for q, key in ((0.5, "p50_ns"), (0.9, "p90_ns"), (0.99, "p99_ns")):
            true = nearest_rank(all_ns, q)
            assert abs(time[key] - true) <= 0.008 * true + 1, (op, size, key)
        bus = size / time["p50_ns"] * factor[names[op]]
        assert row["bus_gb_per_s"] == pytest.approx(bus, rel=1e-6)


def test_waiting_and_transfer_agree_with_an_independent_computation(box):
    folder = box.dir / "wait"
    folder.mkdir()
    s = Server(folder, 4, calls=5, seed=9)
    for i in range(60):
        s.replay(late=[(i % 4, 8000)])
    s.close()
    wait = busy = 0
    per_rank = [[0, 0, 0] for _ in range(4)]
    parsed = [logmaker.parse(log.path) for log in s.logs]
    calls = {}
    for rank, p in enumerate(parsed):
        for site, start, end, run in p.rings[0]["records"].values():
            calls.setdefault((p.sites[site]["index"], run), {})[rank] = (start + s.offset[rank],
                                                                         end + s.offset[rank])
    for call in calls.values():
        last = max(start for start, _ in call.values())
        for rank, (start, end) in call.items():
            wait += last - start
            busy += end - start
            per_rank[rank][0] += last - start
            per_rank[rank][2] += start == last
    report = box.json("report", "wait")
    row = rows_of(report)[0]
    assert row["waiting"]["calls"] == 300
    assert row["waiting"]["busy_ns"] == busy
    assert row["waiting"]["wait_ns"] == pytest.approx(wait, abs=300 * 4)   # a nanosecond of rounding a call
    arrivals = report["communicators"][0]["arrivals"]
    assert arrivals["why_not"] is None and arrivals["clock_error_ns"] <= 4000
    for rank, r in enumerate(arrivals["ranks"]):
        assert r["wait_ns"] == pytest.approx(per_rank[rank][0], abs=300)
        assert r["last"] <= per_rank[rank][2]


def test_the_straggler_is_named_and_its_own_times_are_the_short_ones(box):
    make("straggler", box.dir / "run")
    report = box.json("report", "run")
    assert "straggler" in hint_keys(report)
    text = next(h["text"] for h in report["hints"] if h["key"] == "straggler")
    assert "rank 5 comes last in 9" in text, text
    ranks = {r["rank"]: r["time"]["p50_ns"] for r in rows_of(report)[0]["ranks"]}
    assert min(ranks, key=ranks.get) == 5


def test_ranks_whose_clocks_can_not_be_brought_together_are_not_lined_up(box):
    folder = box.dir / "apart"
    folder.mkdir()
    s = Server(folder, 2, seed=3)
    for _ in range(20):
        s.replay()
        s.offset[1] += 200_000        # a clock that jumps about
    s.close()
    report = box.json("report", "apart")
    arrivals = report["communicators"][0]["arrivals"]
    assert arrivals["calls"] == 0 and "contradict" in arrivals["why_not"]
    assert rows_of(report)[0]["waiting"] is None


def on_two_hosts(box, drift_ppm, gap_ns=500_000):
    """Four ranks, the last two on a host whose clock is hours away and drifts; rank 3 comes 200 us late."""
    folder = box.dir / "far"
    folder.mkdir()
    s = Server(folder, 4, calls=8, seed=5, capacity=8192)
    hours = 5 * 3600 * 10**9
    for log in s.logs[2:]:
        log.m[80:120] = b"11111111-2222-3333-4444-555555555555".ljust(40, b"\0")  # boot_id
    offset = list(s.offset)
    for _ in range(400):
        for r in (2, 3):  # what the GPU shows is that host's time, and nobody knows how far off it is
            s.offset[r] = offset[r] + hours + int((s.t - T0) * drift_ppm / 1e6)
        s.replay(late=[(3, 200_000)])
        s.t += gap_ns
    s.close()
    report = box.json("report", "far")
    return report["communicators"][0]["arrivals"], rows_of(report)[0]["waiting"]


@pytest.mark.parametrize("drift_ppm", [0, 20, -200])
def test_ranks_on_two_hosts_are_lined_up_by_the_calls_themselves(box, drift_ppm):
    arrivals, waiting = on_two_hosts(box, drift_ppm)
    assert arrivals["why_not"] is None and arrivals["calls"] >= 3200 - 31
    assert 0 < arrivals["clock_error_ns"] < 80_000
    late = [r["late"]["p50_ns"] for r in arrivals["ranks"]]
    assert late[3] == pytest.approx(200_000, abs=5000) and max(late[:3]) < 5000
    assert arrivals["ranks"][3]["last"] == arrivals["calls"] == arrivals["decided"]
    assert waiting["transfer"]["p50_ns"] == pytest.approx(50_000, rel=0.1)


def test_calls_that_come_alone_say_nothing_of_other_hosts_clocks(box):
    arrivals, waiting = on_two_hosts(box, 20, gap_ns=2 * 10**9)
    assert "several hosts" in arrivals["why_not"] and arrivals["calls"] == 0 and waiting is None


@pytest.mark.parametrize("start", [2**63 - 1, 2**63 + 5, 2**64 - 1000])
def test_times_that_are_none_are_not_lined_up(box, start):
    folder = box.dir / "wild"
    folder.mkdir()
    s = Server(folder, 2)
    for _ in range(4):
        s.replay()
    for i, log in enumerate(s.logs):
        log.record(log.graph[0], start - i, start + 500)
    s.close()
    assert box.json("report", "wild")["communicators"][0]["arrivals"]["calls"] == 24


def test_settings_that_differ_between_ranks_are_a_table_of_their_own(box):
    make("mixed", box.dir / "mixed")
    done = box.cli("report", "mixed", env=WIDE)
    table = done.out.split("settings that differ")[1]
    assert re.search(r"NCCL_PROTO +rank 0 +LL", table) and re.search(r"NCCL_PROTO +rank 1 +Simple", table)
    assert "settings_differ" in hint_keys(box.json("report", "mixed"))


def test_asked_and_given_channels_stand_side_by_side_when_the_environment_wins(box):
    make("mixed", box.dir / "mixed")
    report = box.json("report", "mixed")
    assert report["communicators"][0]["asked_max_ctas"] == 4
    assert report["communicators"][0]["given_max_ctas"] == 16
    assert "max_ctas" in hint_keys(report)


def test_calls_without_stamps_take_their_number_from_their_capture_and_have_no_time(box):
    make("mixed", box.dir / "mixed")
    rows = rows_of(box.json("report", "mixed"))
    untimed = next(r for r in rows if r["captured"] and r["bytes"] == 1024)
    assert (untimed["issued"], untimed["timed"], untimed["time"]) == (40, 0, None)
    part = next(r for r in rows if r["group_part"])
    assert (part["issued"], part["timed"], part["time"]) == (12, 0, None)
    group = next(r for r in rows if r["operation"] == "group")
    assert group["timed"] == 6 and group["bus_gb_per_s"] is None


def test_control_characters_from_a_log_never_reach_the_terminal(box):
    make("mixed", box.dir / "mixed")
    for verb in (("report", "mixed"), ("report", "mixed", "--json")):
        out = box.cli(*verb).out
        assert "\x1b" not in out and "\x07" not in out
    assert "\\x1b[31mred\\x07" in box.cli("report", "mixed", env={"COLUMNS": "200"}).out


def test_a_killed_run_says_so_and_exits_with_0(box):
    make("killed", box.dir / "killed")
    report = box.json("report", "killed")
    assert report["run"]["closed"] is False and report["run"]["signal"] == 9
    assert report["log"]["torn"] == 2
    assert "unfinished" in hint_keys(report)
    captured = next(r for r in rows_of(report) if r["captured"])
    assert captured["timed"] == 2 * (30 * 6 + 1)


def test_an_overwritten_ring_keeps_exact_counts_of_what_ran(box):
    make("wrapped", box.dir / "wrapped")
    report = box.json("report", "wrapped")
    captured = next(r for r in rows_of(report) if r["captured"])
    assert captured["issued"] == 2 * 200 * 6 and captured["timed"] == 2 * 256
    assert captured["lost"] == captured["issued"] - captured["timed"]
    assert report["run"]["whole"] is False


def test_simulated_runs_say_so_first(box):
    make("straggler", box.dir / "sim")
    assert box.cli("report", "sim").out.startswith("SIMULATED")
    make("killed", box.dir / "real")
    assert "SIMULATED" not in box.cli("report", "real").out


def test_filters_leave_what_was_asked_for(box):
    make("mixed", box.dir / "mixed")

    def rows(*options):
        return [(r["operation"], r["bytes"], r["captured"]) for r in rows_of(box.json("report", "mixed", *options))]

    assert set(r[0] for r in rows("--op", "AllReduce")) == {"all_reduce"}
    assert set(r[1] for r in rows("--bytes", "1K-2K")) == {1024, 2048}
    assert rows("--bytes", "42K") == [("all_reduce", 43008, True)]
    assert all(r[2] for r in rows("--captured")) and not any(r[2] for r in rows("--eager"))
    assert rows("--comm", "pp") == [("send", 512, False)]
    both, one = (next(r for r in rows_of(box.json("report", "mixed", *o)) if r["bytes"] == 43008)
                 for o in ((), ("--rank", "0")))
    assert both["timed"] == 2 * one["timed"]


def test_since_counts_back_from_the_last_call(box):
    folder = box.dir / "long"
    folder.mkdir()
    s = Server(folder, 1, calls=1, eager_bytes=8)
    for _ in range(100):
        s.replay(gap_ns=10**9)
    s.close()
    row = rows_of(box.json("report", "long", "--since", "20s"))[0]
    assert 18 <= row["timed"] <= 21


@pytest.mark.parametrize("args, words", [
    (["--sort", "colour"], "--sort: 'colour' is none of total, bytes"),
    (["--op", "all_redce"], "did you mean 'all_reduce'"),
    (["--bytes", "42KB"], "42K, 1K-64K or 1M-"),
    (["--since", "yesterday"], "90s, 10m"),
    (["--rank", "-1"], "--rank"),
    (["--jsn"], "did you mean --json"),
    (["--captured", "--eager"], "--captured and --eager exclude each other"),
    (["a", "b"], "one run at a time"),
    (["nowhere"], "no such run"),
])
def test_a_wrong_request_is_one_line_that_says_what_to_write(box, args, words):
    done = box.cli("report", *args)
    assert done.code == 2 and done.out == ""
    assert words in done.err and done.err.count("\n") == 1, done


def test_without_a_name_the_newest_run_is_meant_then_live_logs_then_it_says_so(box):
    done = box.cli("report")
    assert done.code == 2 and "ncclshim-runs" in done.err
    make("empty", box.logs)
    assert "run       %s" % box.logs in box.cli("report", env={"COLUMNS": "200"}).out
    (box.dir / "ncclshim-runs").mkdir()
    make("killed", box.dir / "ncclshim-runs" / "first")
    assert box.cli("report").out.startswith("run       first,")
    assert box.cli("report", "first").code == 0


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("name", ["straggler", "mixed"])
def test_nothing_is_wider_than_the_terminal(box, name, width):
    make(name, box.dir / "run")
    out = box.cli("report", "run", env={"COLUMNS": str(width)}).out
    assert [line for line in out.split("\n") if len(line) > width] == []


def test_colour_is_for_terminals_only(box):
    make("straggler", box.dir / "run")
    assert "\x1b[" not in box.cli("report", "run").out


def test_the_html_page_holds_all_and_asks_the_network_for_nothing(box):
    make("mixed", box.dir / "mixed")
    done = box.cli("report", "mixed", "--html", "page.html")
    assert done.code == 0, done
    page = (box.dir / "page.html").read_text()
    assert "http://" not in page and "https://" not in page and "<script" not in page
    assert page.count("<svg") >= 3 and "NaN" not in page and "nan" not in re.sub(r"[a-z]*nan[a-z]+", "", page)
    assert "prefers-color-scheme:dark" in page and "@media print" in page
    for tag in ("section", "table", "figure", "svg", "dl"):
        assert page.count("<" + tag) == page.count("</%s>" % tag), tag


def test_names_from_a_log_are_escaped_in_html(box):
    folder = box.dir / "evil"
    folder.mkdir()
    log = logmaker.Log(folder, pid=1, start_ticks=1, command=("<script>alert(1)</script>",), **runs.COMMON)
    runs.gpu(log, 0, name='"><img src=x>')
    log.comm(ranks=1, rank=0, name="<b>tp</b>", hash=1)
    site = log.site(bytes=8)
    log.issue(site)
    log.record(site, T0, T0 + 1000)
    log.close()
    assert box.cli("report", "evil", "--html", "page.html").code == 0
    page = (box.dir / "page.html").read_text()
    assert "<script" not in page and "<img" not in page and "<b>tp" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not installed (apt-get install zstd)")
def test_kept_records_and_bare_logs_give_the_same_report(box):
    """NAME.records.zst is read in place of the ring."""
    make("straggler", box.dir / "bare")
    make("straggler", box.dir / "kept")
    for log in (box.dir / "kept").glob("*.ncclshim"):
        p = logmaker.parse(log)
        raw = b"".join(struct.pack(logmaker.RECORD_FORMAT, start, site, n + 1, end, run, n + 1)
                       for n, (site, start, end, run) in p.rings[0]["records"].items())
        subprocess.run(["zstd", "-q", "-o", str(log).replace(".ncclshim", ".records.zst")], input=raw, check=True)
    a, b = box.json("report", "bare"), box.json("report", "kept")
    assert a["communicators"] == b["communicators"] and a["passes"] == b["passes"]


def by_node(box):
    """The four ranks of a run, two on each of two nodes, whose collectors wrote a run folder each."""
    (box.dir / "whole").mkdir()
    server = Server(box.dir / "whole", 4)
    for _ in range(20):
        server.replay()
    server.counts()
    server.close()
    for node, pids, started, ended in (("na", (4000, 4001), T0, T0 + 50 * 10**9), ("nb", (4002, 4003), T0 - 7, T0 + 60 * 10**9)):
        (box.dir / "job" / node).mkdir(parents=True)
        for pid in pids:
            log, = (box.dir / "whole").glob("*-%d-*.ncclshim" % pid)
            shutil.copy(log, box.dir / "job" / node)
        runs.run_json(box.dir / "job" / node, started_ns=started, ended_ns=ended)
    runs.run_json(box.dir / "whole", started_ns=T0 - 7, ended_ns=T0 + 60 * 10**9)


def test_a_folder_with_a_run_folder_of_each_node_is_one_run(box):
    by_node(box)
    whole, job = box.json("report", "whole"), box.json("report", "job")
    for r in (whole, job):
        del r["run"]["name"], r["run"]["path"]
    assert job == whole and len(job["communicators"][0]["arrivals"]["ranks"]) == 4
    assert box.cli("compare", "whole", "job").code == 0


def test_runs_that_did_not_run_at_one_time_are_not_taken_for_one(box):
    by_node(box)
    for log in (box.dir / "job" / "nb").glob("*.ncclshim"):
        with open(log, "r+b") as f:  # made when the others were closed
            f.seek(176)
            f.write(struct.pack("<Q", time.time_ns()))
    done = box.cli("report", "job")
    assert done.code == 2 and "holds 2 runs" in done.err and "job/nb" in done.err
    assert box.cli("report", "job/nb").code == 0
    (box.dir / "job" / "nb" / "run.json").write_text("{")
    assert "job/nb/run.json:1" in box.cli("report", "job").err


def test_many_communicators_and_processes_are_cut_to_those_that_matter(box):
    folder = box.dir / "many"
    folder.mkdir()
    for p in range(20):
        log = logmaker.Log(folder, pid=1 + p, start_ticks=1, capacity=64, **runs.COMMON)
        runs.gpu(log, p)
        runs.setting(log, "NCCL_PROTO", "LL" if p == 7 else "Simple")
        log.note(logmaker.NOTE_WARNING, text="the same everywhere")
        log.comm(ranks=2, rank=0, name="pair%d" % p, hash=100 + p)
        site = log.site(bytes=1024)
        log.issue(site)
        log.record(site, T0, T0 + 1000 * (1 if p else 81))
        log.close()
    done = box.cli("report", "many")
    assert done.out.count("\ncomm pair") == 8 and "... and 12 more communicators, 12 % of the time: --all" in done.out
    assert re.search(r"NCCL_PROTO +testhost:1, testhost:10, testhost:11 and 16 more +Simple", done.out)
    assert len(re.findall("NCCL_PROTO.* LL", done.out)) == 1
    assert done.out.count("the same everywhere") == 1 and "testhost:1 and 19 more: the same everywhere" in done.out
    assert box.cli("report", "many", "--all").out.count("\ncomm pair") == 20
    assert box.cli("report", "many", "--comm", "pair19").out.count("\ncomm pair") == 1


def test_hundreds_of_sizes_are_cut_to_those_that_matter(box):
    folder = box.dir / "many"
    folder.mkdir()
    log = logmaker.Log(folder, pid=1, start_ticks=1, capacity=1024, **runs.COMMON)
    runs.gpu(log, 0)
    log.comm(ranks=2, rank=0, name="tp", hash=1)
    for i in range(300):
        site = log.site(bytes=1024 * (i + 1))
        log.issue(site)
        log.record(site, T0 + i * 10**6, T0 + i * 10**6 + 1000 * (i + 1))
    log.close()
    out = box.cli("report", "many").out
    assert "... and 288 more kinds of call" in out and out.count("all_reduce") < 20
    assert box.cli("report", "many", "--all").out.count("all_reduce") >= 300
    assert len(rows_of(box.json("report", "many"))) == 300


def test_help_shows_examples(box):
    for verb in ("report", "compare", "export", "top"):
        done = box.cli(verb, "--help")
        assert done.code == 0 and "examples:" in done.out and done.err == ""


def test_every_hint_is_told_in_the_documentation(box):
    source = (box.root / "shim" / "show" / "hints.c").read_text()
    page = (box.root / "docs" / "report.md").read_text()
    keys = set(re.findall(r'hint\(f, "(\w+)"', source))
    assert len(keys) > 15
    assert [k for k in sorted(keys) if "`%s`" % k not in page] == []


def test_a_run_under_way_is_current_and_stays_whole_when_all_of_it_is_killed(box):
    """The collector saves every ten seconds; what came since is in the live log."""
    serve = [sys.executable, str(Path(logmaker.__file__)), "serve", "--records", "5000", "--linger", "60", "--no-close"]
    run = box.start(box.command, "run", "-o", "run", "--", *serve)
    try:
        deadline = time.monotonic() + 20
        seen = 0
        while seen < 5000 and time.monotonic() < deadline:
            time.sleep(0.2)
            done = box.cli("report", "run", "--json")
            if done.code == 0:
                report = json.loads(done.out)
                seen = report["log"]["timed"]
        assert seen == 5000 and report["run"]["state"] == "still running"
        top = box.cli("top", "--batch", "--frames", "1").out
        assert "1 process" in top, top
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    deadline = time.monotonic() + 10
    while report["run"]["state"] == "still running" and time.monotonic() < deadline:
        report = box.json("report", "run")
    assert report["run"]["state"] == "not closed (killed?)"
    assert report["log"]["timed"] == 5000 and report["log"]["lost"] == 0


@pytest.mark.parametrize("verb", ["report", "compare", "export", "top"])
def test_manual_and_help_tell_the_same_options(box, verb):
    shown = set(re.findall(r"--[a-z][a-z-]+", box.cli(verb, "--help").out.split("examples:")[0])) - {"--keep"}
    page = (box.root / "docs" / "man" / ("ncclshim-%s.1" % verb)).read_text().replace("\\-", "-")
    told = set(re.findall(r"--[a-z][a-z-]+", page.split(".SH OPTIONS")[1].split(".SH EXIT")[0])) - {"--help"}
    assert shown == told


def test_a_log_that_is_only_being_made_does_no_harm_to_the_others(box):
    folder = make("killed", box.dir / "run")
    before = box.json("report", "run")["log"]
    (folder / "new-1-1.ncclshim").write_bytes(b"")
    (folder / "new-1-2.ncclshim").write_bytes(bytes(8192))
    assert box.json("report", "run")["log"] == before
    (folder / "new-1-3.ncclshim").write_bytes(b"something else")
    assert "not a log" in box.cli("report", "run").err
    done = box.cli("report", "run/new-1-1.ncclshim")
    assert done.code == 2 and "not a log" in done.err
