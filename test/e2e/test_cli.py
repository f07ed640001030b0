# SPDX-License-Identifier: Apache-2.0
"""The command's first word, and requests that are wrong: exit code 2, and what is wrong or the usage."""
import pytest

import runs


def test_without_a_verb_the_verbs_are_listed(box):
    done = box.cli()
    assert done.code == 2 and done.out == ""
    assert all(verb in done.err for verb in ("run", "report", "compare", "tune", "doctor")), done


def test_the_version_is_told(box):
    done = box.cli("--version")
    assert done.code == 0 and done.out.startswith("ncclshim ") and done.out.count("\n") == 1, done


@pytest.mark.parametrize("word, near", [("reprot", "report"), ("colect", "collect"), ("xyzzyqwerty", None)])
def test_a_verb_that_there_is_not_is_told_with_the_nearest(box, word, near):
    done = box.cli(word)
    assert done.code == 2 and done.err.count("\n") == 1 and word in done.err, done
    assert ("did you mean '%s'" % near in done.err) if near else ("did you mean" not in done.err), done


@pytest.mark.parametrize("args", [
    ["collect", "--keep", "some"], ["collect", "--interval", "soon"], ["collect", "--no-such"],
    ["top", "--interval", "0"], ["top", "--frames", "none"], ["top", "one", "two"], ["top", "--no-such"],
    ["report", "--no-such"], ["report", "-Z"], ["report", "--json=1"], ["report", "--sort", "beauty"],
    ["report", "--since", "5x"], ["report", "--since", "5ms"], ["report", "--since", "-1s"], ["report", "--bytes", "9-1"],
    ["report", "--op", "dance"], ["report", "--rank", "first"],
    ["clean", "--no-such"], ["compare", "one"], ["export", "--format", "gold"], ["bench", "--ranks", "0"],
    ["bench", "--repeats", "none"], ["show", "--no-such"], ["check"], ["profiles", "--no-such"], ["doctor", "--pid", "me"],
    ["tune", "--no-such"], ["ab", "--no-such"], ["run", "--no-such"],
], ids=lambda a: "-".join(a))
def test_a_wrong_request_is_refused_with_a_word_about_it(box, args):
    done = box.cli(*args)
    assert done.code == 2 and done.out == "" and done.err.strip(), done
    assert len(done.err.splitlines()) <= 3 or "usage: ncclshim " + args[0] in done.err, done


@pytest.fixture
def made(box):
    return runs.make("mixed", box.dir / "mixed")


@pytest.mark.parametrize("column, value", [
    ("bytes", lambda row: row["bytes"]), ("calls", lambda row: row["issued"]),
    ("p50", lambda row: row["time"]["p50_ns"] if row["timed"] else 0),
    ("p99", lambda row: row["time"]["p99_ns"] if row["timed"] else 0),
    ("max", lambda row: row["time"]["max_ns"] if row["timed"] else 0),
])
def test_rows_stand_in_the_order_that_was_asked_for(box, made, column, value):
    tables = [comm["rows"] for comm in box.json("report", made, "--all", "--sort", column)["communicators"]]
    assert max(map(len, tables)) > 2
    for rows in tables:
        values = [value(row) for row in rows]
        assert values == sorted(values, reverse=True), values


@pytest.mark.parametrize("since", ["90s", "2m", "1.5h", "1d"])
def test_a_time_back_from_the_end_has_any_unit(box, made, since):
    assert box.cli("report", made, "--since", since).code == 0


def test_a_run_whose_description_is_damaged_is_an_error_with_its_place(box, made):
    (made / "run.json").write_text('{"version": 1,\n "command": [}')
    done = box.cli("report", made)
    assert done.code == 2 and "run.json:2" in done.err, done
