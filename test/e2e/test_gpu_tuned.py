# SPDX-License-Identifier: Apache-2.0
"""test/gpu/tuned.py on the simulator: from a server to a proven profile."""


def test_a_server_is_recorded_tuned_and_held_against_its_default(box):
    done = box.run("python3", "-B", box.root / "test" / "gpu" / "tuned.py", "--simulate", "--parts", "off,folk", "--seconds", "60",
                   "--rounds", 2, env={"BUILD": box.build, "OUT": box.dir / "gpu"}, timeout=85)
    assert done.code == 0 and "not ok" not in done.out, done
    for words in ("tune finds and proves", "no call takes more", "two times say the same", "no difference shown"):
        assert "ok " in done.out and words in done.out, done
    assert "NCCL_GRAPH_MIXING_SUPPORT = 0" in (box.dir / "gpu" / "off.ini").read_text()
