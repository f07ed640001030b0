# SPDX-License-Identifier: Apache-2.0
"""Communicators' configurations, end to end: what the program hands over, what the profile wishes, what NCCL gets
(by its own debug lines). The arithmetic of the struct is test/unit/test_config.c's."""
import glob
import re
from collections import Counter

import pytest

import logmaker

RANKS = 2
FOUR = "[comm]\nmax_ctas = 4\nmin_ctas = 2\n"


def run(box, shape, profile=None, **env):
    """({what NCCL says of configurations: how often}, the log)"""
    env = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "ENV", "NCCLSHIM_PROFILE": profile, **env}
    done = box.preload(box.build / "clients" / "shapes", shape, env=env)
    assert done.code == 0 and done.out.endswith("done\n") and done.err == "", done
    logs = glob.glob(str(box.logs / "*.ncclshim"))
    assert len(logs) == 1, logs
    return Counter(re.findall(r"Comm config (.*)", done.out)), logmaker.parse(logs[0])


def test_c01_structs_of_older_and_newer_headers_get_what_the_profile_wishes_and_no_junk(box):
    """2.14's and 2.18's at the end of a page, one that is larger than ours, one with a wrong magic, NULL."""
    said, log = run(box, "config-callers", box.profile("four", FOUR))
    assert said == {"Max CTAs set to 4": 4 * RANKS, "Min CTAs set to 2": 4 * RANKS}
    assert Counter(c["state"] for c in log.comms) == {4: 4 * RANKS, 3: RANKS}
    assert {(c["given_min_ctas"], c["given_max_ctas"]) for c in log.comms if c["state"] == 4} == {(2, 4)}


def test_c01_without_a_wish_the_structs_go_through_as_they_are(box):
    said, _ = run(box, "config-callers")
    assert said == {}


@pytest.mark.parametrize("variable", ["profile", "shell"])
def test_c02_the_environment_beats_the_communicators_config_and_both_are_told(box, variable):
    profile = box.profile("p", ("[env]\nNCCL_MAX_CTAS = 16\n" if variable == "profile" else "")
                          + "[comm]\nmax_ctas = 4\n[comm nobody]\nname = nosuch*\nmax_ctas = 2\n")
    env = {"NCCL_MAX_CTAS": "16"} if variable == "shell" else {}
    checked = box.cli("check", "--env", profile, env=env)
    assert "max_ctas: no effect: NCCL_MAX_CTAS = 16 is set and wins" in checked.out + checked.err, checked
    said, log = run(box, "group-one-call", profile, **env)
    assert said["Max CTAs set to 4"] == RANKS and said["maxCTAs reset to NCCL_MAX_CTAS=16"] == RANKS, said
    assert {c["asked_max_ctas"] for c in log.comms} == {4}
    report = " ".join(box.cli("report").out.split())
    assert "asked for max_ctas 4, NCCL was given 16 (the environment beats the communicator's configuration)" in report
    assert "[comm nobody] matched no communicator" in report


def test_c03_a_profile_can_not_switch_blocking(box):
    done = box.cli("check", box.profile("p", "[comm]\nblocking = 0\n"))
    assert done.code == 1 and "blocking is no setting" in done.out + done.err, done


def test_c04_a_split_without_a_config_inherits_all_and_gets_the_profiles_part(box):
    profile = box.profile("p", "[comm]\nmin_ctas = 2\n")
    said, log = run(box, "config-children", profile)
    parents = [c for c in log.comms if c["name"] == "parent" and c["parent"] < 0]
    children = [c for c in log.comms if c["parent"] >= 0]
    assert len(parents) == len(children) == RANKS  # "no member" made none
    assert all((c["given_min_ctas"], c["given_max_ctas"]) == (2, 8) for c in parents + children), log.comms
    assert said["Max CTAs set to 8"] == said["Comm name set to parent"] == 2 * RANKS, said
    # the three of a group: made from a plain init, turned into the form with a config
    assert said["Min CTAs set to 2"] == 5 * RANKS, said


def test_c04_a_split_without_a_wish_keeps_its_null(box):
    said, _ = run(box, "config-children")
    assert said == {"Max CTAs set to 8": RANKS, "Comm name set to parent": RANKS}


def test_c04_inits_inside_one_group_have_handles_after_its_end(box):
    _, log = run(box, "config-children")
    calls = Counter(c["wrapped_calls"] for c in log.comms)
    assert calls == {0: 2 * RANKS, 1: RANKS, 2: RANKS, 3: RANKS}
    # NCCL's threads tell of all three at once: each is told of, none twice
    hashes = Counter(c["hash"] for c in log.comms)
    assert 0 not in hashes and set(hashes.values()) == {RANKS}, hashes


def test_c04_init_all_is_given_a_config_for_each_device(box):
    said, log = run(box, "birth-init-all", box.profile("four", FOUR))
    assert said == {"Max CTAs set to 4": RANKS, "Min CTAs set to 2": RANKS}
    assert [(c["given_min_ctas"], c["given_max_ctas"]) for c in log.comms] == [(2, 4)] * RANKS


def test_c04_what_the_loaded_nccl_can_not_be_given_is_told(box):
    """2.13 has no configuration at all."""
    folder = box.build / "fake" / "nccl-2803"
    if not folder.exists():
        pytest.skip("the simulated NCCL 2.8.3 is not built (make test does)")
    done = box.preload(box.build / "compat" / "linked", env={
        "LD_LIBRARY_PATH": "%s:%s" % (folder, box.fake), "COMPAT_ROUNDS": "2", "NCCLSHIM_PROFILE": box.profile("four", FOUR)})
    assert done.code == 0 and "sums good" in done.out and done.err == "", done
    report = " ".join(box.cli("report").out.split())
    assert "max_ctas could not be given" in report, report
