# SPDX-License-Identifier: Apache-2.0
"""`ncclshim profiles` and `ncclshim show`: which profiles there are, what one would set, from where."""
import json
from pathlib import Path

import pytest

from runs import check_golden

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted(p.stem for p in (ROOT / "profiles").glob("*.ini"))
SEVEN = {"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "NCCL_P2P_LEVEL": "SYS", "NCCL_MIN_NCHANNELS": "1",
         "NCCL_MAX_NCHANNELS": "2", "NCCL_BUFFSIZE": "131072", "NCCL_NTHREADS": "64"}


@pytest.fixture
def show(box):
    """What `show --json` says of a profile: parsed."""
    def call(profile, **env):
        done = box.cli("show", "--json", profile, env={"NCCLSHIM_PROFILE_PATH": ROOT / "profiles", **env})
        assert done.code == 0, done
        return json.loads(done.out)
    return call


def settings(shown):
    return {s["name"]: s["value"] for s in shown["environment"]}


def test_the_issue_s_profiles_are_shipped():
    assert set(SHIPPED) >= {"fewer-channels", "sixteen-channels", "decode-graph", "pcie-p2p", "pcie-latency",
                            "pcie-bandwidth", "no-p2p", "quiet", "debug"}


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_profile_says_what_for_on_what_evidence_and_at_what_danger(name):
    text = (ROOT / "profiles" / (name + ".ini")).read_text()
    for word in ("; For ", "; Evidence", "; Danger", "description ="):
        assert word in text, word


def test_the_seven_settings(show):
    assert settings(show("fewer-channels")) == SEVEN


def test_the_counterpart_differs_in_channels_threads_and_buffer(show):
    assert settings(show("sixteen-channels")) == {
        **SEVEN, "NCCL_MIN_NCHANNELS": "16", "NCCL_MAX_NCHANNELS": "16", "NCCL_NTHREADS": "512",
        "NCCL_BUFFSIZE": str(16 << 20)}


def test_decode_graph_sets_one_variable(show):
    assert settings(show("decode-graph")) == {"NCCL_GRAPH_MIXING_SUPPORT": "0"}


def test_none_is_built_in(box, show):
    assert show("none")["environment"] == []
    assert "none" in box.cli("profiles", env={"NCCLSHIM_PROFILE_PATH": ROOT / "profiles"}).out


def test_the_list_has_one_line_and_one_path_for_each(box):
    done = box.cli("profiles", env={"NCCLSHIM_PROFILE_PATH": ROOT / "profiles"})
    assert done.code == 0
    for name in SHIPPED:
        assert str(ROOT / "profiles" / (name + ".ini")) in done.out


def test_a_name_earlier_in_the_path_shadows_the_later_one(box):
    box.profile("quiet", "[profile]\ndescription = mine\n[env]\nNCCL_DEBUG = NONE\n")
    done = box.cli("profiles", "--json", env={"NCCLSHIM_PROFILE_PATH": "%s:%s" % (box.dir, ROOT / "profiles")})
    entries = [e for e in json.loads(done.out) if e["name"] == "quiet"]
    assert [e["shadowed"] for e in entries][:2] == [False, True]
    assert entries[0]["description"] == "mine"


def test_a_bad_profile_is_listed_with_its_error_and_exit_code_1(box):
    box.profile("broken", "[env]\nNCCL_PROTOO = LL\n")
    done = box.cli("profiles", env={"NCCLSHIM_PROFILE_PATH": box.dir})
    assert done.code == 1
    assert "broken.ini:2: no NCCL reads 'NCCL_PROTOO'; did you mean 'NCCL_PROTO'?" in done.out


def test_the_config_folder_is_looked_in(box):
    folder = box.dir / "home" / ".config" / "ncclshim" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.ini").write_text("[env]\nNCCL_DEBUG = WARN\n")
    assert box.cli("show", "mine").code == 0
    other = box.dir / "xdg" / "ncclshim" / "profiles"
    other.mkdir(parents=True)
    (other / "yours.ini").write_text("[env]\nNCCL_DEBUG = WARN\n")
    assert box.cli("show", "yours", env={"XDG_CONFIG_HOME": box.dir / "xdg"}).code == 0
    assert box.cli("show", "mine", env={"XDG_CONFIG_HOME": box.dir / "xdg"}).code == 2


def test_the_user_s_own_value_is_kept_and_said_so(box, show):
    shown = show("fewer-channels", NCCL_PROTO="Simple")
    proto = [s for s in shown["environment"] if s["name"] == "NCCL_PROTO"][0]
    assert (proto["value"], proto["origin"], proto["kept"], proto["asked"]) == ("Simple", "user", True, "LL")
    done = box.cli("show", "fewer-channels", env={"NCCLSHIM_PROFILE_PATH": ROOT / "profiles", "NCCL_PROTO": "Simple"})
    assert "kept: the profile asks for LL" in done.out


def test_an_override_replaces_the_user_s_value(show):
    shown = show("quiet", NCCL_DEBUG="INFO")
    assert settings(shown)["NCCL_DEBUG"] == "WARN"
    assert shown["environment"][0]["origin"] == "override"


def test_an_inherited_value_names_its_file_and_line(show):
    shown = show("pcie-latency")
    level = shown["environment"][0]
    assert shown["inherits"] == ["pcie-p2p"]
    assert level["file"].endswith("pcie-p2p.ini") and level["line"] > 1


def test_other_nccl_variables_of_the_shell_are_shown_too(show):
    assert settings(show("pcie-p2p", NCCL_BUFFSIZE="1048576")) == {
        "NCCL_P2P_LEVEL": "SYS", "NCCL_BUFFSIZE": "1048576"}


def test_nccl_s_own_file_is_shown_as_overridden(box, show):
    (box.dir / "home" / ".nccl.conf").write_text("NCCL_P2P_LEVEL=PHB\nNCCL_ALGO = Ring\nNCCL_SHM_DISABLE=1\n")
    shown = show("pcie-p2p")
    assert settings(shown) == {"NCCL_P2P_LEVEL": "SYS", "NCCL_SHM_DISABLE": "1"}
    texts = [f["reason"] for f in shown["findings"] if f["origin"] == "conf"]
    assert any("loses against the profile" in t for t in texts)
    assert any("the line does nothing" in t for t in texts)


@pytest.mark.parametrize("name", SHIPPED)
def test_what_show_ini_prints_reads_back_to_the_same(box, name):
    env = {"NCCLSHIM_PROFILE_PATH": ROOT / "profiles"}
    first = box.cli("show", "--ini", name, env=env)
    again = box.cli("show", "--ini", box.profile("again", first.out), env=env)
    assert first.code == 0 and again.out == first.out


def test_a_profile_that_cannot_be_loaded_is_exit_code_1_with_its_place(box):
    path = box.profile("bad", "[env]\nNCCL_BUFFSIZE = 1e6\n")
    done = box.cli("show", path)
    assert done.code == 1 and "bad.ini:2" in done.err and "NCCL would read 1" in done.err
    assert done.out == ""


RICH = """[profile]
description = Something of everything
nccl = >=2.19, <2.31
inherit = base
allow_unsafe = yes
[env]
NCCL_P2P_LEVEL = sys
NCCL_BUFFSIZE = 1M
NCCL_DEBUG = WARN
[env override]
NCCL_NTHREADS = 256
[comm]
max_ctas = 16
[comm two]
ranks = 2
name = tp*
min_ctas = 2
net_name = Socket
NCCL_GRAPH_FILE = "/etc/nccl/turin.xml"
[tune]
allreduce 0-64K = ring ll channels=2
[tune large]
ranks = 4-8
allreduce 64K-1M = tree simple
broadcast = ring
[log]
sample = 10
capacity = 64K
min_bytes = 4K
eager = no
ops = all_reduce, broadcast
"""
CONF = "NCCL_DEBUG=INFO\nNCCL_SOCKET_IFNAME=eth0\nNCCL_ALGO = Ring\n"


@pytest.fixture
def rich(box):
    """Shows a profile with something of every section, in a shell with a choice of its own."""
    (box.dir / "base.ini").write_text("[env]\nNCCL_CROSS_NIC = 1\nNCCL_BUFFSIZE = 4M\n")
    (box.dir / "rich.ini").write_text(RICH)
    (box.dir / "nccl.conf").write_text(CONF)

    def call(*options):
        done = box.cli("show", *options, "rich", env={
            "NCCLSHIM_PROFILE_PATH": ".", "NCCL_DEBUG": "VERSION", "NCCL_NTHREADS": "128", "NCCL_CONF_FILE": "nccl.conf"})
        assert done.code == 0 and done.err == "", done
        return done.out
    return call


def test_the_text_of_a_profile_with_everything_stays_as_it_is(rich):
    check_golden("show-profile.txt", rich("--nccl", "2.28.9"))


def test_the_json_of_a_profile_with_everything_stays_as_it_is(rich):
    text = rich("--nccl", "2.28.9", "--json")
    json.loads(text)
    check_golden("show-profile.json", text)


def test_what_show_ini_prints_of_everything_says_the_same(box, rich):
    flat = rich("--ini")
    (box.dir / "rich.ini").write_text(flat)
    assert rich("--ini") == flat
