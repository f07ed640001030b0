# SPDX-License-Identifier: Apache-2.0
"""test/gpu/main.sh itself, on the simulator and short: so that it works where there are GPUs."""
import pytest


def script(box, *args):
    done = box.run("bash", box.root / "test" / "gpu" / "main.sh", "--simulate", "--rounds", 1, "--steps", 4, *args,
                   env={"BUILD": box.build, "OUT": box.dir / "gpu"}, timeout=85)
    assert done.code == 0, done
    assert "not ok" not in done.out, done
    return (box.dir / "gpu" / "main.txt").read_text()


def test_the_gpu_script_runs_to_its_end_on_the_simulator(box):
    assert "layout: simulator;" in script(box, "--budget", 60, "--parts", "both,killed,shapes,costs")


def test_the_gpu_script_puts_all_ranks_on_one_gpu(box):
    if not (box.fake / "nccl-23007").exists():
        pytest.skip("the simulated NCCL 2.30.7 is not built: make units")
    assert "layout: simulator, one GPU;" in script(box, "--one-gpu", "--budget", 40, "--parts", "killed,shapes")


def test_the_gpu_script_takes_eight_ranks(box):
    assert "layout: simulator;" in script(box, "--ranks", 8, "--budget", 40, "--parts", "killed")
