# SPDX-License-Identifier: Apache-2.0
"""`ncclshim bench` on the simulator: own processes, threads, launchers; wrong results and hangs."""
import json
import os
import re
import signal
import socket
import time

import pytest

import logmaker
from logmaker import IN_PLACE, PART

QUICK = ("--repeats", 3, "--calls", 6, "--timeout", 20)
SMALL = QUICK + ("--sizes", "8K,42K", "--no-stamps")


def ranks_alive(box):
    """Rank processes of this box's command that still run (its path is in /proc/PID/exe)."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open("/proc/%s/cmdline" % pid, "rb").read().split(b"\0")
            environ = open("/proc/%s/environ" % pid, "rb").read()
        except OSError:
            continue
        if b"--rank-of" in words and str(box.dir).encode() in environ:
            found.append(pid)
    return found


def nothing_is_left_in_shm(before):
    """Other tests that run beside this one have files there too, for a moment."""
    for _ in range(200):
        left = {n for n in os.listdir("/dev/shm") if n.startswith("ncclshim-bench-")} - set(before)
        if not left:
            return True
        time.sleep(0.05)
    return False


def bench(box, *args, code=0, **kwargs):
    done = box.cli("bench", "--json", *args, **kwargs)
    assert done.code == code, done
    return json.loads(done.out)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- what is printed ---------------------------------------------------------------------------

@pytest.mark.parametrize("ranks", [2, 4])
def test_sizes_are_played_checked_and_timed(box, ranks):
    j = bench(box, *SMALL, "--ranks", ranks)
    assert (j["version"], j["ranks"], j["simulated"], j["nccl"]) == (1, ranks, True, "2.28.9")
    assert [(r["bytes"], r["how"]) for r in j["rows"]] == [
        (8192, "graph"), (8192, "eager"), (43008, "graph"), (43008, "eager")]
    for row in j["rows"]:
        assert row["wrong"] == 0 and len(row["samples_ns"]) == 3 and row["calls"] == 6
        assert row["ci_low_ns"] <= row["median_ns"] <= row["ci_high_ns"]
        assert row["busbw_gbps"] == pytest.approx(row["algbw_gbps"] * 2 * (ranks - 1) / ranks)
        assert row["algbw_gbps"] == pytest.approx(row["bytes"] / row["median_ns"], rel=1e-3)
    assert j["pass"] is None and j["error"] is None
    # one check before and one after: rows x calls x elements x ranks
    assert j["checked"] == 2 * 2 * 6 * (4096 + 21504) * ranks
    assert not ranks_alive(box)


def test_the_table_says_that_it_is_simulated(box):
    done = box.cli("bench", *SMALL)
    assert done.code == 0, done
    assert done.out.startswith("# SIMULATED: no GPU took part")
    assert re.search(r"^ +43008 +21504 +bfloat16 +sum +all_reduce +graph +[0-9.]+ ", done.out, re.M), done
    assert "# results: 1228800 elements checked, all right" in done.out, done


@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "gather", "scatter"])
def test_every_operation_gives_right_results_on_three_ranks(box, op):
    j = bench(box, *QUICK, "--sizes", "12K", "--no-stamps", "--op", op, "--type", "float16", "--ranks", 3)
    assert [(r["op"], r["bytes"], r["wrong"]) for r in j["rows"]] == [(op, 12288, 0)] * 2
    assert j["checked"] > 0


@pytest.mark.parametrize("kind", ["int8", "uint8", "float16", "float32", "float64", "int64", "float8e4m3", "float8e5m2"])
def test_every_type_sums_exactly_on_four_ranks(box, kind):
    j = bench(box, *QUICK, "--sizes", "10K", "--no-stamps", "--type", kind, "--ranks", 4, "--graph")
    assert [(r["type"], r["wrong"]) for r in j["rows"]] == [(kind, 0)]


def test_stamps_tell_how_long_a_call_took_on_the_gpu(box):
    j = bench(box, *QUICK, "--sizes", "42K", "--graph")
    assert j["stamps"] is True and j["no_stamps"] is None
    row = j["rows"][0]
    assert row["p99_from"] == "stamps" and row["stamp_p50_ns"] <= row["stamp_p99_ns"] == row["p99_ns"]
    assert not os.listdir(box.logs), "logs were left"


def test_without_stamps_the_shim_is_not_loaded(box):
    j = bench(box, *SMALL)
    assert j["stamps"] is False
    assert "NCCLSHIM_APPLIED" not in j["env"]
    assert bench(box, *QUICK, "--sizes", "8K", env={"NCCLSHIM_LOG": "off"})["no_stamps"] == "NCCLSHIM_LOG is off"


# ---- from a run, from a file -------------------------------------------------------------------

@pytest.fixture
def recorded(box):
    done = box.cli("run", "-o", "rec", "--", box.server, "--requests", 2, "--steps", 4, "--calls", 10,
                   "--prefill-calls", 3, "--prefill-bytes", "64K", "--limit", 40)
    assert done.code == 0, done
    return box.dir / "rec"


def test_a_recorded_run_is_played_as_it_was(box, recorded):
    j = bench(box, *QUICK, "--from", recorded)
    rows = {(r["bytes"], r["how"]): r for r in j["rows"]}
    assert sorted(rows) == [(43008, "eager"), (43008, "graph"), (65536, "eager")]
    assert rows[43008, "graph"]["weight"] == 80 and rows[65536, "eager"]["weight"] == 7
    assert rows[43008, "graph"]["stamp_p50_ns"] > 0
    assert j["pass"]["calls"] > 40 and len(j["pass"]["samples_ns"]) == 3
    assert j["recorded_ranks"] == 2 and j["left_out"] is None


def test_a_written_workload_plays_the_same(box, recorded):
    done = box.cli("bench", "--from", recorded, "--write-workload", "w.txt")
    assert done.code == 0, done
    text = (box.dir / "w.txt").read_text()
    assert text.startswith("workload 1\n") and "graph 1 runs=8\n" in text
    again = box.cli("bench", "--workload", "w.txt", "--write-workload", "-")
    assert [x for x in again.out.splitlines() if x[0] != "#"] == [x for x in text.splitlines() if x[0] != "#"]
    j = bench(box, *QUICK, "--workload", "w.txt", "--no-stamps", "--graph")
    assert [(r["bytes"], r["how"]) for r in j["rows"]] == [(43008, "graph")]


def server_of_four(folder, pairs=True):
    """Four ranks: one communicator of all, one of each pair; a graph captured twice; sends."""
    folder.mkdir()
    for r in range(4):
        log = logmaker.Log(folder, pid=100000 + r, start_ticks=1000 + r)
        log.gpu(name="Simulated GPU", floor_ns=1000)
        tp = log.comm(ranks=4, rank=r, hash=1, id_digest=1, name="tp", device=0)
        ep = log.comm(ranks=2, rank=r % 2, hash=2 + r // 2, id_digest=2 + r // 2, name="ep part", device=0)
        eager = log.site(tp, bytes=1 << 20, flags=IN_PLACE)
        send = log.site(ep, op=8, bytes=4096, root=1)
        log.issue(eager, 6)
        log.issue(send, 50)
        graphs = [[log.site(tp, bytes=43008, capture=g, index=0, flags=IN_PLACE),
                   log.site(ep, op=1, dtype=7, count=100, bytes=800, capture=g, index=1, group=g, flags=PART, timed=False),
                   log.site(ep, op=3, dtype=0, count=64, bytes=64, root=1, capture=g, index=2, group=g, flags=PART, timed=False),
                   log.site(ep, op=10, dtype=0, count=0, bytes=864, root=2, capture=g, index=3),
                   log.site(tp, bytes=43008, capture=g, index=4, flags=IN_PLACE)] for g in (1, 2)]
        t = time.time_ns()
        for sites in graphs:
            for _ in range(10):
                for site in (sites[0], sites[3], sites[4]):
                    log.record(site, t, t + 9000)
                    t += 9000 + 17000
        log.close()


def test_communicators_groups_and_gaps_of_a_run_are_found_again(box):
    server_of_four(box.dir / "four")
    done = box.cli("bench", "--from", "four", "--write-workload", "-")
    assert done.code == 0, done
    lines = [x for x in done.out.splitlines() if x[0] != "#"]
    assert lines == [
        "workload 1", "ranks 4", "pass yes", "comm tp all", "comm eppart 0,1 2,3", "eager",
        "step all_reduce bfloat16 count=524288 comm=tp in_place=yes runs=6", "graph 1 runs=20",
        "step all_reduce bfloat16 count=21504 comm=tp in_place=yes",
        "step all_gather float32 count=100 comm=eppart group=1",
        "step broadcast int8 count=64 comm=eppart root=1 group=1",
        # the gap is that between records of one communicator, less two floors
        "step all_reduce bfloat16 count=21504 comm=tp gap_ns=%d in_place=yes" % gap_of(lines[-1])]
    assert 14000 <= gap_of(lines[-1]) <= 60000
    assert "# left out: 50 calls that are no collectives" in done.out, done
    j = bench(box, *QUICK, "--from", "four", "--no-stamps")
    assert j["ranks"] == 4 and [r["op"] for r in j["rows"]] == ["all_reduce", "all_reduce", "group"]
    assert "50 calls" in j["left_out"]


def gap_of(line):
    return int(re.search(r"gap_ns=(\d+)", line).group(1))


def test_a_run_of_more_ranks_is_played_with_fewer_where_that_can_be(box, recorded):
    j = bench(box, *QUICK, "--from", recorded, "--no-stamps", "--ranks", 3)
    assert (j["recorded_ranks"], j["ranks"]) == (2, 3)
    server_of_four(box.dir / "four")
    done = box.cli("bench", "--from", "four", "--ranks", 3)
    assert done.code == 2 and "--ranks 4" in done.err, done


def test_several_communicators_and_groups_are_played(box):
    (box.dir / "w").write_text(
        "workload 1\ncomm tp all\ncomm ep 0,1 2,3\ngraph 1 runs=5\n"
        "step all_reduce bfloat16 count=4096 comm=tp in_place=yes\n"
        "step all_gather float32 count=100 comm=ep gap_ns=3000 group=1\n"
        "step broadcast int8 count=1000 comm=ep root=1 group=1\n"
        "eager\nstep reduce_scatter int32 count=64 comm=ep redop=max runs=5\n")
    j = bench(box, *QUICK, "--workload", "w", "--ranks", 4, "--no-stamps")
    assert [(r["op"], r["comm"], r["how"], r["wrong"]) for r in j["rows"]] == [
        ("all_reduce", "tp", "graph", 0), ("group", "ep", "graph", 0), ("reduce_scatter", "ep", "eager", 0)]
    assert j["pass"]["median_ns"] > 4 * 3000


# ---- how ranks run -----------------------------------------------------------------------------

def test_ranks_can_be_threads(box):
    assert bench(box, *SMALL, "--one-process", "--ranks", 3)["placement"] == "threads"


def test_ranks_can_share_one_gpu_when_nccl_allows_it(box):
    done = box.cli("bench", *SMALL, "--one-gpu")
    assert done.code == 2 and "2.30.3" in done.err, done
    newer = box.fake / "nccl-23007" / "libnccl.so.2"
    if not newer.exists():
        pytest.skip("the simulated NCCL 2.30.7 is not built")
    # NCCLSHIM_FAKE_SYNC_LOAD: whatever may wait for the device does.
    j = bench(box, *SMALL, "--one-gpu", env={"NCCLSHIM_NCCL": newer, "NCCLSHIM_FAKE_SYNC_LOAD": 1})
    assert j["placement"] == "one_gpu" and j["env"]["NCCL_MULTI_RANK_GPU_ENABLE"] == "1"


def test_a_profile_is_in_force(box):
    profile = box.profile("simple", "[profile]\ndescription = x\n[env override]\nNCCL_PROTO = Simple\n")
    plain = bench(box, *SMALL)
    tuned = bench(box, *SMALL, "-p", profile)
    assert tuned["profile"] == "simple" and tuned["env"]["NCCL_PROTO"] == "Simple"
    assert "NCCL_PROTO" not in plain["env"]
    assert tuned["rows"][0]["median_ns"] > 1.1 * plain["rows"][0]["median_ns"]


# ---- under launchers ---------------------------------------------------------------------------

def launch(box, ranks, env_of, *args):
    """Start one process a rank as a launcher would; [(exit code, stdout, stderr)] by rank."""
    started = []
    for rank in range(ranks):
        out, err = open(box.dir / ("out%d" % rank), "wb"), open(box.dir / ("err%d" % rank), "wb")
        started.append(box.start(box.command, "bench", *args, env=env_of(rank), stdout=out, stderr=err))
    codes = [p.wait(60) for p in started]
    return [(codes[r], (box.dir / ("out%d" % r)).read_text(), (box.dir / ("err%d" % r)).read_text())
            for r in range(ranks)]


def torchrun(ranks, port, **more):
    return lambda r: dict(RANK=r, WORLD_SIZE=ranks, LOCAL_RANK=r, MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **more)


def mpirun(ranks, job):
    return lambda r: dict(OMPI_COMM_WORLD_RANK=r, OMPI_COMM_WORLD_SIZE=ranks, OMPI_COMM_WORLD_LOCAL_RANK=r,
                          PMIX_NAMESPACE=job)


def slurm(ranks, job):
    return lambda r: dict(SLURM_PROCID=r, SLURM_NTASKS=ranks, SLURM_LOCALID=r, SLURM_STEP_ID=0, SLURM_JOB_ID=job)


@pytest.mark.parametrize("kind", ["torchrun", "torchrun with its store", "mpirun", "srun", "a shared folder"])
def test_it_is_one_rank_of_what_a_launcher_started(box, kind):
    env = {"torchrun": torchrun(3, free_port()),
           "torchrun with its store": torchrun(3, free_port(), TORCHELASTIC_RUN_ID="x"),
           "mpirun": mpirun(3, "test-%d" % os.getpid()), "srun": slurm(3, os.getpid()),
           "a shared folder": lambda r: dict(mpirun(3, "test")(r), NCCLSHIM_RENDEZVOUS=box.dir)}[kind]
    before = os.listdir("/dev/shm")
    done = launch(box, 3, env, *SMALL, "--json")
    assert [d[0] for d in done] == [0, 0, 0], done
    assert done[1][1] == done[2][1] == "", "only rank 0 prints"
    j = json.loads(done[0][1])
    assert j["ranks"] == 3 and all(r["wrong"] == 0 and r["median_ns"] > 0 for r in j["rows"])
    assert j["checked"] == 2 * 2 * 6 * (4096 + 21504) * 3
    assert nothing_is_left_in_shm(before)
    assert not list(box.dir.glob("ncclshim-bench-*"))


def test_ranks_that_were_started_differently_say_so(box):
    port = free_port()
    codes = []
    started = [box.start(box.command, "bench", "--sizes", size, "--no-stamps", "--timeout", 10,
                         env=torchrun(2, port)(rank), stderr=open(box.dir / ("err%d" % rank), "wb"))
               for rank, size in enumerate(("8K", "16K"))]
    codes = [p.wait(60) for p in started]
    assert codes == [1, 1]
    assert "other options" in (box.dir / "err0").read_text()
    assert "other options" in (box.dir / "err1").read_text()


def test_a_rank_that_never_comes_ends_the_wait(box):
    done = box.cli("bench", *SMALL, "--timeout", 2, env=torchrun(2, free_port())(0), timeout=30)
    assert done.code == 1 and "1 of 2 ranks did not come" in done.err, done


# ---- what goes wrong ---------------------------------------------------------------------------

@pytest.mark.parametrize("more", [(), ("--one-process",)])
def test_a_wrong_result_is_named_and_ends_with_1(box, more):
    env = {"NCCLSHIM_FAKE_WRONG": "NCCL_PROTO=LL"}
    done = box.cli("bench", "--json", *SMALL, *more, env=env)
    assert done.code == 1, done
    assert re.search(r"wrong result: all_reduce 8K bfloat16 sum on world, graph, call 1 of 6, rank [01] of 2: "
                     r"element \d+ is \S+, not \S+", done.err), done
    j = json.loads(done.out)
    assert j["error"]["kind"] == "wrong" and "all_reduce 8K" in j["error"]["text"]
    assert j["rows"][0]["wrong"] > 0 and j["rows"][0]["samples_ns"] == []
    assert not ranks_alive(box)


@pytest.mark.parametrize("step", ["all_gather float32 count=1000 in_place=yes", "all_reduce float32 count=1000"])
def test_a_library_that_stops_writing_is_not_believed_for_what_it_wrote_before(box, step):
    """The first check is good; from there on the outputs hold the right values, and nothing is written any more."""
    (box.dir / "w").write_text("workload 1\ncomm tp all\neager\nstep %s comm=tp runs=6\n" % step)
    asked = (*QUICK, "--workload", "w", "--ranks", 2, "--no-stamps")
    assert bench(box, *asked)["rows"][0]["wrong"] == 0
    row = bench(box, *asked, code=1, env={"NCCLSHIM_FAKE_SKIP_DATA": 30})["rows"][0]
    assert row["wrong"] > 0 and len(row["samples_ns"]) == 3


def test_without_checks_a_wrong_result_passes_unseen(box):
    j = bench(box, *SMALL, "--no-check", env={"NCCLSHIM_FAKE_WRONG": "NCCL_PROTO=LL"})
    assert j["checked"] == 0 and j["error"] is None


@pytest.mark.parametrize("more", [(), ("--one-process",)])
def test_a_hang_is_ended_named_and_leaves_nothing(box, more):
    start = time.monotonic()
    done = box.cli("bench", "--json", *SMALL, *more, "--timeout", 2, env={"NCCLSHIM_FAKE_HANG": "NCCL_PROTO=LL"})
    assert done.code == 1, done
    assert "no progress for 2 s" in done.err and "rank 0: the first call of all_reduce" in done.err, done
    assert json.loads(done.out)["error"]["kind"] == "hang"
    assert time.monotonic() - start < 30
    assert not ranks_alive(box)


def test_a_hang_under_stamps_alone_does_not_pass_unseen(box):
    # NCCL is asked for a variable that only the second playing has.
    done = box.cli("bench", "--json", *QUICK, "--sizes", "8K", "--timeout", 2,
                   env={"NCCLSHIM_FAKE_HANG": "NCCLSHIM_LOG=on"})
    assert done.code == 1 and "in the second playing, under stamps: no progress" in done.err, done
    j = json.loads(done.out)
    assert j["error"]["kind"] == "hang" and j["rows"][0]["median_ns"] > 0 and j["stamps"] is False
    assert not os.listdir(box.logs) and not ranks_alive(box)


def test_a_recorded_run_of_threads_has_its_ranks_by_gpu(box):
    done = box.cli("run", "-o", "rec", "--", box.server, "--one-process", "--ranks", 3, "--requests", 1, "--steps", 2,
                   "--calls", 4, "--prefill-calls", 1, "--prefill-bytes", "64K", "--limit", 40)
    assert done.code == 0, done
    j = bench(box, *QUICK, "--from", "rec", "--one-process")
    assert j["ranks"] == 3 and j["stamps"] is True
    assert {(r["bytes"], r["how"]): r["weight"] for r in j["rows"]} == {
        (43008, "eager"): 1, (65536, "eager"): 2, (43008, "graph"): 8}


def test_a_rank_that_fails_takes_the_others_with_it(box):
    done = box.cli("bench", "--json", *SMALL, env={"NCCLSHIM_FAKE_FAIL": "cuGraphInstantiateWithFlags"})
    assert done.code == 1, done
    assert "cuGraphInstantiateWithFlags failed" in done.err, done
    assert json.loads(done.out)["error"]["kind"] == "failed"
    assert not ranks_alive(box)


def wait_for_ranks(box, count):
    for _ in range(200):
        if len(ranks_alive(box)) == count:
            return
        time.sleep(0.05)
    raise AssertionError("%d ranks instead of %d" % (len(ranks_alive(box)), count))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_bench_leaves_no_rank_behind(box, number):
    process = box.start(box.command, "bench", *SMALL, "--timeout", 60, env={"NCCLSHIM_FAKE_HANG": "NCCL_PROTO=LL"})
    wait_for_ranks(box, 2)
    process.send_signal(number)
    process.wait(20)
    wait_for_ranks(box, 0)


@pytest.mark.parametrize("args, word", [
    (("--sizes", "8X"), "8X"), (("--op", "all_redduce"), "did you mean 'all_reduce'"), (("--op", "send"), "can't be played"),
    (("--type", "bf17"), "bf17"), (("--ranks", "0"), "--ranks"), (("--repeats", "x"), "--repeats"),
    (("--graph", "--eager"), "exclude"), (("--from", "a", "--sizes", "8K"), "exclude"), (("extra",), "extra"),
    (("--wrkload", "x"), "--workload"), (("--workload", "none.txt"), "none.txt"), (("--from", "nowhere"), "nowhere"),
    (("-p", "no-such-profile"), "no-such-profile"), (("--sizes", "8K", "--ranks", "9"), "9 GPUs"),
    (("--rank-of", "x"), "itself"), (("--workload", "w", "--op", "reduce"), "--sizes")])
def test_a_wrong_call_is_refused_with_a_reason(box, args, word):
    done = box.cli("bench", *args)
    assert done.code == 2, done
    assert word in done.err and done.out == "", done


def test_a_fault_in_a_workload_is_told_with_its_line(box):
    (box.dir / "w").write_text("workload 1\neager\nstep all_reduce bfloat16 count=1 colour=red\n")
    done = box.cli("bench", "--workload", "w")
    assert done.code == 2 and "w:3: a step has no 'colour'" in done.err, done
