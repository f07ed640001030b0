# SPDX-License-Identifier: Apache-2.0
"""What a profile does in the server's process: set, kept, refused, given to one communicator alone."""
import glob
import json
import re
import sys

import pytest

import logmaker
from test_shim_shapes import ALL_REDUCE, RANKS, forget_logs, the_log, timed

MIXED, CONFIG_LOST = 4, 32
WARNING, COMM_TEXT, SETTING = 8, 11, 4
UNDEF = -(1 << 31)
PYTHON_ENV = "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('NCCL_')}))"

SEVEN = {"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "NCCL_P2P_LEVEL": "SYS", "NCCL_MIN_NCHANNELS": "1",
         "NCCL_MAX_NCHANNELS": "2", "NCCL_BUFFSIZE": "131072", "NCCL_NTHREADS": "64"}


def environment(box, **env):
    done = box.preload(sys.executable, "-c", PYTHON_ENV, env=env)
    assert done.code == 0, done
    return json.loads(done.out), done.err


def shape(box, name, **env):
    done = box.preload(box.build / "clients" / "shapes", name, env=env)
    assert done.code == 0, done
    return done


def warnings(log):
    return [logmaker.text_of(n["body"]) for n in log.notes if n["type"] == WARNING]


def test_python_sees_the_seven_variables_and_the_users_own_value_stays(box):
    seen, err = environment(box, NCCLSHIM_PROFILE="fewer-channels", NCCL_ALGO="Tree")
    assert {k: seen.get(k) for k in SEVEN} == {**SEVEN, "NCCL_ALGO": "Tree"}
    assert err == ""


def test_children_print_nothing_extra_and_have_the_settings_too(box):
    done = box.preload("/bin/bash", "-c", "echo $NCCL_PROTO; /bin/sh -c 'echo $NCCL_PROTO'; %s -c 'pass'" % sys.executable,
                       env={"NCCLSHIM_PROFILE": "fewer-channels"})
    assert (done.code, done.out, done.err) == (0, "LL\nLL\n", ""), done
    assert list(box.logs.iterdir()) == []  # nothing of NCCL was touched


def test_a_child_under_another_profile_gets_that_one_and_not_a_mixture(box):
    other = box.profile("other", "[env]\nNCCL_PROTO = Simple\n")
    done = box.preload("/bin/sh", "-c", "NCCLSHIM_PROFILE=%s %s -c \"%s\"" % (other, sys.executable, PYTHON_ENV),
                       env={"NCCLSHIM_PROFILE": "fewer-channels"})
    seen = json.loads(done.out)
    assert seen["NCCL_PROTO"] == "Simple" and not set(SEVEN) - {"NCCL_PROTO"} & set(seen), seen


BAD = {
    "an unknown section": ("[env]\nNCCL_PROTO = LL\n[enf]\nNCCL_ALGO = Ring\n", 3),
    "a key without value": ("[env]\nNCCL_PROTO = LL\nNCCL_NTHREADS =\n", 3),
    "a misspelt name": ("[env]\nNCCL_PROTO = LL\nNCCL_MIN_NCHANELS = 8\n", 3),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_profile_is_one_line_and_no_setting_at_all_and_the_server_runs(box, what):
    text, line = BAD[what]
    profile = box.profile("bad", text)
    seen, err = environment(box, NCCLSHIM_PROFILE=profile)
    assert not set(SEVEN) & set(seen), seen
    assert err.count("\n") == 1 and "%s:%d: " % (profile, line) in err and "nothing was set" in err, err
    done = shape(box, "group-one-call", NCCLSHIM_PROFILE=profile)
    assert done.out == "done\n" and done.err.count("\n") == 1, done
    refused = box.cli("run", "-p", profile, "--", "/bin/echo", "started")
    assert refused.code == 2 and "started" not in refused.out and "%s:%d: " % (profile, line) in refused.err, refused


def test_a_bad_profile_is_told_once_by_a_tree_of_processes(box):
    profile = box.profile("bad", BAD["an unknown section"][0])
    done = box.preload("/bin/sh", "-c", "/bin/sh -c '/bin/echo a; /bin/echo b'; /bin/echo c", env={"NCCLSHIM_PROFILE": profile})
    assert done.out == "a\nb\nc\n" and done.err.count("\n") == 1, done


def test_a_profile_that_is_not_there_is_one_line_and_run_refuses(box):
    seen, err = environment(box, NCCLSHIM_PROFILE="no-such-profile")
    assert not set(SEVEN) & set(seen) and err.count("\n") == 1 and "no-such-profile" in err, err
    refused = box.cli("run", "-p", "no-such-profile", "--", "/bin/echo", "started")
    assert refused.code == 2 and "started" not in refused.out, refused


def test_strict_makes_communicators_fail_rather_than_run_untuned(box):
    profile = box.profile("bad", BAD["an unknown section"][0])
    done = box.preload(box.build / "clients" / "shapes", "group-one-call",
                       env={"NCCLSHIM_PROFILE": profile, "NCCLSHIM_STRICT": "1"})
    assert done.code == 1 and re.search(r"ncclCommInitRank.*: 5$", done.err, re.M), done


def test_ctas_of_a_comm_section_reach_nccl_by_every_way_to_make_one(box):
    profile = box.profile("ctas", "[comm]\nmax_ctas = 4\n")
    for name in ("group-one-call", "birth-init-all", "birth-ways"):
        for log in box.logs.iterdir():
            log.unlink()
        done = shape(box, name, NCCLSHIM_PROFILE=profile, NCCL_DEBUG="INFO")
        channels = re.findall(r"(\d+) coll channels", done.out)
        assert channels and set(channels) == {"4"}, done
        for c in the_log(box).comms:
            if c["wrapped_calls"]:
                assert (c["asked_max_ctas"], c["given_max_ctas"]) == (4, 4), c
                assert c["channels"] <= 4


def test_c02_the_environment_beats_the_communicators_config_and_the_report_says_so(box):
    profile = box.profile("ctas", "[comm]\nmax_ctas = 4\n")
    done = shape(box, "group-one-call", NCCLSHIM_PROFILE=profile, NCCL_DEBUG="INFO", NCCL_MAX_CTAS="8")
    assert set(re.findall(r"(\d+) coll channels", done.out)) == {"8"}, done
    report = box.cli("report")
    assert report.code == 0 and "NCCL_MAX_CTAS" in report.out, report


def test_a_split_with_no_config_keeps_what_it_inherits(box):
    profile = box.profile("children", "[comm children]\nparent = with-config\nmin_ctas = 2\n")
    done = shape(box, "birth-ways", NCCLSHIM_PROFILE=profile, NCCL_DEBUG="INFO")
    split = [c for c in the_log(box).comms if c["wrapped_calls"] == 2]
    # the parent was made with maxCTAs 8: the child has that and the profile's minimum
    assert {(c["given_min_ctas"], c["given_max_ctas"]) for c in split} == {(2, 8)}, split
    assert done.code == 0


def test_variables_of_a_comm_section_are_given_to_that_communicator_alone(box):
    profile = box.profile("two", "[comm]\nNCCL_PROTO = Simple\n[comm named]\nname = with-config\nNCCL_PROTO = LL\n")
    shape(box, "birth-ways", NCCLSHIM_PROFILE=profile)
    log = the_log(box)
    protos = {}
    for s in log.sites:
        c = log.comms[s["comm"]]
        if s["op"] == ALL_REDUCE and s["proto"] != 255:
            protos.setdefault((c["name"] == "with-config" and c["parent"] < 0, c["wrapped_calls"]), set()).add(s["proto"])
    assert protos[True, 1] == {0}   # LL
    assert protos[False, 3] == {2}  # Simple, made by ncclCommInitRankScalable
    lost = [c for c in log.comms if c["flags"] & CONFIG_LOST]
    assert {c["wrapped_calls"] for c in lost} == {4}  # in a group: not given, and said
    assert any("[comm]" in w for w in warnings(log))


def test_a_profile_for_another_nccl_is_said_in_the_log(box):
    profile = box.profile("newer", "[profile]\nnccl = >=2.90\n")
    shape(box, "group-one-call", NCCLSHIM_PROFILE=profile)
    assert any("is meant for NCCL >=2.90" in w for w in warnings(the_log(box)))


def test_a_child_without_a_log_gets_back_the_plugin_that_the_user_had(box):
    code = ("import os, subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', %r],"
            " env=dict(os.environ, NCCLSHIM_LOG='off')).returncode)" % PYTHON_ENV)
    done = box.preload(sys.executable, "-c", code, env={"NCCL_PROFILER_PLUGIN": "libmine.so"})
    assert done.code == 0 and done.err == "", done
    seen = json.loads(done.out)
    assert {k: v for k, v in seen.items() if "PLUGIN" in k or "BEHIND" in k} == {"NCCL_PROFILER_PLUGIN": "libmine.so"}
    # the parent's own are the shim's
    seen, _ = environment(box, NCCL_PROFILER_PLUGIN="libmine.so")
    assert seen["NCCL_PROFILER_PLUGIN"] == seen["NCCL_ENV_PLUGIN"] == "libncclshim.so"


def test_the_digest_of_the_settings_leaves_out_what_may_differ_between_ranks(box):
    def digest(**env):
        shape(box, "group-one-call", **env)
        found = the_log(box).head["settings_digest"]
        forget_logs(box)
        return found

    same = {digest(), digest(NCCL_DEBUG="WARN"), digest(NCCL_SOCKET_IFNAME="lo", NCCL_HOSTID="me"), digest(NCCL_VERSION="2.28")}
    other = {digest(NCCL_ALGO="Ring"), digest(NCCL_ALGO="Tree"), digest(NCCL_BUFFSIZE="1048576")}
    assert len(same) == 1 and len(other) == 3 and not same & other


def test_mixed_use_without_graph_mixing_warns_once_a_communicator(box):
    shape(box, "capture-replays", NCCL_GRAPH_MIXING_SUPPORT="0")
    log = the_log(box)
    assert len([w for w in warnings(log) if "NCCL_GRAPH_MIXING_SUPPORT=0" in w]) == RANKS
    assert all(c["flags"] & MIXED for c in log.comms)


@pytest.mark.parametrize("env", [{}, {"NCCL_GRAPH_MIXING_SUPPORT": "1"}], ids=["unset", "1"])
def test_mixed_use_with_graph_mixing_is_noted_and_no_warning(box, env):
    shape(box, "capture-replays", **env)
    log = the_log(box)
    assert warnings(log) == [] and all(c["flags"] & MIXED for c in log.comms)


@pytest.mark.parametrize("key,left", [("eager = no", {(ALL_REDUCE, 43008, True): 150 * RANKS}),
                                      ("captured = no", {(ALL_REDUCE, 43008, False): 2 * RANKS}),
                                      ("min_bytes = 64K", {}), ("ops = allgather", {})])
def test_log_keys_choose_what_is_timed_and_all_is_counted(box, key, left):
    profile = box.profile("log", "[log]\n%s\n" % key)
    shape(box, "capture-replays", NCCLSHIM_PROFILE=profile)
    log = the_log(box)
    assert timed(log) == left
    assert sum(c["wrapped_calls"] for c in log.comms) == 5 * RANKS


def test_capacity_is_the_number_of_records_kept(box):
    profile = box.profile("small", "[log]\ncapacity = 1K\n")
    shape(box, "capture-strict", NCCLSHIM_PROFILE=profile, SHAPES_ROUNDS=100)
    log = the_log(box)
    for ring in log.rings.values():
        assert ring["capacity"] == 1024 and len(ring["records"]) == 1024
    seen = box.json("report")["log"]
    assert (seen["timed"], seen["timed"] + seen["lost"]) == (1024 * RANKS, 2000 * RANKS)


def test_with_the_log_off_nothing_is_written_and_settings_hold(box):
    done = shape(box, "group-one-call", NCCLSHIM_LOG="off", NCCLSHIM_PROFILE="fewer-channels", NCCL_DEBUG="INFO")
    assert set(re.findall(r"(\d+) coll channels", done.out)) == {"2"}, done
    assert glob.glob(str(box.logs / "*")) == []


def test_every_setting_is_in_the_log_with_its_origin(box):
    profile = box.profile("some", "[env]\nNCCL_PROTO = LL\nNCCL_ALGO = Ring\n[env override]\nNCCL_BUFFSIZE = 2M\n")
    shape(box, "group-one-call", NCCLSHIM_PROFILE=profile, NCCL_ALGO="Tree", NCCL_BUFFSIZE="1048576")
    origin = {}
    for n in the_log(box).notes:
        if n["type"] == SETTING:
            name, value = n["body"].split(b"\0")[:2]
            origin[name.decode()] = (value.decode(), n["a"])
    assert origin["NCCL_PROTO"] == ("LL", 1)
    assert origin["NCCL_ALGO"] == ("Tree", 0)
    assert origin["NCCL_BUFFSIZE"] == ("2097152", 2)
