# SPDX-License-Identifier: Apache-2.0
"""The scripts of test/gpu for costs, settings and eight ranks, on the simulator and short: so that they work where
there are GPUs. Their programs serve smaller tests, too."""


def script(box, name, *args):
    done = box.run("bash", box.root / "test" / "gpu" / name, "--simulate", *args,
                   env={"BUILD": box.build, "OUT": box.dir / "gpu", "GPU_KIT": box.dir}, timeout=85)
    assert done.code == 0, done
    assert "not ok" not in done.out and "\nok " in "\n" + done.out, done
    return done


def test_the_cost_script_runs_to_its_end_on_the_simulator(box):
    script(box, "cost.sh", "--budget", 70, "--parts", "truth,cost,captures,ends,stuck")
    text = (box.dir / "gpu" / "cost.txt").read_text()
    assert "layout: simulator" in text and "100.0 %" in text


def test_the_settings_script_runs_to_its_end_on_the_simulator(box):
    script(box, "settings.sh", "--budget", 70)
    assert "layout: simulator" in (box.dir / "gpu" / "settings.txt").read_text()


def test_the_script_for_eight_ranks_runs_to_its_end_on_the_simulator(box):
    script(box, "eight.sh")
    assert "8 ranks" in (box.dir / "gpu" / "eight.txt").read_text()


def test_c02_nccl_max_ctas_in_the_shell_wins_and_the_report_says_so(box):
    profile = box.profile("four", "[comm]\nmax_ctas = 4\n")
    done = box.cli("run", "-p", profile, "-o", "run", "--", box.build / "cost" / "births", "InitRank", env={"NCCL_MAX_CTAS": 2})
    assert done.code == 0, done
    report = box.json("report", "run")
    assert [(c["asked_max_ctas"], c["given_max_ctas"]) for c in report["communicators"]] == [(4, 2)]
    assert any("max_ctas 4" in h["text"] and "given 2" in h["text"] for h in report["hints"]), report["hints"]
