# SPDX-License-Identifier: Apache-2.0
"""test/gpu/tampered.py on the simulator: a library that is wrong or stuck under some settings, whatever the driver."""


def test_tune_keeps_away_from_what_a_tampered_nccl_does(box):
    done = box.run("python3", "-B", box.root / "test" / "gpu" / "tampered.py", "--simulate",
                   env={"BUILD": box.build, "OUT": box.dir / "gpu"}, timeout=80)
    assert done.code == 0 and "not ok" not in done.out, done
    for words in ("ends with wrong", "ends with hang", "tune names the setting", "tune chooses neither", "no process is left"):
        assert words in done.out, done
