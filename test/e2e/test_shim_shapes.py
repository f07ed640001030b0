# SPDX-License-Identifier: Apache-2.0
"""The shim in front of each shape of calling NCCL (clients/shapes): what its log says, by the independent
parser. Each shape must also run as without the shim."""
import glob
import os
from collections import Counter

import pytest

import logmaker

ALL_REDUCE, SEND, RECV, GROUP = 0, 8, 9, 10
LL, SIMPLE, UNKNOWN = 0, 2, 255
CAPTURED, TIMED, PART, CHAINED = 1, 2, 4, 16
NONBLOCKING, ADOPTED = 1, 2
READY, FAILED, ENDED = 2, 3, 4
RANKS = 2


def run(box, shape, **env):
    """Run a shape under the shim; returns the parsed log of its process."""
    done = box.preload(box.build / "clients" / "shapes", shape, env=env)
    assert done.code == 0 and done.out == "done\n" and done.err == "", done
    return the_log(box)


def the_log(box):
    logs = glob.glob(str(box.logs / "*.ncclshim"))
    assert len(logs) == 1, logs
    return logmaker.parse(logs[0])


def forget_logs(box):
    """For tests that run more than one process."""
    for log in glob.glob(str(box.logs / "*.ncclshim")):
        os.unlink(log)


def records(log):
    """[(site, start, end, run)] of all rings."""
    return [r for ring in log.rings.values() for r in ring["records"].values()]


def timed(log):
    """{(op, bytes, captured): records}"""
    seen = Counter()
    for site, start, end, _ in records(log):
        assert start < end
        s = log.sites[site]
        assert s["flags"] & TIMED and not s["flags"] & PART
        seen[s["op"], s["bytes"], bool(s["flags"] & CAPTURED)] += 1
    return dict(seen)


def issued(log, flags=0):
    seen = Counter()
    for s in log.sites:
        if s["state"] == 1 and s["flags"] & PART == flags & PART:
            seen[s["op"], s["bytes"]] += s["issued"]
    return dict(seen)


def test_stamps_have_a_memory_synchronization_domain_of_their_own(box):
    """In the server's, each later kernel of a graph would take longer; in NCCL's (1), NCCL's would."""
    def launches(sm):
        counts = box.dir / ("counts-%d" % sm)
        run(box, "group-one-call", NCCLSHIM_FAKE_COUNTS=counts, NCCLSHIM_FAKE_SM=sm)
        forget_logs(box)
        found = dict(line.split() for line in counts.read_text().splitlines())
        return [int(found["cuLaunchKernelEx-in-domain-%d" % i]) for i in range(4)]

    in_domain = launches(90)
    assert in_domain[:3] == [0, 0, 0] and in_domain[3] >= 2 * 5 * RANKS, in_domain
    assert launches(80) == [0, 0, 0, 0]


def launched(box, shape, **env):
    """{kernel: launches} beyond those of an init without a call."""
    def counted(name, **more):
        counts = box.dir / ("counts-" + name)
        run(box, name, NCCLSHIM_FAKE_COUNTS=counts, **more)
        forget_logs(box)
        return Counter({line.split()[0][7:]: int(line.split()[1]) for line in counts.read_text().splitlines()
                        if line.startswith("kernel-ncclshim_")})
    return dict(counted(shape, **env) - counted("birth-no-call"))


def test_a_call_is_two_kernels_and_behind_symmetric_memory_the_end_reads_its_start_late(box):
    assert launched(box, "group-one-call") == {"ncclshim_before": 5 * RANKS, "ncclshim_after": 5 * RANKS}
    # rank 0 has a symmetric window; each calls once
    assert launched(box, "operations-unseen") == {"ncclshim_before": 2, "ncclshim_after": 1, "ncclshim_after_late": 1}


def test_a_gpu_that_can_not_be_stamped_holds_no_memory_of_ours(box):
    def given_back(**env):
        counts = box.dir / ("counts-%d" % len(env))
        done = box.preload(box.build / "clients" / "shapes", "group-one-call", env=dict(env, NCCLSHIM_FAKE_COUNTS=counts))
        assert done.code == 0 and done.out == "done\n", done
        found = dict(line.split() for line in counts.read_text().splitlines())
        return [int(found.get(name, 0)) for name in ("cuMemFree_v2", "cuModuleUnload")], done.err

    timed_free, said = given_back()
    assert said == ""
    counted_free, said = given_back(NCCLSHIM_FAKE_FAIL="cuMemHostRegister:*")
    assert "counted, not timed" in said
    assert counted_free == [n + RANKS for n in timed_free]


def test_a_single_call_in_a_group_has_the_groups_time(box):
    log = run(box, "group-one-call")
    assert timed(log) == {(ALL_REDUCE, 4000, False): 5 * RANKS}


def test_t04_several_calls_of_a_group_become_one_record_and_parts_without_a_time(box):
    log = run(box, "group-two-calls")
    both = 4096 + (4 << 20)
    assert timed(log) == {(GROUP, both, False): 3 * RANKS}
    assert issued(log, PART) == {(ALL_REDUCE, 4096): 3 * RANKS, (ALL_REDUCE, 4 << 20): 3 * RANKS}
    # NCCL tells of the larger one first, and of its choice: not that of the first call
    assert {(s["bytes"], s["proto"], s["channels"] > 1) for s in log.sites if s["flags"] & PART} == \
        {(4096, LL, False), (4 << 20, SIMPLE, True)}
    assert {s["proto"] for s in log.sites if s["op"] == GROUP} == {UNKNOWN}
    groups = {s["group"] for s in log.sites if s["op"] == GROUP}
    assert {s["group"] for s in log.sites if s["flags"] & PART} == groups and 0 not in groups
    assert all(s["root"] == 2 for s in log.sites if s["op"] == GROUP)
    assert [c["wrapped_calls"] for c in log.comms] == [6, 6]


def test_t04_a_group_over_two_communicators_and_streams_is_timed_on_each(box):
    log = run(box, "group-two-comms")
    assert timed(log) == {(ALL_REDUCE, 8000, False): 4 * RANKS, (ALL_REDUCE, 12000, False): 4 * RANKS}


def test_t04_send_and_receive_have_bytes_and_peer(box):
    log = run(box, "group-send-recv")
    assert timed(log) == {(GROUP, 4096, False): 6 * RANKS}
    parts = [s for s in log.sites if s["flags"] & PART]
    assert {(s["op"], s["bytes"]) for s in parts} == {(SEND, 2048), (RECV, 2048)}
    assert {s["root"] for s in parts} == {0, 1}


def test_t04_a_failing_member_closes_the_group_and_the_next_call_is_timed(box):
    log = run(box, "group-failing")
    assert timed(log) == {(ALL_REDUCE, 4000, False): RANKS}
    assert all(c["failed_calls"] >= 1 for c in log.comms)


def test_a_group_in_a_capture_is_timed_at_each_replay(box):
    log = run(box, "group-in-capture")
    assert timed(log) == {(GROUP, 6000, True): 10 * RANKS, (ALL_REDUCE, 8000, True): 10 * RANKS}


def test_t02_one_eager_three_captured_fifty_replays_one_eager_are_152_records_a_rank(box):
    log = run(box, "capture-replays")
    assert timed(log) == {(ALL_REDUCE, 43008, False): 2 * RANKS, (ALL_REDUCE, 43008, True): 150 * RANKS}
    assert len(records(log)) == 152 * RANKS
    # one right behind the other: the start of the second and third is the end of the one before
    chained = [s for s in log.sites if s["flags"] & CHAINED]
    assert len(chained) == 2 * RANKS
    place = {n: (s["comm"], s["capture"], s["index"]) for n, s in enumerate(log.sites)}
    ends = {(place[site], turn): end for site, _, end, turn in records(log)}
    for site, start, _, turn in records(log):
        comm, capture, index = place[site]
        if log.sites[site]["flags"] & CHAINED:
            assert start == ends[(comm, capture, index - 1), turn]


def test_t01_strict_captures_among_eager_calls_are_never_invalidated(box):
    log = run(box, "capture-strict", SHAPES_ROUNDS=40)
    assert timed(log) == {(ALL_REDUCE, 4000, False): 400 * RANKS, (ALL_REDUCE, 4000, True): 400 * RANKS}


def test_t01_an_init_on_another_gpu_leaves_a_strict_capture_valid(box):
    log = run(box, "capture-beside-init")
    assert [c["device"] for c in log.comms] == [1] and len(log.rings) == 1


def test_a_call_on_the_legacy_stream_that_the_driver_refuses_leaves_the_capture_beside_it_valid(box):
    """A stamp put on that stream would be the first work there, and invalidate the capture."""
    log = run(box, "capture-legacy-beside")
    assert timed(log) == {(ALL_REDUCE, 8000, False): RANKS}
    assert issued(log) == {(ALL_REDUCE, 4000): 0, (ALL_REDUCE, 8000): RANKS}
    assert [c["failed_calls"] for c in log.comms] == [1] * RANKS


def test_a_fork_and_join_over_two_streams_is_timed_on_both(box):
    """Only the second follows another directly: two streams end in front of the third, and work stands before the last."""
    log = run(box, "capture-fork-join")
    assert timed(log) == {(ALL_REDUCE, b, True): 20 * RANKS for b in (4000, 8000, 12000, 16000)}
    assert {s["bytes"] for s in log.sites if s["flags"] & CHAINED} == {8000}


def test_a_capture_over_two_gpus_takes_no_start_from_the_other_gpu(box):
    log = run(box, "capture-two-gpus")
    assert issued(log) == {(ALL_REDUCE, b): RANKS for b in (4000, 4004)}
    chained = {(log.comms[s["comm"]]["device"], s["bytes"]) for s in log.sites if s["flags"] & CHAINED}
    assert chained == {(1, 4004)}


def test_one_in_n_of_the_eager_and_of_the_captured_calls_is_timed_and_all_are_counted(box):
    log = run(box, "capture-strict", SHAPES_ROUNDS=2, NCCLSHIM_PROFILE=box.profile("fourth", "[log]\nsample = 4\n"))
    assert timed(log) == {(ALL_REDUCE, 4000, False): 5 * RANKS, (ALL_REDUCE, 4000, True): 2 * 3 * RANKS}
    assert issued(log) == {(ALL_REDUCE, 4000): (20 + 20) * RANKS}


@pytest.mark.parametrize("sample", [1, 3])
def test_an_executable_graph_can_be_updated_after_recapture(box, sample):
    profile = box.profile("sampled", "[log]\nsample = %d\n" % sample)
    log = run(box, "capture-update", NCCLSHIM_PROFILE=profile)
    stamped = len(range(0, 10, sample))
    assert timed(log) == {(ALL_REDUCE, 4000, True): 5 * stamped * RANKS}


def test_a_graph_instantiated_twice_and_as_a_child_is_timed_in_all(box):
    log = run(box, "capture-twice")
    assert timed(log) == {(ALL_REDUCE, 4000, True): 10 * 3 * 4 * RANKS}
    runs = Counter(site for site, *_ in records(log))
    assert set(runs.values()) == {12}


def test_more_captures_than_call_sites_fit_reuse_them(box):
    log = run(box, "capture-many")
    assert sum(timed(log).values()) == 300 * 122 * RANKS
    assert log.head["sites_lost"] == 0


def test_default_streams_and_two_streams_at_once(box):
    log = run(box, "streams")
    times = {4000: 5, 8000: 5, 12000: 5, 16000: 5, 20000: 10}
    assert timed(log) == {(ALL_REDUCE, b, False): n * RANKS for b, n in times.items()}
    for ring in log.rings.values():
        starts = [start for _, start, _, _ in ring["records"].values()]
        assert len(set(starts)) == len(starts)  # none is another stream's


def test_c04_communicators_of_every_birth_have_a_number_and_their_calls(box):
    log = run(box, "birth-ways")
    calls = Counter()
    for c in log.comms:
        calls[c["wrapped_calls"]] += 1
        assert c["state"] == ENDED and c["ended_ns"] >= c["created_ns"]
    # with config 1 call, its split 2, scalable 3, in a group 4; on each rank; one split made without a call
    assert calls == {1: RANKS, 2: RANKS, 3: RANKS, 4: RANKS, 0: 1}
    named = [c for c in log.comms if c["name"] == "with-config"]
    assert len(named) >= RANKS
    assert all(c["parent"] >= 0 for c in log.comms if c["wrapped_calls"] == 2)


@pytest.mark.parametrize("streams", ["", "-legacy"])
def test_init_all_makes_one_communicator_a_device(box, streams):
    """One thread calls for all devices and leaves the context as it is: that of the last one."""
    log = run(box, "birth-init-all" + streams)
    assert timed(log) == {(ALL_REDUCE, 4000, False): 7 * RANKS}
    assert sorted((c["rank"], c["ranks"], c["device"]) for c in log.comms) == [(0, 2, 0), (1, 2, 1)]


def test_c04_a_communicator_that_ended_unseen_hands_nothing_on_with_its_address(box):
    log = run(box, "birth-unseen-end", NCCLSHIM_FAKE_REUSE=1)
    assert [c["wrapped_calls"] for c in log.comms] == [1, 1, 2, 2, 3, 3]


def test_a_device_that_is_reset_is_stamped_anew_for_the_next_communicator(box):
    log = run(box, "birth-after-reset")
    assert timed(log) == {(ALL_REDUCE, 4000, False): RANKS, (ALL_REDUCE, 8000, False): RANKS}
    assert len(log.rings) == 2 * RANKS


def test_c03_a_non_blocking_communicator_is_counted_not_timed(box):
    log = run(box, "birth-nonblocking")
    assert timed(log) == {}
    assert issued(log) == {(ALL_REDUCE, 4000): 5 * RANKS}
    assert all(c["flags"] & NONBLOCKING and c["failed_calls"] == 0 for c in log.comms)
    forget_logs(box)
    assert launched(box, "birth-nonblocking") == launched(box, "birth-nonblocking", SHAPES_CAPTURE="1") == {}


def test_a_shrunk_communicator_has_fewer_ranks_and_a_parent(box):
    log = run(box, "birth-shrink")
    small, = [c for c in log.comms if c["parent"] >= 0]
    assert (small["ranks"], small["rank"], small["wrapped_calls"]) == (1, 0, 1)
    assert timed(log) == {(ALL_REDUCE, 2000, False): 1}


def test_a_grown_communicator_has_more_ranks_and_on_the_old_one_a_parent(box):
    log = run(box, "birth-grow", LD_LIBRARY_PATH="%s:%s" % (box.fake / "nccl-23007", box.fake))
    large = sorted((c["rank"], c["ranks"], c["parent"] >= 0) for c in log.comms if c["wrapped_calls"])
    assert large == [(0, 2, True), (1, 2, False)]
    assert timed(log) == {(ALL_REDUCE, 4000, False): 3 * RANKS}


@pytest.mark.parametrize("version, ranks", [("", RANKS), ("nccl-21903", -1)])
def test_a_communicator_made_unseen_is_taken_in_at_its_first_call(box, version, ranks):
    """NCCL 2.28's profiler interface has told who it is; before, that is not known. Its calls are counted, not timed: a
    ring is not made ready beside calls that may be under way."""
    log = run(box, "birth-unseen", LD_LIBRARY_PATH="%s:%s" % (box.fake / version, box.fake))
    seen, unseen = sorted(log.comms, key=lambda c: c["flags"] & ADOPTED)
    assert (seen["ranks"], seen["wrapped_calls"]) == (RANKS, 6)
    assert (unseen["ranks"], unseen["wrapped_calls"]) == (ranks, 6)
    assert unseen["flags"] & ADOPTED and not seen["flags"] & ADOPTED
    assert issued(log) == {(ALL_REDUCE, 4000): 6 * RANKS}
    assert timed(log) == {(ALL_REDUCE, 4000, False): 6}


def test_thousands_of_communicators_leave_the_right_records(box):
    log = run(box, "birth-thousands", SHAPES_ROUNDS=1000)
    assert len(log.comms) == RANKS * 1001 and log.head["comms_lost"] == 0
    assert timed(log) == {(ALL_REDUCE, 4000, False): RANKS * 20}
    assert all(c["state"] == ENDED for c in log.comms)


@pytest.mark.parametrize("end", [{}, {"SHAPES_UNSEEN": 1, "NCCLSHIM_FAKE_REUSE": 1}], ids=["seen", "unseen"])
def test_more_communicators_than_the_table_holds_reuse_those_that_made_no_call(box, end):
    log = run(box, "birth-thousands", SHAPES_ROUNDS=5000, **end)
    assert {c["wrapped_calls"] for c in log.comms} == {0, 1}
    assert [c["state"] for c in log.comms].count(ENDED) >= len(log.comms) - RANKS
    assert log.head["comms_lost"] == 0
    assert timed(log) == {(ALL_REDUCE, 4000, False): RANKS * 100}


def test_p06_two_hundred_forks_among_calls_hang_nothing_and_keep_the_parents_log(box):
    log = run(box, "process-forks")
    assert log.head["state"] == 2
    assert sum(timed(log).values()) == sum(c["wrapped_calls"] for c in log.comms)


def fates(log):
    return [(c["state"], c["wrapped_calls"], c["failed_calls"], c["ended_ns"]) for c in log.comms]


def fork_and_go_on(box, **env):
    """What was said, and the logs of child and parent."""
    done = box.preload(box.build / "clients" / "shapes", "process-inherited", env=env)
    assert done.code == 0 and done.out == "done\n", done
    return done.err, *sorted(map(logmaker.parse, box.logs.glob("*.ncclshim")), key=lambda log: len(log.comms))


def test_p06_a_forked_child_has_a_log_of_its_own_and_writes_nothing_into_its_parents(box):
    said, child, parent = fork_and_go_on(box)
    assert said == ""
    assert fates(parent) == [(READY, 2, 0, 0)] * RANKS
    assert timed(parent) == {(ALL_REDUCE, 4000, False): 2 * RANKS} and parent.head["state"] == logmaker.OPEN
    assert [(c["state"], c["wrapped_calls"]) for c in child.comms] == [(FAILED, 0)] and child.head["state"] == logmaker.CLOSED
    assert (child.sites, child.rings) == ([], {})
    for kind in (logmaker.NOTE_COMMAND, logmaker.NOTE_PROFILE, logmaker.NOTE_LIBRARY):
        assert [n["type"] for n in child.notes].count(kind) == 1


def test_p06_a_forked_child_counts_nothing_for_a_communicator_that_was_made_unseen(box):
    _, child, parent = fork_and_go_on(box, SHAPES_UNSEEN="1")
    assert fates(parent) == [(READY, 1, 0, 0)] * RANKS
    assert {c["flags"] & ADOPTED for c in parent.comms} == {0, ADOPTED}
    assert [c["state"] for c in child.comms] == [FAILED]


def test_p06_a_forked_child_says_for_itself_why_it_has_no_log(box):
    told = fork_and_go_on(box, NCCLSHIM_LOG_DIR="/dev/null/logs")[0].splitlines()
    assert len(told) == 2 and len(set(told)) == 1 and "no log" in told[0], told


@pytest.mark.parametrize("end", ["kill", "abort", "_exit", "exec", "quick_exit", "exit"])
def test_t05_every_finished_call_is_there_however_the_process_ends(box, end):
    done = box.preload(box.build / "clients" / "shapes", "process-ending", env={"SHAPES_END": end})
    assert done.code == {"kill": -9, "abort": -6}.get(end, 0), done
    log = the_log(box)
    assert timed(log) == {(ALL_REDUCE, 4000, False): 50 * RANKS}
    assert all(ring["half"] == 0 for ring in log.rings.values())
    assert log.head["state"] == (2 if end == "exit" else 1)
    report = box.cli("report")
    assert report.code == 0, report
    assert ("not closed" in report.out) == (end != "exit"), report


def test_after_the_first_calls_the_shim_allocates_nothing(box):
    run(box, "process-no-malloc")
