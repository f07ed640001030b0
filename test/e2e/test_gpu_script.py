# SPDX-License-Identifier: Apache-2.0
"""test/gpu/main.sh itself, on the simulator and short: so that it works where there are GPUs."""


def test_the_gpu_script_runs_to_its_end_on_the_simulator(box):
    done = box.run("bash", box.root / "test" / "gpu" / "main.sh", "--simulate", "--budget", 60, "--rounds", 1, "--steps", 4,
                   env={"BUILD": box.build, "OUT": box.dir / "gpu"}, timeout=85)
    assert done.code == 0, done
    assert "not ok" not in done.out, done
    assert "layout: simulator" in (box.dir / "gpu" / "main.txt").read_text()
