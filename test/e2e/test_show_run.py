# SPDX-License-Identifier: Apache-2.0
"""`show --run`: what was asked and what NCCL got."""
import json


def test_a_run_shows_its_settings_and_how_often_its_rules_were_applied(box):
    profile = box.profile("rules", "[env]\nNCCL_P2P_LEVEL = SYS\n[tune]\nallreduce 0-64K = ring ll channels=2\nbroadcast = ring\n")
    done = box.cli("run", "-p", profile, "-o", "run", "--", box.build / "clients" / "shapes", "capture-replays")
    assert done.code == 0, done
    shown = box.cli("show", "--run", "run")
    assert shown.code == 0, shown
    assert "NCCL_P2P_LEVEL  SYS       profile  yes" in shown.out, shown
    assert "allreduce 0-64K = ring ll channels=2" in shown.out and "broadcast = ring" in shown.out, shown
    found = json.loads(box.cli("show", "--run", "run", "--json").out)
    assert [s["value"] for s in found["settings"] if s["name"] == "NCCL_P2P_LEVEL"] == ["SYS"]
    assert "passes" not in found


def test_the_newest_run_is_shown_where_none_is_named(box):
    box.cli("run", "-p", "quiet", "--", box.build / "clients" / "shapes", "group-one-call")
    shown = box.cli("show", "--run")
    assert shown.code == 0 and "NCCL_" in shown.out, shown


def test_a_profile_beside_run_is_refused(box):
    assert box.cli("show", "--run", "run", "fewer-channels").code == 2
    assert box.cli("show", "--run", "--ini").code == 2
