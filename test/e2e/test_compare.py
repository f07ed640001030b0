# SPDX-License-Identifier: Apache-2.0
"""`compare` calls a difference what is one, and nothing else."""
import random
import re

import pytest

from runs import check_golden, make, noise, one_kind

CALLS = 5000


def verdicts(box, pairs, scale, first_seed):
    count = {}
    for pair in range(pairs):
        rng = random.Random(first_seed + pair)
        for name, factor in (("a", 1.0), ("b", scale)):
            folder = box.dir / name
            for old in folder.glob("*"):
                old.unlink()
            one_kind(folder, noise(rng, CALLS, scale=factor))
        verdict = box.json("compare", "a", "b")["whole"][0]["verdict"]
        count[verdict] = count.get(verdict, 0) + 1
    return count


@pytest.mark.parametrize("first_seed", [0, 1000, 2000, 3000])
def test_at_most_one_in_twenty_equal_pairs_gets_a_verdict(box, first_seed):
    """Four times 50 pairs with drift, bursts and heavy tails; 2 false verdicts in each are allowed,
    which is 4 %."""
    count = verdicts(box, 50, 1.0, first_seed)
    assert count.get("no_difference_shown", 0) >= 48, count


@pytest.mark.parametrize("scale, verdict", [(1.03, "slower"), (0.97, "faster")])
def test_a_shift_of_3_percent_is_found_with_5000_calls_a_side(box, scale, verdict):
    count = verdicts(box, 40, scale, 5000)
    assert count.get(verdict, 0) >= 38, count
    assert set(count) <= {verdict, "no_difference_shown"}


def test_a_run_against_itself_shows_no_difference(box):
    make("straggler", box.dir / "run")
    done = box.cli("compare", "run", "run", "--fail-if-slower", "0")
    assert done.code == 0, done
    assert "no difference shown between A and B" in done.out


@pytest.fixture
def pair(box):
    rng = random.Random(4)
    one_kind(box.dir / "a", noise(rng, 3000))
    one_kind(box.dir / "b", noise(rng, 3000, scale=1.2))
    return box


def test_the_text_of_a_known_pair_stays_as_it_is(pair):
    done = pair.cli("compare", "a", "b", env={"COLUMNS": "110"})
    assert done.code == 0
    check_golden("compare.txt", done.out)
    done = pair.cli("compare", "a", "b", "--json")
    check_golden("compare.json", done.out.replace(str(pair.dir), ""))


def test_fail_if_slower_answers_with_exit_code_1(pair):
    assert pair.cli("compare", "a", "b").code == 0
    assert pair.cli("compare", "a", "b", "--fail-if-slower", "2").code == 1
    assert pair.cli("compare", "a", "b", "--fail-if-slower", "30%").code == 0
    assert pair.cli("compare", "b", "a", "--fail-if-slower", "2").code == 0


def test_the_interval_holds_the_true_change(pair):
    d = pair.json("compare", "a", "b")["rows"][0]["against_first"][0]["p50"]["difference"]
    assert d["low_95"] < 0.2 < d["high_95"] and d["high_95"] - d["low_95"] < 0.06


def test_three_runs_are_each_held_against_the_first(pair):
    j = pair.json("compare", "a", "b", "a")
    assert [w["verdict"] for w in j["whole"]] == ["slower", "no_difference_shown"]


def test_several_runs_of_a_side_judge_by_how_much_its_runs_differ(box):
    """Runs whose level wanders by 3 %: one of each side looks like a difference, four do not."""
    rng = random.Random(8)
    names = {"a": [], "b": []}
    for i, (p, q) in enumerate([(1.00, 1.04), (1.05, 0.99), (0.98, 1.02), (1.03, 1.00)]):
        for side, scale in (("a", p), ("b", q)):
            names[side].append("%s%d" % (side, i))
            one_kind(box.dir / names[side][-1], noise(rng, 2000, scale=scale, drift=0, sd=0.02))
    assert box.json("compare", "a0", "b0")["whole"][0]["verdict"] == "slower"
    j = box.json("compare", ",".join(names["a"]), ",".join(names["b"]))
    assert j["whole"][0]["verdict"] == "no_difference_shown", j["whole"]
    assert len(j["sides"][0]["runs"]) == 4


def test_few_calls_get_no_verdict(box):
    rng = random.Random(2)
    one_kind(box.dir / "a", noise(rng, 30))
    one_kind(box.dir / "b", noise(rng, 30, scale=3))
    assert box.json("compare", "a", "b")["whole"][0]["verdict"] == "too_few_calls"


def test_a_kind_of_call_that_only_one_side_has_is_named_and_not_judged(box):
    rng = random.Random(2)
    one_kind(box.dir / "a", noise(rng, 200))
    one_kind(box.dir / "b", noise(rng, 200), bytes=8)
    out = box.cli("compare", "a", "b").out
    assert "only in A" in out and "not in A" in out
    assert box.json("compare", "a", "b")["whole"][0]["verdict"] == "too_few_calls"


def test_settings_that_differ_stand_below(box):
    make("straggler", box.dir / "a")
    make("killed", box.dir / "b")
    out = box.cli("compare", "a", "b").out
    assert re.search(r"NCCL_PROTO +LL +\(not set\)", out)


def test_the_html_page_asks_the_network_for_nothing(pair):
    assert pair.cli("compare", "a", "b", "--html", "page.html").code == 0
    page = (pair.dir / "page.html").read_text()
    assert "http:" not in page and "https:" not in page and "<script" not in page and page.count("<svg") == 2
    assert "B is slower" in page


@pytest.mark.parametrize("args, words", [
    (["a"], "two runs or more"),
    (["a", "nowhere"], "nowhere: no such run"),
    (["a", "a", "--fail-if-slower", "much"], "no percentage"),
])
def test_a_wrong_request_is_one_line_that_says_what_to_write(box, args, words):
    make("empty", box.dir / "a")
    done = box.cli("compare", *args)
    assert done.code == 2 and done.out == "" and words in done.err and done.err.count("\n") == 1, done
